package table

import (
	"math"
	"slices"
	"sort"
)

// LeastRepeats is the least number of values of each sample that tells anything.
const LeastRepeats = 3

// noise is the variance of values on the scale on which they are compared. Where
// it is blocked, it is what remains of the variance within repeats.
type noise struct {
	variance float64
	free     int // degrees of freedom; 0: not known
	blocked  bool
}

func squares(values []float64) (sum float64) {
	middle := mean(values)
	for _, x := range values {
		sum += (x - middle) * (x - middle)
	}
	return sum
}

// newNoise divides a sum of squares; no figure is measured better than to a part of its metric's resolution.
func newNoise(m *Metric, squares float64, free int) noise {
	if free <= 0 {
		return noise{}
	}
	finest := m.Resolution / 20
	return noise{variance: max(squares/float64(free), finest*finest), free: free}
}

// poolNoise estimates the noise of one pool from all of its samples, each once.
func poolNoise(m *Metric, pairs []Pair, pool int) noise {
	var samples []Sample
	for _, p := range pairs {
		for _, s := range []Sample{p.A, p.B} {
			seen := func(o Sample) bool {
				return slices.Equal(o.Values, s.Values) && slices.Equal(o.blocks, s.blocks)
			}
			if p.Pool == pool && len(s.Values) > 0 && !slices.ContainsFunc(samples, seen) {
				samples = append(samples, s)
			}
		}
	}
	sum, free := 0.0, 0
	var scaled [][]float64
	for _, s := range samples {
		v, _ := scale(m, s.Values)
		scaled = append(scaled, v)
		sum, free = sum+squares(v), free+len(v)-1
	}
	if rest, within, ok := withinBlocks(samples, scaled); ok {
		n := newNoise(m, rest, within)
		n.blocked = true
		return n
	}
	return newNoise(m, sum, free)
}

// scale puts all values of a pair, or of one sample, on the scale on which they are
// compared. unit is the size of 1 on it where it is linear and relative, else 0.
func scale(m *Metric, values ...[]float64) (out []float64, unit float64) {
	all := slices.Concat(values...)
	switch {
	case m.Points():
		return all, 0
	case slices.ContainsFunc(all, func(v float64) bool { return v <= 0 }):
		unit = mean(all)
		if unit <= 0 {
			unit = 1 // all are 0
		}
		for _, v := range all {
			out = append(out, v/unit)
		}
		return out, unit
	}
	for _, v := range all {
		out = append(out, math.Log(v))
	}
	return out, 0
}

type contrast struct {
	metric     *Metric
	pair       Pair
	difference float64 // NaN if one side has no value
	unit       float64 // see scale
	noise      noise   // free is 0 if the comparison tells nothing
	error      float64 // standard error of the difference
}

func newContrast(m *Metric, p Pair, pool noise) contrast {
	c := contrast{metric: m, pair: p, difference: math.NaN()}
	n, k := len(p.A.Values), len(p.B.Values)
	if n == 0 || k == 0 {
		return c
	}
	both, unit := scale(m, p.A.Values, p.B.Values)
	a, b := both[:n], both[n:]
	c.difference, c.unit = mean(a)-mean(b), unit
	if min(n, k) < LeastRepeats {
		return c
	}
	own := newNoise(m, squares(a)+squares(b), n+k-2)
	if pool.blocked { // of a difference within a repeat half belongs to each trial
		own = newNoise(m, squares(inBlocks(p, a, b))/2, n-1)
	} else if pool.free == own.free {
		pool.free = welch(a, b)
	}
	c.noise = pool
	c.noise.variance = max(own.variance, pool.variance)
	c.error = math.Sqrt(c.noise.variance * (1/float64(n) + 1/float64(k)))
	return c
}

// welch is the degrees of freedom of a difference of two means, of which one may be
// noisier than the other: B. L. Welch, Biometrika 34 (1947).
func welch(a, b []float64) int {
	n, k := float64(len(a)), float64(len(b))
	x, y := squares(a)/(n-1)/n, squares(b)/(k-1)/k
	if x+y == 0 {
		return len(a) + len(b) - 2
	}
	return int((x+y)*(x+y)/(x*x/(n-1)+y*y/(k-1)) + 0.5)
}

// resolution is the largest difference that does not matter, on the contrast's scale.
func (c contrast) resolution() float64 {
	if c.metric.Points() || c.unit > 0 {
		return c.matters()
	}
	return math.Log1p(c.metric.Resolution)
}

