package ledger

import (
	"math"
	"strings"

	"pelt/model"
)

// checks are the laws that the counts must obey among themselves. One that other traffic or a missing counter makes
// impossible to check is left out: only a contradiction is broken.
func (b *book) checks(lines []model.Line) []model.Check {
	list := &checks{all: []model.Check{}}
	b.endChecks(list, lines)
	b.listChecks(list)
	b.counterChecks(list)
	return list.all
}

type checks struct{ all []model.Check }

// law adds a check, which is named after the law's first word. Its figures are uint64, its words are strings.
func (c *checks) law(held bool, law string, figures ...any) {
	name, _, _ := strings.Cut(law, ".")
	one := model.Check{Name: name, Held: held, Law: law}
	for _, f := range figures {
		switch f := f.(type) {
		case uint64:
			one.Counts = append(one.Counts, f)
		case string:
			one.Words = append(one.Words, f)
		}
	}
	c.all = append(c.all, one)
}

// endChecks are those among the figures of the two ends.
func (b *book) endChecks(c *checks, lines []model.Line) {
	in := b.in
	var refused, unsent, named uint64
	for _, e := range in.SendErrors {
		refused = plus(refused, e)
	}
	for _, n := range in.Unsent {
		unsent = plus(unsent, n)
	}
	for _, l := range lines {
		named += l.Packets
	}
	c.law(named+b.remaining == b.lost, "balance", b.lost, named, b.remaining)
	if in.PastSockets {
		c.law(in.Attempted == plus(in.Accepted, plus(refused, unsent)), "attempted.device", in.Attempted, in.Accepted,
			unsent)
	} else {
		c.law(in.Attempted == plus(in.Accepted, refused), "attempted", in.Attempted, in.Accepted, refused)
	}
	c.law(in.Received <= in.Attempted, "received", in.Received, in.Attempted)
	givenUp := plus(plus(in.SlotsLate, in.SlotsHeld), in.SlotsQuiet)
	c.law(plus(in.Attempted, givenUp) <= in.Planned || in.Planned == 0, "planned", in.Attempted, givenUp, in.Planned)
	if in.MissingKnown {
		c.law(plus(b.join.missing, b.join.unlisted) == b.lost, "missing", b.join.missing, b.join.unlisted, b.lost)
	}
	if p := in.Peer; p != nil {
		told, one := plus(p.Gaps, p.Tail), uint64(len(in.Streams)) // a peer may end a stream between two counts
		c.law(plus(told, one) >= b.lost && told <= plus(b.lost, one), "peer", p.Program, b.lost, p.Gaps, p.Tail)
	}
	if in.SocketKnown {
		b.socketCheck(c)
	}
}

// socketCheck holds the sockets' own count against the verdicts about them.
func (b *book) socketCheck(c *checks) {
	if v := b.path.receiver; v == nil || !v.watched {
		return
	}
	dropped, seen, spare := b.in.SocketDrops, b.path.socketVerdicts(), uint64(0)
	for _, s := range b.path.sites {
		if s.onSocket() {
			spare = plus(spare, s.warmup)
		}
	}
	if dropped <= plus(seen, spare) { // else others sent to them, too
		// A packet of the warm-up that waits when the count begins is told as part of either.
		c.law(minus(seen, dropped) <= spare, "socket", dropped, seen)
	}
}

// listChecks tell what is wrong with lists.
func (b *book) listChecks(c *checks) {
	j := b.join
	const most = 8 // a peer may send as many broken lists as there are streams
	for i, t := range j.trouble.all {
		if i == most {
			c.law(false, "lists.more", uint64(len(j.trouble.all)-most))
			break
		}
		c.all = append(c.all, t)
	}
	if j.refusedArrived > 0 {
		c.law(false, "refused", j.refusedArrived)
	}
	for _, l := range b.path.lists {
		if l.bogus > 0 {
			c.law(false, "lists.nowhere", l.bogus, l.from)
		}
	}
}

