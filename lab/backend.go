package lab

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"pelt/lab/impair"
	"pelt/lab/netem"
	"pelt/model"
)

// machine is what links can be emulated by here. Each function says why not.
type machine struct {
	user   func() error
	kernel func() (seeds bool, err error) // seeds: netem takes them
}

// once asks each question at most once.
func once(m machine) machine {
	return machine{user: sync.OnceValue(m.user), kernel: sync.OnceValues(m.kernel)}
}

// choice is who emulates a link.
type choice struct {
	backend string
	reason  string
	seeds   bool // netem takes them
}

// choose finds a backend for a link: what was asked, or the first that does what
// the words say. The error is a *UsageError if another choice would help.
func (p linkPlan) choose(m machine) (choice, error) {
	refuse := func(err error, format string, args ...any) (choice, error) {
		var rights *RightsError
		if errors.As(err, &rights) {
			return choice{}, err
		}
		return choice{}, &UsageError{"backend " + p.backend + ": " + fmt.Sprintf(format, args...)}
	}
	switch p.backend {
	case model.BackendUser:
		if err := m.user(); err != nil {
			return refuse(err, "%s; want backend kernel or auto", briefly(err))
		}
		return choice{backend: model.BackendUser, reason: "asked for"}, nil
	case model.BackendKernel:
		seeds, err := m.kernel()
		if err != nil {
			return refuse(err, "%s; want backend user or auto", briefly(err))
		}
		if p.seeded() && !seeds {
			return refuse(nil, "this kernel's netem takes no seed, as Linux 6.6 and later do; leave the seed out, or want backend user")
		}
		return choice{model.BackendKernel, "asked for", seeds}, nil
	}
	none := m.user()
	if none != nil && p.cannot(kernelCannot) == "" {
		if seeds, err := m.kernel(); err == nil && (seeds || !p.seeded()) {
			return choice{model.BackendKernel, briefly(none), seeds}, nil
		}
	}
	return choice{backend: model.BackendUser, reason: "does all that the words can say"}, nil // or says what is missing
}

// choose finds the backend of each emulated link of a lab; the others' are zero.
func (t topologySpec) choose(plans []linkPlan, m machine) ([]choice, error) {
	choices := make([]choice, len(plans))
	for i, p := range plans {
		if !p.emulated() {
			continue
		}
		c, err := p.choose(m)
		var usage *UsageError
		if errors.As(err, &usage) {
			return nil, &UsageError{"link " + t.linkName(i) + ": " + usage.Text}
		}
		if err != nil {
			return nil, err
		}
		choices[i] = c
	}
	return choices, nil
}

// briefly leaves out what the kernel answered where it lacks something.
func briefly(err error) string {
	var lack *KernelError
	if errors.As(err, &lack) {
		return fmt.Sprintf("this kernel has no %s (%s)", lack.Facility, lack.Config)
	}
	return err.Error()
}

func (p linkPlan) seeded() bool { return cmp.Or(p.toward[0].asked.Seed, p.toward[1].asked.Seed) != 0 }

// acts reports whether a direction does anything to frames.
func (s shape) acts() bool { return s.rate > 0 || s.asked.Impaired() }

// cannot is why a backend cannot do what either direction asks, "" if it can.
func (p linkPlan) cannot(why func(impair.Settings) string) string {
	for _, s := range p.toward {
		if !s.acts() {
			continue
		}
		if w := why(s.settings()); w != "" {
			return w
		}
	}
	return ""
}

// checkBackend says what the asked backend can never do on a link of that name.
// The error is a *UsageError.
func (p linkPlan) checkBackend(link string) error {
	var why string
	if p.backend == model.BackendKernel {
		why = p.cannot(kernelCannot)
	}
	if why == "" {
		return nil
	}
	return &UsageError{fmt.Sprintf("link %s: backend %s: %s", link, p.backend, why)}
}

