package engine

import (
	"math"

	"pelt/model"
	"pelt/pace"
)

// Phase is the warm-up or the measured part of a trial as one stream is to send it.
type Phase struct {
	Pacer  pace.Pacer
	Length int64 // ns
	Paced  bool  // else it is sent as fast as it can, without the pacer
}

// Clocks returns the schedules of the warm-up and of the measured part; nil for a flow as fast as it can.
// A trace, which may be long, is the same in both.
func (o Order) Clocks() (c [2]pace.Clock) {
	c[1] = o.Flow.Clock(o.Timing, false)
	if p := o.Flow.Profile; p == nil || p.Kind == model.TraceProfile {
		return [2]pace.Clock{c[1], c[1]}
	}
	c[0] = o.Flow.Clock(o.Timing, true)
	return c
}

// Phases returns the two phases of one stream. Packets of a group leave together. It may take a
// while for long phases, so it is asked before they begin.
func (o Order) Phases(clocks [2]pace.Clock, stream, group int) (list [2]Phase) {
	f := o.Flow
	list[0].Length, list[1].Length = o.Timing.Warmup().Nanoseconds(), o.Timing.Measure().Nanoseconds()
	if clocks[1] == nil {
		return list
	}
	pps, _ := f.Rate.PPS(f.PayloadBytes)
	if f.Profile != nil && f.Profile.Kind == model.Ramp {
		from, _ := f.Profile.From.PPS(f.PayloadBytes)
		pps = max(pps, from)
	}
	for i := range list {
		p, c, slots := &list[i], pace.Apart(clocks[i]), uint64(math.MaxUint64)
		if i == 1 && f.Packets > 0 { // the time of the last slot runs to the next
			slots, p.Length = f.Packets, min(p.Length, c.End(f.Packets))
		}
		p.Paced = true
		p.Pacer = pace.New(c, pace.Stream{
			Number: stream, Streams: f.Streams, Slots: min(c.Slots(p.Length), slots), PPS: pps / float64(f.Streams), Group: group, Burst: f.Burst,
		})
	}
	return list
}
