package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/model"
)

// trusted reports whether the list of missing sequences agrees with the counts.
func (b *book) trusted() bool {
	return !b.in.MissingKnown || !b.join.missingBroken && plus(b.join.missing, b.join.unlisted) == b.lost
}

// verdictClaims are what the kernels' own watch says, by sequence and by count.
func (b *book) verdictClaims() {
	j := b.join
	for i, s := range b.path.sites {
		if s.layer == "" {
			continue
		}
		seenBy := s.host
		if seenBy == "" {
			seenBy = b.first(s.kernel).Name
		}
		base := told(byVerdict, s.layer, s.host, s.cause, "verdict "+s.text())
		base.function, base.iface, base.evidence.Host = s.Function, s.Interface, seenBy
		one := base.of(j.bySite[i].exact)
		one.order, one.confidence, one.spans, one.steps = bySequence, ExactSeq, j.bySite[i].spans, j.bySite[i].steps
		if j.broken(s) || !b.trusted() {
			one.confidence = Bounded
		}
		if waited(s) {
			one.order, one.covers = byWaiting, func(o *claim) bool { return o.order == byFragment }
		}
		b.add(one)

		b.add(base.of(j.bySite[i].soft))

		rest := base.of(b.unlisted(s))
		if b.in.TCP {
			// What was dropped shortly before the measured part is sent again in it.
			rest.upper = plus(rest.sure, s.warmup)
		}
		rest.evidence.Counter = "packets dropped by " + s.text()
		switch { // of the same packets, others may have told
		case waited(s):
			rest.order, rest.covers = byWaiting, one.covers
		case s.layer == model.LayerSendCall:
			rest.covers = func(o *claim) bool {
				return o.layer == model.LayerSendCall && (o.order == bySequence || o.order == bySender)
			}
		case s.refuses && b.refusedAt(s):
			rest.sure = minus(rest.sure, b.in.Retried)
			rest.covers = func(o *claim) bool { return o.refusedBy == s }
		}
		if s.unreadable > 0 && b.warmupLost > b.warmupSeen() {
			rest.confidence = Bounded // some may have been of the warm-up
		}
		b.add(rest)

		// By sequence, a fragment's verdict is its datagram's. A router may have cut up what left the sender whole.
		if s.fragments > 0 && !waited(s) && !b.listed(s.kernel) {
			part := base.of(s.fragments)
			part.order, part.confidence = byFragment, Bounded
			// Of a datagram that died here whole the first fragment has counted it.
			part.sure = minus(s.fragments, times(s.packets, b.in.Fragments-1))
			part.evidence.Unit, part.evidence.Counter = "fragment", "fragments dropped by "+s.text()
			b.add(part)
		}
	}
}

// answerClaims are what routers and firewalls told the sender by ICMP, or somebody by TCP resets. They answer a few
// packets a second only (RFC 1812 section 4.3.2.8): while the ends meet, an answer stands for all that nobody else saw,
// and of the test for those that were lost in a row with a packet that it quotes.
func (b *book) answerClaims() {
	answer := func(host, cause, counter string, n uint64, of *found) {
		if n == 0 {
			return
		}
		c := told(byAnswer, model.LayerNetwork, host, cause, counter).of(b.lost)
		c.confidence = Bounded
		if of != nil { // a counter knows better
			c = c.of(of.exact)
			c.order, c.confidence, c.spans, c.steps = byElimination, Inferred, of.spans, of.steps
			c.covers = answered
		}
		c.evidence.Delta = n
		c.evidence.Host = b.in.Sender // where they were counted
		b.add(c)
	}
	for i, e := range b.in.ICMP {
		var of *found
		if b.in.Way == "" && !b.in.TCP {
			of = &b.join.byAnswer[i]
		}
		host, cause := e.From, model.CauseICMP+e.What
		if v := b.unansweredAt(); v != nil && e.What == "host unreachable" && len(b.in.ICMP) == 1 {
			host, cause = v.Name, "NEIGH_FAILED" // which is what it told the sender
		}
		answer(host, cause, "ICMP errors", e.Packets, of)
	}
	answer("", model.CauseReset, "TCP resets", b.in.Resets, nil)
}

// unansweredAt returns a node on the way whose next hop answers no neighbour lookup; nil without.
func (b *book) unansweredAt() *view {
	for _, v := range b.path.nodes {
		if b.passes(v) && v.route.NoAnswer {
			return v
		}
	}
	return nil
}

