package lab

import (
	"errors"
	"fmt"

	"pelt/lab/bpfloss"
	"pelt/lab/gauge"
	"pelt/model"
)

// kernelWay is one direction of a link that the kernel emulates, and where its
// counters are.
type kernelWay struct {
	From     string        `json:"from"` // neighbouring nodes
	To       string        `json:"to"`
	Backend  string        `json:"backend"` // kernel or bpf
	Reason   string        `json:"reason"`
	Mode     string        `json:"mode"`
	Seed     uint64        `json:"seed,omitempty"` // 0: the kernel takes none
	Asked    float64       `json:"loss_ratio_asked"`
	Corrupts bool          `json:"corrupts,omitempty"`
	Node     int           `json:"node"` // that frames come from, in Lab.nodes
	Out      string        `json:"out"`  // its interface
	Space    int           `json:"space"`
	Entries  []string      `json:"entries"` // the relay's interfaces that frames come in by, one before each stage or one at all
	Stages   []kernelStage `json:"stages,omitempty"`
	Map      uint32        `json:"map,omitempty"` // counts of the program ahead of the first stage

	gauged *gauge.Way   // to be measured; nil for who attached to the lab, and for a direction that does nothing
	anew   func() error // has its draws begin as when it was made; not while anybody uses it
}

// kernelStage is one queueing discipline of a way.
type kernelStage struct {
	Iface string `json:"interface"`
	Kind  string `json:"kind"` // netem or tbf
	Loses bool   `json:"loses,omitempty"`
	Adds  bool   `json:"adds,omitempty"`
	Limit bool   `json:"limit,omitempty"`
}

// KernelLink is a link whose frames the kernel delays and loses. Its counters are
// there as long as the lab is open, to those that attached to it as well. It may
// be used concurrently.
type KernelLink struct {
	Ends [2]string // nodes, in travel order
	lab  *Lab
	ways [2]kernelWay
}

// KernelLinks lists them, in travel order.
func (l *Lab) KernelLinks() []KernelLink {
	var list []KernelLink
	for i := 0; i+1 < len(l.kernel); i += 2 {
		ways := [2]kernelWay{l.kernel[i], l.kernel[i+1]}
		list = append(list, KernelLink{Ends: [2]string{ways[0].From, ways[0].To}, lab: l, ways: ways})
	}
	return list
}

// Stages lists the interfaces at which frames of a direction (0: from the first
// end) wait or are lost, with what a drop there is called in a ledger: the cause
// of what it did since an earlier reading.
func (k KernelLink) Stages(direction int, did model.LinkResult) (interfaces, causes []string) {
	for _, s := range k.ways[direction].Stages {
		cause := model.CauseLinkQueue
		full, lost := did.QueueFull != nil && *did.QueueFull > 0, did.Lost == nil || *did.Lost > 0
		switch {
		case s.Loses && s.Limit && full && lost:
			cause = model.CauseLinkDrop
		case s.Loses && s.Limit && full:
		case s.Loses:
			cause = model.CauseLinkLoss
		}
		interfaces, causes = append(interfaces, s.Iface), append(causes, cause)
	}
	return interfaces, causes
}

// Program is the interface at whose ingress a program loses frames of a direction,
// "" if none does.
func (k KernelLink) Program(direction int) string {
	if k.ways[direction].Map == 0 {
		return ""
	}
	return k.ways[direction].Entries[0]
}

// Wire is the relay that the link leads through, as a node named after it.
func (k KernelLink) Wire() *Node {
	n := &Node{ns: k.lab.held[k.ways[0].Space], info: nodeInfo{Name: "link " + k.Ends[0] + "-" + k.Ends[1]}}
	n.info.Interfaces = []Interface{{Name: k.ways[0].Entries[0], Peer: k.Ends[0]}, {Name: k.ways[1].Entries[0], Peer: k.Ends[1]}}
	return n
}

// KernelReading is what both directions of a link have counted at one time.
type KernelReading [2]wayReading

// wayReading holds the kernel's own counters, of 32 bits where it has no more.
type wayReading struct {
	hops    []hopReading
	program bpfloss.Counts
	missed  uint64 // frames that found no room before the link or between its stages
}

// hopReading is one stage and the filter that feeds it. Frames count singly,
// also those of one buffer, but for drops.
type hopReading struct {
	in, refused  uint32 // handed to the stage; of them, those that it said to be full for
	out, dropped uint32 // by the stage; what it said to be full for is in dropped
	waiting      uint32
}

// Since is what each direction did since an earlier reading.
func (k KernelLink) Since(before, now KernelReading) []model.LinkResult {
	var list []model.LinkResult
	for d, w := range k.ways {
		list = append(list, w.since(before[d], now[d]))
	}
	return list
}

func (w kernelWay) since(before, now wayReading) model.LinkResult {
	r := model.LinkResult{From: w.From, To: w.To, Backend: w.Backend, Reason: w.Reason, Mode: w.Mode, Seed: w.Seed, AskedRatio: w.Asked}
	r.Frames = uint64(now.hops[0].in - before.hops[0].in)
	r.Overrun = now.missed - min(now.missed, before.missed)
	lost, full, added := uint64(0), uint64(0), uint64(0)
	if w.Map != 0 {
		r.Frames, lost = now.program.Frames-before.program.Frames, now.program.Lost-before.program.Lost
	}
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

// Read reads the link's counters.
func (k KernelLink) Read() (r KernelReading, err error) {
	for d, w := range k.ways {
		if w.Space < 0 || w.Space >= len(k.lab.held) || w.Node < 0 || w.Node >= len(k.lab.nodes) || len(w.Entries) == 0 || len(w.Entries) < len(w.Stages) {
			return r, fmt.Errorf("read the link %s to %s: the holder named no such place", w.From, w.To)
		}
		if r[d], err = k.lab.readWay(w); err != nil {
			return r, fmt.Errorf("read the link %s to %s: %w", w.From, w.To, err)
		}
	}
	return r, nil
}
