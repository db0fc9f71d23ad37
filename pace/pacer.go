package pace

import "math"

// Stream says which slots of a flow one stream sends, and how it may catch up.
type Stream struct {
	Number, Streams int     // it owns the flow's slots Number, Number+Streams, ...
	Slots           uint64  // of the whole flow
	PPS             float64 // of this stream
	Group           int     // packets that leave together when the last of them is due; 0 or 1: each alone
	Burst           int     // due packets that may leave back to back; 0: catch up at twice the rate at most
}

const (
	// CatchUpLimit is how late a slot may be that is still used, in ns. Below 10 ms ordinary
	// stalls of a host cost slots; 20 and 50 ms gained nothing in measurements.
	CatchUpLimit = 10_000_000
	// CatchUpSlack is by how much a pause that lasted too long shortens the next ones, in
	// ns: about as long as an interrupt or a system call keeps a sender from its slot.
	CatchUpSlack = 20_000
	// Above batchPPS a late stream may send the slots of that time, each way, in one go.
	batchPPS = 100_000
)

// Pacer says how many packets of one stream may leave at a time. All times are
// nanoseconds after the phase began; it reads no clock. One goroutine uses it.
//
// A slot is never used before it is due. A late sender catches up at no more than
// twice the planned rate: after each group it pauses for half the planned gap, less
// what the pauses before were too long, 20 us at most. Slots that are later than
// 10 ms, or than one gap of a slow stream, are given up.
type Pacer struct {
	clock      Clock
	stream     uint64
	streams    uint64
	group      uint64
	burst      uint64
	batch      int64 // ns of slots that may leave in one go, each way
	patience   int64 // ns
	slots      uint64
	next       uint64 // first slot neither used nor given up
	ready      int64  // when the next group may leave at the earliest
	looked     int64  // time of the last Take
	blocked    int64  // ns since then in which the kernel made the sender wait
	unblocked  int64  // ns by which the sender would be late had it never been made to wait
	late, held uint64
}

// New makes the pacer of one stream. It takes the clock's place for itself.
func New(c Clock, s Stream) Pacer {
	p := Pacer{clock: c, stream: uint64(s.Number), streams: uint64(max(s.Streams, 1)), group: uint64(max(s.Group, 1))}
	p.slots = p.own(s.Slots)
	gap := int64(math.Ceil(float64(p.group) * 1e9 / s.PPS))
	p.patience = max(CatchUpLimit, gap)
	if s.Burst > 0 {
		p.burst = max(uint64(s.Burst)/p.group, 1) * p.group
		p.patience = int64(float64(p.burst) * 1e9 / s.PPS)
	} else if s.PPS > batchPPS {
		p.batch = CatchUpSlack
	}
	return p
}

// own returns how many of the flow's first n slots are this stream's.
func (p *Pacer) own(n uint64) uint64 {
	if n <= p.stream {
		return 0
	}
	return (n-p.stream-1)/p.streams + 1
}

// count returns how many of this stream's slots are due by the given time.
func (p *Pacer) count(now int64) uint64 {
	if now == math.MaxInt64 {
		return p.slots
	}
	return min(p.slots, p.own(p.clock.Count(now+1)))
}

// Due returns when one of this stream's slots is due.
func (p *Pacer) Due(slot uint64) int64 { return p.clock.Due(p.stream + slot*p.streams) }

// groupDue returns when the group that begins with a slot is due.
func (p *Pacer) groupDue(slot uint64) int64 { return p.Due(min(slot+p.group, p.slots) - 1) }

// Slots returns how many packets the stream is to send in the phase.
func (p *Pacer) Slots() uint64 { return p.slots }

// Planned returns how many packets were to be sent by the given time.
func (p *Pacer) Planned(now int64) uint64 { return p.count(now) }

// GivenUp returns how many slots were not used: late ones are the sender's own
// fault, held ones were lost while the kernel took no packet.
func (p *Pacer) GivenUp() (late, held uint64) { return p.late, p.held }

// Next returns the earliest time of the next group; ok is false when no slot is left.
func (p *Pacer) Next() (at int64, ok bool) {
	if p.next >= p.slots {
		return 0, false
	}
	return max(p.groupDue(p.next), p.ready), true
}

// Blocked adds time in which the kernel made the sender wait since the last Take.
func (p *Pacer) Blocked(nanos int64) { p.blocked += nanos }

// Hold takes back the last n packets of the last Take, which found no room in time.
func (p *Pacer) Hold(n uint64) { p.held += n }

// Take returns how many packets may leave now, and the first slot they use. Nothing
// leaves before Next.
func (p *Pacer) Take(now int64) (n, first uint64) {
	if p.next >= p.slots {
		return 0, p.next
	}
	late := now - p.groupDue(p.next)
	if late < now-p.looked { // it had nothing to send for a while
		p.unblocked = 0
	}
	p.unblocked = max(0, p.unblocked+min(late, now-p.looked)-p.blocked)
	p.looked, p.blocked = now, 0
	if late >= p.patience {
		if p.giveUp(now); p.next >= p.slots {
			return 0, p.next
		}
	}
	due := p.groupDue(p.next)
	if now < max(due, p.ready) {
		return 0, p.next
	}
	first = p.next
	if p.burst > 0 {
		n = min(p.whole(p.count(now)), p.burst)
		p.next += n
		p.ready = p.afterBurst(now)
		p.unblocked -= p.ready - due
		return n, first
	}
	n = p.whole(p.count(min(now, plus(due, 2*p.batch))))
	p.next += n
	if p.next < p.slots {
		planned := p.groupDue(p.next) - due
		p.ready = plus(max(p.ready, now-CatchUpSlack), planned/2)
		p.unblocked -= planned
	}
	return n, first
}

// whole cuts the slots from the next one up to an end to whole groups.
func (p *Pacer) whole(end uint64) uint64 {
	n := end - p.next
	if end < p.slots {
		n -= n % p.group
	}
	return n
}

// afterBurst returns when the first slot is due that is not due yet.
func (p *Pacer) afterBurst(now int64) int64 {
	if n := p.count(now); n < p.slots {
		return p.Due(n)
	}
	return plus(now, p.patience)
}

// giveUp leaves out the slots that are too late at a time. They are late if the sender
// would be as late without the time it was made to wait, else held.
func (p *Pacer) giveUp(now int64) {
	n := p.whole(p.count(now - p.patience))
	p.next += n
	if p.unblocked < p.patience {
		p.held += n
		return
	}
	p.late += n
	p.unblocked = p.patience
}