// answered reports whether what a claim counts may have been answered with an ICMP error. Whose address that came from
// is not known here.
func answered(o *claim) bool {
	switch at := Of(o.layer, o.cause).at; at {
	case stageFilter, stageIP, stageUDP, stageOutput, stageNeighbour:
		return o.order > bySequence && o.order < byDifference && layerPlace(o.layer) >= layerPlace(model.LayerNetwork)
	}
	return false
}

// unlisted is how many packets a site dropped of which no list tells the sequence.
func (b *book) unlisted(s *site) uint64 {
	left, room := minus(s.packets, s.seen), s.unreadable
	for _, l := range b.path.kernels[s.kernel].lists {
		if !l.listed || l.broken != "" {
			return left
		}
		room = plus(room, plus(plus(l.beyond, l.drops.Overwritten), l.bogus))
	}
	// More would be a second copy of a packet whose verdict is listed.
	return min(left, room)
}

// listed reports whether all lists of a kernel's drops are by sequence.
func (b *book) listed(k int) bool {
	for _, l := range b.path.kernels[k].lists {
		if !l.listed {
			return false
		}
	}
	return true
}

// warmupSeen is how many packets of the warm-up the watch saw dropped.
func (b *book) warmupSeen() (n uint64) {
	for _, s := range b.path.sites {
		n = plus(n, s.warmup)
	}
	return n
}

func (s *site) text() string {
	reason := spell(s.Reason)
	if s.Function == "" {
		return reason
	}
	return fmt.Sprintf("%s @ %s+0x%x", reason, s.Function, s.Offset)
}

// errnoClaims are the packets that the sender's kernel refused.
func (b *book) errnoClaims() {
	j := b.join
	for _, cause := range slices.Sorted(maps.Keys(b.in.Unsent)) {
		c := told(bySender, model.LayerSenderDevice, b.in.Sender, cause,
			"frames not taken: "+cause).of(b.in.Unsent[cause])
		if b.in.Cable && cause == model.CauseRingFull && b.path.sender != nil {
			if next := b.path.next(b.path.sender); next != nil && cabled(b.path.sender, next) {
				// it has no time to take more
				c.layer, c.host = b.behind(next, stageRing), next.Name
			}
		}
		b.add(c)
	}
	listed := map[string]uint64{}
	for i, name := range b.in.Errnos {
		listed[name] = plus(listed[name], j.listedErrno[i])
		f := j.byErrno[i]
		if f.exact == 0 {
			continue
		}
		c := told(bySequence, model.LayerSendCall, b.in.Sender, b.refusal(name), "send errors "+name).of(f.exact)
		c.confidence, c.spans, c.steps, c.verdicts = ExactSeq, f.spans, f.steps, f.verdicts
		if j.refusedBroken || !b.trusted() {
			c.confidence = Bounded
		}
		most := uint64(0)
		for _, s := range slices.Sorted(maps.Keys(f.verdicts)) {
			if n := f.verdicts[s]; n > most {
				most, c.function, c.iface = n, b.path.sites[s].Function, b.path.sites[s].Interface
			}
		}
		b.enter(c)
	}
	for _, name := range slices.Sorted(maps.Keys(b.in.SendErrors)) {
		n := minus(b.in.SendErrors[name], listed[name])
		if name == "ENOBUFS" {
			for i, s := range b.path.sites { // their verdicts are listed, the errors are not
				if s.refuses && b.refusedAt(s) {
					n = minus(n, j.sites[i])
				}
			}
		}
		if n > 0 {
			b.enter(told(bySender, model.LayerSendCall, b.in.Sender, b.refusal(name), "send errors "+name).ofSocket(n))
		}
	}
}

// refusal is the cause of an errno of send(), which may have several.
func (b *book) refusal(errno string) string {
	known := facts{host: b.path.sender, errno: errno, packets: b.in.SendErrors[errno]}
	if known.host != nil {
		known.read = func(names string) uint64 { return b.counters(known.host, names).whole }
	}
	for i := range causes {
		c := &causes[i]
		all := strings.Fields(c.errno)
		if slices.Contains(all, errno+"!") && known.moved(c) ||
			c.when != nil && slices.Contains(all, errno) && c.when(known) {
			return c.Name
		}
	}
	if Of(model.LayerSendCall, errno).Name != errno {
		return errno
	}
	said := map[string]bool{} // by the kernel's verdicts on what this host refused
	for _, s := range b.path.sites {
		if s.layer == model.LayerSendCall && max(s.packets, s.seen) > 0 && Of(s.layer, s.cause).Name == s.cause {
			said[s.cause] = true
		}
	}
	if len(said) == 1 {
		for cause := range said {
			return cause
		}
	}
	return errno
}

