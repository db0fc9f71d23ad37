package controls

import (
	"math"
	"slices"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

// mostBits is more than any path carries, in bit/s, mostSeconds longer than any trial
// and leastSeconds shorter than any transfer: what claims more is no measurement.
const (
	mostBits     = 1e15
	mostSeconds  = 1e9
	leastSeconds = 1e-9
)

// figure is what one trial says of something; bound: at least that much.
type figure struct {
	value float64
	bound bool
}

// within says whether a figure can be one: from 0 to a bound, and a number.
func within(x, most float64) bool { return x >= 0 && x <= most }

// completion is how long the transfer took, or how long it had been going on when
// it was cut.
func completion(t trial) (figure, bool) {
	c := t.tcp.Completion
	if c == nil || !(c.Seconds >= leastSeconds) || !within(c.Seconds, mostSeconds) {
		return figure{}, false
	}
	return figure{c.Seconds, !c.Done}, true
}

// goodput of a transfer that has an end is over the time it took.
func goodput(t trial) (figure, bool) {
	bps := t.flow.GoodputBPS
	if c, ok := completion(t); ok {
		bytes := t.tcp.ReceivedBytes
		if t.tcp.Completion.Done {
			bytes = t.tcp.Completion.Bytes
		}
		if bytes > 0 {
			bps = 8 * float64(bytes) / c.value
		} else if bps == 0 {
			return figure{}, false // nobody says what commands carried
		}
	}
	return figure{value: bps}, t.flow.TCP != nil && within(bps, mostBits)
}

func resent(t trial) (figure, bool) {
	if t.tcp.SegmentsOut == 0 {
		return figure{}, false
	}
	return figure{value: min(1, float64(t.tcp.Retransmits)/float64(t.tcp.SegmentsOut))}, true
}

// limited is the share of its busy time that TCP waited for a window or a buffer.
func limited(t trial) (figure, bool) {
	ratio := (t.tcp.RwndLimitedS + t.tcp.SndbufLimitedS) / t.tcp.BusyS
	return figure{value: min(1, ratio)}, t.tcp.BusyS > 0 && within(ratio, mostSeconds)
}

// roundTrip is a figure of the thin flow, in seconds.
func roundTrip(get func(model.Percentiles) float64) func(trial) (figure, bool) {
	return func(t trial) (figure, bool) {
		if t.flow.RoundTrip == nil {
			return figure{}, false
		}
		s := get(*t.flow.RoundTrip) / 1e9
		return figure{value: s}, s > 0 && within(s, mostSeconds)
	}
}

var (
	rtt50   = roundTrip(func(p model.Percentiles) float64 { return p.P50 })
	rtt95   = roundTrip(func(p model.Percentiles) float64 { return p.P95 })
	rttBest = roundTrip(func(p model.Percentiles) float64 { return p.Min })
)

// shortest is the shortest round trip of all trials under a condition, for they
// share a path; 0 if none is known.
func (g *grid) shortest(condition int) float64 {
	least := math.Inf(1)
	for _, control := range g.controls {
		for _, x := range g.cell(condition, control).all(rttBest) {
			least = min(least, x.value)
		}
	}
	if math.IsInf(least, 0) {
		return 0
	}
	return least
}

// all are the figures of a cell's trials, in the order of their repeats.
func (c *cell) all(of func(trial) (figure, bool)) (list []figure) {
	if c == nil {
		return nil
	}
	for _, t := range c.trials {
		if x, ok := of(t); ok {
			list = append(list, x)
		}
	}
	return list
}

func values(list []figure) (v []float64) {
	for _, x := range list {
		v = append(v, x.value)
	}
	return v
}

// estimate is the median of figures; nil if there are none.
func estimate(list []figure) *model.Estimate {
	if len(list) == 0 {
		return nil
	}
	v := values(list)
	e := &model.Estimate{Median: stats.Median(v), Values: v}
	e.Low, e.High = stats.MedianInterval(v)
	// A value that is not known to be above the middle may be anywhere above itself.
	upper := slices.Sorted(slices.Values(v))[len(v)/2]
	e.Bound = slices.ContainsFunc(list, func(x figure) bool { return x.bound && x.value <= upper })
	return e
}

// figures are those of one cell.
func (g *grid) figures(c *cell, condition int, control string, shortest float64) model.ControlCell {
	out := model.ControlCell{Condition: condition, Control: control, Valid: len(c.trials), Invalid: c.failed}
	took := c.all(completion)
	for _, x := range took {
		if x.bound {
			out.Unfinished++
		}
	}
	out.Completion, out.Goodput = estimate(took), estimate(c.all(goodput))
	out.Resent, out.Limited = estimate(c.all(resent)), estimate(c.all(limited))
	out.RTT50, out.RTT95 = estimate(c.all(rtt50)), estimate(c.all(rtt95))
	if shortest > 0 {
		out.Standing = estimate(c.all(func(t trial) (figure, bool) {
			x, ok := rtt95(t)
			return figure{value: max(0, x.value-shortest)}, ok
		}))
	}
	out.Mathis = g.mathis(c, control)
	out.Jain, out.Shares = estimate(c.all(fairness)), g.shares(c)
	out.Converged = g.converged(c)
	return out
}

// metricOf is the figure that controls are compared by.
func (g *grid) metricOf() func(trial) (figure, bool) {
	if g.metric == byCompletion {
		return completion
	}
	return goodput
}

// compared is what a contrast of two cells rests on.
func (g *grid) compared(c *cell) []figure { return c.all(g.metricOf()) }

// unknownLast is a figure's place for a rank test: what was cut is slower than all
// that ended, and nothing tells it from others that were.
func unknownLast(list []figure) (v []float64) {
	for _, x := range list {
		if x.bound {
			x.value = math.Inf(1)
		}
		v = append(v, x.value)
	}
	return v
}
