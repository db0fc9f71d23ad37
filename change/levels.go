package change

import (
	"math"
	"slices"
)

// windows are how many values on each side of a cut its levels are taken from: all up
// to the next cut, or the nearest, which show a shift of a level that wanders.
var windows = [...]int{math.MaxInt, 64, 16, 4}

// nearby is the size of the mean whose noise weights the search for cuts.
const nearby = 16

type move struct {
	drift         bool
	from, to      int     // places: where it begins, and where the level or the drift ends
	before, after float64 // levels
	chance        float64 // of as much by noise, anywhere in the trial
	doubt         int     // of its begin, in values
}

// A staircase is a drift if its levels rise within by such a share of its height; one step alone, by more.
const driftWithin, stepWithin = 0.2, 0.6

func (t *track) moves(o odds) (out []move, cuts []int) {
	cuts = t.levels(o)
	if len(cuts) == 0 {
		return t.trend(o), nil
	}
	for first := 0; first < len(cuts); {
		last := t.staircase(cuts, first)
		least, within := 1.0, t.rise(cuts, last+1)
		for i := first; i <= last; i++ {
			before, after := t.around(cuts, i)
			_, end := t.bounds(cuts, i+1)
			m := move{from: cuts[i], to: end, before: before, after: after, doubt: t.doubt(cuts, i),
				chance: o.anywhere(twoSided(t.evidence(cuts, i)), float64(len(t.clean)*len(windows)))}
			least, within = min(least, m.chance), within+t.rise(cuts, i)
			out = append(out, m)
		}
		steps := out[len(out)-(last-first+1):]
		all := move{drift: true, before: steps[0].before, after: steps[len(steps)-1].after, chance: least}
		share := within / (all.after - all.before)
		if share >= stepWithin || share >= driftWithin && len(steps) > 1 {
			low, _ := t.bounds(cuts, first)
			before, _ := t.bounds(cuts, last)
			all.doubt = steps[0].to - cuts[first]
			all.from = max(low, cuts[first]-all.doubt)
			all.to = min(steps[len(steps)-1].to, 2*cuts[last]-before)
			out = append(out[:len(out)-len(steps)], all)
		}
		first = last + 1
	}
	return out, cuts
}

func (t *track) levels(o odds) []int {
	// Each proposed cut is tested. The weakest is taken away until all stand: first of
	// the cuts beside too short levels.
	cuts := t.propose()
	limit := o.beyond(float64(len(t.clean) * len(windows)))
	for settled := false; len(cuts) > 0; {
		least, at := math.Inf(1), 0
		for i := range cuts {
			from, to := t.bounds(cuts, i)
			_, next := t.bounds(cuts, i+1)
			z := t.evidence(cuts, i)
			if before, after := t.around(cuts, i); math.Abs(after-before) < t.least {
				z = 0
			}
			if short := min(to-from, next-to); short < shortest {
				z = 1e-9*min(z, 1e9) - float64(shortest-short)
			}
			if z < least {
				least, at = z, i
			}
		}
		if least >= 0 && !settled {
			t.settle(cuts, 0, len(cuts))
			settled = true
			continue
		}
		if least >= limit {
			break
		}
		cuts = slices.Delete(cuts, at, at+1)
		if settled {
			t.settle(cuts, max(0, at-1), min(len(cuts), at+1))
		}
	}
	return cuts
}

// worthTesting is by how many standard deviations two windows differ where a cut is proposed. It is far
// less than a cut needs: near the ends of a track its test has longer windows.
const worthTesting = 3.0

