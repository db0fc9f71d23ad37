package tcp

import "pelt/pace"

// schedule is when a flow's writes, or its connections, are due: of the warm-up and
// the measured part in one, in nanoseconds after the origin.
type schedule struct {
	clock       pace.Clock
	first, last uint64 // slots first to last-1 are of the measured part
	pps         float64
	streams     int
	burst       int // asked; 0: none
}

// newSchedule returns the schedule of a paced flow; ok is false for any other.
func (e *end) newSchedule() (s schedule, ok bool) {
	f, t := e.order.Flow, e.order.Timing
	mean, ok := f.Rate.Schedule(f.PayloadBytes)
	if !ok {
		return schedule{}, false
	}
	s = schedule{clock: pace.Even(mean), pps: mean.PPS(), streams: f.Streams, burst: f.Burst}
	s.first = s.clock.Count(int64(t.Warmup()))
	s.last = s.clock.Count(int64(t.Warmup() + t.Measure()))
	return s, true
}

// due returns how many slots of the measured part were due before it ended.
func (s schedule) due(measured span) uint64 {
	n := s.last
	if !measured.complete {
		n = min(n, s.clock.Count(int64(measured.ended)))
	}
	return n - min(n, s.first)
}

// turns are the slots of one stream, as they come and as they are given up.
type turns struct {
	pace.Pacer
	measuredFrom uint64 // its first slot of the measured part
	next         uint64 // the first slot neither used nor given up
	late, held   uint64 // slots of the measured part that were given up
}

func (s schedule) turns(stream int) turns {
	t := turns{Pacer: pace.New(s.clock, pace.Stream{Number: stream, Streams: s.streams, Slots: s.last, PPS: s.pps / float64(s.streams), Burst: s.burst})}
	if number := uint64(stream); s.first > number {
		t.measuredFrom = (s.first-number-1)/uint64(s.streams) + 1
	}
	return t
}

// take returns how many slots may be used now, and the first of them.
func (t *turns) take(now int64) (n, first uint64) {
	_, heldBefore := t.GivenUp()
	n, first = t.Take(now)
	given := first - min(first, max(t.next, t.measuredFrom))
	if _, held := t.GivenUp(); held > heldBefore {
		t.held += given
	} else {
		t.late += given
	}
	t.next = first + n
	return n, first
}

// left returns how many slots of the measured part were not reached by a time.
func (t *turns) left(now int64) uint64 {
	return t.Planned(now) - min(t.Planned(now), max(t.next, t.measuredFrom))
}
