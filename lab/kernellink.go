package lab

import (
	"errors"

	"pelt/lab/gauge"
	"pelt/model"
)

// kernelWay is one direction of a link that the kernel emulates, and where its
// counters are.
type kernelWay struct {
	From     string        `json:"from"` // neighbouring nodes
	To       string        `json:"to"`
	Reason   string        `json:"reason"`
	Seed     uint64        `json:"seed,omitempty"` // 0: the kernel takes none
	Asked    float64       `json:"loss_ratio_asked"`
	Corrupts bool          `json:"corrupts,omitempty"`
	Node     int           `json:"node"` // that frames come from, in Lab.nodes
	Out      string        `json:"out"`  // its interface
	Space    int           `json:"space"`
	Entries  []string      `json:"entries"` // the relay's interfaces that frames come in by, one before each stage or one at all
	Stages   []kernelStage `json:"stages,omitempty"`

	text   string       // what it does, for the report; "" if nothing
	gauged *gauge.Way   // to be measured; nil for a direction that does nothing
	anew   func() error // has its draws begin as when it was made; not while anybody uses it; nil likewise
}

// kernelStage is one queueing discipline of a way.
type kernelStage struct {
	Iface string `json:"interface"`
	Kind  string `json:"kind"` // netem or tbf
	Loses bool   `json:"loses,omitempty"`
	Adds  bool   `json:"adds,omitempty"`
	Limit bool   `json:"limit,omitempty"`
}

// Stages are the interfaces at which frames of a direction (0: from the first end) of a link
// that the kernel emulates wait or are lost.
func (k *Link) Stages(direction int) (interfaces []string) {
	for _, s := range k.kernel[direction].Stages {
		interfaces = append(interfaces, s.Iface)
	}
	return interfaces
}

// causes are what drops at the interfaces of a direction are called in a ledger, by
// what it did in a trial.
func (w kernelWay) causes(did model.LinkResult) map[string]string {
	causes := map[string]string{}
	full, lost := did.QueueFull != nil && *did.QueueFull > 0, did.Lost == nil || *did.Lost > 0
	for _, s := range w.Stages {
		switch {
		case s.Loses && s.Limit && full && lost:
			causes[s.Iface] = model.CauseLinkDrop
		case s.Loses && !(s.Limit && full):
			causes[s.Iface] = model.CauseLinkLoss
		default:
			causes[s.Iface] = model.CauseLinkQueue
		}
	}
	return causes
}

// Wire is the relay that a link which the kernel emulates leads through, as a node named
// after it.
func (k *Link) Wire() *Node {
	n := &Node{ns: k.relay, info: nodeInfo{Name: "link " + k.Ends[0] + "-" + k.Ends[1]}}
	n.info.Interfaces = []Interface{{Name: k.kernel[0].Entries[0], Peer: k.Ends[0]}, {Name: k.kernel[1].Entries[0], Peer: k.Ends[1]}}
	return n
}

// wayReading holds the kernel's own counters, of 32 bits where it has no more.
type wayReading struct {
	hops   []hopReading
	missed uint64 // frames that found no room before the link or between its stages
}

// hopReading is one stage and the filter that feeds it. Frames count singly,
// also those of one buffer, but for drops.
type hopReading struct {
	in, refused  uint32 // handed to the stage; of them, those that it said to be full for
	out, dropped uint32 // by the stage; what it said to be full for is in dropped
	waiting      uint32
}

// since is what a direction did since an earlier reading.
func (w kernelWay) since(before, now wayReading) model.LinkResult {
	r := model.LinkResult{From: w.From, To: w.To, Backend: model.BackendKernel, Reason: w.Reason, Seed: w.Seed, AskedRatio: w.Asked}
	r.Frames = uint64(now.hops[0].in - before.hops[0].in)
	r.Overrun = now.missed - min(now.missed, before.missed)
	lost, full, added := uint64(0), uint64(0), uint64(0)
	lostKnown, fullKnown, copied := true, true, false
	for i, s := range w.Stages {
		n, b := now.hops[i], before.hops[i]
		dropped, refused := uint64(n.dropped-b.dropped), uint64(n.refused-b.refused)
		if s.Adds {
			// What went in and the copies went out, were dropped, or wait.
			added += uint64(max(int64(n.out-b.out)+int64(dropped)+int64(n.waiting)-int64(b.waiting)-int64(n.in-b.in), 0))
			copied = true
			lostKnown = lostKnown && (!s.Loses || dropped == 0) // a lost copy is no lost frame
		}
		switch {
		case s.Kind == "tbf":
			full += dropped
			fullKnown = fullKnown && (!copied || dropped == 0)
		case s.Limit:
			full += refused
			lost += dropped - min(refused, dropped)
		case s.Loses:
			r.Overrun += refused
			lost += dropped - min(refused, dropped)
		default:
			r.Overrun += dropped
		}
	}
	tell := func(v uint64, known bool) *uint64 {
		if !known {
			return nil
		}
		return &v
	}
	r.Lost, r.QueueFull = tell(lost, lostKnown), tell(full, fullKnown)
	r.Duplicated = tell(added, lostKnown && fullKnown)
	r.Passed = tell(r.Frames-min(lost+full, r.Frames), lostKnown && fullKnown)
	r.Corrupted = tell(0, !w.Corrupts)
	if r.Frames > 0 && lostKnown {
		ratio := float64(lost) / float64(r.Frames)
		r.LossRatio = &ratio
	}
	return r
}

var errNoCounter = errors.New("the kernel tells no counter of it")
