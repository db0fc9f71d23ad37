package changes

import (
	"cmp"
	"math"
	"slices"
)

// scans are the lengths of the windows that bursts are searched with, in values.
var scans = [...]int{1, 2, 3, 4, 5, 6, 7, 8}

// baseSpan is how many values on each side of a place give the losses that are usual there.
const baseSpan = 150

// burst is a window in which far more was lost than around it.
type burst struct {
	from, to int
	chance   float64 // of as much in that window
	ratio    float64 // log likelihood ratio, Kulldorff's
	base     float64 // packets a second that are usual there
	packets  float64 // beyond that
}

// usual is what a count does around a place: packets in a value.
type usual struct{ mean, variance, own float64 }

// usual of the values near a place, from low up to high at most. Own is the part of the
// variance that neighbours do not share, so that it is less in a sum of several.
func (t *track) usual(i, low, high int) usual {
	from, to := max(low, i-baseSpan), min(high, i+baseSpan+1)
	step, n := t.of.StepSeconds, float64(to-from)
	mean := t.mean(from, to)
	own := max(mean/step, (t.squares[to]-t.squares[from])/n-0.25/(step*step)) // without what the floor adds
	all := (t.powers[to]-t.powers[from])/n - mean*mean
	return usual{mean: max(mean*step, 1/float64(len(t.raw))), variance: max(own, all) * step * step, own: own * step * step}
}

// bursts are the windows of a count that a scan statistic finds (J. Naus, The
// distribution of the size of the maximum cluster of points on a line, 1965; M.
// Kulldorff, A spatial scan statistic, 1997): none overlaps another, and none lies
// at a shift of the level. Counts scatter more than Poisson's do by as much as their
// variance around a place is larger than their mean there; a window is judged by the gamma
// distribution of that mean and variance, and by the count's own habit of outliers.
func (t *track) bursts(cuts []int, o odds) (out []burst) {
	n := len(t.raw)
	limit := o.allowed() / (burstLooks(n) * float64(o.series) * searches)
	step := t.of.StepSeconds
	t.powers = make([]float64, n+1)
	sums := make([]float64, n+1)
	for i, v := range t.raw {
		t.powers[i+1] = t.powers[i] + t.clean[i]*t.clean[i]
		sums[i+1] = sums[i] + max(0, v)*step
	}
	habit := t.habit(cuts)
	stretches(cuts, n, func(low, high int) {
		for i := low; i < high; i++ {
			if t.raw[i]*step <= 1 { // a burst begins with more than one packet
				continue
			}
			u := t.usual(i, low, high)
			for _, w := range scans {
				if i+w > high || w > 1 && t.raw[i+w-1]*step <= 1 {
					continue
				}
				got, expected := sums[i+w]-sums[i], u.mean*float64(w)
				variance := float64(w)*u.own + float64(w*w)*(u.variance-u.own)
				off := got - expected
				if off < leastPackets || off*off < 9*variance || besideCut(cuts, i, i+w) {
					continue
				}
				spread := max(1, variance/expected)
				p := max(gammaTail(got/spread, expected/spread), habit(u, off))
				if p > limit {
					continue
				}
				ratio := (got*math.Log(got/expected) - off) / spread
				out = append(out, burst{from: i, to: i + w, chance: p, ratio: ratio, base: u.mean / step, packets: off})
			}
		}
	})
	return disjoint(out)
}

// burstLooks is how many looks at so many values the windows are. They have half of the
// chance of their search; a trend has the other.
func burstLooks(values int) float64 { return float64(2 * values * len(scans)) }

// stretches calls f with the bounds of each level.
func stretches(cuts []int, n int, f func(low, high int)) {
	low := 0
	for _, c := range cuts {
		f(low, c)
		low = c
	}
	f(low, n)
}

// disjoint keeps the likeliest of windows that touch each other.
func disjoint(all []burst) []burst {
	slices.SortStableFunc(all, func(a, b burst) int { return cmp.Or(cmp.Compare(b.ratio, a.ratio), a.from-b.from) })
	var kept []burst // by place
	for _, b := range all {
		at, _ := slices.BinarySearchFunc(kept, b.from, func(k burst, from int) int { return k.from - from })
		if at > 0 && kept[at-1].to >= b.from || at < len(kept) && kept[at].from <= b.to {
			continue
		}
		kept = slices.Insert(kept, at, b)
	}
	return kept
}

