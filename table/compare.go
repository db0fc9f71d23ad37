package table

import (
	"cmp"
	"math"
	"slices"
)

// The one comparison. Values are compared by their logarithms, so that effects are
// relative, with Student's t. The noise is the larger of the pair's own variance
// and the one pooled over all pairs of like conditions, so that a pair that agrees
// by luck is not flattered. Where repeats clearly differ from each other, trials of
// one repeat are compared with each other. Holm's correction holds the chance of any
// false alarm in the family at 5 %. Fewer than three repeats tell nothing: two that
// agree often agree by luck, and a family of them has too many false alarms.
//
// Two kinds of figures may be 0, which has no logarithm. Shares of a whole (losses,
// processor time) are compared by their differences. Other figures, where one of
// the pair's values is 0, are compared by differences relative to the pair's mean.

// confidence of intervals, and of a family of comparisons as a whole.
const confidence = 0.95

// power is the chance with which the repeats that are advised find a difference.
const power = 0.8

type Verdict string

const (
	Best       Verdict = "best"    // what the others are compared with
	BetterThan Verdict = "better"  // than the second sample
	WorseThan  Verdict = "worse"   // likewise
	Differs    Verdict = "differs" // in a metric of which neither way is better
	Tied       Verdict = "tied"    // any difference is within the metric's resolution
	TooFew     Verdict = "too few" // more repeats would tell
)

// Effect is how a first sample differs from a second.
type Effect struct {
	// Change is made of the medians that tables print: first/second - 1, or, of a
	// metric in points, first - second. It is +Inf where only the second is 0.
	Change    float64
	Low, High float64 // of the change, with 95 % confidence for this pair alone; NaN if not known
	Points    bool
	Matters   float64 // the largest change that does not matter
	P         float64 // chance of so large a difference without a cause, corrected for the family
	Verdict   Verdict
	// Needed is how many more repeats of each would tell, with a chance of 80 %; 0 if
	// these did, MostNeeded if that many or more.
	Needed int
}

// MostNeeded is above the most repeats that anybody is told to add, which are 20.
const MostNeeded = 21

// Proven reports whether the samples differ beyond chance, however little.
func (e Effect) Proven() bool { return e.P <= 1-confidence }

// Pair is two samples of one metric to compare. Pairs of one Pool were measured
// under like conditions and share an estimate of the noise.
type Pair struct {
	A, B Sample
	Pool int
}

// Rank sorts groups by the median of a metric, the best first; groups without a value come last.
func Rank[G interface{ Stat(*Metric) Stat }](m *Metric, groups []G) []G {
	keys := make([]float64, len(groups))
	order := make([]int, len(groups))
	for i, g := range groups {
		order[i], keys[i] = i, g.Stat(m).Median
		if m.Better != Lower {
			keys[i] = -keys[i]
		}
		if math.IsNaN(keys[i]) {
			keys[i] = math.Inf(1)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(keys[i], keys[j]) })
	out := make([]G, len(groups))
	for place, i := range order {
		out[place] = groups[i]
	}
	return out
}

// Family compares the first sample of each pair with the second. The pairs are some of so
// many tests, of this metric and of others, that share the chance of a false alarm; which
// tests there are must not depend on the values.
func Family(m *Metric, pairs []Pair, tests int) []Effect {
	tests = max(tests, len(pairs))
	pools := map[int]noise{}
	for _, p := range pairs {
		if _, known := pools[p.Pool]; !known {
			pools[p.Pool] = poolNoise(m, pairs, p.Pool)
		}
	}
	contrasts := make([]contrast, len(pairs))
	apart, alike := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		contrasts[i] = newContrast(m, p, pools[p.Pool])
		apart[i], alike[i] = contrasts[i].chances()
	}
	apart, alike = holm(apart, tests), holm(alike, tests)
	out := make([]Effect, len(pairs))
	quantiles := map[int]float64{} // by degrees of freedom: finding one takes longer than all else
	for i, c := range contrasts {
		if _, known := quantiles[c.noise.free]; !known && c.noise.free > 0 {
			quantiles[c.noise.free] = StudentQuantile((1+confidence)/2, c.noise.free)
		}
		out[i] = c.effect(apart[i], alike[i], quantiles[c.noise.free], tests)
	}
	return out
}

// holm corrects chances for a number of tests that is at least theirs. S. Holm, A
// simple sequentially rejective multiple test procedure, Scandinavian Journal of
// Statistics 6 (1979).
func holm(chances []float64, tests int) []float64 {
	order := make([]int, len(chances))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(chances[i], chances[j]) })
	out := make([]float64, len(chances))
	last := 0.0
	for k, i := range order {
		last = max(last, min(1, chances[i]*float64(max(tests-k, 1))))
		out[i] = last
	}
	return out
}

// effect judges the contrast by its corrected chances; quantile is Student's t for its interval.
func (c contrast) effect(apart, alike, quantile float64, tests int) Effect {
	nan := math.NaN()
	e := Effect{Change: c.change(), Low: nan, High: nan, Points: c.metric.Points(), Matters: c.matters(), P: apart,
		Verdict: TooFew}
	have := min(len(c.pair.A.Values), len(c.pair.B.Values))
	if math.IsNaN(e.Change) || c.noise.free == 0 {
		e.Needed = max(LeastRepeats-have, 1)
		return e
	}
	e.Low = min(c.back(c.difference-quantile*c.error), e.Change)
	e.High = max(c.back(c.difference+quantile*c.error), e.Change)
	counted := func(v float64) bool { return v != 0 }
	if c.unit > 0 && !slices.ContainsFunc(c.pair.A.Values, counted) && !slices.ContainsFunc(c.pair.B.Values, counted) {
		e.Low, e.High = 0, 0 // a share of 0 has no interval
	}
	switch {
	case alike <= 1-confidence:
		e.Verdict = Tied
	case !e.Proven():
	case e.Change*c.difference <= 0: // the middles do not say what the means say
		e.P = 1
	case c.metric.Better == Neutral:
		e.Verdict = Differs
	case e.Change > 0 == (c.metric.Better == Higher):
		e.Verdict = BetterThan
	default:
		e.Verdict = WorseThan
	}
	if e.Verdict == TooFew {
		e.Needed = c.needed(tests, have)
	}
	return e
}
