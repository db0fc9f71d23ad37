package tcp

import "pelt/pace"

// schedule is when a flow's writes, or its connections, are due in a part of a trial.
type schedule struct {
	clock         pace.Clock
	start, length int64   // ns; the start after the origin
	pps           float64 // of the flow
	streams       int
	burst         int // asked; 0: none
}

// schedules returns those of the warm-up and of the measured part of a paced flow; ok is
// false for any other.
func (e *end) schedules() (list [2]schedule, ok bool) {
	f, t := e.order.Flow, e.order.Timing
	mean, ok := f.Rate.Schedule(f.PayloadBytes)
	if !ok {
		return list, false
	}
	s := schedule{clock: pace.Even(mean), length: int64(t.Warmup()), pps: mean.PPS(), streams: f.Streams, burst: f.Burst}
	list[0] = s
	s.start, s.length = int64(t.Warmup()), int64(t.Measure())
	list[1] = s
	return list, true
}

// due returns how many slots were due before the measured part ended.
func (s schedule) due(measured span) uint64 {
	if measured.complete {
		return s.clock.Slots(s.length)
	}
	return s.clock.Count(min(max(int64(measured.ended)-s.start, 0), s.length))
}

func (s schedule) pacer(stream int) pace.Pacer {
	return pace.New(s.clock, pace.Stream{
		Number: stream, Streams: s.streams, Slots: s.clock.Slots(s.length), PPS: s.pps / float64(s.streams), Burst: s.burst,
	})
}
