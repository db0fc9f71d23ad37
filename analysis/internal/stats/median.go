package stats

import (
	"math"
	"slices"
)

// LeastBootstrap is the least number of values whose interval is a bootstrap's: of
// fewer, too few different samples can be drawn, and the interval is their range.
const LeastBootstrap = 5

// Median of the values; 0 if there are none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return middle(s)
}

// middle is the median of sorted values.
func middle(s []float64) float64 {
	low, high := s[(len(s)-1)/2], s[len(s)/2]
	if low == high {
		return low
	}
	return low + (high-low)/2
}

// MedianInterval holds the true median with about Confidence: the bootstrap's,
// corrected for bias and acceleration (BCa: B. Efron, Better bootstrap confidence
// intervals, JASA 82 (1987)). No samples are drawn, for the median's distribution
// over all of them is known; so the same values always give the same interval. It
// is the range of fewer than LeastBootstrap values, and 0 to 0 of none.
func MedianInterval(v []float64) (low, high float64) {
	if len(v) == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(v))
	if s[0] == s[len(s)-1] || len(s) < LeastBootstrap {
		return s[0], s[len(s)-1]
	}
	d := resampled(s)
	at := middle(s)
	below, upTo := d.below(at), d.upTo(at)
	bias := normalQuantile((below + upTo) / 2)
	accel := acceleration(s)
	corrected := func(p float64) float64 {
		z := bias + normalQuantile(p)
		return normal(bias + z/(1-accel*z))
	}
	return d.quantile(corrected((1 - Confidence) / 2)), d.quantile(corrected((1 + Confidence) / 2))
}

// acceleration is Efron's a of the median, by the jackknife, of sorted values.
func acceleration(s []float64) float64 {
	left := make([]float64, len(s))
	rest := make([]float64, 0, len(s))
	without := func(i int) float64 { return middle(append(append(rest[:0], s[:i]...), s[i+1:]...)) }
	a, b := (len(s)-1)/2, len(s)/2
	// Which value is left out matters only by its side of the middle.
	low, one, other, high := without(0), without(a), without(b), without(len(s)-1)
	for i := range left {
		switch {
		case i < a:
			left[i] = low
		case i > b:
			left[i] = high
		case i == a:
			left[i] = one
		default:
			left[i] = other
		}
	}
	mean := Mean(left)
	var squares, cubes float64
	for _, x := range left {
		d := mean - x
		squares, cubes = squares+d*d, cubes+d*d*d
	}
	if squares == 0 {
		return 0
	}
	return cubes / (6 * math.Pow(squares, 1.5))
}

// RatioOfMedians is the median of a over that of b, and the interval that holds the
// true ratio with about Confidence: the bootstrap's by percentiles, both sides drawn
// independently (B. Efron, R. Tibshirani, An introduction to the bootstrap, 1993,
// chapters 8 and 13), over all samples that can be drawn. If either side has fewer
// than LeastBootstrap values the interval is what their ranges allow. All values
// must be above 0; ok is false if one is not, or if there are none.
func RatioOfMedians(a, b []float64) (ratio, low, high float64, ok bool) {
	x, y := slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	usable := func(s []float64) bool { return len(s) > 0 && s[0] > 0 && !math.IsInf(s[len(s)-1], 0) }
	if !usable(x) || !usable(y) {
		return 0, 0, 0, false
	}
	ratio, low, high = middle(x)/middle(y), x[0]/y[len(y)-1], x[len(x)-1]/y[0]
	if low == high || len(x) < LeastBootstrap || len(y) < LeastBootstrap {
		return ratio, low, high, true
	}
	over, under := resampled(x), resampled(y)
	upTo := func(r float64) (p float64) {
		for i, v := range under.values {
			p += under.chances[i] * over.upTo(r*v)
		}
		return p
	}
	find := func(p float64) float64 { // by halves, on a scale of logarithms
		from, to := math.Log(low), math.Log(high)
		for range 50 {
			if mid := (from + to) / 2; upTo(math.Exp(mid)) < p {
				from = mid
			} else {
				to = mid
			}
		}
		return math.Exp(to)
	}
	return ratio, find((1 - Confidence) / 2), find((1 + Confidence) / 2), true
}
