package ledger

import (
	"slices"

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
	side := SideOther
	switch v {
	case b.path.receiver:
		side = SideReceiver
	case b.path.sender:
		side = SideSender
	}
	if side != SideSender {
		b.cardClaims(v)
	}
	b.holes = v.watched
	defer func() { b.holes = false }()
	if side != SideSender {
		b.inputClaims(v)
		b.internetClaims(v)
	}
	if side == SideReceiver && !b.in.TCP {
		b.udpClaims(v)
	}
	if side != SideReceiver || b.path.shared() {
		b.outputClaims(v, side)
	}
}

// node enters a counter of a node under the layer of a stage there.
func (b *book) node(at int, v *view, where stage, cause string, r reading, more ...func(*claim) bool) {
	layer := b.behind(v, where)
	same := func(c *claim) bool {
		if c.layer == layer && c.host == v.Name && c.cause == cause {
			return true
		}
		for _, m := range more {
			if m(c) {
				return true
			}
		}
		return false
	}
	b.counter(at, layer, v.Name, cause, r, same)
}

// at selects claims about a stage at one node.
func (b *book) at(v *view, where stage) func(*claim) bool {
	layer := b.behind(v, where)
	return func(c *claim) bool { return c.layer == layer && c.host == v.Name }
}

// cardClaims are what a network card counts and no program sees.
func (b *book) cardClaims(v *view) {
	t := &v.table
	b.node(byDevice, v, stageRing, model.CauseRingMissed, t.ring(v.In))
	damaged := t.device(v.In, "rx_crc_errors").add(t.device(v.In, "rx_frame_errors")).add(t.device(v.In,
		"rx_length_errors"))
	b.counter(byDevice, model.LayerNetwork, v.Name, model.CauseDamaged, damaged, nil)
	xdp := of(b.behind(v, stageXDP), "XDP")
	for _, c := range b.claims {
		if v.watched && xdp(c) {
			return // a virtual card, whose drops the watch sees
		}
	}
	b.node(byDevice, v, stageXDP, "XDP", b.xdpDrops(v))
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

// inputClaims are those of the way from a device to IP.
func (b *book) inputClaims(v *view) {
	t := &v.table
	b.node(byDevice, v, stageTC, "TC_INGRESS", t.classes(v.In))
	b.node(byDevice, v, stageBacklog, "CPU_BACKLOG", b.backlog(v))
	b.node(byDevice, v, stageLink, "OTHERHOST", t.device(v.In, "rx_otherhost_dropped"))
	b.node(byTransmit, v, stageDevice, model.CauseReceive, t.device(v.In, "rx_dropped"), b.at(v, stageBacklog))
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

// ipErrors are IP's own counters of packets it gave up, with the reason that the
// kernel gives where it tells one.
var ipErrors = [...]struct{ field, cause string }{
	{"InAddrErrors", "IP_INADDRERRORS"},
	{"InNoRoutes", "IP_INNOROUTES"},
	{"InUnknownProtos", "IP_NOPROTO"},
	{"InTruncatedPkts", "PKT_TOO_SMALL"},
	{"InCsumErrors", "IP_CSUM"},
	{"InDiscards", model.CauseIPDiscard},
}

// internetClaims are those of IP and netfilter.
func (b *book) internetClaims(v *view) {
	t := &v.table
	passes, rules := v != b.path.sender && v != b.path.receiver, t.rules
	if passes {
		rules = rules.add(t.outputs)
	}
	b.node(byRule, v, stageFilter, "NETFILTER_DROP", rules)
	inserts := t.field("conntrack", "insert_failed")
	full := t.field("conntrack", "drop").less(inserts) // counts these, too
	b.node(byNamespace, v, stageFilter, model.CauseConnectionsFull, full)
	b.node(byNamespace, v, stageFilter, model.CauseNoPortLeft, inserts)
	errors := t.field("TcpExt", "IPReversePathFilter")
	b.node(byNamespace, v, stageIP, "IP_RPFILTER", errors)
	// A wrong checksum counts as a wrong header, too: net/ipv4/ip_input.c ip_rcv_core.
	header := t.field("Ip", "InHdrErrors").less(t.field("Ip", "InCsumErrors"))
	cause := "IP_INHDR"
	// as a bad header is not
	for _, answered := range []string{"OutTimeExcds", "OutRateLimitHost", "OutRateLimitGlobal"} {
		if passes && t.field("Icmp", answered).whole > 0 {
			cause = model.CauseTTL
		}
	}
	b.node(byNamespace, v, stageIP, cause, header)
	errors = errors.add(header)
	for _, e := range ipErrors {
		one := t.field("Ip", e.field)
		if cause = e.cause; passes && e.field == "InAddrErrors" {
			cause = model.CauseForwardingOff
		}
		b.node(byNamespace, v, stageIP, cause, one)
		errors = errors.add(one)
	}
	if passes {
		long := t.field("Ip", "FragFails")
		b.node(byNamespace, v, stageIP, "PKT_TOO_BIG", long)
		errors = errors.add(long)
	}
	fails := t.field("Ip", "ReasmFails")
	cause = model.CauseFragmentMemory
	if t.field("Ip", "ReasmTimeout").whole > 0 {
		cause = "FRAG_REASM_TIMEOUT"
	}
	at := byNamespace
	var lost []func(*claim) bool
	if b.in.Fragments > 1 { // it follows from a fragment that was dropped before
		at = byDifference
		lost = append(lost, func(c *claim) bool {
			return c.order < byDifference && c.order > bySequence &&
				layerPlace(c.layer) < layerPlace(model.LayerReceiverIP)
		})
		fails.unit = "datagram"
	}
	b.node(at, v, stageIP, cause, fails, lost...)
	if gap, ok := b.ipGap(v); ok {
		uncounted := []string{"NETFILTER_DROP", model.CauseFilterQueue, model.CauseConnectionsFull,
			model.CauseNoPortLeft,
			model.CauseRouteRefused, "IP_LOCALNET", "XFRM_POLICY", "NOT_SPECIFIED"}
		filter, ip := b.behind(v, stageFilter), b.behind(v, stageIP)
		cause = model.CauseIPGap
		if passes && v.route.Refuses() {
			cause = model.CauseRouteRefused
		}
		b.node(byNamespace, v, stageIP, cause, gap.less(errors, fails), func(c *claim) bool {
			return c.host == v.Name && (c.layer == filter || c.layer == ip) && slices.Contains(uncounted, c.cause)
		})
	}
}

// ipGap is what IP received but neither delivered nor forwarded.
func (b *book) ipGap(v *view) (gap reading, ok bool) {
	t := &v.table
	in, out := t.field("Ip", "InReceives"), t.field("Ip", "InDelivers")
	if !in.known || !out.known || b.in.Fragments > 1 {
		return reading{}, false // fragments come in, datagrams come out
	}
	gap = in.less(out, t.field("Ip", "ForwDatagrams"))
	gap.name, gap.before, gap.after = "Ip.InReceives - InDelivers", 0, 0
	forwarded, sent := t.field("Ip", "ForwDatagrams"), t.field("Ip", "OutTransmits")
	if forwarded.whole == 0 {
		return gap, true
	}
	gap.name += " - ForwDatagrams"
	if v != b.path.receiver && v != b.path.sender && sent.known {
		// Since it has OutTransmits, Linux counts as forwarded what the forward
		// hook may still drop.
		late := forwarded.add(t.field("Ip", "OutRequests")).less(sent)
		gap.whole, gap.measure = plus(gap.whole, late.whole), plus(gap.measure, late.measure)
		gap.name = "Ip.InReceives - InDelivers - OutTransmits"
	}
	return gap, true
}

// udpClaims are those of UDP; a socket's own count goes before them.
func (b *book) udpClaims(v *view) {
	t := &v.table
	u := func(name string) reading { return t.field("Udp", name) }
	b.node(byNamespace, v, stageUDP, "NO_SOCKET", u("NoPorts"))
	b.node(byNamespace, v, stageUDP, "UDP_CSUM", u("InCsumErrors"))
	rest := u("InErrors").less(u("RcvbufErrors"), u("InCsumErrors"), u("MemErrors"))
	b.node(byNamespace, v, stageUDP, "SOCKET_FILTER", rest)
	if !b.in.SocketKnown {
		b.node(byNamespace, v, stageBuffer, "SOCKET_RCVBUFF", u("RcvbufErrors"))
		b.node(byNamespace, v, stageMemory, "PROTO_MEM", u("MemErrors"))
	}
}

// outputClaims are those of the way out of a node.
func (b *book) outputClaims(v *view, side Side) {
	t := &v.table
	layer := func(at stage) string {
		if side == SideOther {
			return model.LayerNetwork
		}
		return layers[at].sender
	}
	host := v.Name
	queue := t.queues(v.Out)
	if side != SideOther { // a second offer was made because the first had been dropped there
		queue.measure = minus(queue.measure, b.in.Retried)
		if n := b.in.SendErrors["ENOBUFS"]; n > 0 {
			// send() tells of a full queue: what it did not tell of is the
			// warm-up's, unless there is more.
			queue.measure = min(queue.measure, minus(queue.whole, b.warmupLost))
		}
	}
	b.counter(byDevice, layer(stageQdisc), host, "QDISC_DROP", queue, func(c *claim) bool {
		return c.host == host && c.layer == layer(stageQdisc) && (c.cause == "ENOBUFS" || c.cause == "QDISC_DROP")
	})
	egress := b.classifier(v)
	b.counter(byDevice, layer(stageQdisc), host, "TC_EGRESS", egress, func(c *claim) bool {
		return c.host == host && c.layer == layer(stageQdisc) && c.cause == "TC_EGRESS"
	})
	b.deviceClaims(v, layer(stageDevice))
	// Of the whole kernel: the first namespace's file counts for all. A meeting has so few packets that those of others
	// would hide them, and control has found the neighbour.
	if missed := t.field("neighbour", "unresolved_discards"); v == b.seeker(v.kernel) && b.in.Way == "" {
		b.counter(byHost, layer(stageNeighbour), host, "NEIGH_QUEUEFULL", missed, nil)
	}
}

// wireguard is what model.Route.Device calls such a tunnel. An error there is a packet that no peer's addresses allow,
// or whose peer's address is not known.
const wireguard = "wireguard"

// deviceClaims place what a device failed to send. A virtual pair counts there
// what the far half's backlog or ring had no room for.
func (b *book) deviceClaims(v *view, layer string) {
	t := &v.table
	out, cause := v.Out, model.CauseTransmit
	if i := v.route.Interface; i != "" && len(out) > 0 && !slices.Contains(out, i) { // a tunnel, say
		out = append(slices.Clip(out), i)
	}
	refused, full := t.device(out, "tx_errors"), t.device(out, "tx_dropped")
	switch {
	case v.route.NoCarrier:
		cause = model.CauseNoCarrier
	case v.route.Device == wireguard && refused.whole > full.whole: // a full queue is no error there
		cause = model.CauseNoPeer
	}
	sent := full.add(refused)
	next := b.path.next(v)
	if next == nil {
		b.counter(byTransmit, layer, v.Name, cause, sent, of(layer))
		return
	}
	behind := func(c *claim) bool {
		return b.at(next, stageBacklog)(c) && c.cause == "CPU_BACKLOG" || b.at(next, stageRing)(c) &&
			c.cause == model.CauseRingFull ||
			c.layer == layer && c.host == v.Name && (c.cause == cause || b.unsent(c))
	}
	// A full ring is told to whoever sends, a missing carrier is not.
	told := minus(t.field("Ip", "OutDiscards").whole,
		plus(plus(t.queues(v.Out).whole, b.classifier(v).whole), b.backlog(next).whole))
	for _, n := range b.in.SendErrors {
		told = minus(told, n)
	}
	ring := sent.less(b.backlog(next))
	if told >= ring.whole && ring.whole > 0 {
		b.counter(byTransmit, b.behind(next, stageRing), next.Name, model.CauseRingFull, sent, behind)
		return
	}
	b.counter(byTransmit, layer, v.Name, cause, sent, behind)
}

// unsent reports whether a claim is about frames that the sender's device did not take: the
// device counts them as well.
func (b *book) unsent(c *claim) bool {
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
