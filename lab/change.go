package lab

import (
	"errors"
	"fmt"
	"slices"

	"pelt/model"
)

// What makes a direction of a link do what it does.
const (
	ByCable = "cable" // a virtual Ethernet pair, which leaves packets alone
	ByTBF   = "tbf"   // the kernel's token bucket filter
	ByUser  = "user"  // a process of pelt, in user space
	// ... or the kernel's netem: model.BackendKernel
)

// LinkWay is one direction of a link of an open lab, as it is now.
type LinkWay struct {
	From     string     `json:"from"` // neighbouring nodes
	To       string     `json:"to"`
	Backend  string     `json:"backend"`        // ByCable, ByTBF, ByUser or kernel
	Seed     uint64     `json:"seed,omitempty"` // of ByUser: that was given, or drawn
	Settings model.Link `json:"settings"`
	Done     *LinkDone  `json:"done,omitempty"` // nil where nobody counts
}

// LinkDone is what a direction of a link did since the lab was made. Frames are those
// of a wire; those of ByTBF are the kernel's, which may hold several segments.
type LinkDone struct {
	Frames     uint64    `json:"frames"` // that came
	Passed     uint64    `json:"passed"` // of them
	Lost       uint64    `json:"lost"`   // as asked
	QueueFull  uint64    `json:"queue_full"`
	Duplicated uint64    `json:"duplicated"`
	Corrupted  uint64    `json:"corrupted"`
	Refused    uint64    `json:"refused"` // that the node behind did not take
	Overrun    uint64    `json:"overrun"` // that the emulation was too slow to take
	Late       *LinkLate `json:"lateness_ns,omitempty"`
}

// LinkLate is how far behind their time frames left, in ns.
type LinkLate struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// LinkChanged is a direction of a link that a change reached.
type LinkChanged struct {
	From   string     `json:"from"`
	To     string     `json:"to"`
	Before model.Link `json:"before"`
	Now    model.Link `json:"now"`
}

// SetOptions say how links are changed. The zero value changes them for good.
type SetOptions struct {
	Dry  bool // find out only whether they can be
	Lent bool // of a lab that another process holds: put back once this one closes it, or ends
}

// link is a shape in the words that asked for it.
func (s shape) link() model.Link {
	l := s.asked
	l.Rate, l.QueuePackets, l.QueueBytes, l.OverheadBytes = s.rate, s.queuePackets, s.queueBytes, s.overhead
	return l
}

func shapeOf(l model.Link) shape {
	s := shape{rate: l.Rate, queuePackets: l.QueuePackets, queueBytes: l.QueueBytes, overhead: l.OverheadBytes, asked: l}
	s.asked.Rate, s.asked.QueuePackets, s.asked.QueueBytes, s.asked.OverheadBytes = 0, 0, 0, 0
	return s
}

// changed is what becomes of the links of a lab that is open. made are the plans
// that they were made by: what a link is made of cannot change while it is there.
// reached tells which directions the changes speak of. The error is a *UsageError;
// the plans that are given stay as they are.
func changed(t topologySpec, made, plans []linkPlan, changes []model.LinkChange) (next []linkPlan, reached [][2]bool, err error) {
	next, reached = slices.Clone(plans), make([][2]bool, len(plans))
	for _, c := range changes {
		where := model.Link{Node: c.Node, Toward: c.Toward}
		if err := checkLink(t, where); err != nil {
			return nil, nil, err
		}
		any, shaped := false, false
		eachDirection(t, where, func(link, direction int) {
			s := &next[link].toward[direction]
			l, applyErr := c.Apply(s.link())
			if applyErr != nil {
				var field *model.FieldError
				if errors.As(applyErr, &field) {
					applyErr = errors.New(field.Want)
				}
				err = linkError(where, "%v", applyErr)
				return
			}
			*s = shapeOf(l)
			any, reached[link][direction] = true, true
			shaped = shaped || l.Rate > 0 || l.QueuePackets == 0 && l.QueueBytes == 0 && l.OverheadBytes == 0
		})
		switch {
		case err != nil:
			return nil, nil, err
		case !any:
			return nil, nil, linkError(where, "no link there leads to %s", c.Toward)
		case !shaped && slices.ContainsFunc(c.Settings, func(s model.LinkSetting) bool { return s.Key == "queue" || s.Key == "overhead" }):
			return nil, nil, linkError(where, "a queue or an overhead needs a rate on the same link; without one nothing queues")
		}
	}
	for i := range next {
		if next[i] == plans[i] {
			continue
		}
		if err := next[i].canBecome(t, i, made[i]); err != nil {
			return nil, nil, err
		}
	}
	return next, reached, nil
}

// canBecome checks the settings of a link that was made in a certain way.
func (p linkPlan) canBecome(t topologySpec, link int, made linkPlan) error {
	emulated := made.emulated()
	for direction, s := range p.toward {
		wrong := func(format string, args ...any) error {
			return &UsageError{fmt.Sprintf("link %s: ", t.wayName(link, direction)) + fmt.Sprintf(format, args...)}
		}
		switch {
		case emulated:
		case s.asked.Impaired():
			return wrong("only an emulated link can do %s, and this one is %s; take the lab down, and up with --link backend=user", s.asked.Words(), made.toward[direction].kind())
		case s.rate > 0 && made.toward[direction].rate == 0:
			return wrong("it was made without a rate, so nothing is there that could keep one; take the lab down, and up with a rate or with --link backend=user")
		case s.rate == 0 && made.toward[direction].rate > 0:
			return wrong("its rate is the kernel's tbf, which cannot be without one; give a higher rate, or take the lab down, and up with --link backend=user")
		}
	}
	return p.check(t, link, emulated)
}

// kind says in words what a direction that is not emulated is.
func (s shape) kind() string {
	if s.rate > 0 {
		return "shaped by the kernel's tbf"
	}
	return "a plain cable"
}

// CheckChanges reports whether a lab that Open makes of the links could make
// every one of several groups of changes, without making anything. Its errors
// are *UsageError.
func CheckChanges(topology string, links []model.Link, groups [][]model.LinkChange) error {
	t, err := findTopology(topology)
	if err != nil {
		return err
	}
	plans, err := planLinks(t, links)
	if err != nil {
		return err
	}
	for _, changes := range groups {
		if _, _, err := changed(t, plans, plans, changes); err != nil {
			return err
		}
	}
	return nil
}