// propose returns where the means of windows before and after a place differ most, for windows of
// 8, 16, 32 ... values: one of them is about as long as any level (B. Eichinger and C. Kirch,
// A MOSUM procedure for the estimation of multiple random change points, 2018).
func (t *track) propose() (cuts []int) {
	for size, n := shortest, len(t.clean); 2*size <= n; size *= 2 {
		peak, most := size, 0.0
		for i := size; i <= n-size; i++ {
			spread := math.Sqrt(t.variance(i-size, i) + t.variance(i, i+size))
			if z := math.Abs(t.mean(i, i+size)-t.mean(i-size, i)) / spread; z > most {
				peak, most = i, z
			}
			if i-peak < size && i < n-size {
				continue
			}
			if most >= worthTesting {
				cuts = append(cuts, peak)
			}
			peak, most = i, 0
		}
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}

// bounds returns the first place of the i-th level, and the place after its last.
func (t *track) bounds(cuts []int, i int) (from, to int) {
	to = len(t.clean)
	if i > 0 {
		from = cuts[i-1]
	}
	if i < len(cuts) {
		to = cuts[i]
	}
	return from, to
}

// around returns the levels before and after the i-th cut.
func (t *track) around(cuts []int, i int) (before, after float64) {
	from, cut := t.bounds(cuts, i)
	_, to := t.bounds(cuts, i+1)
	return t.mean(from, cut), t.mean(cut, to)
}

// rise is by how much the second half of the i-th level is above its first half.
func (t *track) rise(cuts []int, i int) float64 {
	from, to := t.bounds(cuts, i)
	middle := (from + to) / 2
	return t.mean(middle, to) - t.mean(from, middle)
}

// evidence is by how many standard deviations the levels beside a cut differ, in the window that tells most.
func (t *track) evidence(cuts []int, i int) (best float64) {
	from, cut := t.bounds(cuts, i)
	_, to := t.bounds(cuts, i+1)
	for _, w := range windows {
		low, high := cut-min(w, cut-from), cut+min(w, to-cut)
		spread := math.Sqrt(t.variance(low, cut) + t.variance(cut, high))
		best = max(best, math.Abs(t.mean(cut, high)-t.mean(low, cut))/spread)
	}
	return best
}

// settle puts the cuts from the first up to the last where each divides best what lies between its neighbours.
func (t *track) settle(cuts []int, first, last int) {
	for i := first; i < last; i++ {
		from, _ := t.bounds(cuts, i)
		_, to := t.bounds(cuts, i+1)
		before, after := t.around(cuts, i)
		if before == after || to-from < 2*shortest {
			continue
		}
		sum, best := 0.0, math.Inf(-1)
		for k := from; k < to-shortest; k++ {
			gain := (t.clean[k] - (before+after)/2) / (t.sigma[k] * t.sigma[k])
			if after > before {
				gain = -gain
			}
			if sum += gain; k+1 >= from+shortest && sum > best {
				best, cuts[i] = sum, k+1
			}
		}
	}
}

// doubt is how many values a cut may be off, with 95 % confidence: J. Bai, Estimation
// of a change point in multiple regression models (1997).
func (t *track) doubt(cuts []int, i int) int {
	before, after := t.around(cuts, i)
	spread := max(t.sigma[max(0, cuts[i]-shortest)], t.sigma[min(len(t.sigma)-1, cuts[i]+shortest)])
	ratio := spread / (after - before)
	return wholeValues(11 * t.noise.of(nearby) * ratio * ratio)
}

func wholeValues(doubt float64) int {
	if !(doubt < 1e9) {
		return 1e9
	}
	return 1 + int(doubt)
}

// staircase returns the last of the cuts that go on in the direction of the first.
func (t *track) staircase(cuts []int, first int) int {
	before, after := t.around(cuts, first)
	for i := first + 1; i < len(cuts); i++ {
		if b, a := t.around(cuts, i); (a > b) != (after > before) {
			return i - 1
		}
	}
	return len(cuts) - 1
}

// trend finds a drift over the whole track that is too small for any cut to stand: by
// the slope of least squares and its error for noise of that length.
func (t *track) trend(o odds) []move {
	length := len(t.clean)
	n, mean, xy := float64(length), t.mean(0, length), 0.0
	for i, y := range t.clean {
		xy += (float64(i) - (n-1)/2) * (y - mean)
	}
	slope := 12 * xy / (n * (n*n - 1))
	z := math.Abs(slope) / math.Sqrt(12*t.variance(0, length)/(n*n-1))
	if math.Abs(slope*n) < t.least || !(z >= o.beyond(1)) {
		return nil
	}
	return []move{{drift: true, to: length, before: mean - slope*n/2, after: mean + slope*n/2,
		chance: o.anywhere(twoSided(z), 1), doubt: length / 4}}
}
