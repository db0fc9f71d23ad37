package ledger

import (
	"cmp"
	"slices"
	"strings"

	"pelt/model"
)

// nodeClaims enters what the counters of one node say. Where a program watches that
// kernel's drops, its counters tell nothing new but what never becomes a drop of
// a packet: that a card had no room, or found a frame damaged; and the few
// packets that the watch of a kernel under load may have missed.
func (b *book) nodeClaims(v *view) {
	if v.Observation == nil {
		return
	}
	receives := v == b.path.receiver
	speaks := [...]bool{goesIn: receives || v != b.path.sender, arrives: receives && !b.in.TCP,
		goesOut: !receives || b.path.shared()}
	told := map[string]bool{}
	for i := range causes {
		c := &causes[i]
		n := &c.how
		if c.counts == "" || told[c.counts] || !speaks[n.where] || n.when != nil && !n.when(b, v) {
			continue
		}
		told[c.counts] = true
		b.holes = v.watched && !n.beside
		if n.enter != nil {
			n.enter(b, v, c)
			continue
		}
		r := b.counters(v, c.counts)
		if c.counts != uncountedByIP && (c.at == stageIP || c.at == stageOutput) {
			v.ipErrors = v.ipErrors.add(r)
		}
		if c.counts == uncountedByIP && b.in.Way == "" {
			if r.whole < stray {
				continue
			}
			r.stray = stray
		}
		layer := b.behind(v, c.at)
		b.node(cmp.Or(n.by, byNamespace), v, c, r, func(o *claim) bool {
			return o.host == v.Name && slices.Contains(strings.Fields(n.also), o.cause) &&
				(o.layer == layer || Of(o.layer, o.cause).Name == o.cause)
		})
	}
	b.holes = false
}

// stray is how many packets IP may receive and not deliver without a loss: some are on their way at a snapshot. The few
// packets that open the way are counted all the same.
const stray = 16

// node enters a counter of a node under a row.
func (b *book) node(at int, v *view, row *Cause, r reading, more ...func(*claim) bool) {
	layer := b.behind(v, row.at)
	if row.how.where == goesOut {
		layer = b.ahead(v, row.at)
	}
	b.counter(at, layer, v.Name, row.Name, r, func(c *claim) bool {
		return c.host == v.Name && c.layer == layer && c.cause == row.Name ||
			slices.ContainsFunc(more, func(covers func(*claim) bool) bool { return covers(c) })
	})
}

// ahead returns the layer of a stage on the way out of a node.
func (b *book) ahead(v *view, at stage) string {
	if b.passes(v) {
		return model.LayerNetwork
	}
	return layers[at].sender
}

// passes reports whether packets only pass through a node.
func (b *book) passes(v *view) bool { return v != b.path.sender && v != b.path.receiver }

// forwards reports whether IPv6 packets only pass through a node that forwarded such packets all the time.
func (b *book) forwards(v *view) bool {
	return b.in.Family == 6 && facts{passing: b.passes(v), host: v}.forwards()
}

// at selects claims about a stage at one node.
func (b *book) at(v *view, where stage) func(*claim) bool {
	layer := b.behind(v, where)
	return func(c *claim) bool { return c.layer == layer && c.host == v.Name }
}

// xdpUnseen reports whether no watch saw what the XDP programs of a node drop, as it does at a virtual card.
func xdpUnseen(b *book, v *view) bool {
	return !v.watched || !slices.ContainsFunc(b.claims, of(b.behind(v, stageXDP), "XDP"))
}

// xdpDrops is what XDP programs dropped at a node, but for the packets that the
// receiving end took off the device with one of its own.
func (b *book) xdpDrops(v *view) reading {
	r := v.table.xdpDrops(v.In)
	if v == b.path.receiver {
		r.whole, r.measure = minus(r.whole, b.in.TakenOff), minus(r.measure, b.in.TakenOff)
	}
	return r
}

// backlog is what the softnet backlog dropped that belongs to a node: the
// counter is the host's, the device's tells which namespace it was.
func (b *book) backlog(v *view) reading {
	r := v.table.field("softnet", "dropped")
	if v.table.device(v.In, "rx_packets").known || v.table.device(v.In, "rx_dropped").known {
		return r.capped(v.table.device(v.In, "rx_dropped"))
	}
	if v != b.path.receiver {
		return reading{}
	}
	return r
}

