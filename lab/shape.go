package lab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"pelt/model"
	"pelt/unit"
)

// shape is what one direction of one link does. The zero shape leaves packets alone.
type shape struct {
	rate         unit.BitRate
	queuePackets int
	queueBytes   int
	overhead     int
	asked        model.Link // what a rate and a queue are not, of all that was asked; the zero value if nothing was
}

// linkPlan is one link of a lab, ready to be built.
type linkPlan struct {
	mtu     int
	backend string   // asked for; "": any
	toward  [2]shape // 0: from a to b, 1: from b to a
}

const defaultMTU = 1500

// planLinks merges the asked links over the topology's: a later entry overrides
// an earlier one field by field.
func planLinks(t topologySpec, links []model.Link) ([]linkPlan, error) {
	plans := make([]linkPlan, len(t.links))
	for i := range plans {
		plans[i].mtu = defaultMTU
	}
	for _, l := range links {
		if err := checkLink(t, l); err != nil {
			return nil, err
		}
		eachDirection(t, l, func(link, direction int) { plans[link].set(direction, l) })
	}
	for _, l := range links { // a queue may come before its rate
		if l.QueuePackets == 0 && l.QueueBytes == 0 && l.OverheadBytes == 0 {
			continue
		}
		shaped := false
		eachDirection(t, l, func(link, direction int) { shaped = shaped || plans[link].toward[direction].rate > 0 })
		if !shaped && l.OverheadBytes != 0 {
			return nil, linkError(l, "overhead needs a rate on the same link; without one no frame takes time")
		}
		if !shaped {
			return nil, linkError(l, "queue needs a rate on the same link; without one nothing queues")
		}
	}
	for i, p := range plans {
		if err := p.check(t, i, p.emulated()); err != nil {
			return nil, err
		}
		for direction, s := range p.toward {
			if why := s.pointless(); p.emulated() && why != "" {
				return nil, &UsageError{fmt.Sprintf("link %s: %s", t.wayName(i, direction), why)}
			}
		}
		if p.emulated() && t.fast {
			return nil, &UsageError{fmt.Sprintf("link %s: a fast path needs a plain cable at each side of the router; want rate, queue, overhead and mtu only, or lab:nat", t.linkName(i))}
		}
		if p.emulated() {
			if err := p.checkBackend(t.linkName(i)); err != nil {
				return nil, err
			}
		}
	}
	return plans, nil
}

// longestFrame is how long a full frame may take at a link's rate: no exchange
// of a few packets ends in time where it takes longer.
const longestFrame = 5 * time.Second

func frameTime(bytes int, rate unit.BitRate) time.Duration {
	return time.Duration(float64(bytes) * 8 / float64(rate) * 1e9)
}

// check returns what the directions of a link cannot do.
func (p linkPlan) check(t topologySpec, link int, emulated bool) error {
	if emulated && p.mtu > maxTAP && (p.backend == "" || p.backend == model.BackendAuto || p.backend == model.BackendUser) {
		return &UsageError{fmt.Sprintf("link %s: an emulated link's mtu is at most %d B, not %d: its frames have a header in the same 64 KiB", t.linkName(link), maxTAP, p.mtu)}
	}
	for direction, s := range p.toward {
		if frame := p.mtu + etherHeader; s.rate > 0 && s.queueBytes > 0 && s.queueBytes < frame {
			return &UsageError{fmt.Sprintf("link %s: a queue of %d B has no room for a frame of %d B; want at least that, or a number of packets", t.wayName(link, direction), s.queueBytes, frame)}
		}
		if frame := p.mtu + etherHeader; s.rate > 0 && frameTime(frame, s.rate) > longestFrame {
			return &UsageError{fmt.Sprintf("link %s: at %v a frame of %d B takes %v; want at least %v, or a smaller mtu", t.wayName(link, direction), s.rate, frame,
				frameTime(frame, s.rate).Round(100*time.Millisecond), unit.BitRate(math.Ceil(float64(frame)*8/longestFrame.Seconds()/100)*100))}
		}
		if !emulated {
			continue
		}
		if why := s.settings().Check(); why != "" {
			return &UsageError{fmt.Sprintf("link %s: %s", t.wayName(link, direction), why)}
		}
	}
	return nil
}

