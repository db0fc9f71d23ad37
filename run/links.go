package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"pelt/engine"
	"pelt/fleet"
	"pelt/lab"
	"pelt/lab/userlink"
	"pelt/model"
	"pelt/unit"
)

// calibrate has the emulated links of a lab measured, once more if chance or a busy
// machine made one look wrong. What cannot be probed is a note, for no test needs it;
// links that could not begin anew are an error.
func calibrate(ctx context.Context, l *lab.Lab, o Options) ([]model.LinkCalibration, error) {
	if len(l.Emulated())+len(l.KernelLinks()) == 0 {
		return nil, nil
	}
	o.event(Event{Note: "measuring the emulated links"})
	var list []model.LinkCalibration
	for range 2 {
		var err error
		if list, err = l.Calibrate(ctx); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if errors.Is(err, lab.ErrNotAnew) {
			return nil, err
		} else if err != nil {
			o.event(Event{Note: fmt.Sprintf("the emulated links are not calibrated: %v", err)})
			return nil, nil
		}
		if !slices.ContainsFunc(list, func(c model.LinkCalibration) bool { return len(c.Off) > 0 }) {
			break
		}
	}
	return list, nil
}

// roads are the emulated links of a lab, and who tells them which packets are whose.
type roads struct {
	lab   *lab.Lab
	links []lab.EmulatedLink

	mu     sync.Mutex
	tuples map[model.Tuple]place // of the present trial
	watch  *lab.LinkWatch        // likewise; nil without
}

type place struct {
	flow    string
	stream  int
	streams int
}

// begin forgets the trial before.
func (r *roads) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tuples, r.watch = map[model.Tuple]place{}, nil
}

// soFar is what a link, by its number in the lab from 1, has lost by now of a flow in
// its own direction and of all else that way; nil where nobody tells.
func (r *roads) soFar(number int, f model.Flow) *model.Observation {
	r.mu.Lock()
	watch := r.watch
	r.mu.Unlock()
	if watch == nil {
		return nil
	}
	all := watch.Lost()
	if number > len(all) {
		return nil
	}
	lost := all[number-1][0]
	if f.From != model.Sender {
		lost = all[number-1][1]
	}
	return &model.Observation{Boot: fmt.Sprintf("emulated link %d", number), Namespace: uint64(number), Mode: model.DropsCount, Drops: &model.Drops{
		Sites: []model.Site{{Reason: model.CauseLinkLoss, Namespace: uint64(number)}, {Reason: model.CauseLinkQueue, Namespace: uint64(number)}},
		Flows: []model.FlowDrops{{Flow: f.Name, Counts: []model.SiteCount{{Site: 0, Packets: lost.Asked}, {Site: 1, Packets: lost.QueueFull}}}},
	}}
}

// told wraps the observation of an end, which learns the streams' ports.
func (r *roads) told(see engine.Observe) engine.Observe {
	if len(r.links) == 0 {
		return see
	}
	return func(trial uint16, mode model.DropMode) (engine.Observation, error) {
		o, err := see(trial, mode)
		if err != nil {
			return nil, err
		}
		return listening{o, r}, nil
	}
}

type listening struct {
	engine.Observation
	roads *roads
}

// Counts is the end's own; none where it tells nothing while a trial runs.
func (l listening) Counts() (model.Observation, error) {
	if c, ok := l.Observation.(engine.Counter); ok {
		return c.Counts()
	}
	return model.Observation{}, errors.ErrUnsupported
}

func (l listening) Track(flow model.Flow, tuples []model.Tuple) error {
	l.roads.mu.Lock()
	for i, t := range tuples {
		l.roads.tuples[t] = place{flow.Name, i, len(tuples)}
	}
	l.roads.mu.Unlock()
	return l.Observation.Track(flow, tuples)
}

func roadName(ends [2]string) string { return "link " + ends[0] + "-" + ends[1] }

// rails are a link that the kernel emulates, in one trial.
type rails struct {
	link   lab.KernelLink
	before lab.KernelReading
}

func startRails(l lab.KernelLink) (*rails, error) {
	before, err := l.Read()
	if err != nil {
		return nil, err
	}
	return &rails{l, before}, nil
}

// results is the link's own account of the trial, and what its drops are called:
// by interface, those of queueing disciplines and those of programs ahead of them.
func (r *rails) results() (list []model.LinkResult, queues, programs map[string]string, doubt string) {
	now, err := r.link.Read()
	if err != nil {
		return nil, nil, nil, err.Error()
	}
	list = r.link.Since(r.before, now)
	queues, programs = map[string]string{}, map[string]string{}
	for d, one := range list {
		interfaces, causes := r.link.Stages(d, one)
		for i, name := range interfaces {
			queues[name] = causes[i]
		}
		if name := r.link.Program(d); name != "" {
			programs[name] = model.CauseLinkLoss
		}
	}
	return list, queues, programs, ""
}

// Identify reads what a lab's emulated links must know of a test packet to tell
// which it was, as userlink.Identify.
func Identify(payload []byte) (trial uint16, sequence uint64, warmup, ok bool) {
	h, ok := engine.ParseHeader(payload)
	return h.Trial &^ engine.WarmupBit, h.Sequence, h.Trial&engine.WarmupBit != 0, ok
}

