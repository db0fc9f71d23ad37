package compare

import (
	"fmt"
	"math"
	"slices"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

// fewestRepeats is what a comparison needs: two repeats that agree may agree by luck,
// and nothing in them would tell.
const fewestRepeats = 3

// sample is the scatter of one side of a comparison, or of differences within blocks.
type sample struct {
	variance float64
	n        int
}

// contrast is one comparison on the scale on which it is tested: the logarithm of a
// relative change, or points.
type contrast struct {
	metric   metric
	effect   model.Effect
	linear   bool // relative to the baseline's mean, because some value is 0
	estimate float64
	samples  []sample
	freedom  int
}

// Why figures that were measured have no relative change.
const (
	zeroOnBoth   = "is 0 on both"
	zeroBaseline = "cannot be compared: it is 0 on the baseline"
)

// newContrast compares the values of two sides by block; ok is false if that says
// nothing, and then why is a reason or "".
func newContrast(m metric, baseline, other map[int]float64, paired bool) (c contrast, why string, ok bool) {
	c.metric = m
	a, b := values(baseline), values(other)
	if paired {
		a, b = nil, nil
		for _, block := range blocks(baseline) {
			if y, both := other[block]; both {
				a, b = append(a, baseline[block]), append(b, y)
			}
		}
	}
	n := min(len(a), len(b))
	if n < fewestRepeats {
		return c, times(n), false
	}
	form := func(v float64) float64 { return v }
	if m.kind == model.Relative {
		scale := stats.Mean(a)
		switch c.linear = slices.Min(a) <= 0 || slices.Min(b) <= 0; {
		case !c.linear:
			form = math.Log
		case scale > 0:
			form = func(v float64) float64 { return v / scale }
		case slices.Max(b) <= 0:
			return c, zeroOnBoth, false
		default:
			return c, zeroBaseline, false
		}
	}
	x, y := apply(a, form), apply(b, form)
	c.freedom = n - 1
	if paired {
		for i := range y {
			y[i] -= x[i]
		}
		c.estimate = stats.Mean(y)
		c.samples = []sample{{stats.Variance(y), n}}
	} else {
		c.estimate = stats.Mean(y) - stats.Mean(x)
		c.samples = []sample{{stats.Variance(x), len(x)}, {stats.Variance(y), len(y)}}
	}
	c.effect = model.Effect{Metric: m.name, Kind: m.kind, Test: model.UnpairedTest, Repeats: n, Baseline: sampled(a), Other: sampled(b)}
	if paired {
		c.effect.Test = model.PairedTest
	}
	return c, "", true
}

func times(n int) string {
	switch n {
	case 0:
		return "was not measured in the same repeats"
	case 1:
		return "was measured once only"
	}
	return "was measured twice only"
}

func apply(v []float64, form func(float64) float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = form(v[i])
	}
	return out
}

func blocks(v map[int]float64) []int {
	var list []int
	for b := range v {
		list = append(list, b)
	}
	slices.Sort(list)
	return list
}

func values(v map[int]float64) (list []float64) {
	for _, b := range blocks(v) {
		list = append(list, v[b])
	}
	return list
}

func sampled(v []float64) model.Sampled {
	s := model.Sampled{Mean: stats.Mean(v), Values: v}
	half, _ := stats.HalfInterval(v)
	s.Low, s.High = max(0, s.Mean-half), s.Mean+half
	return s
}

// resolution of the metric on the contrast's scale.
func (c contrast) resolution() float64 {
	if c.metric.kind == model.Relative && !c.linear {
		return math.Log1p(c.metric.resolution)
	}
	return c.metric.resolution
}

// change turns a number on the contrast's scale into the change it stands for.
func (c contrast) change(x float64) float64 {
	switch {
	case c.metric.kind == model.Points:
		return min(1, max(-1, x))
	case c.linear:
		return max(-1, x)
	}
	return math.Expm1(min(x, 30)) // beyond, any number is as good
}