func (p *linkPlan) set(direction int, l model.Link) {
	p.mtu = cmp.Or(l.MTU, p.mtu)
	p.backend = cmp.Or(l.Backend, p.backend)
	s := &p.toward[direction]
	*s = shapeOf(l.TakeBack(s.link()))
	s.rate = cmp.Or(l.Rate, s.rate)
	s.overhead = cmp.Or(l.OverheadBytes, s.overhead)
	if l.QueuePackets != 0 || l.QueueBytes != 0 {
		s.queuePackets, s.queueBytes = l.QueuePackets, l.QueueBytes
	}
	s.asked = merge(s.asked, l)
}

// eachDirection calls f for every link direction that l speaks of.
func eachDirection(t topologySpec, l model.Link, f func(link, direction int)) {
	toward := t.index(l.Toward)
	for i, s := range t.links {
		if l.Node != "" && !t.is(s.a, l.Node) && !t.is(s.b, l.Node) && !t.isLink(i, l.Node) {
			continue
		}
		for direction := range 2 {
			// The link of another of a star's receivers leads to it as well.
			far := t.many() && t.is(s.b, l.Toward)
			if l.Toward == "" || (far || t.beyond(i, toward)) == (direction == 0) {
				f(i, direction)
			}
		}
	}
}

func checkLink(t topologySpec, l model.Link) error {
	for i, name := range []string{l.Node, l.Toward} {
		if name != "" && t.index(name) < 0 && (i > 0 || !t.hasLink(name)) {
			return linkError(l, "lab %s has no node %q; there are %s", t.name, name, listed(t.nodeNames()))
		}
	}
	if l.MTU != 0 && l.Toward != "" {
		return linkError(l, "mtu holds for both directions; give it without toward")
	}
	if l.Backend != "" && l.Toward != "" {
		return linkError(l, "backend holds for both directions; give it without toward")
	}
	for _, n := range []int{l.QueuePackets, l.QueueBytes, l.OverheadBytes, l.MTU} {
		if n < 0 {
			return linkError(l, "a size must not be negative")
		}
	}
	if l.Rate != 0 && l.Rate < minRate || l.MTU != 0 && (l.MTU < minMTU || l.MTU > maxMTU) || l.OverheadBytes > maxOverhead {
		return linkError(l, "want a rate of at least %v, an mtu of %d to %d B, an overhead of at most %d B", minRate, minMTU, maxMTU, maxOverhead)
	}
	return nil
}

const (
	minRate     = unit.BitRate(1000)
	minMTU      = 68    // ETH_MIN_MTU, include/uapi/linux/if_ether.h
	maxMTU      = 65535 // ETH_MAX_MTU
	maxTAP      = 65521 // MAX_MTU of drivers/net/tun.c, less the Ethernet header
	maxOverhead = 256
)

func linkError(l model.Link, format string, args ...any) error {
	name := "link"
	if l.Node != "" {
		name += "-" + l.Node
	}
	return &UsageError{name + ": " + fmt.Sprintf(format, args...)}
}

const (
	etherHeader = 14 // what tbf counts besides the IP packet
	etherLeast  = 60 // shortest frame without its FCS (IEEE 802.3 clause 4.4.2)

	queueTime        = 50 * time.Millisecond // default queue, within these bounds
	queueLeastFrames = 16
	queueMostBytes   = 2 << 20

	// The bucket must cover how late a timer fires, or tokens run over and the
	// link is slower than asked.
	burstTime        = 250 * time.Microsecond
	burstLeastFrames = 2
)

// tbfPlan is a shape in tbf's own terms.
type tbfPlan struct {
	bytesPerSecond uint64
	burstBytes     uint32
	limitBytes     uint32 // of the queue; 0 when limitPackets holds
	limitPackets   uint32
	overhead       uint16
	leastBytes     uint16 // a shorter frame takes as long as this one
}