// matters is the largest change that does not matter. Of many points 2 % are as good as none.
func (c contrast) matters() float64 {
	if c.metric.Points() {
		return max(c.metric.Resolution, twoPercent*max(median(c.pair.A.Values), median(c.pair.B.Values)))
	}
	return c.metric.Resolution
}

// chances are how likely the samples are to come out so far apart if there is no
// difference, and so close if there is one beyond the resolution.
func (c contrast) chances() (apart, alike float64) {
	if c.noise.free == 0 {
		return 1, 1
	}
	d := math.Abs(c.difference)
	return 2 * StudentBeyond(d/c.error, c.noise.free), StudentBeyond((c.resolution()-d)/c.error, c.noise.free)
}

func (c contrast) change() float64 {
	a, b := median(c.pair.A.Values), median(c.pair.B.Values)
	switch {
	case c.metric.Points():
		return a - b
	case a == b:
		return 0
	}
	return a/b - 1
}

// back turns a difference on the contrast's scale into the change that it stands for.
func (c contrast) back(x float64) float64 {
	switch {
	case c.metric.Points():
		return min(1, max(-1, x))
	case c.unit > 0:
		return max(-1, x*c.unit/mean(c.pair.B.Values)) // without an end where the second sample is 0
	}
	return math.Expm1(x)
}

// needed is how many repeats beside those that the pair has would find this
// difference, or show that there is none that matters, four times in five.
func (c contrast) needed(tests, have int) int {
	d := math.Abs(c.difference)
	level := (1 - confidence) / float64(tests) // Holm's first step
	return 1 + sort.Search(MostNeeded-1, func(more int) bool {
		n := have + 1 + more
		free := max(c.noise.free*(n-1)/max(have-1, 1), 1)
		found := nearQuantile(1-level/2, free) + nearQuantile(power, free)
		same := nearQuantile(1-level, free) + nearQuantile(power, free)
		return max(d/found, (c.resolution()-d)/same) > math.Sqrt(c.noise.variance*2/float64(n))
	})
}

// Trials of one repeat ran close together, so what is slow for a while slows all of
// them. Where repeats clearly differ, the noise is what remains within repeats.

// clearly is how unlikely a difference between repeats must be to be believed. It is
// small because a lucky one makes the remaining noise too small.
const clearly = 0.01

// leastFree is the fewest degrees of freedom that tell what is within repeats from what is between them.
const leastFree = 4

// withinBlocks is the sum of squares that remains when each repeat's own level is
// taken out, and its degrees of freedom; ok is false unless all samples were
// measured in the same repeats, and these clearly differ.
func withinBlocks(samples []Sample, scaled [][]float64) (rest float64, free int, ok bool) {
	if len(samples) < 2 || (len(samples)-1)*(len(samples[0].blocks)-1) < leastFree {
		return 0, 0, false
	}
	order := samples[0].blocks
	levels := make([]float64, len(order)) // of each repeat above the mean of all
	var aligned [][]float64
	for i, s := range samples {
		v, same := align(s.blocks, order, scaled[i])
		if !same {
			return 0, 0, false
		}
		middle := mean(v)
		for j := range v {
			v[j] -= middle
			levels[j] += v[j] / float64(len(samples))
		}
		aligned = append(aligned, v)
	}
	between := float64(len(samples)) * squares(levels)
	for _, v := range aligned {
		for j := range v {
			rest += (v[j] - levels[j]) * (v[j] - levels[j])
		}
	}
	repeats := len(order) - 1
	free = (len(samples) - 1) * repeats
	return rest, free, fisherBeyond(between/float64(repeats), repeats, rest/float64(free), free) < clearly
}

// align puts values into the order of blocks; ok is false if they are not of the same blocks, each once.
func align(blocks, order []block, values []float64) (out []float64, ok bool) {
	if len(blocks) != len(order) || len(values) != len(order) {
		return nil, false
	}
	for j, b := range order {
		i := slices.Index(blocks, b)
		if i < 0 || slices.Contains(order[:j], b) {
			return nil, false
		}
		out = append(out, values[i])
	}
	return out, true
}

func inBlocks(p Pair, a, b []float64) []float64 {
	other, _ := align(p.B.blocks, p.A.blocks, b) // which a blocked pool has the same of
	var out []float64
	for i := range a {
		out = append(out, a[i]-other[i])
	}
	return out
}
