package controls

import (
	"math"
	"slices"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

// ackedSeries is what each stream's peer has acknowledged since the start, in bytes.
const ackedSeries = "tcp_acked_bytes"

// When the shares of competing streams stand still.
const (
	windowSeconds = 0.5 // over which a share is taken
	settledRatio  = 1.0 / 3
	leastWindows  = 6   // from the last stream's begin; a third of fewer says nothing
	mostSamples   = 1e7 // of one series
)

// rates are the goodputs of a trial's streams over the time in which all of them
// ran; nil unless there are several.
func rates(t trial) (v []float64) {
	for _, s := range t.tcp.PerStream {
		if !within(s.GoodputBPS, mostBits) {
			return nil
		}
		v = append(v, s.GoodputBPS)
	}
	if len(v) < 2 {
		return nil
	}
	return v
}

func fairness(t trial) (figure, bool) {
	v := rates(t)
	index, ok := stats.Jain(v)
	return figure{value: index}, ok && len(v) > 1
}

// shares are what each control of a mix got of what all streams together did; nil
// if they all have one.
func (g *grid) shares(c *cell) map[string]*model.Estimate {
	all := map[string][]figure{}
	for _, t := range c.trials {
		v := rates(t)
		sum := stats.Mean(v) * float64(len(v))
		if sum <= 0 {
			continue
		}
		part := map[string]float64{}
		for i, s := range t.tcp.PerStream {
			part[s.Control] += v[i] / sum
		}
		for name, x := range part {
			all[name] = append(all[name], figure{value: min(1, x)})
		}
	}
	if len(all) < 2 {
		return nil
	}
	out := map[string]*model.Estimate{}
	for name, list := range all {
		out[name] = estimate(list)
	}
	return out
}

// converged is how long the shares of competing streams took to stand still: from the
// begin of the last stream to the first moment from which on, in windows of half a
// second and to the end, each stream's share stays within a third of its final one,
// the mean over the last third of that time. Where they stand still later than that
// third begins, they do not: then the time watched is a lower bound. nil if they did
// so in no trial.
func (g *grid) converged(c *cell) *model.Estimate {
	var list []figure
	some := false
	for _, t := range c.trials {
		x, ok := g.convergence(t)
		if !ok {
			continue
		}
		some = some || !x.bound
		list = append(list, x)
	}
	if !some {
		return nil
	}
	return estimate(list)
}

// convergence of one trial; ok is false if there is too little to tell by.
func (g *grid) convergence(t trial) (figure, bool) {
	w, streams := windowed(t.result.Series, t.flow.Name, g.flow.Bytes > 0)
	if len(w) < leastWindows {
		return figure{}, false
	}
	tail := len(w) / 3
	final := make([]float64, streams)
	told := 0.0
	for _, shares := range w[len(w)-tail:] {
		if shares == nil {
			continue
		}
		told++
		for k, x := range shares {
			final[k] += x
		}
	}
	if told == 0 {
		return figure{}, false
	}
	still := len(w)
	for still > 0 && near(w[still-1], final, told) {
		still--
	}
	if still > len(w)-tail {
		return figure{float64(len(w)) * windowSeconds, true}, true
	}
	return figure{value: float64(still) * windowSeconds}, true
}

// near says whether each share is within a third of the final one, which is a sum of
// so many. A window in which nobody got anything says nothing.
func near(shares, final []float64, of float64) bool {
	for k, x := range shares {
		if f := final[k] / of; math.Abs(x-f) > settledRatio*f+1e-12 {
			return false
		}
	}
	return true
}

// windowed are the shares of all streams in each window from the begin of the last
// one, nil where nobody got anything. Streams that have an end are watched while all
// of them run. There are none of fewer than two streams, or if one never began.
func windowed(series []model.Series, flow string, ends bool) (shares [][]float64, streams int) {
	acked, step := byStream(series, flow)
	if len(acked) < 2 {
		return nil, 0
	}
	begin, end := 0, len(acked[0])-1
	for _, v := range acked {
		first := slices.IndexFunc(v, func(x float64) bool { return x > 0 })
		if first < 0 {
			return nil, 0
		}
		begin = max(begin, first)
		if ends {
			end = min(end, slices.Index(v, v[len(v)-1]))
		}
	}
	wide := max(1, int(math.Round(windowSeconds/step)))
	for ; begin+wide <= end; begin += wide {
		one, sum := make([]float64, len(acked)), 0.0
		for k, v := range acked {
			one[k] = v[begin+wide] - v[begin]
			sum += one[k]
		}
		if sum > 0 {
			for k := range one {
				one[k] /= sum
			}
		} else {
			one = nil
		}
		shares = append(shares, one)
	}
	return shares, len(acked)
}

// byStream are the series of what was acknowledged, laid on one time with one step in
// seconds: 0 before a stream's first sample, and at its last or its highest after it.
func byStream(series []model.Series, flow string) (acked [][]float64, step float64) {
	start, long := math.Inf(1), 0
	var mine []model.Series
	for _, s := range series {
		if s.Metric != ackedSeries || s.Flow != flow || s.Stream == nil || len(s.Values) == 0 {
			continue
		}
		if step == 0 {
			step = s.StepSeconds
		}
		if s.StepSeconds != step || !(step >= 1e-3 && step <= windowSeconds) || !(math.Abs(s.StartSeconds) < mostSeconds) {
			return nil, 0
		}
		start = min(start, s.StartSeconds)
		mine = append(mine, s)
	}
	offset := func(s model.Series) int { return int(math.Round((s.StartSeconds - start) / step)) }
	for _, s := range mine {
		if offset(s) > mostSamples {
			return nil, 0
		}
		long = max(long, offset(s)+len(s.Values))
	}
	if float64(long)*float64(len(mine)) > mostSamples {
		return nil, 0
	}
	for _, s := range mine {
		v, most := make([]float64, long), 0.0
		for i := range v {
			if k := i - offset(s); k >= 0 && k < len(s.Values) && within(s.Values[k], model.MaxBytes) {
				most = max(most, s.Values[k])
			}
			v[i] = most
		}
		acked = append(acked, v)
	}
	return acked, step
}
