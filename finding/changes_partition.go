package finding

import (
	"math"
	"slices"
)

// piece is where, over the possible values of the present level, one place of the
// last change is the best one: cost = weight·(x-middle)² + least for x from low to high.
type piece struct {
	low, high             float64
	weight, middle, least float64
	last                  int // values before the present level
}

// partition cuts values into levels: of all ways to cut them the one with the least sum
// of weighted squares plus a penalty for each cut, which PELT minimises, too. For each
// possible level it keeps the best place of the last cut (R. Maidstone and others, On
// optimal multiple changepoint algorithms for large data, 2017), so that its time is
// about n log n also while nothing changes. It returns the places of the cuts.
func partition(values, weights []float64, penalty float64) []int {
	if len(values) == 0 {
		return nil
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	if low == high {
		return nil
	}
	previous := make([]int, len(values)) // the last cut before each value's end, at best
	now, next := make([]piece, 0, 64), make([]piece, 0, 64)
	best := 0.0 // cost of all values so far
	for i, v := range values {
		if i == 0 {
			now = append(now, piece{low: low, high: high})
		} else {
			next = cutAt(next[:0], now, best+penalty, i)
			now, next = next, now
		}
		w := weights[i]
		best = math.Inf(1)
		for k := range now {
			p := &now[k]
			off, both := v-p.middle, p.weight+w
			p.least += p.weight * w / both * off * off
			p.middle += w / both * off
			p.weight = both
			off = max(p.low, min(p.middle, p.high)) - p.middle
			if cost := p.least + both*off*off; cost < best {
				best, previous[i] = cost, p.last
			}
		}
	}
	var cuts []int
	for at := previous[len(values)-1]; at > 0; at = previous[at-1] {
		cuts = append(cuts, at)
	}
	slices.Reverse(cuts)
	return cuts
}

// cutAt replaces what costs more than a cut here does.
func cutAt(to, from []piece, cost float64, here int) []piece {
	fresh := func(low, high float64) {
		if low > high {
			return
		}
		if k := len(to) - 1; k >= 0 && to[k].last == here {
			to[k].high = high
			return
		}
		to = append(to, piece{low: low, high: high, least: cost, last: here})
	}
	for _, p := range from {
		if p.least >= cost {
			fresh(p.low, p.high)
			continue
		}
		reach := math.Sqrt((cost - p.least) / p.weight)
		left, right := max(p.low, p.middle-reach), min(p.high, p.middle+reach)
		if left >= right {
			fresh(p.low, p.high)
			continue
		}
		if left > p.low {
			fresh(p.low, left)
		}
		kept := p
		kept.low, kept.high = left, right
		to = append(to, kept)
		if right < p.high {
			fresh(right, p.high)
		}
	}
	return to
}
