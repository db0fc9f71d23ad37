package ledger

import (
	"cmp"
	"slices"
	"strconv"

	"pelt/model"
)

// gap is a stretch of the path between two device counters.
type gap struct {
	layer, host, cause string
	counted            reading
}

// apart reports whether both ends were observed, each in its own namespace. An end
// that was not observed may have lost it all.
func (b *book) apart() bool {
	p := b.path
	return p.sender != nil && p.receiver != nil && p.sender.kernel >= 0 && p.receiver.kernel >= 0 && !p.shared()
}

// gapClaims place packets by the difference of counters on either side of them.
func (b *book) gapClaims() []*claim {
	if !b.apart() {
		return nil
	}
	all := b.claims
	gaps, _ := b.gaps()
	b.claims = nil
	for _, g := range gaps {
		b.counter(byElimination, g.layer, g.host, g.cause, g.counted, b.betweenNodes(g))
	}
	made := b.claims
	b.claims = all
	if b.in.Way == "" && b.oneKernel() && b.path.sender.watched { // it says nothing of pelt's own packets
		made = slices.DeleteFunc(made, func(c *claim) bool { return c.upper <= stranger })
	}
	for _, c := range made {
		c.confidence = Inferred
		c.sure = minus(c.upper/uint64(max(b.in.Fragments, 1)), b.warmupLost)
	}
	return made
}

// betweenNodes selects the claims of what others on the way lost, which moved a difference between nodes as well.
func (b *book) betweenNodes(g gap) func(*claim) bool {
	if g.host != "" {
		return nil
	}
	return func(c *claim) bool {
		v := b.path.named(c.host)
		return c.layer == model.LayerNetwork && c.order < byElimination &&
			(v == nil || len(v.In) == 0 || len(v.Out) == 0)
	}
}

// eliminate enters these claims. The rest was lost between two ends whose kernels both say
// that they did not drop it.
func (b *book) eliminate(gaps []*claim) {
	b.claims = append(b.claims, gaps...)
	b.doubt(gaps)
	for _, c := range gaps {
		ours := plus(plus(c.taken, b.covered(c)), b.warmupLost)
		c.evidence.Excess = minus(c.upper, ours) / uint64(c.factor)
		// Two devices that agree with what is missing to a thousandth.
		if c.taken > 0 && minus(c.upper, ours) <= c.taken/1000 && b.remaining <= c.taken/1000 && c.factor == 1 &&
			b.in.Fragments <= 1 {
			c.confidence = Bounded
		}
	}
	if b.remaining == 0 || !b.apart() || !b.path.sender.watched || !b.path.receiver.watched || b.oneKernel() {
		return
	}
	if _, whole := b.gaps(); whole && b.quiet() {
		return // the devices say that it came
	}
	c := b.add(claim{order: byElimination, layer: model.LayerNetwork, cause: model.CauseElimination,
		confidence: Inferred,
		sure:       b.remaining, upper: b.remaining, evidence: model.Evidence{
			Counter: "no verdict on either end", Scope: "packet", Unit: "datagram", Delta: b.remaining}})
	c.taken, b.remaining = b.remaining, 0
}

// doubt takes from differences between devices what they may not have lost: if most of one is of others' packets, which
// came by another device or left by one, all of it may be. Other differences may take it, but those that hold as many of
// others' packets.
func (b *book) doubt(gaps []*claim) {
	if b.in.Way != "" {
		return // so few packets that any noise would hide what dropped them
	}
	for doubted := true; doubted; {
		doubted = false
		for _, c := range gaps {
			if c.open == 0 && b.spare(c) > max(c.taken/4, stranger) {
				c.open = minus(c.taken, b.surelyBetween(c))
				c.taken, b.remaining, doubted = c.taken-c.open, plus(b.remaining, c.open), doubted || c.open > 0
			}
		}
		b.take(slices.DeleteFunc(slices.Clone(gaps), func(c *claim) bool { return c.open > 0 }),
			func(c *claim) uint64 { return c.upper })
	}
}

// gaps lists the differences of device counters along the path; whole says that
// they cover it from end to end.
func (b *book) gaps() (all []gap, whole bool) {
	var last reading // what left the nodes so far
	var from *view
	whole = true
	for _, v := range b.path.nodes {
		if v.kernel < 0 || v != b.path.sender && v != b.path.receiver && (len(v.In) == 0 || len(v.Out) == 0) {
			continue // its devices count both directions
		}
		t := &v.table
		if v != b.path.sender {
			in := t.device(v.In, "rx_packets")
			if from != nil && last.known && in.known {
				lost := b.counters(v, "ring rx_crc_errors rx_frame_errors rx_length_errors rx_frame_sum rx_refused")
				all = append(all, gap{model.LayerNetwork, "", model.CauseElimination,
					between(last, in, "tx_packets - rx_packets").less(lost)})
			} else {
				whole = false
			}
			if v == b.path.receiver {
				if g, ok := b.beforeIP(v, in); ok {
					all = append(all, g)
				}
				return merged(all), whole
			}
			if out := t.device(v.Out, "tx_packets"); in.known && out.known {
				all = append(all, b.inside(v, between(in, out, "rx_packets - tx_packets"))...)
			}
		}
		last, from = t.device(v.Out, "tx_packets"), v
		if v == b.path.sender && v.down() && last.known {
			given := reading{unit: "skb", whole: plus(b.in.Accepted, b.in.WarmupSent), measure: b.in.Accepted,
				known: true}
			all = append(all, gap{model.LayerSenderDevice, v.Name, "NO_CARRIER",
				between(given, last, "accepted - tx_packets")})
		}
	}
	return merged(all), false
}