// enoughForTail is how many values show by themselves how a count's outliers are
// distributed.
const enoughForTail = 4000

// habit tells the chance that a count by its own habit comes to so many packets above
// the usual. Of a count that is mostly 0 no habit is known, and the chance is 0.
//
// A long series shows it by its upper quantiles: peaks over a threshold (J. Pickands,
// Statistical inference using extreme order statistics, 1975). In a short one what
// scatters more than Poisson's counts is taken for lognormal, with a third more
// scatter than it shows.
func (t *track) habit(cuts []int) func(u usual, off float64) float64 {
	n, step := len(t.raw), t.of.StepSeconds
	all := make([]float64, 0, n)
	long := n >= enoughForTail
	poisson := 0.0
	stretches(cuts, n, func(low, high int) {
		for i := low; i < high; i++ {
			if besideCut(cuts, i, i+1) {
				continue
			}
			u := t.usual(i, low, high)
			if x := max(0, t.raw[i]) * step; long {
				all = append(all, (x-u.mean)/math.Sqrt(u.variance))
			} else {
				all = append(all, math.Log((x+0.5)/(u.mean+0.5)))
				poisson += 1 / (u.mean + 0.5)
			}
		}
	})
	if len(all) < fewestValues {
		return unknownHabit
	}
	slices.Sort(all)
	at := func(q float64) float64 { return all[min(len(all)-1, int(q*float64(len(all))))] }
	if !long {
		middle, spread := at(0.5), at(0.84)-at(0.5)
		spread = math.Sqrt(max(0, spread*spread-poisson/float64(len(all))))
		if spread == 0 {
			return unknownHabit
		}
		return func(u usual, off float64) float64 {
			return math.Erfc((math.Log1p(off/(u.mean+0.5))-middle)/(1.33*spread*math.Sqrt2)) / 2
		}
	}
	a, b, c := at(0.90), at(0.95), at(0.975)
	if !(a > 0) || b <= a || c <= b {
		return unknownHabit
	}
	// Quantiles that halve what lies above have differences in the ratio 2^shape. Of so
	// few it is known to about two of its standard errors.
	shape := min(1, max(0.01, math.Log2((c-b)/(b-a))+2*1.8/math.Sqrt(0.1*float64(len(all)))))
	scale := (b - a) * shape / (math.Exp2(shape) - 1)
	return func(u usual, off float64) float64 {
		beyond := max(0, off/math.Sqrt(u.variance)-a)
		return 0.1 * math.Pow(1+shape*beyond/scale, -1/shape)
	}
}

func unknownHabit(usual, float64) float64 { return 0 }

// gammaTail is the chance that a gamma variable of that shape and scale 1 is x or
// more: of a whole x and a Poisson variable with that mean nearly the chance of x or more. W. Press and
// others, Numerical Recipes, section 6.2: a series below shape+1, a continued fraction above.
func gammaTail(x, shape float64) float64 {
	if x <= 0 || shape <= 0 {
		return 1
	}
	g, _ := math.Lgamma(shape)
	front := math.Exp(shape*math.Log(x) - x - g)
	if x < shape+1 {
		sum, term := 1/shape, 1/shape
		for k := 1.0; k < 10000 && term > sum*1e-15; k++ {
			term *= x / (shape + k)
			sum += term
		}
		return max(0, 1-sum*front)
	}
	b := x + 1 - shape
	c, d := 1e300, 1/b
	h := d
	for k := 1.0; k < 10000; k++ {
		an := -k * (k - shape)
		b += 2
		d = an*d + b
		if math.Abs(d) < 1e-300 {
			d = 1e-300
		}
		c = b + an/c
		if math.Abs(c) < 1e-300 {
			c = 1e-300
		}
		d = 1 / d
		h *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return min(1, front*h)
}