// enter enters a claim by an errno of send().
func (b *book) enter(c claim) {
	if c.cause == "ENOBUFS" {
		b.refusals(c)
		return
	}
	b.add(c)
}

// refusedAt reports whether a drop at this site is one that send() hears of: up to
// the receive side of the next device on the same kernel.
func (b *book) refusedAt(s *site) bool {
	return b.path.sender != nil && s.kernel == b.path.sender.kernel
}

// refusals assigns ENOBUFS without a verdict to a place. The kernel says so when anything
// refused the packet while send() was still running: the queue, a classifier,
// or, without a queue, the device and the very next node's backlog (finding of
// IP_RECVERR, net/ipv4/ip_output.c ip_send_skb). Which one it was is what the
// counters that moved with it tell.
func (b *book) refusals(c claim) {
	c.layer = model.LayerSenderQdisc
	v := b.path.sender
	if v == nil || v.Observation == nil {
		c.confidence = Inferred // none of them was read
		b.add(c)
		return
	}
	left := c.sure
	for _, o := range b.refusers(v) {
		n := min(left, o.packets)
		if n == 0 {
			continue
		}
		one := c.of(n)
		one.layer, one.host = o.layer, o.host
		if o.cause != "" {
			one.cause = o.cause
		}
		if one.refusedBy = o.site; o.site != nil {
			one.function, one.iface = o.site.Function, o.site.Interface
		}
		if n < c.sure {
			one.spans, one.steps, one.verdicts = nil, nil, nil // which of them is not known
		}
		if n < c.sure || !o.own {
			one.confidence = LessSure(one.confidence, Bounded)
		}
		b.add(one)
		left -= n
	}
	if left > 0 {
		c.confidence = LessSure(c.confidence, Bounded)
		b.add(c.of(left))
	}
}

// refuser is a place that may refuse packets while send() runs.
type refuser struct {
	layer, host, cause string
	packets            uint64 // datagrams at most
	own                bool   // a queue of the sender's output, which others use little, or the flow's own count
	site               *site  // whose count it is; nil: a counter's
}

// refusers lists these places, with the packets that no verdict by sequence has taken.
func (b *book) refusers(v *view) []refuser {
	free := func(r reading, layers ...string) uint64 {
		n := times(r.whole, b.in.Segments)
		for i, s := range b.path.sites {
			if s.refuses && slices.Contains(layers, s.layer) {
				n = minus(n, b.join.bySite[i].exact)
			}
		}
		return n
	}
	var all []refuser
	for _, s := range b.path.sites { // a watch that only counts
		if s.refuses && b.refusedAt(s) {
			all = append(all, refuser{s.layer, s.host, s.cause, b.unlisted(s), true, s})
		}
	}
	all = append(all, refuser{model.LayerSenderQdisc, b.in.Sender, "",
		free(v.table.queues(v.Out), model.LayerSenderQdisc), true, nil},
		refuser{model.LayerSenderQdisc, b.in.Sender, "TC_EGRESS", free(b.classifier(v), model.LayerSenderQdisc),
			false, nil})
	device := v.table.unsent(v.Out)
	if v.down() {
		n := free(device, model.LayerSenderDevice)
		return append(all, refuser{model.LayerSenderDevice, b.in.Sender, "NO_CARRIER", n, false, nil})
	}
	if next := b.path.next(v); next != nil {
		layer := b.behind(next, stageBacklog)
		n := free(b.backlog(next), layer)
		all = append(all, refuser{layer, next.Name, "CPU_BACKLOG", n, false, nil})
		device = device.less(b.backlog(next))
		if cabled(v, next) {
			layer = b.behind(next, stageRing)
			return append(all, refuser{layer, next.Name, model.CauseRingFull, free(device, layer), false, nil})
		}
	}
	return append(all, refuser{model.LayerSenderDevice, b.in.Sender, "", free(device, model.LayerSenderDevice), false,
		nil})
}

// behind returns the layer of a stage on the way into a node.
func (b *book) behind(v *view, at stage) string {
	side := SideOther
	if v == b.path.receiver {
		side = SideReceiver
	}
	return layerOf(at, side, true)
}

// endClaims enters what the receiving end saw itself.
func (b *book) endClaims() {
	in := b.in
	for i := range causes {
		if own := &causes[i]; own.end != nil {
			c := told(byReceiver, layers[own.at].receiver, in.Receiver, own.Name, own.told).ofSocket(own.end(&in))
			if own.at == stageApplication {
				c.covers = of(c.layer, c.cause)
			}
			if own.Name == model.CauseNewAddress { // a packet bears the trial's number, and no proof
				c.confidence = Bounded
			}
			b.add(c)
		}
	}
	if in.SocketKnown {
		b.socketClaims()
	}
	if in.StillCame { // a counter may yet say that some of these were lost
		waiting := b.join.waiting()
		c := told(byElimination, model.LayerNetwork, "", model.CauseStillQueued, "newest packets missing")
		c = c.of(waiting.exact)
		c.confidence, c.spans, c.steps = Inferred, waiting.spans, waiting.steps
		b.add(c)
	}
}