// answersTimeExceeded reports whether a node on the way answered with that ICMP error. A bad header has no answer.
func answersTimeExceeded(b *book, v *view) bool {
	return b.passes(v) && slices.ContainsFunc([]string{"OutTimeExcds", "OutRateLimitHost", "OutRateLimitGlobal"},
		func(name string) bool { return v.table.field("Icmp", name).whole > 0 })
}

// unassembled enters datagrams that could not be put together. In a flow of fragments that follows from a fragment
// that was dropped before.
func (b *book) unassembled(v *view, c *Cause) {
	fails := v.table.moved("Ip", "ReasmFails")
	seen := func(c *claim) bool { // which verdicts may tell, too
		return c.host == v.Name && slices.Contains([]string{"FRAG_MEMORY", "FRAG_TOO_FAR"}, c.cause)
	}
	if b.in.Fragments <= 1 {
		v.ipErrors = v.ipErrors.add(fails)
		b.node(byNamespace, v, c, fails, seen)
		return
	}
	fails.unit = "datagram"
	if c.Name == "FRAG_FAILED" { // for want of memory, which those fill whose other fragments never came
		gaps, _ := b.gaps()
		for _, g := range gaps {
			if g.cause == model.CauseElimination {
				fails = fails.less(g.counted)
			}
		}
	}
	b.node(byDifference, v, c, fails, seen, func(c *claim) bool {
		return c.order < byDifference && c.order > bySequence && layerPlace(c.layer) < layerPlace(model.LayerReceiverIP)
	})
}

// timedOut reports whether reassembly at a node timed out.
func timedOut(_ *book, v *view) bool { return v.table.moved("Ip", "ReasmTimeout").whole > 0 }

// uncountedByIP is what IP received and neither delivered, forwarded nor counted as an error.
const uncountedByIP = "uncounted"

// refuses reports whether a node on the way has a route that refuses packets.
func refuses(b *book, v *view) bool { return b.passes(v) && v.route.Refuses() }

// ipGap is what IP received but neither delivered nor forwarded.
func (b *book) ipGap(v *view) (gap reading, ok bool) {
	t := &v.table
	in, out := t.moved("Ip", "InReceives"), t.moved("Ip", "InDelivers")
	if !in.known || !out.known || b.in.Fragments > 1 {
		return reading{}, false // fragments come in, datagrams come out
	}
	// A router may have cut the packets up: of each, one fragment is delivered.
	merged := t.moved("Ip", "ReasmReqds").less(t.moved("Ip", "ReasmOKs"), t.moved("Ip", "ReasmFails"))
	gap = in.less(out, t.moved("Ip", "ForwDatagrams"), merged)
	if b.in.Way != "" { // so few packets that those of groups which nobody here is in would be more
		gap = gap.less(t.moved("Ip", "InMcastPkts"))
	}
	gap.name, gap.before, gap.after = "Ip.InReceives - InDelivers", 0, 0
	forwarded, sent := t.moved("Ip", "ForwDatagrams"), t.moved("Ip", "OutTransmits")
	if forwarded.whole == 0 {
		return gap, true
	}
	gap.name += " - ForwDatagrams"
	if v != b.path.receiver && v != b.path.sender && sent.known {
		// Since it has OutTransmits, Linux counts as forwarded what the forward
		// hook may still drop.
		late := forwarded.add(t.moved("Ip", "OutRequests")).less(sent).capped(forwarded)
		gap.whole, gap.measure = plus(gap.whole, late.whole), plus(gap.measure, late.measure)
		gap.name = "Ip.InReceives - InDelivers - OutTransmits"
	}
	return gap, true
}

// socketsUnread reports whether the receiving sockets' own counts are not known, which go before those of UDP.
func socketsUnread(b *book, _ *view) bool { return !b.in.SocketKnown }

// queueDrops is what a node's queues dropped that send() did not tell of.
func (b *book) queueDrops(v *view) reading {
	queue := v.table.queues(v.queuedAt())
	if b.passes(v) {
		return queue
	}
	queue.measure = minus(queue.measure, b.in.Retried) // a second offer was made because the first had been dropped
	if n := b.in.SendErrors["ENOBUFS"]; n > 0 {        // what it did not tell of is the warm-up's, unless there is more
		queue.measure = min(queue.measure, minus(queue.whole, b.warmupLost))
	}
	return queue
}

// wireguard is what model.Route.Device calls such a tunnel. An error there is a packet that no peer's addresses allow,
// or whose peer's address is not known.
const wireguard = "wireguard"

// unsent is what a device failed to send.
const unsent = "unsent(tx_errors,tx_dropped)"

func noCarrier(_ *book, v *view) bool { return v.down() }

