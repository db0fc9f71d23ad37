package controls

import (
	"math"
)

// Axis is a logarithmic axis, or one from 0 where Log is not set.
type Axis struct {
	Low, High float64
	Log       bool
}

// bounds of what an axis shows, so that its arithmetic stays finite.
const (
	tiniest = 1e-12
	hugest  = 1e18
)

// LogAxis has room for all positive values, and somewhat more; ok is false if
// there are none.
func LogAxis(values []float64) (a Axis, ok bool) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 && finite(v) {
			v = min(max(v, tiniest), hugest)
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return Axis{}, false
	}
	pad := max(math.Pow(high/low, 0.04), 1.03)
	return Axis{low / pad, high * pad, true}, true
}

// ZeroAxis goes from 0 to a little above the highest value.
func ZeroAxis(values []float64) (a Axis, ok bool) {
	for _, v := range values {
		if v > 0 && finite(v) {
			a.High = max(a.High, min(v, hugest)*1.06)
		}
	}
	return a, a.High > 0
}

// Place is where a value lies, 0..1; values beyond are at the ends.
func (a Axis) Place(v float64) float64 {
	p := (v - a.Low) / (a.High - a.Low)
	if a.Log {
		p = math.Log(v/a.Low) / math.Log(a.High/a.Low)
	}
	if !(p > 0) {
		return 0
	}
	return min(p, 1)
}

// Ticks are round values on the axis, ascending: about five, never many.
func (a Axis) Ticks() []float64 {
	if a.Log && a.High/a.Low > 3 {
		for _, multiples := range [][]float64{{1, 1.5, 2, 3, 4, 5, 6, 8}, {1, 2, 3, 5}, {1, 2, 5}} {
			if t := a.decades(multiples...); len(t) <= 8 {
				return t
			}
		}
		t := a.decades(1)
		for len(t) > 8 {
			var half []float64
			for i := 0; i < len(t); i += 2 {
				half = append(half, t[i])
			}
			t = half
		}
		return t
	}
	raw := (a.High - a.Low) / 5
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if step*m >= raw*0.999 {
			step *= m
			break
		}
	}
	var out []float64
	// -0 + 0 is 0, which prints without its sign.
	for n := math.Ceil(a.Low/step-1e-9) + 0; n*step <= a.High && len(out) < 12; n++ {
		out = append(out, n*step)
	}
	return out
}

// Labelled chooses of an axis's ticks those whose labels do not touch: the rounder
// ones first. span is where a tick's label begins and ends, on any scale.
func Labelled(ticks []float64, span func(i int) (from, to float64)) []bool {
	kept := make([]bool, len(ticks))
	for _, round := range []func(float64) bool{func(m float64) bool { return m == 1 }, func(m float64) bool { return m == 2 || m == 5 }, func(float64) bool { return true }} {
		for i, v := range ticks {
			mantissa := 0.0
			if v > 0 {
				mantissa = math.Round(v/math.Pow(10, math.Floor(math.Log10(v)+1e-9))*1e6) / 1e6
			}
			if kept[i] || !round(mantissa) {
				continue
			}
			from, to := span(i)
			kept[i] = true
			for j := range ticks {
				if a, b := span(j); kept[j] && j != i && a < to && from < b {
					kept[i] = false
				}
			}
		}
	}
	return kept
}

func (a Axis) decades(multiples ...float64) []float64 {
	var out []float64
	for e := math.Floor(math.Log10(a.Low)); e <= math.Ceil(math.Log10(a.High)); e++ {
		for _, m := range multiples {
			if v := m * math.Pow(10, e); v >= a.Low && v <= a.High {
				out = append(out, v)
			}
		}
	}
	return out
}
