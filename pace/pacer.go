package pace

import "math"

// Stream says which slots of a flow one stream sends, and how it may catch up.
type Stream struct {
	Number, Streams int     // it owns the flow's slots Number, Number+Streams, ...
	Length          int64   // of the phase, ns: what is due later is no slot of it
	Slots           uint64  // of the whole flow at most
	PPS             float64 // of this stream
	Group           int     // packets that leave together when the last of them is due; 0 or 1: each alone
	Burst           int     // due packets that may leave back to back; 0: catch up at twice the rate at most

	Gap func(nanos int64) // told the time between each two slots that were used or given up; may be nil
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
	generator  Generator
	length     int64
	left       uint64  // slots that the generator may still be asked for
	ahead      []int64 // due times of slots from base on
	base       uint64
	kept       uint64 // first slot whose due time may still be asked
	group      uint64
	burst      uint64
	batch      int64  // ns of slots that may leave in one go, each way
	patience   int64  // ns
	next       uint64 // first slot neither used nor given up
	ready      int64  // when the next group may leave at the earliest
	looked     int64  // time of the last Take
	blocked    int64  // ns since then in which the kernel made the sender wait
	unblocked  int64  // ns by which the sender would be late had it never been made to wait
	late, held uint64
	gap        func(nanos int64)
	before     int64 // due time of the slot before the next one
}

// New makes the pacer of one stream.
func New(c Schedule, s Stream) Pacer {
	number, streams := uint64(s.Number), uint64(max(s.Streams, 1))
	p := Pacer{generator: c(number, streams), length: s.Length, group: uint64(max(s.Group, 1)), gap: s.Gap}
	if s.Slots > number {
		p.left = (s.Slots-number-1)/streams + 1
	}
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

// lookAhead is how many due times are made at a time.
const lookAhead = 16

// Due returns when one of this stream's slots is due, from the first one of the last Take on;
// Never after the last.
func (p *Pacer) Due(slot uint64) int64 {
	for slot-p.base >= uint64(len(p.ahead)) {
		p.generate()
	}
	return p.ahead[slot-p.base]
}

// generate makes the due times of the next lookAhead slots, and forgets those before the last Take.
func (p *Pacer) generate() {
	if old := p.kept - p.base; old > 0 {
		p.ahead, p.base = p.ahead[:copy(p.ahead, p.ahead[old:])], p.kept
	}
	for range lookAhead {
		at := int64(Never)
		if p.left > 0 {
			p.left--
			if at = p.generator(); at >= p.length {
				at, p.left = Never, 0
			}
		}
		p.ahead = append(p.ahead, at)
	}
}

// groupDue returns when the group that begins with a slot is due; the last one may be short.
func (p *Pacer) groupDue(slot uint64) int64 {
	at := p.Due(slot + p.group - 1)
	for n := p.group - 1; at == Never && n > 0; n-- {
		at = p.Due(slot + n - 1)
	}
	return at
}

// due returns how many slots from the next one on are due by now, whole groups of them and no
// more than most.
func (p *Pacer) due(now int64, most uint64) (n uint64) {
	for n < most && p.groupDue(p.next+n) <= min(now, Never-1) {
		n += p.group
	}
	for n > 0 && p.Due(p.next+n-1) == Never {
		n--
	}
	return n
}

// use takes the next n slots, and tells gap the times between them.
func (p *Pacer) use(n uint64) {
	if p.gap != nil {
		for slot := p.next; slot < p.next+n; slot++ {
			if slot > 0 {
				p.gap(p.Due(slot) - p.before)
			}
			p.before = p.Due(slot)
		}
	}
	p.kept = p.next
	p.next += n
}

// useDue takes all slots that are due by now, and returns their number.
func (p *Pacer) useDue(now int64) uint64 {
	first := p.next
	for n := p.due(now, lookAhead); n > 0; n = p.due(now, lookAhead) {
		p.use(n)
	}
	return p.next - first
}

// Planned returns how many packets were to be sent by a time, which is not before the last Take. It ends the pacing.
func (p *Pacer) Planned(now int64) uint64 {
	p.group = 1
	p.useDue(now)
	return p.next
}

// GivenUp returns how many slots no packet was sent in: late ones by the sender's own fault, held ones because the
// kernel took no packet.
func (p *Pacer) GivenUp() (late, held uint64) { return p.late, p.held }

// Next returns the earliest time of the next group; ok is false when no slot is left.
func (p *Pacer) Next() (at int64, ok bool) {
	if at = p.groupDue(p.next); at == Never {
		return 0, false
	}
	return max(at, p.ready), true
}

// Blocked adds to the time that the kernel made the sender wait since the last Take.
func (p *Pacer) Blocked(nanos int64) { p.blocked += nanos }

// Hold counts the last n packets of the last Take as held: they found no room in time.
func (p *Pacer) Hold(n uint64) { p.held += n }

// Take returns how many packets may leave now, and the first slot they use. Nothing
// leaves before Next.
func (p *Pacer) Take(now int64) (n, first uint64) {
	due := p.groupDue(p.next)
	if due == Never {
		return 0, p.next
	}
	late := now - due
	if late < now-p.looked { // it had nothing to send for a while
		p.unblocked = 0
	}
	p.unblocked = max(0, p.unblocked+min(late, now-p.looked)-p.blocked)
	p.looked, p.blocked = now, 0
	if late >= p.patience {
		p.giveUp(now)
		due = p.groupDue(p.next)
	}
	first = p.next
	if due == Never || now < max(due, p.ready) {
		return 0, first
	}
	if p.burst > 0 {
		n = p.due(now, p.burst)
		p.use(n)
		p.ready = p.afterBurst(now)
		p.unblocked -= p.ready - due
		return n, first
	}
	n = p.due(min(now, plus(due, 2*p.batch)), math.MaxUint64)
	p.use(n)
	if following := p.groupDue(p.next); following < Never {
		planned := following - due
		p.ready = plus(max(p.ready, now-CatchUpSlack), planned/2)
		p.unblocked -= planned
	}
	return n, first
}

// afterBurst returns the due time of the first slot that is not due yet.
func (p *Pacer) afterBurst(now int64) int64 {
	slot := p.next
	for p.Due(slot) <= now {
		slot++
	}
	if at := p.Due(slot); at < Never {
		return at
	}
	return plus(now, p.patience)
}

// giveUp skips the slots that are too late at a time. They count as held if the wait for the kernel made them late,
// else as late.
func (p *Pacer) giveUp(now int64) {
	n := p.useDue(now - p.patience)
	if p.unblocked < p.patience {
		p.held += n
		return
	}
	p.late += n
	p.unblocked = p.patience
}