// inside is what a node between the ends took in and did not send, split by what is known of the way through it.
func (b *book) inside(v *view, lost reading) (all []gap) {
	for _, c := range b.claims {
		unreceived := []string{model.CauseDamaged, wrongLength, model.CauseRingMissed, tunnelRefused}
		if c.layer != model.LayerNetwork || c.host != v.Name || slices.Contains(unreceived, c.cause) {
			continue
		}
		n := c.taken
		if b.in.Fragments > 1 { // devices count each, too
			n = max(n, minus(c.evidence.Delta, b.covered(c)))
		}
		lost.whole, lost.measure = minus(lost.whole, n), minus(lost.measure, n)
	}
	if slices.Contains(v.Out, v.route.Interface) { // a bridge has no route by its port
		both := slices.Concat(v.In, v.Out)
		before, ok := b.beforeIP(v, v.table.device(both, "rx_packets"))
		if ok && before.counted.whole <= plus(lost.whole, lost.whole/8) { // more pass IP by, as in a flow table
			before.counted = before.counted.capped(lost)
			all = append(all, before)
			lost = lost.less(before.counted)
		}
	}
	cause := cmp.Or(v.portFault(), b.tooLong(v), model.CauseInside)
	switch {
	case v.route.NoCarrier: // not all kernels count what they drop then
		cause = "NO_CARRIER"
	case v.route.NoAnswer: // the neighbour tables' counters are the first namespace's
		cause = "NEIGH_FAILED"
	}
	return append(all, gap{model.LayerNetwork, v.Name, cause, lost})
}

// tooLong is the cause of packets that are longer than the MTU of a bridge's port; "" if they are not.
func (b *book) tooLong(v *view) string {
	for _, out := range v.Out {
		mtu, err := strconv.Atoi(v.setting(out + ".bridge_mtu"))
		if err == nil && b.in.Fragments <= 1 && b.in.PacketBytes-etherHeader > mtu {
			return "PKT_TOO_BIG"
		}
	}
	return ""
}

// etherHeader is what Input.PacketBytes has besides the IP packet.
const etherHeader = 14

// merged adds up the links between nodes: one line tells of them all.
func merged(all []gap) (out []gap) {
	for _, g := range all {
		i := slices.IndexFunc(out, func(o gap) bool {
			return o.layer == g.layer && o.host == g.host &&
				o.cause == g.cause
		})
		if i < 0 {
			out = append(out, g)
			continue
		}
		out[i].counted = out[i].counted.add(g.counted)
	}
	return out
}

func between(first, second reading, name string) reading {
	r := first.less(second)
	r.name, r.scope, r.before, r.after = name, "device", 0, 0
	return r
}

// beforeIP is what came in through a node's devices but not to IP: an XDP
// program in the kernel's generic hook and tcx count nowhere. Where a program
// watches the drops it would have said so.
func (b *book) beforeIP(v *view, in reading) (g gap, ok bool) {
	t := &v.table
	ip := t.field("Ip", "InReceives")
	if v.watched || !in.known || !ip.known || len(v.In) == 0 || b.in.Segments > 1 {
		return gap{}, false
	}
	xdp := t.xdpDrops(v.In)
	xdp.known, xdp.whole, xdp.measure = true, max(xdp.whole, b.in.TakenOff), max(xdp.measure, b.in.TakenOff)
	r := in.less(ip, t.classes(v.In), xdp, t.device(v.In, "rx_otherhost_dropped"), b.backlog(v))
	r.name, r.scope, r.before, r.after = "rx_packets - Ip.InReceives", "device", 0, 0
	if r.whole < b.remaining/2 {
		return gap{}, false // ARP and merged TCP segments make a few
	}
	if v.have(v.In, "xdp") { // a program sits there
		return gap{b.behind(v, stageXDP), v.Name, "XDP", r}, true
	}
	return gap{b.behind(v, stageTC), v.Name, "between-device-and-ip", r}, true
}

// oneKernel reports whether one kernel saw the whole path.
func (b *book) oneKernel() bool {
	for _, v := range b.path.nodes {
		if v.kernel != b.path.sender.kernel {
			return false
		}
	}
	return true
}

// quiet reports whether the receiver's device saw only frames of the test, so that other
// traffic does not hide a difference between the devices.
func (b *book) quiet() bool {
	in := b.path.receiver.table.device(b.path.receiver.In, "rx_packets")
	return in.whole <= times(plus(b.in.Attempted, b.in.WarmupSent), b.in.Fragments)
}
