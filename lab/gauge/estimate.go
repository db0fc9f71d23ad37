package gauge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"pelt/lab/impair"
	"pelt/model"
	"pelt/unit"
)

// simulations is how often the model is asked what the settings come to. A figure of a link that does as asked
// lies outside of all of them in 2 of simulations+1 cases, 1 %, and twice in a row in 0.01 %.
const simulations = 199

// A figure may also be so far from the simulated ones before it is called off: what moves
// the frames needs time, and on a busy machine more.
const (
	slackDelay = 500 * time.Microsecond // or a tenth of the delay
	slackRate  = 0.02                   // of the rate
)

// group are ways with the same settings.
type group struct {
	ways []Way
	plan schedule // of each way
}

func (g *group) settings() impair.Settings { return g.ways[0].Settings }

// figures are what the samples of a group come to.
type figures struct {
	sent, received     int
	loss, median, rate float64 // share; s, of the first of each probe's copies; bit/s. NaN is unknown
}

// figures joins the samples of the group's ways.
func (g *group) figures(samples []sample) (f figures) {
	var delays, rates []float64
	for _, one := range samples {
		f.sent += g.plan.small
		var full []arrival
		seen := make([]bool, len(one.sent))
		for _, a := range one.arrivals { // in order of arrival
			switch {
			case a.sequence >= len(seen):
			case a.sequence >= g.plan.small:
				full = append(full, a)
			case !seen[a.sequence]:
				seen[a.sequence] = true
				delays = append(delays, float64(a.at-one.sent[a.sequence])/1e9)
			}
		}
		if r := rateOf(full, bitsOnLink(g.settings(), g.plan.fullBytes)); r > 0 {
			rates = append(rates, r)
		}
	}
	slices.Sort(delays)
	f.received = len(delays)
	f.loss, f.median, f.rate = 1-float64(f.received)/float64(f.sent), at(delays, 0.5), mean(rates)
	return f
}

// rateOf is the rate at which frames sent at once came out, 0 if too few did: the middle one of
// the slopes between frames that are half of them apart, so that a few late ones do not matter.
func rateOf(in []arrival, bits int) float64 {
	half := len(in) / 2
	if half < fewestFull/4 {
		return 0
	}
	slices.SortStableFunc(in, func(a, b arrival) int { return cmp.Compare(a.sequence, b.sequence) })
	var times []float64
	for i, a := range in[half:] {
		times = append(times, float64(a.at-in[i].at)/1e9)
	}
	slices.Sort(times)
	return float64(half*bits) / at(times, 0.5)
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// at is a quantile of sorted values, NaN of none.
func at(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// expectation is what the model says of a group: each figure of each simulation, ascending.
type expectation struct{ loss, delay, rate []float64 }

// expect runs the group's schedule over the model.
func (g *group) expect() (e expectation) {
	for k := range simulations {
		var samples []sample
		for i := range g.ways {
			samples = append(samples, simulate(g.settings(), g.plan, uint64(k*len(g.ways)+i)+1))
		}
		f := g.figures(samples)
		for to, v := range map[*[]float64]float64{&e.loss: f.loss, &e.delay: f.median, &e.rate: f.rate} {
			if !math.IsNaN(v) {
				*to = append(*to, v)
			}
		}
	}
	for _, v := range [][]float64{e.loss, e.delay, e.rate} {
		slices.Sort(v)
	}
	return e
}

// gauged compares a figure with the simulated ones: its interval is as wide as 95 % of theirs,
// and it is off if it is beyond all of them by more than some slack. ok is false if the figure
// is not known, or was not to be.
func gauged(v float64, simulated []float64, slack func(expected float64) float64) (g model.Gauged, off, ok bool) {
	if math.IsNaN(v) || len(simulated) == 0 {
		return g, false, false
	}
	g = model.Gauged{Value: v, Expected: mean(simulated)}
	g.Low = v - max(at(simulated, 0.975)-g.Expected, 0)
	g.High = v + max(g.Expected-at(simulated, 0.025), 0)
	by := slack(g.Expected)
	return g, v < simulated[0]-by || v > simulated[len(simulated)-1]+by, true
}

// calibration compares what a group's probes met with what was to be expected.
func (g *group) calibration(got figures, e expectation) model.LinkCalibration {
	first := g.ways[0]
	c := model.LinkCalibration{From: first.From, To: first.To, Directions: len(g.ways), Settings: first.Words,
		Probes: uint64(got.sent), Received: uint64(got.received)}
	if g.plan.noRate != "" {
		c.Unmeasured = append(c.Unmeasured, g.plan.noRate)
	}
	if loss, off, ok := gauged(got.loss, e.loss, func(float64) float64 { return 0 }); ok {
		// So many probes cannot tell a share from one that is smaller than one of them.
		loss.Low, loss.High = max(loss.Low, 0), min(max(loss.High, loss.Value+3/float64(got.sent)), 1)
		c.Loss = &loss
		if off {
			c.Off = append(c.Off, fmt.Sprintf("%s of its frames are lost, and the settings come to %s",
				unit.FormatRatio(loss.Value), unit.FormatRatio(loss.Expected)))
		}
	}
	delay, off, ok := gauged(got.median, e.delay, func(expected float64) float64 { return max(slackDelay.Seconds(), expected/10) })
	if ok {
		c.DelayP50 = &delay
	} else {
		c.Unmeasured = append(c.Unmeasured, "delay: no probe came through")
	}
	if off {
		c.Off = append(c.Off, fmt.Sprintf("half of its frames take over %s, and the settings come to %s",
			unit.FormatNanos(delay.Value*1e9), unit.FormatNanos(delay.Expected*1e9)))
	}
	asked := first.Settings.Rate
	if r, off, ok := gauged(got.rate, e.rate, func(float64) float64 { return slackRate * float64(asked) }); ok {
		r.Expected = float64(asked)
		c.Rate = &r
		if off {
			c.Off = append(c.Off, fmt.Sprintf("its rate is %v, and %v was asked", unit.BitRate(r.Value), asked))
		}
	}
	return c
}

// grouped joins ways of the same settings, but for what their seeds are parted into.
func grouped(ways []Way) (groups []group) {
	for _, w := range ways {
		same := func(g group) bool { return g.ways[0].Words == w.Words && g.ways[0].MTU == w.MTU }
		if k := slices.IndexFunc(groups, same); k >= 0 {
			groups[k].ways = append(groups[k].ways, w)
		} else if !idle(w.Settings) {
			groups = append(groups, group{[]Way{w}, plan(w.Settings, w.MTU, len(ways))})
		}
	}
	return groups
}

// idle reports whether settings do nothing to frames.
func idle(s impair.Settings) bool {
	return s.Rate == 0 && s.Delay == 0 && s.LossRatio() == 0 && s.Duplicate.Ratio == 0 && s.Corrupt.Ratio == 0
}