// of selects claims of one layer and, if given, of some causes.
func of(layer string, causes ...string) func(*claim) bool {
	return func(c *claim) bool {
		return c.layer == layer && (len(causes) == 0 || slices.Contains(causes, c.cause))
	}
}

// socketClaims splits what the flow's sockets dropped by what the namespace
// counted beside it. The sum is the sockets' own; the split is as good as those
// counters: 6.18 counts memory drops nowhere else, so they are what is left.
func (b *book) socketClaims() {
	drops := b.in.SocketDrops
	type part struct {
		layer, cause string
		counted      uint64
	}
	parts := []part{{model.LayerReceiverBuffer, "SOCKET_RCVBUFF", drops}}
	most := uint64(0)
	for _, s := range b.path.sites { // what the watch missed is as what it saw
		if n := max(s.packets, s.seen); s.onSocket() && n > most {
			most, parts[0].layer, parts[0].cause = n, s.layer, s.cause
		}
	}
	rest := parts[0] // what none of these counted
	if v := b.path.receiver; v != nil && v.table.field("Udp", "InDatagrams").known && b.path.socketVerdicts() == 0 {
		parts[0].counted = v.table.moved("Udp", "RcvbufErrors").whole
		for _, cause := range []string{"SOCKET_FILTER", "UDP_CSUM"} {
			counted := b.counters(v, Of(model.LayerReceiverUDP, cause).counts).whole
			if cause == "UDP_CSUM" && b.checkedFirst() {
				counted = 0
			}
			parts = append(parts, part{model.LayerReceiverUDP, cause, counted})
		}
		rest = part{model.LayerReceiverMemory, "PROTO_MEM", v.table.moved("Udp", "MemErrors").whole}
		parts = append(parts, rest)
	}
	all, left := uint64(0), minus(drops, b.path.socketVerdicts())
	for _, p := range parts {
		all = plus(all, p.counted)
	}
	certain := uint64(0) // of what each counted, if all the others are of this flow
	sure := func(p part) uint64 { return min(p.counted, minus(left, minus(all, p.counted))) }
	for _, p := range parts {
		certain = plus(certain, sure(p))
	}
	if minus(min(all, left), certain) > stray { // more counted than these sockets dropped: others' are among them
		for i, p := range parts {
			parts[i].counted = sure(p)
		}
		rest = part{model.LayerReceiverBuffer, "SOCKET_DROP", 0}
	}
	for _, p := range append(parts, part{rest.layer, rest.cause, left}) {
		n := min(left, p.counted)
		left -= n
		b.add(told(bySocket, p.layer, b.in.Receiver, p.cause, "SO_MEMINFO drops").ofSocket(n))
	}
}

// checkedFirst reports whether the kernel finds the flow's packets wrong before it knows their socket, which does not
// count them then: include/linux/skbuff.h, CHECKSUM_BREAK.
func (b *book) checkedFirst() bool {
	headers := 14 + 20
	if b.in.Family == 6 {
		headers = 14 + 40
	}
	return b.in.PacketBytes > 0 && b.in.PacketBytes-headers <= 76
}

// socketVerdicts is how many packets the watch saw the receiver's sockets drop,
// copies of packets that arrived included.
func (p *path) socketVerdicts() (n uint64) {
	for _, s := range p.sites {
		if s.onSocket() {
			n = plus(n, max(s.packets, s.seen))
		}
	}
	return n
}

// onSocket reports whether a drop there counts among its socket's own: sk_drops.
func (s *site) onSocket() bool {
	if strings.HasSuffix(s.Function, "_queue_rcv_one_skb") && layerPlace(s.layer) > layerPlace(model.LayerNetwork) {
		return true
	}
	if s.cause == "UDP_CSUM" { // one found wrong before the socket is known counts on none
		return s.layer == model.LayerReceiverUDP && s.Function != "__udp4_lib_rcv" && s.Function != "__udp6_lib_rcv"
	}
	return layerPlace(s.layer) >= layerPlace(model.LayerReceiverUDP) &&
		slices.Contains(strings.Fields(Of(s.layer, s.cause).moves), "socket")
}
