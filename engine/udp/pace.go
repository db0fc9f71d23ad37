package udp

import (
	"math"

	"pelt/model"
	"pelt/pace"
	"pelt/unit"
)

// pacer says how many packets of one stream may leave at a given time. It reads
// no clock. The flow's schedule is shared by its streams: stream i of N owns
// the flow's slots i, i+N, i+2N, ... A slot is due at a time computed from its
// number, so the average is exact. A late sender may send at most burst slots
// back to back; older ones are forfeited. Packets that share a buffer leave
// together, when the last of them is due.
//
// A flow with a profile has a clock in place of the even schedule. Where that
// asks for gaps of all lengths, a late sender may also send what became due
// within patience: who has no time for the shortest gaps shall not lose them.
type pacer struct {
	schedule        unit.Schedule
	clock           pace.Clock // nil: schedule
	patience        int64      // ns
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

// profilePatience is how late packets of irregular gaps may leave together at the
// least: a few times what an ordinary host's timer or interrupt keeps a sender
// waiting. At low rates it is the time of the asked burst, as it is for even gaps.
const profilePatience = 100_000

// clocksOf are the clocks of a flow with a profile, of the warm-up and of the measured
// part. A trace, which may be long, is the same in both.
func clocksOf(f model.Flow, t model.Timing) (c [2]pace.Clock) {
	if c[1] = f.Clock(t, false); f.Profile == nil || f.Profile.Kind == model.TraceProfile {
		return [2]pace.Clock{c[1], c[1]}
	}
	c[0] = f.Clock(t, true)
	return c
}

// pacing is how one stream of a flow is paced in a phase of a trial, which ends
// after a number of the flow's packets if that is said; paced is false if it is
// sent as fast as it can. It may take a while for long phases, so it is asked
// before they begin. c is the flow's clock in that phase, nil without a profile, from
// which the stream takes one apart. length is the phase's own.
func pacing(c pace.Clock, f model.Flow, t model.Timing, warmup bool, stream, group int) (p pacer, length int64, paced bool) {
	length = t.Measure().Nanoseconds()
	if warmup {
		length = t.Warmup().Nanoseconds()
	}
	schedule, paced := f.Rate.Schedule(f.PayloadBytes)
	if !paced {
		return pacer{}, length, false
	}
	burst := burstOf(f.Burst, schedule.PPS()/float64(f.Streams))
	counted := !warmup && f.Packets > 0
	if c == nil {
		if counted { // the time of the last slot runs to the next
			length = min(length, schedule.Due(f.Packets))
		}
		return newPacer(schedule, stream, f.Streams, burst, group, length), length, true
	}
	c = pace.Apart(c)
	all := uint64(math.MaxUint64)
	if counted {
		all, length = f.Packets, min(length, c.End(f.Packets))
	}
	p = newPacer(schedule, stream, f.Streams, burst, group, 0)
	p.clock, p.slots = c, p.own(min(c.Slots(length), all))
	switch f.Profile.Kind {
	case model.Burst:
		p.burst = max(p.burst, uint64((f.Profile.BurstPackets+f.Streams-1)/f.Streams))
	case model.Poisson, model.TraceProfile:
		p.patience = max(profilePatience, int64(float64(burst)/schedule.PPS()*float64(f.Streams)*1e9))
	}
	return p, length, true
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

// due is when one of the flow's slots is due.
func (p *pacer) due(slot uint64) int64 {
	if p.clock != nil {
		return p.clock.Due(slot)
	}
	return p.schedule.Due(slot)
}

// count is how many of this stream's slots are due before the given time.
func (p *pacer) count(elapsedNanos int64) uint64 {
	if p.clock != nil {
		return min(p.slots, p.own(p.clock.Count(elapsedNanos)))
	}
	return min(p.slots, p.own(p.schedule.Count(elapsedNanos)))
}

// deadline is when the next slot or group of slots is due, in nanoseconds after
// the phase began; ok is false when the phase has no slot left.
func (p *pacer) deadline() (nanos int64, ok bool) {
	if p.next >= p.slots {
		return 0, false
	}
	last := min(p.next+p.group, p.slots) - 1
	return p.due(p.stream + last*p.streams), true
}

// take returns how many packets may leave at the given time after the phase
// began, and moves on past them and past what is forfeited. It is 0 before the deadline.
func (p *pacer) take(elapsedNanos int64) uint64 {
	due := p.slots
	if elapsedNanos < math.MaxInt64 {
		due = p.count(elapsedNanos + 1)
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
		if most := p.most(due, elapsedNanos); n > most {
			p.forfeited += n - most
			n = most
		}
	}
	p.next = due
	return n
}

// most is how many of the slots before one of this stream's may leave at once at
// a time when all of them are due.
func (p *pacer) most(before uint64, elapsedNanos int64) uint64 {
	if p.patience == 0 {
		return p.burst
	}
	// Those that one wake-up would have sent together stay together, however late.
	newest := p.due(p.stream + (before-1)*p.streams)
	patient := p.count(min(elapsedNanos-p.patience, newest-burstNanos))
	return max(p.burst, before-min(patient, before))
}
