package ledger

import (
	"fmt"
	"math"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// checks are the laws that the counts must obey among themselves. One that other
// traffic or a missing counter makes impossible to check is held, and its text
// says so: only a contradiction is broken.
func (b *book) checks(lines []model.Line) []model.Check {
	list := &checks{all: []model.Check{}}
	b.endChecks(list, lines)
	b.listChecks(list)
	b.nodeChecks(list)
	b.counterChecks(list)
	return list.all
}

type checks struct{ all []model.Check }

func (c *checks) law(name string, held bool, format string, args ...any) {
	for i, a := range args {
		if n, ok := a.(uint64); ok {
			args[i] = unit.FormatCount(n)
		}
	}
	text := fmt.Sprintf(format, args...)
	if !held {
		text = "broken: " + text
	}
	c.all = append(c.all, model.Check{Name: name, Held: held, Text: text})
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
	c.law("balance", named+b.remaining == b.lost, "%v lost = %v in named lines + %v unattributed", b.lost, named,
		b.remaining)
	if in.PastSockets {
		c.law("attempted", in.Attempted == plus(in.Accepted, plus(refused, unsent)),
			"%v attempted = %v sent by the device + %v that it did not take", in.Attempted, in.Accepted, unsent)
	} else {
		c.law("attempted", in.Attempted == plus(in.Accepted, refused),
			"%v attempted = %v accepted + %v refused by the kernel", in.Attempted, in.Accepted, refused)
	}
	c.law("received", in.Received <= in.Attempted, "%v received, at most the %v attempted", in.Received, in.Attempted)
	givenUp := plus(plus(in.SlotsLate, in.SlotsHeld), in.SlotsQuiet)
	c.law("planned", plus(in.Attempted, givenUp) <= in.Planned || in.Planned == 0,
		"%v attempted + %v given up, at most the %v planned", in.Attempted, givenUp, in.Planned)
	if in.MissingKnown {
		c.law("missing", plus(b.join.missing, b.join.unlisted) == b.lost,
			"%v sequences listed as missing + %v without room in the list = %v lost", b.join.missing, b.join.unlisted,
			b.lost)
	}
	if in.SocketKnown {
		b.socketCheck(c)
	}
}

// socketCheck holds the sockets' own count against the verdicts about them.
func (b *book) socketCheck(c *checks) {
	in, v := b.in, b.path.receiver
	if v == nil || !v.watched {
		if in.SocketDrops > b.lost {
			c.law("socket", true,
				"%v dropped by the receiver's sockets, %v more than were lost: other packets were sent to them",
				in.SocketDrops, in.SocketDrops-b.lost)
			return
		}
		c.law("socket", true, "%v dropped by the receiver's sockets, at most the %v lost", in.SocketDrops, b.lost)
		return
	}
	seen, spare := b.path.socketVerdicts(), uint64(0)
	for _, s := range b.path.sites {
		if s.onSocket() {
			spare = plus(spare, s.warmup)
		}
	}
	held := in.SocketDrops >= seen && in.SocketDrops <= plus(seen, spare)
	if !held && in.SocketDrops > seen {
		c.law("socket", true,
			"%v dropped by the receiver's sockets = %v verdicts about them, with %v not of this flow", in.SocketDrops,
			seen, in.SocketDrops-seen)
		return
	}
	// A packet of the warm-up that waits when the count begins is told as part of either.
	c.law("socket", held || seen-in.SocketDrops <= spare,
		"%v dropped by the receiver's sockets = %v verdicts about them", in.SocketDrops, seen)
}

// listChecks tell what is wrong with lists, and what the watch could not say.
func (b *book) listChecks(c *checks) {
	j := b.join
	const most = 8 // a peer may send as many broken lists as there are streams
	for i, t := range j.trouble {
		if i == most {
			c.law("lists", false, "%v further lists with faults", uint64(len(j.trouble)-most))
			break
		}
		c.law("lists", false, "%v", t)
	}
	if j.refusedArrived > 0 {
		c.law("refused", false, "%v packets arrived that the sender's kernel had refused", j.refusedArrived)
	}
	if b.in.Retried > 0 {
		c.law("again", true,
			"%v packets were offered to the sender's kernel again, because a batch call hid the first answer",
			b.in.Retried)
	}
	if b.copies > 0 {
		c.law("copies", true, "%v verdicts were about copies of packets that arrived, and count for nothing", b.copies)
	}
	for _, l := range b.path.lists {
		if l.bogus > 0 {
			c.law("lists", false, "%v verdicts from %v name no place", l.bogus, l.from)
		}
		if d := l.drops; d.Overwritten > 0 || d.SitesLost > 0 || d.Unreadable > 0 {
			c.law("watch", true,
				"the watch on %v could not tell all: %v packets could not be told by stream and sequence, %v verdicts were overwritten, %v drops found no room for their place",
				l.from, d.Unreadable, d.Overwritten, d.SitesLost)
		}
	}
}

// nodeChecks tell which nodes nobody saw: nothing is known of them, not zero.
func (b *book) nodeChecks(c *checks) {
	for _, end := range []struct {
		name string
		v    *view
	}{{b.in.Sender, b.path.sender}, {b.in.Receiver, b.path.receiver}} {
		if end.v == nil {
			c.law("observed", true, "%v: not observed", end.name)
		}
	}
	for _, v := range b.path.nodes {
		o := v.Observation
		switch {
		case o == nil && v.Why != "":
			c.law("observed", true, "%v: not observed (%v)", v.Name, v.Why)
		case o == nil:
			c.law("observed", true, "%v: not observed", v.Name)
		case o.Unsettled:
			c.law("settled", true, "%v: counters still moved when they were read for the last time", v.Name)
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
	ours := plus(b.in.Attempted, b.in.WarmupSent)
	const law = "%v accepted of %v attempted, and %v in the warm-up: Udp.OutDatagrams %v + SndbufErrors %v"
	if told > ours {
		c.law("accepted", true, law+", with %v others'", b.in.Accepted, b.in.Attempted, b.in.WarmupSent, out.whole,
			errors.whole, told-ours)
		return
	}
	c.law("accepted", told >= b.in.Accepted, law, b.in.Accepted, b.in.Attempted, b.in.WarmupSent, out.whole,
		errors.whole)
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
	ours := plus(b.in.Attempted, b.in.WarmupSent)
	switch {
	case came <= out.whole:
		c.law("wire", true, "%v tx_packets at %v ≥ %v rx_packets + %v missed at %v", out.whole, s.Name, in.whole,
			missed.whole, r.Name)
	case came > ours || came-out.whole <= b.foreign(out, in):
		c.law("wire", true, "not checkable: %v tx_packets at %v < %v rx_packets + %v missed at %v, with %v foreign",
			out.whole, s.Name, in.whole, missed.whole, r.Name, came-out.whole)
	default:
		c.law("wire", false, "%v tx_packets at %v ≥ %v rx_packets + %v missed at %v", out.whole, s.Name, in.whole,
			missed.whole, r.Name)
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
	const law = "%v Ip.InReceives - InDelivers = %v NETFILTER_DROP + %v IP errors"
	told := plus(verdicts, errors)
	name := strings.Replace(law, "Ip.InReceives - InDelivers", strings.ReplaceAll(gap.name, "%", ""), 1)
	ours := plus(b.in.Attempted, b.in.WarmupSent)
	switch {
	case gap.whole == told:
		c.law("filter", true, name, gap.whole, verdicts, errors)
	case gap.whole > told && (t.field("Ip", "InReceives").whole > ours || gap.whole-told <= b.foreign(gap)):
		c.law("filter", true, name+", with %v foreign", gap.whole, verdicts, errors, gap.whole-told)
	case gap.whole > told && gap.whole-told <= t.field("Ip", "InMcastPkts").whole:
		c.law("filter", true, name+", with %v multicast for others", gap.whole, verdicts, errors, gap.whole-told)
	case told > gap.whole && told-gap.whole <= t.field("Ip", "ReasmTimeout").whole:
		c.law("filter", true, name+", %v of them given up for fragments that came before", gap.whole, verdicts,
			errors, told-gap.whole)
	case max(gap.whole, told)-min(gap.whole, told) <= readingApart:
		c.law("filter", true, name+", but for what passed between the readings of the two", gap.whole, verdicts, errors)
	default:
		c.law("filter", false, name, gap.whole, verdicts, errors)
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
	c.law("udp", told <= in.whole,
		"%v Ip.InDelivers = %v Udp.InDatagrams + %v InErrors + %v NoPorts, with %v left unread or of other protocols",
		in.whole, read.whole, errors.whole, ports.whole, minus(in.whole, told))
}