// luck is the share of the middle scatter, as a standard deviation, below which no
// scatter of the same metric is believed: three repeats of a figure that jumps
// between two levels often agree by chance.
const luck = 0.5

// steady raises scatter that is too small to be believed: see luck and metric.resolution.
func steady(all []contrast) {
	type kind struct {
		name string
		part int
	}
	seen := map[kind][]float64{}
	for _, c := range all {
		for i, s := range c.samples {
			if !c.linear {
				seen[kind{c.metric.name, i}] = append(seen[kind{c.metric.name, i}], s.variance)
			}
		}
	}
	for i := range all {
		c := &all[i]
		for j := range c.samples {
			v := seen[kind{c.metric.name, j}]
			floor := math.Pow(c.resolution()/2, 2)
			if len(v) >= 2 {
				v = slices.Sorted(slices.Values(v))
				floor = max(floor, luck*luck*v[len(v)/2])
			}
			c.samples[j].variance = max(c.samples[j].variance, floor)
		}
	}
}

// deviation is the standard error of the estimate.
func (c contrast) deviation() float64 {
	sum := 0.0
	for _, s := range c.samples {
		sum += s.variance / float64(s.n)
	}
	return math.Sqrt(sum)
}

// test fills in the interval and the probability that a change at least as far beyond
// the metric's resolution comes by chance. Unpaired, the degrees of freedom are those of
// the smaller side, with which Welch's test is never too sure: M. R. Mickey and M. B.
// Brown, Bounds on the distribution functions of the Behrens-Fisher statistic, Annals of
// Mathematical Statistics 37 (1966).
func (c *contrast) test() {
	d := c.deviation()
	half := stats.Student((1+stats.Confidence)/2, c.freedom) * d
	e := &c.effect
	e.Change, e.Low, e.High = c.change(c.estimate), c.change(c.estimate-half), c.change(c.estimate+half)
	e.P = 1
	if beyond := math.Abs(c.estimate) - c.resolution(); beyond > 0 {
		e.P = stats.StudentBeyond(beyond/d, c.freedom)
	}
}

// twins finds packets per second that follow from goodput, as all packets have one
// size: both are one test. It returns where the other one stands, by place.
func twins(all []contrast) map[int]int {
	key := func(e model.Effect) string { return fmt.Sprintf("%d %s %s", e.Side, e.Flow, e.Cell.Key()) }
	goodput := map[string]int{}
	for i, c := range all {
		if c.metric.word == "goodput" {
			goodput[key(c.effect)] = i
		}
	}
	found := map[int]int{}
	for i := range all {
		a := &all[i]
		j, ok := goodput[key(a.effect)]
		if !ok || a.metric.word != "pps" || a.linear != all[j].linear || len(a.samples) != len(all[j].samples) {
			continue
		}
		same := math.Abs(a.estimate-all[j].estimate) < 1e-6
		for k, x := range a.samples {
			y := all[j].samples[k]
			same = same && x.n == y.n && math.Abs(math.Sqrt(x.variance)-math.Sqrt(y.variance)) < 1e-6
		}
		if same {
			found[i] = j
			a.effect.SameAs = all[j].metric.name
		}
	}
	return found
}

// judge makes all tests as one family.
func judge(all []contrast) (tests int) {
	twin := twins(all)
	steady(all)
	p := make([]float64, len(all))
	for i := range all {
		all[i].test()
		p[i] = all[i].effect.P
		if all[i].effect.SameAs != "" {
			p[i] = math.NaN()
		} else {
			tests++
		}
	}
	family := stats.Holm(p)
	for i := range all {
		all[i].effect.FamilyP = family[i]
	}
	for i := range all {
		e := &all[i].effect
		if j, is := twin[i]; is {
			e.P, e.FamilyP = all[j].effect.P, family[j]
		}
		e.Separable = e.FamilyP <= 1-stats.Confidence
		if !e.Separable {
			e.Hidden = max(math.Abs(e.Low), math.Abs(e.High))
		}
	}
	need := needs(tests)
	for i := range all {
		all[i].effect.Needed = need.repeats(all[i])
	}
	return tests
}
