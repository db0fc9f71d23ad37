package heat

import (
	"math"
	"slices"
)

// Unit is the one in which the top of a scale is told, and how much of the
// scale's own one is; names are units, each so many times the one before.
func (s Scale) Unit(names []string, times float64) (name string, div float64) {
	div, name = 1, names[0]
	for _, next := range names[1:] {
		if !(times > 1 && math.Abs(s.High)/div >= times) {
			break
		}
		div, name = div*times, next
	}
	return name, div
}

// Apart chooses of n labels along a side those that do not touch: a given one
// (-1 for none), the two at the ends, then the others in turn. span is a
// label's middle and half its length.
func Apart(n, first int, span func(i int) (at, half float64)) []int {
	order := []int{first, 0, n - 1}
	for i := range n {
		order = append(order, i)
	}
	var kept []int
	for _, i := range order {
		if i < 0 || i >= n || slices.Contains(kept, i) {
			continue
		}
		at, half := span(i)
		if !slices.ContainsFunc(kept, func(k int) bool {
			other, wide := span(k)
			return math.Abs(at-other) < half+wide
		}) {
			kept = append(kept, i)
		}
	}
	slices.Sort(kept)
	return kept
}