// kernelCannot is what netem and tbf cannot do as the words say, "" if they can.
func kernelCannot(s impair.Settings) string {
	if s.Whole {
		return "its rate takes buffers apart; want backend user for buffers=whole"
	}
	const other = "; want backend user"
	wraps := func(a, b float64) bool { return netem.Share(a)+netem.Share(b) < netem.Share(a) }
	switch l := s.Loss; {
	case s.Correlation > 0:
		return "netem's correlation does not correlate delays" + other
	case s.Duplicate.Correlation > 0 || s.Corrupt.Correlation > 0 || s.Reorder.Correlation > 0:
		return "with a correlation netem does not keep the share" + other
	case s.Gap > 1 && s.Reorder.Ratio < 1:
		return "netem takes a gap for the least distance, so fewer would be reordered" + other
	case s.Jitter > netemJitter:
		return fmt.Sprintf("netem has a jitter of at most %v"+other, netemJitter)
	case l.Model == impair.FourState && (wraps(l.P13, l.P14) || wraps(l.P31, l.P32)):
		return "netem cannot add p13 and p14, or p31 and p32, up to 100%" + other
	}
	return ""
}

// netemJitter is the most that netem takes without cutting it (netem_change, net/sched/sch_netem.c).
const netemJitter = time.Duration(math.MaxInt32)

// lineLimit is how many frames may be under way: far above what a lab can send
// in a usual delay, and what they take still fits a machine.
const lineLimit = 1 << 20

// stage is one queueing discipline on a direction's way through its relay. Each has
// an interface of its own, which tells its drops from the others'.
type stage struct {
	name  string // also of the interface
	netem *netem.Options
	tbf   *tbfPlan
	loses bool // as asked
	adds  bool // copies
	limit bool // of frames, as asked
}

// stages are what a direction's frames pass in the kernel, in order.
func (s shape) stages(set impair.Settings, c choice, mtu int) []stage {
	if !s.acts() {
		return nil
	}
	var list []stage
	var now impair.Settings
	flush := func(name string) {
		if now == (impair.Settings{}) {
			return
		}
		now.QueuePackets = lineLimit
		o := netem.From(now)
		o.Seed, o.Seeded = split(set.Seed, uint64(len(list)+1)), c.seeds
		list = append(list, stage{name: name, netem: &o, loses: now.LossRatio() > 0, adds: now.Duplicate.Ratio > 0})
		now = impair.Settings{}
	}
	now.Loss = kernelLoss(set.Loss)
	if set.Duplicate.Ratio > 0 {
		flush("loss") // netem draws a copy's loss anew
		now.Duplicate = set.Duplicate
	}
	if s.rate > 0 {
		flush("first")
		queue := s
		queue.queuePackets, queue.queueBytes = set.QueuePackets, set.QueueBytes
		p := queue.tbf(mtu)
		list = append(list, stage{name: "rate", tbf: &p, limit: true})
	}
	now.Delay, now.Jitter, now.Shape, now.Corrupt, now.Reorder, now.Gap = set.Delay, set.Jitter, set.Shape, set.Corrupt, set.Reorder, set.Gap
	flush("line")
	return list
}

// kernelLoss says a correlated loss so that the kernel does it: as a state that
// is lost, with the moves of a chain of that correlation.
func kernelLoss(l impair.Loss) impair.Loss {
	if l.Model != impair.Random || l.Correlation == 0 {
		return l
	}
	return impair.Loss{Model: impair.GilbertElliott, P: l.Ratio * (1 - l.Correlation), R: (1 - l.Ratio) * (1 - l.Correlation), Bad: 1}
}

// frameByFrame reports whether frames that the kernel hands over as one buffer
// must come singly, for each to have its own fate.
func (s shape) frameByFrame(set impair.Settings) bool {
	return s.rate > 0 || set.LossRatio() > 0 || set.Jitter > 0 ||
		set.Duplicate.Ratio > 0 || set.Corrupt.Ratio > 0 || set.Reorder.Ratio > 0
}

// doers names who does it, for the report.
func doers(list []stage) string {
	tool := map[string]bool{}
	text := ""
	add := func(name string) {
		if !tool[name] {
			tool[name] = true
			if text != "" {
				text += " and "
			}
			text += name
		}
	}
	for _, s := range list {
		if s.tbf != nil {
			add("kernel tbf")
		} else {
			add("kernel netem")
		}
	}
	return text
}
