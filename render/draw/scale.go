package draw

import (
	"math"

	"pelt/unit"
	"pelt/view"
)

// beyondMeasure is larger than any figure of a network; what is beyond is no figure.
// A logarithmic scale begins above its inverse.
const beyondMeasure = 1e24

func finite(v float64) bool { return math.Abs(v) < beyondMeasure } // false of NaN

type extent struct{ low, high float64 }

func noExtent() extent { return extent{math.Inf(1), math.Inf(-1)} }

func (e *extent) add(values ...float64) {
	for _, v := range values {
		if finite(v) {
			e.low, e.high = min(e.low, v), max(e.high, v)
		}
	}
}

func (e extent) empty() bool { return e.low > e.high }

// scale maps figures to places.
type scale struct {
	extent
	from, to float64 // the places of low and high
	log      bool
	unit     unit.Unit
	ticks    []float64
	levels   bool // ticks are levels that were set, each of which wants its label
}

// at is the place of a figure, never beyond the ends of the scale.
func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(max(v, s.low))
	}
	return clamp(s.from+(v-low)/(high-low)*(s.to-s.from), s.from, s.to)
}

func (s scale) label(v float64) string {
	if v == 0 && s.unit != unit.Ratio {
		return "0"
	}
	return s.unit.Exact(v)
}

func (s scale) between(from, to float64) scale {
	s.from, s.to = from, to
	return s
}

// fromZero is a scale of amounts: it reaches from 0, or from the least negative
// figure, to a round number at or above the highest. n is about how many ticks fit.
func fromZero(a view.Axis, e extent, n int) scale {
	n = max(n, 1)
	e.add(0)
	if a.Unit == unit.Ratio {
		e.add(1)
	}
	if e.high-e.low < 1/beyondMeasure {
		e.high = e.low + 1
	}
	s := scale{extent: e, unit: a.Unit}
	for more := range n { // two levels are few where there is room for more
		step := roundStep(a.Unit, (e.high-e.low)/float64(n+more))
		s.low, s.high = math.Floor(e.low/step+1e-9)*step, e.high
		// The scale ends at a tick, unless a sixth of it would be empty.
		if end := math.Ceil(e.high/step-1e-9) * step; end-e.high <= 0.15*(e.high-s.low) {
			s.high = end
		} else {
			s.high += 0.04 * (e.high - s.low)
		}
		if s.ticks = ticks(s.low, s.high, step); len(s.ticks) > min(n-1, 2) {
			break
		}
	}
	return s
}

// span is a scale from the lowest to the highest figure.
func span(a view.Axis, e extent, n int) scale {
	if e.empty() {
		e = extent{0, 1}
	}
	s := scale{extent: e, unit: a.Unit}
	if s.high-s.low <= 1e-12*math.Abs(s.high) {
		s.low, s.high = s.low-0.5*max(math.Abs(s.low), 1), s.high+0.5*max(math.Abs(s.high), 1)
	}
	s.log = a.Log && s.low > 1/beyondMeasure
	for _, v := range a.Ticks {
		if finite(v) && v >= s.low && v <= s.high {
			s.ticks = append(s.ticks, v)
		}
	}
	switch s.levels = len(s.ticks) > 0; {
	case s.levels:
	case s.log:
		s.ticks = logTicks(a.Unit, s.extent, n)
	default:
		step := roundStep(a.Unit, (s.high-s.low)/float64(max(n, 1)))
		s.ticks = ticks(math.Ceil(s.low/step-1e-9)*step, s.high, step)
	}
	return s
}

// logTicks are powers of two of bytes, and 1-2-5 or powers of ten of other figures, about n at most.
func logTicks(u unit.Unit, e extent, n int) []float64 {
	base, within := 10.0, []float64{1, 2, 5}
	if u == unit.Bytes {
		base, within = 2, []float64{1}
	}
	span := math.Log(e.high/e.low) / math.Log(base)
	every := 1
	if len(within) > 1 && span*3 > float64(n)+1 {
		within = within[:1]
	}
	for len(within) == 1 && span/float64(every) > float64(n)+1 {
		every++
	}
	var out []float64
	for power := int(math.Floor(math.Log(e.low)/math.Log(base) + 1e-9)); len(out) < 50; power += every {
		for _, k := range within {
			v := k * math.Pow(base, float64(power))
			if v > e.high*(1+1e-9) {
				return out
			}
			if v >= e.low*(1-1e-9) {
				out = append(out, v)
			}
		}
	}
	return out
}

// roundStep is the least round number at or above a step.
func roundStep(u unit.Unit, step float64) float64 {
	steps, power := []float64{1, 2, 2.5, 5, 10}, math.Pow(10, math.Floor(math.Log10(step)))
	switch {
	case u == unit.Seconds && step >= 60:
		steps, power = []float64{1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440}, 60
		for step > 1440*power {
			power *= 2
		}
	case u == unit.Bytes && step >= 1:
		steps, power = []float64{1, 2}, math.Pow(2, math.Floor(math.Log2(step)))
	case u == unit.Count && step < 1:
		return 1
	}
	for _, k := range steps {
		if k*power >= step*(1-1e-9) {
			return k * power
		}
	}
	return step
}

func ticks(low, high, step float64) []float64 {
	var out []float64
	for i := 0; i < 50; i++ {
		v := low + float64(i)*step
		if v > high+1e-6*step {
			break
		}
		if math.Abs(v) < 1e-9*step {
			v = 0
		}
		out = append(out, v)
	}
	return out
}
