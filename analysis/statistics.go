package analysis

import (
	"cmp"
	"math"
	"slices"
)

// confidence is how sure an interval or a comparison is.
const confidence = 0.95

// mean of the values; 0 if there are none.
func mean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(len(v), 1))
}

// variance of a sample; 0 for fewer than two values.
func variance(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return sum / float64(max(len(v)-1, 1))
}

// halfInterval is how far the true mean may lie from that of the values, with
// confidence, if they scatter normally (Student's t); ok is false for fewer than two.
func halfInterval(v []float64) (half float64, ok bool) {
	if len(v) < 2 {
		return 0, false
	}
	t := student((1+confidence)/2, len(v)-1)
	return t * math.Sqrt(variance(v)/float64(len(v))), true
}

// student is the quantile of Student's t for a probability from 0.5 to below 1.
func student(probability float64, freedom int) float64 {
	return rising(probability, func(t float64) float64 { return (1 + studentWithin(t, freedom)) / 2 })
}

// studentWithin is the probability that t lies within ±t: Abramowitz and Stegun,
// 26.7.3 and 26.7.4, for a whole number of degrees of freedom.
func studentWithin(t float64, freedom int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(freedom)))
	sin, cos := math.Sincos(angle)
	if freedom%2 == 0 {
		sum, term := 0.0, 1.0
		for i := 0; i <= freedom-2; i += 2 {
			sum += term
			term *= cos * cos * float64(i+1) / float64(i+2)
		}
		return sin * sum
	}
	sum, term := 0.0, cos
	for i := 1; i <= freedom-2; i += 2 {
		sum += term
		term *= cos * cos * float64(i+1) / float64(i+2)
	}
	return 2 / math.Pi * (angle + sin*sum)
}

// rising is the x > 0 at which a rising function reaches y.
func rising(y float64, f func(float64) float64) float64 {
	high := 1.0
	for f(high) < y && high < 1e9 {
		high *= 2
	}
	low := 0.0
	for high-low > 1e-4*high {
		if mid := (low + high) / 2; f(mid) < y {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// dunnett is how many standard errors of a difference all of others may fall
// short of one of their equals by chance, one-sided, with confidence: C. W.
// Dunnett, A multiple comparison procedure for comparing several treatments with
// a control, JASA 50 (1955), with equal numbers of repeats (correlation 1/2).
func dunnett(others, freedom int) float64 {
	const z0, z1, steps = -6.0, 6.0, 60
	const wide = (z1 - z0) / steps
	scales, weights := chi(freedom)
	return rising(confidence, func(d float64) float64 {
		var all float64
		for i, s := range scales {
			if weights[i] < 1e-8 {
				continue
			}
			var p float64
			for j := range steps + 1 {
				z := z0 + float64(j)*wide
				p += math.Exp(-z*z/2) * math.Pow(0.5*math.Erfc(-(z+math.Sqrt2*d*s)/math.Sqrt2), float64(others))
			}
			all += weights[i] * p * wide / math.Sqrt(2*math.Pi)
		}
		return all
	})
}

// chi returns values of an estimated standard deviation where the true one is 1,
// with weights that add up to 1. They are even in its logarithm, u: there its
// density is smooth, however few degrees of freedom there are.
func chi(freedom int) (scales, weights []float64) {
	const steps = 32
	n := float64(freedom)
	low, high := -12/n-6/math.Sqrt(2*n), math.Log(1+8/math.Sqrt(2*n))
	var sum float64
	for i := range steps + 1 {
		u := low + (high-low)*float64(i)/steps
		s := math.Exp(u)
		w := math.Exp(n*u - n*(s*s-1)/2)
		scales, weights = append(scales, s), append(weights, w)
		sum += w
	}
	for i := range weights {
		weights[i] /= sum
	}
	return scales, weights
}

// RankCorrelation compares two orderings of the same things, each given by a
// number for every thing, in the same sequence: 1 if both order them alike, -1 if
// one is the other reversed, about 0 if they have nothing in common. It is
// Spearman's coefficient; equal numbers share the mean of their ranks. ok is
// false where there is nothing to compare: different lengths, fewer than two
// things, a number that is none, or an ordering in which all are equal.
func RankCorrelation(a, b []float64) (rho float64, ok bool) {
	if len(a) != len(b) || len(a) < 2 || slices.ContainsFunc(a, math.IsNaN) || slices.ContainsFunc(b, math.IsNaN) {
		return 0, false
	}
	x, y := ranks(a), ranks(b)
	middle := float64(len(a)+1) / 2
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - middle) * (y[i] - middle)
		xx += (x[i] - middle) * (x[i] - middle)
		yy += (y[i] - middle) * (y[i] - middle)
	}
	if xx == 0 || yy == 0 {
		return 0, false
	}
	return max(-1, min(1, xy/math.Sqrt(xx*yy))), true
}

// ranks are the places of values from 1 up; equal values share the mean of theirs.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(v[i], v[j]) })
	out := make([]float64, len(v))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && v[order[to]] == v[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return out
}