// down reports whether the node's interface toward the receiver has no carrier, or had none for a while.
func (v *view) down() bool {
	out := v.Out
	if len(out) == 0 && v.Observation != nil && v.Observation.Interface != "" {
		out = []string{v.Observation.Interface}
	}
	return v.route.NoCarrier || len(out) > 0 && v.table.device(out, model.CarrierDown).whole > 0
}

// handsDown reports whether the node's route leads into an interface that hands packets to another one's queue, and
// counts what that did not take: drivers/net/macvlan.c, macvlan_start_xmit; net/8021q/vlan_dev.c; for tunnels
// net/ipv4/ip_tunnel_core.c, iptunnel_xmit. Not so drivers/net/ppp/pppoe.c, net/dsa/user.c, nor tun, which a program
// reads.
func (v *view) handsDown() bool {
	return !slices.Contains([]string{"", "device", "veth", "bridge", "bond", "tun", "ppp", "dsa"}, v.route.Device)
}

// noPeer reports whether that is for want of a peer: a full queue is no error there.
func noPeer(b *book, v *view) bool {
	out := v.routed()
	return v.route.Device == wireguard &&
		v.table.device(out, "tx_errors").whole > v.table.device(out, "tx_dropped").whole
}

// routed lists the node's interfaces toward the receiver, a tunnel of its route with them.
func (v *view) routed() []string {
	if i := v.route.Interface; i != "" && len(v.Out) > 0 && !slices.Contains(v.Out, i) {
		return append(slices.Clip(v.Out), i)
	}
	return v.Out
}

// unsentBy places what a device failed to send. A virtual pair counts there
// what the far half's backlog or ring had no room for.
func (b *book) unsentBy(v *view, row *Cause) {
	t, layer, cause := &v.table, b.ahead(v, stageDevice), row.Name
	sent := t.unsent(v.routed())
	below := func(c *claim) bool { // it had the packets of another interface, which counts them, too
		return c.host == v.Name && v.handsDown() && (c.layer == b.ahead(v, stageQdisc) || c.order == byRule)
	}
	next := b.path.next(v)
	if next == nil {
		b.counter(byTransmit, layer, v.Name, cause, sent, func(c *claim) bool { return c.layer == layer || below(c) })
		return
	}
	behind := func(c *claim) bool {
		return b.at(next, stageBacklog)(c) && c.cause == "CPU_BACKLOG" || b.at(next, stageRing)(c) &&
			c.cause == model.CauseRingFull ||
			c.layer == layer && c.host == v.Name && (c.cause == cause || b.notTaken(c)) || below(c)
	}
	// A full ring is told to whoever sends, a missing carrier is not.
	told := minus(t.field("Ip", "OutDiscards").whole,
		plus(plus(t.queues(v.Out).whole, b.classifier(v).whole), b.backlog(next).whole))
	for _, n := range b.in.SendErrors {
		told = minus(told, n)
	}
	ring := sent.less(b.backlog(next))
	if told >= ring.whole && ring.whole > 0 && !v.down() && cabled(v, next) {
		b.counter(byTransmit, b.behind(next, stageRing), next.Name, model.CauseRingFull, sent, behind)
		return
	}
	b.counter(byTransmit, layer, v.Name, cause, sent, behind)
}

// notTaken reports whether a claim is about frames that the sender's device did not take: the
// device counts them as well.
func (b *book) notTaken(c *claim) bool {
	_, ok := b.in.Unsent[c.cause]
	return ok && c.layer == model.LayerSenderDevice && c.host == b.in.Sender
}

// classifier is what tc programs dropped on a node's way out. One counter serves
// both ways of a device: at the sender, a packet dropped on the way out counts
// as discarded by IP, too.
func (b *book) classifier(v *view) reading {
	r := v.table.classes(v.Out)
	if v == b.path.sender {
		return r.capped(v.table.field("Ip", "OutDiscards"))
	}
	if len(v.Out) == 0 {
		return reading{} // counted as its input's
	}
	return r
}

// seeker is the node of a kernel whose next hop does not answer: if none is known, the only one, and nil of several.
func (b *book) seeker(k int) *view {
	nodes := b.path.kernels[k].nodes
	for _, v := range nodes {
		if v.route.NoAnswer {
			return v
		}
	}
	if len(nodes) > 1 {
		return nil
	}
	return nodes[0]
}

// first is the first node of a kernel in travel order.
func (b *book) first(k int) *view { return b.path.kernels[k].nodes[0] }