// counterChecks are the conservation laws among kernel counters. They count
// skbs, so they mean something only where a datagram is one.
func (b *book) counterChecks(c *checks) {
	if b.in.Segments > 1 || b.in.Fragments > 1 {
		return
	}
	s, r := b.path.sender, b.path.receiver
	if s != nil && s.Observation != nil && !b.in.PastSockets {
		b.sentCheck(c, s)
	}
	if s != nil && r != nil && s.Observation != nil && r.Observation != nil && !b.path.shared() {
		b.wireCheck(c, s, r)
	}
	if r != nil && r.Observation != nil {
		b.filterCheck(c, r)
		b.udpCheck(c, r)
	}
}

// sentCheck: what send() accepted, UDP sent.
func (b *book) sentCheck(c *checks, v *view) {
	out, errors := v.table.field("Udp", "OutDatagrams"), v.table.field("Udp", "SndbufErrors")
	if !out.known {
		return
	}
	told := plus(out.whole, errors.whole)
	if told <= plus(b.in.Attempted, b.in.WarmupSent) { // else others sent, too
		c.law(told >= b.in.Accepted, "accepted", b.in.Accepted, b.in.Attempted, b.in.WarmupSent, out.whole,
			errors.whole)
	}
}

// foreign is what others may add to a counter, by its rate while the path was idle.
func (b *book) foreign(r ...reading) uint64 {
	var hz float64
	for _, one := range r {
		hz += one.idleHz
	}
	return count(math.Ceil(2 * hz * b.in.DurationS))
}

// wireCheck: no more comes in than went out.
func (b *book) wireCheck(c *checks, s, r *view) {
	out, in, missed := s.table.device(s.Out, "tx_packets"), r.table.device(r.In, "rx_packets"), r.table.ring(r.In)
	if !out.known || !in.known {
		return
	}
	came := plus(in.whole, missed.whole)
	others := came > plus(b.in.Attempted, b.in.WarmupSent) || minus(came, out.whole) <= b.foreign(out, in)
	if came <= out.whole || !others {
		c.law(came <= out.whole, "wire", out.whole, s.Name, in.whole, missed.whole, r.Name)
	}
}

// readingApart is how many packets may pass while the kernel prints one counter
// after the other.
const readingApart = 2

// filterCheck: what IP received it delivered, or somebody has a verdict on it.
func (b *book) filterCheck(c *checks, v *view) {
	gap, ok := b.ipGap(v)
	if !ok || !v.watched || b.path.shared() {
		return // without verdicts, the gap is what made the line
	}
	t, errors := &v.table, v.ipErrors.whole
	var verdicts uint64
	for _, s := range b.path.sites {
		if s.host == v.Name && s.at == stageFilter && s.layer == model.LayerReceiverFilter {
			verdicts = plus(verdicts, plus(max(s.packets, s.seen), s.warmup))
		}
	}
	more, less := minus(gap.whole, plus(verdicts, errors)), minus(plus(verdicts, errors), gap.whole)
	others := max(b.foreign(gap), t.field("Ip", "InMcastPkts").whole, readingApart)
	if t.field("Ip", "InReceives").whole > plus(b.in.Attempted, b.in.WarmupSent) {
		others = math.MaxUint64
	}
	before := max(t.field("Ip", "ReasmTimeout").whole, readingApart) // fragments that came before the test
	if more == less || more > others || less > before {
		c.law(more == less, "filter", gap.name, gap.whole, verdicts, errors)
	}
}

// udpCheck: what IP delivered, UDP counted; the rest was for other protocols or
// still waits.
func (b *book) udpCheck(c *checks, v *view) {
	t := &v.table
	in, read := t.field("Ip", "InDelivers"), t.field("Udp", "InDatagrams")
	if !in.known || !read.known {
		return
	}
	errors, ports := t.field("Udp", "InErrors"), t.field("Udp", "NoPorts")
	told := plus(plus(read.whole, errors.whole), plus(ports.whole, t.field("Udp", "IgnoredMulti").whole))
	c.law(told <= in.whole, "udp", in.whole, read.whole, errors.whole, ports.whole, minus(in.whole, told))
}
