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

// Schedules are those of a flow's warm-up and of its measured part.
type Schedules [2]struct {
	Due    pace.Schedule // nil for a flow as fast as it can
	Length int64         // ns
	Slots  uint64        // at most
}

// Schedules returns the schedules of the order. Making them may take a while.
func (o Order) Schedules() (list Schedules) {
	f := o.Flow
	list[0].Length, list[1].Length = o.Timing.Warmup().Nanoseconds(), o.Timing.Measure().Nanoseconds()
	mean, paced := f.Rate.Schedule(f.PayloadBytes)
	if !paced {
		return list
	}
	list[0].Due, list[1].Due = f.Schedules(o.Timing)
	for i := range list {
		p := &list[i]
		if p.Slots = math.MaxUint64; i == 1 && f.Packets > 0 {
			p.Slots, p.Length = f.Packets, min(p.Length, f.Length(p.Due, f.Packets))
		}
		if f.Profile != nil && f.Profile.Kind == model.Burst { // the end of a phase cuts its last burst
			p.Slots = min(p.Slots, mean.Count(p.Length))
		}
	}
	return list
}

// Phases returns the two phases of one stream. Packets of a group leave together. gap is told the times that the
// schedule of the measured part has between its slots; it may be nil.
func (o Order) Phases(s Schedules, stream, group int, gap func(nanos int64)) (list [2]Phase) {
	f := o.Flow
	pps, _ := f.Rate.PPS(f.PayloadBytes)
	if f.Profile != nil && f.Profile.Kind == model.Ramp {
		from, _ := f.Profile.From.PPS(f.PayloadBytes)
		pps = max(pps, from)
	}
	for i := range list {
		p := &list[i]
		if p.Length = s[i].Length; s[i].Due == nil {
			continue
		}
		p.Paced = true
		of := pace.Stream{Number: stream, Streams: f.Streams, Length: p.Length, Slots: s[i].Slots,
			PPS:   pps / float64(f.Streams),
			Group: group, Burst: f.Burst}
		if i == 1 {
			of.Gap = gap
		}
		p.Pacer = pace.New(s[i].Due, of)
	}
	return list
}