// causes name the sites of a link's verdicts.
var causes = [...]string{
	userlink.Lost: model.CauseLinkLoss, userlink.Fragment: model.CauseLinkFragment, userlink.QueueFull: model.CauseLinkQueue, userlink.Damaged: model.CauseLinkDamage,
}

// observation is what a link, by its number in the lab from 1, did to the trial's
// packets, as a kernel of its own would tell: it saw each of them.
func (r *roads) observation(number int, a lab.LinkAccount) *model.Observation {
	o := &model.Observation{Boot: fmt.Sprintf("emulated link %d", number), Namespace: uint64(number), Mode: model.DropsSeq, Drops: &model.Drops{}}
	for _, c := range causes {
		o.Drops.Sites = append(o.Drops.Sites, model.Site{Reason: c, Namespace: uint64(number)})
	}
	type lost struct {
		sequence uint64
		cause    userlink.Cause
	}
	streams := map[string][][]lost{}
	counts := map[string][]model.SiteCount{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range a.Verdicts {
		p, known := r.tuples[model.Tuple{From: v.From, To: v.To}]
		if !known {
			continue // a probe's
		}
		if streams[p.flow] == nil {
			streams[p.flow] = make([][]lost, p.streams)
			for i := range causes {
				counts[p.flow] = append(counts[p.flow], model.SiteCount{Site: i})
			}
		}
		c := v.Cause
		if v.Warmup {
			counts[p.flow][c].Warmup++
			continue
		}
		streams[p.flow][p.stream] = append(streams[p.flow][p.stream], lost{v.Sequence, c})
	}
	for flow, all := range streams {
		f := model.FlowDrops{Flow: flow}
		for _, s := range all {
			slices.SortStableFunc(s, func(a, b lost) int { return cmp.Compare(a.sequence, b.sequence) })
			s = slices.CompactFunc(s, func(a, b lost) bool { return a.sequence == b.sequence }) // two fragments of one
			var w model.MarksWriter
			for _, x := range s {
				w.Add(x.sequence, 1, uint16(x.cause))
				counts[flow][x.cause].Packets++
			}
			f.Streams = append(f.Streams, w.Marks())
		}
		f.Counts = counts[flow]
		o.Drops.Flows = append(o.Drops.Flows, f)
	}
	slices.SortFunc(o.Drops.Flows, func(a, b model.FlowDrops) int { return cmp.Compare(a.Flow, b.Flow) })
	o.Drops.Overwritten = a.Unlisted
	return o
}

// A link whose frames left late (userlink.LateLimit) did not do what was asked, if
// it were this share of them and more than a few.
const (
	maxLateRatio = 0.01
	maxLate      = 20
)

// linkDoubt says why what a link did is not what was asked, "" if it is.
func linkDoubt(l model.LinkResult) string {
	switch way := l.From + " to " + l.To; {
	case l.Overrun > 0:
		return fmt.Sprintf("the emulated link %s fell behind: %d frames found no room before it; ask for a lower rate or longer packets", way, l.Overrun)
	case l.Refused > 0:
		return fmt.Sprintf("the emulated link %s could not hand on %d frames: the interface behind it took no more, or more were under way than it may hold", way, l.Refused)
	case l.LateRatio > maxLateRatio && l.Passed != nil && l.LateRatio*float64(*l.Passed) > maxLate:
		return fmt.Sprintf("the emulated link %s fell behind: %s of its frames left late, by over %v and a tenth of their time on it (99 %% within %s)",
			way, unit.FormatRatio(l.LateRatio), userlink.LateLimit, unit.FormatNanos(float64(l.LateNS.P99)))
	}
	return ""
}

// linksAlone has emulated links count during one trial whose packets nobody watches,
// because TCP tells its own losses.
func (p *path) linksAlone(trial uint16) func(fleet.Outcome) ([]seen, error) {
	nobody := func([]byte) (uint16, uint64, bool, bool) { return 0, 0, false, false }
	p.roads.begin()
	var links *lab.LinkWatch
	var failed error
	if len(p.roads.links) > 0 {
		links, failed = p.roads.lab.WatchLinks(trial, nobody)
	}
	rails := map[string]*rails{}
	for _, s := range p.spots {
		if s.rails == 0 {
			continue
		}
		r, err := startRails(p.kernelLinks[s.rails-1])
		if failed = errors.Join(failed, err); err == nil {
			rails[s.name] = r
		}
	}
	return func(fleet.Outcome) (all []seen, _ error) {
		var accounts []lab.LinkAccount
		if links != nil {
			var err error
			accounts, err = links.Collect()
			failed = errors.Join(failed, err)
		}
		for _, s := range p.spots {
			one := seen{spot: s, unobserved: true}
			if r := rails[s.name]; r != nil {
				one.links, one.queues, one.programs, one.doubt = r.results()
				all = append(all, one)
			} else if s.road > 0 && s.road <= len(accounts) {
				one.links, one.doubt = accounts[s.road-1].Results[:], accounts[s.road-1].Doubt
				all = append(all, one)
			}
		}
		return all, failed
	}
}