func (s shape) tbf(mtu int) tbfPlan {
	frame := int64(mtu + etherHeader)
	bytesIn := func(d time.Duration) int64 { return int64(float64(s.rate) / 8 * d.Seconds()) }
	p := tbfPlan{
		bytesPerSecond: uint64(s.rate) / 8,
		burstBytes:     uint32(max(bytesIn(burstTime), burstLeastFrames*frame)),
		overhead:       uint16(s.overhead),
		leastBytes:     uint16(etherLeast + s.overhead),
	}
	switch {
	case s.queuePackets > 0:
		p.limitPackets = uint32(s.queuePackets)
	case s.queueBytes > 0:
		p.limitBytes = uint32(s.queueBytes)
	default:
		p.limitBytes = uint32(min(max(bytesIn(queueTime), queueLeastFrames*frame), max(queueMostBytes, queueLeastFrames*frame)))
	}
	return p
}

// home says where a direction of a link is shaped.
type home int

const (
	nowhere  home = iota
	atRouter      // on the sending router's own interface
	atRelay       // on a relay spliced into the link
)

// homes returns where the two directions of a link are shaped. The egress of an
// end is never used, because the kernel tells a local sender of drops there. A
// bridge's is not used either: frames cross a bridge while they still count
// against the sender's socket buffer, which would then throttle the sender
// instead of overflowing the queue. A router takes that charge off, as a relay does.
func (t topologySpec) homes(link int, p linkPlan) [2]home {
	from := [2]int{t.links[link].a, t.links[link].b}
	var h [2]home
	for direction, s := range p.toward {
		switch r := t.nodes[from[direction]].role; {
		case s.rate == 0, p.emulated():
		case slices.Contains([]role{forward, nat}, r) && !t.fast: // a fast path goes past it
			h[direction] = atRouter
		default:
			h[direction] = atRelay
		}
	}
	return h
}

// relayOwner is the bridge whose namespace a relay on the link lives in, as part
// of the bridge's port; -1 means a hidden namespace of the relay's own.
func (t topologySpec) relayOwner(link int) int {
	for _, n := range []int{t.links[link].a, t.links[link].b} {
		if t.nodes[n].role == bridge {
			return n
		}
	}
	return -1
}

// relayNames are the relay's interfaces toward the link's a and b.
func (t topologySpec) relayNames(link int) (toA, toB string) {
	l := t.links[link]
	name := func(neighbour, other int) string {
		if t.relayOwner(link) == neighbour {
			return "in-" + short(t.nodes[other].name)
		}
		return "out-" + short(t.nodes[neighbour].name)
	}
	return name(l.a, l.b), name(l.b, l.a)
}

// sentence says what one shaped direction does, for the report.
func (t topologySpec) sentence(link, direction int, s shape, p tbfPlan, h home) string {
	from := t.links[link].a
	if direction == 1 {
		from = t.links[link].b
	}
	queue := fmt.Sprintf("%d packets", p.limitPackets)
	if p.limitPackets == 0 {
		queue = fmt.Sprintf("%d KiB", p.limitBytes>>10)
	}
	place := "in " + t.nodes[from].name
	if h == atRelay {
		place = "on a hidden wire"
		if owner := t.relayOwner(link); owner >= 0 {
			place = "in " + t.nodes[owner].name
		}
	}
	more := ""
	if s.overhead > 0 {
		more = fmt.Sprintf(", %d B more counted for each frame", s.overhead)
	}
	return fmt.Sprintf("%v, queue %s%s (kernel tbf %s)", s.rate, queue, more, place)
}

// Check reports whether Open could understand the request, without making
// anything. Its errors are *UsageError.
func Check(topology string, links []model.Link) error {
	t, err := findTopology(topology)
	if err != nil {
		return err
	}
	if links, err = ReadTables(links); err != nil {
		return err
	}
	_, err = planLinks(t, links)
	return err
}
