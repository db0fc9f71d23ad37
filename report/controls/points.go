package controls

import (
	"math"
	"slices"
)

// Step is where a curve of finished transfers rises.
type Step struct{ Seconds, Share float64 }

// Finished is the share of a cell's valid trials that had ended by a time. Those
// cut before their end never raise it; upTo is how long the last of all ran.
func (c *Cell) Finished() (steps []Step, upTo float64) {
	if !c.Metric.Completion || len(c.Trials) == 0 {
		return nil, 0
	}
	var done []float64
	for _, t := range c.Trials {
		if !finite(t.Value) || t.Value <= 0 {
			continue
		}
		upTo = max(upTo, t.Value)
		if !t.Bound {
			done = append(done, t.Value)
		}
	}
	slices.Sort(done)
	for i, v := range done {
		s := Step{v, float64(i+1) / float64(len(c.Trials))}
		if n := len(steps); n > 0 && steps[n-1].Seconds == v {
			steps[n-1] = s
			continue
		}
		steps = append(steps, s)
	}
	return steps, upTo
}

// Point is goodput against the thin flow's delay, in bit/s and seconds.
type Point struct{ Goodput, Delay float64 }

func (p Point) known() bool {
	return finite(p.Goodput) && finite(p.Delay) && p.Goodput > 0 && p.Delay > 0
}

// Scatter are a cell's trials where both figures are known of each, and its medians.
func (c *Cell) Scatter() (trials []Point, middle Point, ok bool) {
	if c.Of.Goodput == nil || c.Of.RTT95 == nil {
		return nil, Point{}, false
	}
	middle = Point{c.Of.Goodput.Median, c.Of.RTT95.Median}
	goodput, delay := c.Of.Goodput.Values, c.Of.RTT95.Values
	if len(goodput) == len(delay) {
		for i := range goodput {
			if p := (Point{goodput[i], delay[i]}); p.known() {
				trials = append(trials, p)
			}
		}
	}
	return trials, middle, middle.known()
}

// Values are all that a strip of the metric shows of the cell: trials and interval.
func (c *Cell) Values() []float64 {
	var out []float64
	for _, t := range c.Trials {
		out = append(out, t.Value)
	}
	if e := c.Estimate(); e != nil {
		out = append(out, e.Median, e.Low, e.High)
	}
	return out
}

// Span is the estimate of the metric as a strip draws it; Low and High are the
// median where there is no interval. ok is false if there is nothing to draw.
func (c *Cell) Span() (low, median, high float64, ok bool) {
	e := c.Estimate()
	if e == nil || !finite(e.Median) || !(e.Median > 0) {
		return 0, 0, 0, false
	}
	low, high = e.Low, e.High
	if !finite(low) || !(low > 0) || low > e.Median {
		low = e.Median
	}
	if !finite(high) || high < e.Median {
		high = e.Median
	}
	return low, e.Median, high, true
}

// Axis is the one that the strips of all conditions share.
func (t Table) Axis() (Axis, bool) {
	var all []float64
	for i := range t.Conditions {
		for j := range t.Conditions[i].Cells {
			all = append(all, t.Conditions[i].Cells[j].Values()...)
		}
	}
	return LogAxis(all)
}

// Widest is the condition under which controls differ most, those separable before
// the others; the first of equals.
func (t Table) Widest() int {
	at, most := 0, -1.0
	for i, c := range t.Conditions {
		for _, x := range c.Cells {
			if x.Contrast == nil || !finite(x.Contrast.Ratio) || !(x.Contrast.Ratio > 0) {
				continue
			}
			apart := math.Abs(math.Log(x.Contrast.Ratio))
			if x.Contrast.Separable {
				apart += 1e3
			}
			if apart > most {
				at, most = i, apart
			}
		}
	}
	return at
}
