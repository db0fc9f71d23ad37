package stats

import (
	"cmp"
	"math"
	"slices"
)

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
