package lab

import (
	"cmp"
	"math"
	"slices"
	"time"

	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// linkPlan is one link of a lab, ready to be built.
type linkPlan struct {
	MTU    int           `json:"mtu"`
	User   bool          `json:"user,omitempty"` // it is to be emulated in any case
	Toward [2]model.Link `json:"toward"`         // settings of each direction. 0: from a to b, 1: from b to a
}

const defaultMTU = 1500

// emulated reports whether a link does to frames what a rate and a queue do not,
// or is asked to be done in user space.
func (p linkPlan) emulated() bool {
	return p.User || p.Toward[0].Impaired() || p.Toward[1].Impaired()
}

// planLinks merges the asked links over the topology's: a later entry overrides
// an earlier one field by field.
func planLinks(t topologySpec, links []model.Link) ([]linkPlan, error) {
	plans := make([]linkPlan, len(t.links))
	for i := range plans {
		plans[i].MTU = defaultMTU
	}
	for _, l := range links {
		if err := checkLink(t, l); err != nil {
			return nil, err
		}
		eachDirection(t, l, func(link, direction int) {
			p := &plans[link]
			p.MTU = cmp.Or(l.MTU, p.MTU)
			if l.Backend != "" {
				p.User = l.Backend == model.BackendUser
			}
			p.Toward[direction] = l.Over(p.Toward[direction])
		})
	}
	for _, l := range links { // a queue may come before its rate
		what := words.Errorf("queue needs a rate on the same link; without one nothing queues")
		if l.OverheadBytes != 0 {
			what = words.Errorf("overhead needs a rate on the same link; without one no frame takes time")
		} else if l.QueuePackets == 0 && l.QueueBytes == 0 {
			continue
		}
		shaped := false
		eachDirection(t, l, func(link, direction int) { shaped = shaped || plans[link].Toward[direction].Rate > 0 })
		if !shaped {
			return nil, linkError(l, what)
		}
	}
	for i, p := range plans {
		if err := p.check(t, i, p.emulated()); err != nil {
			return nil, err
		}
		if !p.emulated() {
			continue
		}
		for direction, l := range p.Toward {
			if why := ineffective(l); why != nil {
				return nil, t.wayError(i, direction, why)
			}
		}
		if t.fast {
			return nil, usagef("link %s: a fast path needs a plain cable at each side of the router; "+
				"want rate, queue, overhead and mtu only, or lab:nat", t.linkName(i))
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
	if emulated && p.MTU > maxTAP {
		return usagef("link %s: an emulated link's mtu is at most %d B, not %d: "+
			"its frames have a header in the same 64 KiB", t.linkName(link), maxTAP, p.MTU)
	}
	frame := p.MTU + etherHeader
	for direction, l := range p.Toward {
		var why error
		switch {
		case l.Rate > 0 && l.QueueBytes > 0 && l.QueueBytes < frame:
			why = words.Errorf("a queue of %d B has no room for a frame of %d B; want at least that, "+
				"or a number of packets", l.QueueBytes, frame)
		case l.Rate > 0 && frameTime(frame, l.Rate) > longestFrame:
			why = words.Errorf("at %v a frame of %d B takes %v; want at least %v, or a smaller mtu", l.Rate, frame,
				frameTime(frame, l.Rate).Round(100*time.Millisecond),
				unit.BitRate(math.Ceil(float64(frame)*8/longestFrame.Seconds()/100)*100))
		case emulated:
			why = settingsOf(l).Check()
		}
		if why != nil {
			return t.wayError(link, direction, why)
		}
	}
	return nil
}

// wayError says what one direction of a link cannot do.
func (t topologySpec) wayError(link, direction int, why error) error {
	from, to := t.ends(link, direction)
	return usagef("link %s to %s: %w", from, to, why)
}

// eachDirection calls f for every link direction that l speaks of.
func eachDirection(t topologySpec, l model.Link, f func(link, direction int)) {
	toward := t.index(l.Toward)
	for i, s := range t.links {
		if l.Node != "" && !t.is(s.a, l.Node) && !t.is(s.b, l.Node) && !t.isLink(s, l.Node) {
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
		if name != "" && t.index(name) < 0 &&
			(i > 0 || !slices.ContainsFunc(t.links, func(k linkSpec) bool { return t.isLink(k, name) })) {
			return linkError(l, words.Errorf("lab %s has no node %q; there are %s", t.name, name,
				listed(t.nodeNames())))
		}
	}
	if l.MTU != 0 && l.Toward != "" {
		return linkError(l, words.Errorf("mtu holds for both directions; give it without toward"))
	}
	return nil
}

// maxTAP is MAX_MTU of drivers/net/tun.c, less the Ethernet header.
const maxTAP = 65521

func linkError(l model.Link, why error) error {
	name := "link"
	if l.Node != "" {
		name += "-" + l.Node
	}
	return usagef("%s: %w", name, why)
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

// tbfPlan is a rate and its queue in tbf's own terms.
type tbfPlan struct {
	bytesPerSecond uint64
	burstBytes     uint32
	limitBytes     uint32 // of the queue; 0 when limitPackets holds
	limitPackets   uint32
	overhead       uint16
	leastBytes     uint16 // a shorter frame takes as long as this one
}

func tbfOf(l model.Link, mtu int) tbfPlan {
	frame := int64(mtu + etherHeader)
	bytesIn := func(d time.Duration) int64 { return int64(float64(l.Rate) / 8 * d.Seconds()) }
	p := tbfPlan{
		bytesPerSecond: uint64(l.Rate) / 8,
		burstBytes:     uint32(max(bytesIn(burstTime), burstLeastFrames*frame)),
		overhead:       uint16(l.OverheadBytes),
		leastBytes:     uint16(etherLeast + l.OverheadBytes),
	}
	switch {
	case l.QueuePackets > 0:
		p.limitPackets = uint32(l.QueuePackets)
	case l.QueueBytes > 0:
		p.limitBytes = uint32(l.QueueBytes)
	default:
		p.limitBytes = uint32(min(max(bytesIn(queueTime), queueLeastFrames*frame),
			max(queueMostBytes, queueLeastFrames*frame)))
	}
	return p
}

// shaped reports whether the kernel's tbf keeps the rate of a direction.
func (p linkPlan) shaped(direction int) bool { return p.Toward[direction].Rate > 0 && !p.emulated() }

// atRouter reports whether a direction is shaped on the interface of the router that it
// leaves; else on a relay spliced into the link. The egress of an end is never used,
// because the kernel tells a local sender of drops there. A bridge's is not used either:
// frames cross a bridge while they still count against the sender's socket buffer, which
// would then throttle the sender instead of overflowing the queue. A router takes that
// charge off, as a relay does.
func (t topologySpec) atRouter(link, direction int) bool {
	r := t.nodes[t.from(link, direction)].role
	return (r == forward || r == nat) && !t.fast // a fast path goes past it
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

// shaperPlace is the node that shapes a direction; "" for a hidden one.
func (t topologySpec) shaperPlace(link, direction int) string {
	at := t.from(link, direction)
	if !t.atRouter(link, direction) {
		if at = t.relayOwner(link); at < 0 {
			return ""
		}
	}
	return t.nodes[at].name
}

// Check reports whether Open could understand the request, without making
// anything. Its errors are *UsageError.
func Check(topology string, links []model.Link) error {
	t, err := findTopology(topology)
	if err != nil {
		return err
	}
	_, err = planLinks(t, links)
	return err
}
