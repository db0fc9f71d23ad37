package udp

import (
	"math"

	"pelt/unit"
)

// pacer says how many packets of one stream may leave at a given time. It reads
// no clock. The flow's schedule is shared by its streams: stream i of N owns
// the flow's slots i, i+N, i+2N, ... A slot is due at a time computed from its
// number, so the average is exact. A late sender may send at most burst slots
// back to back; older ones are forfeited. Packets that share a buffer leave
// together, when the last of them is due.
type pacer struct {
	schedule        unit.Schedule
	stream, streams uint64
	burst, group    uint64 // group is the packets of a buffer
	slots           uint64 // of this stream in the whole phase
	next            uint64 // first slot neither used nor forfeited
	forfeited       uint64
}

// burstFreePPS is the rate up to which every packet of a stream keeps its own
// deadline; above it a stream may send the slots of burstNanos in one go, since
// one wake-up, interrupt or system call of an ordinary host takes about that long.
const (
	burstFreePPS = 100_000
	burstNanos   = 20_000
)

// burstOf returns the asked burst, or the default for a stream of the given rate.
func burstOf(asked int, streamPPS float64) uint64 {
	if asked > 0 {
		return uint64(asked)
	}
	if streamPPS <= burstFreePPS {
		return 1
	}
	return uint64(math.Ceil(streamPPS * burstNanos / 1e9))
}

// newPacer paces one stream of a flow for a phase of the given length. The burst
// is cut to whole groups, and is one at least.
func newPacer(s unit.Schedule, stream, streams int, burst uint64, group int, phaseNanos int64) pacer {
	p := pacer{schedule: s, stream: uint64(stream), streams: uint64(streams), group: uint64(max(group, 1))}
	p.burst = max(burst/p.group, 1) * p.group
	p.slots = p.own(s.Count(phaseNanos))
	return p
}

// own returns how many of the flow's first n slots are this stream's.
func (p *pacer) own(n uint64) uint64 {
	if n <= p.stream {
		return 0
	}
	return (n-p.stream-1)/p.streams + 1
}

// deadline is when the next slot or group of slots is due, in nanoseconds after
// the phase began; ok is false when the phase has no slot left.
func (p *pacer) deadline() (nanos int64, ok bool) {
	if p.next >= p.slots {
		return 0, false
	}
	last := min(p.next+p.group, p.slots) - 1
	return p.schedule.Due(p.stream + last*p.streams), true
}

// take returns how many packets may leave at the given time after the phase
// began, and moves on past them and past what is forfeited. It is 0 before the deadline.
func (p *pacer) take(elapsedNanos int64) uint64 {
	due := p.slots
	if elapsedNanos < math.MaxInt64 {
		due = min(due, p.own(p.schedule.Count(elapsedNanos+1)))
	}
	if due <= p.next {
		return 0
	}
	n := due - p.next
	if due < p.slots {
		n -= n % p.group
		due = p.next + n
	}
	if n > p.burst {
		p.forfeited += n - p.burst
		n = p.burst
	}
	p.next = due
	return n
}
