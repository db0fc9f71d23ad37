package udp

import (
	"math"

	"pelt/model"
	"pelt/pace"
)

// clocksOf returns the clocks of a paced flow, of the warm-up and of the measured part.
// A trace, which may be long, is the same in both.
func clocksOf(f model.Flow, t model.Timing) (c [2]pace.Clock) {
	if c[1] = f.Clock(t, false); f.Profile == nil || f.Profile.Kind == model.TraceProfile {
		return [2]pace.Clock{c[1], c[1]}
	}
	c[0] = f.Clock(t, true)
	return c
}

// pacing returns how one stream of a flow is paced in a phase of a trial, which ends
// after a number of the flow's packets if that is said; paced is false if it is
// sent as fast as it can. It may take a while for long phases, so it is asked
// before they begin. length is the phase's own, in nanoseconds.
func pacing(c pace.Clock, f model.Flow, t model.Timing, warmup bool, stream, group int) (p pace.Pacer, length int64, paced bool) {
	length = t.Measure().Nanoseconds()
	if warmup {
		length = t.Warmup().Nanoseconds()
	}
	if c == nil {
		return pace.Pacer{}, length, false
	}
	c = pace.Apart(c)
	slots := uint64(math.MaxUint64)
	if !warmup && f.Packets > 0 { // the time of the last slot runs to the next
		slots, length = f.Packets, min(length, c.End(f.Packets))
	}
	pps, _ := f.Rate.PPS(f.PayloadBytes)
	if f.Profile != nil && f.Profile.Kind == model.Ramp {
		from, _ := f.Profile.From.PPS(f.PayloadBytes)
		pps = max(pps, from)
	}
	return pace.New(c, pace.Stream{
		Number: stream, Streams: f.Streams, Slots: min(c.Slots(length), slots),
		PPS: pps / float64(f.Streams), Group: group, Burst: f.Burst,
	}), length, true
}
