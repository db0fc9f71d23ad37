package changes

import (
	"math"
	"slices"
)

// windows are how many values on each side of a cut its levels are taken from: all
// up to the next cut, or the nearest ones only, which tell a sudden shift of a level that
// wanders.
var windows = [...]int{math.MaxInt, 64, 16, 4}

// nearby is the size of a mean whose noise the search for cuts is weighted by.
const nearby = 16

// levels cuts the track where its level shifts: places of the first values of new
// levels, ascending.
func (t *track) levels(o odds) []int {
	n := len(t.clean)
	centre := t.mid[n/2]
	values, weights := make([]float64, n), make([]float64, n)
	factor := t.noise.of(nearby)
	for i, v := range t.clean {
		values[i] = v - centre
		weights[i] = 1 / (t.sigma[i] * t.sigma[i] * factor)
	}
	// Twice the logarithm is the penalty of Schwarz's criterion for one level and its place. It is
	// only meant to propose: which cuts stand is decided one by one below.
	cuts := partition(values, weights, 2*math.Log(float64(n)))
	cuts = t.dissolve(cuts)
	t.settle(cuts, 0, len(cuts))
	limit := o.beyond(float64(n * len(windows)))
	for len(cuts) > 0 {
		least, at := math.Inf(1), 0
		for i := range cuts {
			z := t.evidence(cuts, i)
			if before, after := t.around(cuts, i); math.Abs(after-before) < t.least {
				z = 0
			}
			if z < least {
				least, at = z, i
			}
		}
		if least >= limit {
			break
		}
		cuts = slices.Delete(cuts, at, at+1)
		t.settle(cuts, max(0, at-1), min(len(cuts), at+1))
	}
	return cuts
}

// dissolve takes away cuts until each level is long enough to be one.
func (t *track) dissolve(cuts []int) []int {
	for len(cuts) > 0 {
		short, at := shortest, -1
		for i := range len(cuts) + 1 {
			if from, to := t.bounds(cuts, i); to-from < short {
				short, at = to-from, i
			}
		}
		if at < 0 {
			break
		}
		drop := min(at, len(cuts)-1)
		if at > 0 && at < len(cuts) && t.evidence(cuts, at-1) < t.evidence(cuts, at) {
			drop = at - 1
		}
		cuts = slices.Delete(cuts, drop, drop+1)
	}
	return cuts
}

// bounds of the i-th level: its first place and the one after its last.
func (t *track) bounds(cuts []int, i int) (from, to int) {
	from, to = 0, len(t.clean)
	if i > 0 {
		from = cuts[i-1]
	}
	if i < len(cuts) {
		to = cuts[i]
	}
	return from, to
}

// around are the levels before and after the i-th cut.
func (t *track) around(cuts []int, i int) (before, after float64) {
	from, cut := t.bounds(cuts, i)
	_, to := t.bounds(cuts, i+1)
	return t.mean(from, cut), t.mean(cut, to)
}

// evidence is by how many standard deviations the levels on both sides of a cut
// differ, in the window that tells most.
func (t *track) evidence(cuts []int, i int) float64 {
	from, cut := t.bounds(cuts, i)
	_, to := t.bounds(cuts, i+1)
	best := 0.0
	for _, w := range windows {
		low, high := from, to
		if w < cut-from {
			low = cut - w
		}
		if w < to-cut {
			high = cut + w
		}
		spread := math.Sqrt(t.variance(low, cut) + t.variance(cut, high))
		best = max(best, math.Abs(t.mean(cut, high)-t.mean(low, cut))/spread)
	}
	return best
}

// settle puts each of the cuts from the first up to the last where it divides best
// what lies between its neighbours, in place.
func (t *track) settle(cuts []int, first, last int) {
	for i := first; i < last; i++ {
		from, _ := t.bounds(cuts, i)
		_, to := t.bounds(cuts, i+1)
		before, after := t.mean(from, cuts[i]), t.mean(cuts[i], to)
		if before == after || to-from < 2*shortest {
			continue
		}
		// With both levels given, the sum of squares falls by each value that is nearer to the level it is counted to.
		half := (before + after) / 2
		sum, best, at := 0.0, math.Inf(-1), cuts[i]
		for k := from; k < to-shortest; k++ {
			gain := (t.clean[k] - half) / (t.sigma[k] * t.sigma[k])
			if after > before {
				gain = -gain
			}
			if sum += gain; k+1 >= from+shortest && sum > best {
				best, at = sum, k+1
			}
		}
		cuts[i] = at
	}
}

// doubt is how far a cut may be from the true one, in values, with 95 % confidence:
// J. Bai, Estimation of a change point in multiple regression models (1997), with the
// larger scatter of the two sides.
func (t *track) doubt(cuts []int, i int) int {
	before, after := t.around(cuts, i)
	cut := cuts[i]
	spread := 0.0
	for _, k := range []int{max(0, cut-shortest), min(len(t.sigma)-1, cut+shortest)} {
		spread = max(spread, t.sigma[k]*t.sigma[k])
	}
	size := after - before
	return whole(11 * spread * t.noise.of(nearby) / (size * size))
}

// whole is a doubt in whole values, of those that it is more than.
func whole(doubt float64) int {
	if !(doubt < 1e9) {
		return 1e9
	}
	return 1 + int(doubt)
}
