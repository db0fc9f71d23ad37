package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts the probabilities of a family of tests so that those below α are
// rejected with a probability of at most α that any of them is rejected wrongly,
// however the tests depend on each other: S. Holm, A simple sequentially rejective
// multiple test procedure, Scandinavian Journal of Statistics 6 (1979). NaN is a
// test that was not made; it counts for nothing and stays NaN.
func Holm(p []float64) []float64 {
	var order []int
	out := make([]float64, len(p))
	for i := range p {
		out[i] = math.NaN()
		if !math.IsNaN(p[i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	least := 0.0
	for place, i := range order {
		least = max(least, min(1, p[i]*float64(len(order)-place)))
		out[i] = least
	}
	return out
}
