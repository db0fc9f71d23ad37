package dut

import (
	"maps"
	"math"
	"slices"
	"time"

	"pelt/model"
	"pelt/unit"
)

// timed is a sample and its time after the begin of the measured part, in seconds
// of the router's clock.
type timed struct {
	*reading
	t float64
}

// Watched returns what the router did during the measured part of the trial, from
// Snapshot(MomentMeasure) on and so long, with one value of each series for each
// whole period. What was not observed is NaN in a series, absent in the
// watch, and said in its Gaps.
func (w *Watch) Watched(measured time.Duration) (model.RouterWatch, []model.Series) {
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	out := model.RouterWatch{Node: r.node, PeriodS: r.period.Seconds()}
	if ratio := r.cost.ratio(); r.cost.seconds >= costSpan {
		out.CostRatio = &ratio
	}
	if w.measure.IsZero() {
		out.Gaps = []model.RouterGap{{Why: model.GapUnbegun}}
		return out, nil
	}
	all := w.timeline()
	within := measuredPart(all, measured, r.period)
	out.Samples = len(within)
	if out.Gaps = w.gaps(all, measured); len(within) < 2 && len(out.Gaps) == 0 {
		out.Gaps = []model.RouterGap{{Why: model.GapShort}}
	}
	summarize(&out, within)
	return out, w.series(all, measured)
}

// timeline lays the router's clock beside this host's. In each life of the router the
// sample that came back soonest tells best when its clock showed what.
func (w *Watch) timeline() []timed {
	type offset struct{ best, zero float64 }
	lives := map[int]offset{}
	for i := range w.readings {
		s := &w.readings[i]
		took := s.came.Sub(s.sent)
		if o, ok := lives[s.boots]; !ok || took.Seconds() < o.best {
			middle := s.sent.Add(took / 2).Sub(w.measure).Seconds()
			lives[s.boots] = offset{took.Seconds(), s.up - middle}
		}
	}
	all := make([]timed, len(w.readings))
	for i := range w.readings {
		all[i] = timed{&w.readings[i], w.readings[i].up - lives[w.readings[i].boots].zero}
	}
	return all
}

// measuredPart returns the samples of the measured part. Its ends may lie a little outside:
// that of its begin is taken at once, but not at that very moment.
func measuredPart(all []timed, measured, period time.Duration) []timed {
	slack := min(max(min(period, measured).Seconds()/8, uptimeStep), 0.25)
	end := measured.Seconds()
	first, last := -1, -1
	for i, s := range all {
		switch {
		case s.t < -slack || s.t > end+slack:
			continue
		case first < 0 || math.Abs(s.t) <= slack && math.Abs(s.t) <= math.Abs(all[first].t):
			first = i
		}
		if last < 0 || math.Abs(s.t-end) <= math.Abs(all[last].t-end) {
			last = i
		}
	}
	if first < 0 || last < first {
		return nil
	}
	return all[first : last+1]
}

// summarize fills in the figures of the whole measured part.
func summarize(out *model.RouterWatch, within []timed) {
	clock, clocks := 0.0, 0
	for _, s := range within {
		if c := s.connections; c != nil && (out.Connections == nil || *c > *out.Connections) {
			out.Connections = c
		}
		if s.connectionsMax != nil {
			out.ConnectionsMax = s.connectionsMax
		}
		if !math.IsNaN(s.clockHz) {
			clock, clocks = clock+s.clockHz, clocks+1
		}
		if c := s.temperatureC; !math.IsNaN(c) && (out.TemperatureC == nil || c > *out.TemperatureC) {
			out.TemperatureC = &c
		}
	}
	if clocks > 0 {
		clock /= float64(clocks)
		out.ClockHz = &clock
	}
	if len(within) < 2 || within[0].boots != within[len(within)-1].boots {
		return
	}
	first, last := within[0], within[len(within)-1]
	if cpu, ok := last.All.Since(first.All, -1); ok {
		out.CPU = &cpu
	}
	for _, number := range slices.Sorted(maps.Keys(last.Cores)) {
		if cpu, ok := last.Core(first.Processors, number); ok {
			out.Cores = append(out.Cores, cpu)
		}
	}
	// From sample to sample: between two of them the counts wrap once at most.
	var dropped, squeezed uint64
	known := true
	for i := 1; i < len(within); i++ {
		d, s, ok := backlog(within[i-1].reading, within[i].reading)
		dropped, squeezed, known = dropped+d, squeezed+s, known && ok
	}
	if known {
		out.SoftnetDropped, out.SoftnetSqueezed = &dropped, &squeezed
	}
}

// backlog is by how much softnet_stat moved on all cores. ok is false if it has not the
// same ones in both samples, for kernels before 5.10 do not name them and the lines of
// those after one that came or went would be of others, or if a count went back.
func backlog(a, b *reading) (dropped, squeezed uint64, ok bool) {
	if len(a.backlog) != len(b.backlog) {
		return 0, 0, false
	}
	for i, to := range b.backlog {
		from := a.backlog[i]
		d, ok1 := increase(from.Dropped, to.Dropped)
		s, ok2 := increase(from.Squeezed, to.Squeezed)
		if from.Core != to.Core || !ok1 || !ok2 {
			return 0, 0, false
		}
		dropped, squeezed = dropped+d, squeezed+s
	}
	return dropped, squeezed, len(b.backlog) > 0
}

// increase is by how much a count of 32 bits went on. ok is false if it went back.
func increase(from, to uint32) (n uint64, ok bool) {
	wide, ok := unit.Widen(uint64(from), to)
	return wide - uint64(from), ok
}
