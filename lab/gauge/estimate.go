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
	slackRate  = 0.02                   // of the rate, and four deviations by which the frames say that it scatters
)

const normal95 = 1.96 // the normal distribution's quantile for an interval of 95 %

// group are ways with the same settings.
type group struct {
	settings    impair.Settings
	words       string
	names       [][2]string // of each way
	small, full schedule    // of each way
	notes       []string
}

// figures are what the samples of a group come to.
type figures struct {
	sent, received int
	loss           float64
	delays         []float64 // s, of the first of each probe's copies, ascending
	rate           float64   // bit/s, the mean of the ways; 0: unknown
	rateError      float64   // standard deviation of rate
}

func (f figures) median() float64 { return at(f.delays, 0.5) }

// figuresOf joins the samples of a group's ways.
func figuresOf(s impair.Settings, small, full []sample) (f figures) {
	for _, one := range small {
		f.sent += len(one.sent)
		seen := make([]bool, len(one.sent))
		for _, a := range one.arrivals { // in order of arrival
			if a.sequence < len(seen) && !seen[a.sequence] {
				seen[a.sequence] = true
				f.received++
				f.delays = append(f.delays, float64(a.at-one.sent[a.sequence])/1e9)
			}
		}
	}
	slices.Sort(f.delays)
	if f.sent > 0 {
		f.loss = 1 - float64(f.received)/float64(f.sent)
	}
	var rates []float64
	for _, one := range full {
		if r, deviation := slope(one, bitsOnLink(s, one.bytes)); r > 0 {
			rates, f.rateError = append(rates, r), max(f.rateError, deviation)
		}
	}
	if n := len(rates); n > 0 {
		f.rate = mean(rates)
		f.rateError /= math.Sqrt(float64(n))
	}
	return f
}

// slope is the rate at which frames sent at once came out, by least squares of the
// bits that had to go first over the time, and its standard deviation. 0: too few.
func slope(s sample, bits int) (rate, deviation float64) {
	in := slices.DeleteFunc(slices.Clone(s.arrivals), func(a arrival) bool { return a.sequence < s.burst })
	if len(in) < fewestFull/2 {
		return 0, 0
	}
	slices.SortStableFunc(in, func(a, b arrival) int { return cmp.Compare(a.sequence, b.sequence) })
	n := float64(len(in))
	var sx, sy, sxx, sxy float64
	x := func(i int) float64 { return float64(i) * float64(bits) }
	y := func(i int) float64 { return float64(in[i].at-in[0].at) / 1e9 }
	for i := range in {
		sx, sy = sx+x(i), sy+y(i)
	}
	for i := range in {
		sxx += (x(i) - sx/n) * (x(i) - sx/n)
		sxy += (x(i) - sx/n) * (y(i) - sy/n)
	}
	perBit := sxy / sxx
	if !(perBit > 0) {
		return 0, 0
	}
	var rest float64
	for i := range in {
		d := y(i) - sy/n - perBit*(x(i)-sx/n)
		rest += d * d
	}
	return 1 / perBit, math.Sqrt(rest/(n-2)/sxx) / perBit / perBit
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(len(v), 1))
}

func deviationOf(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(max(len(v)-1, 1)))
}

// at is a quantile of sorted values.
func at(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// expectation is what the model says of a group: each figure of each simulation, ascending.
type expectation struct{ loss, delay, rate []float64 }

// expect runs the group's schedules over the model.
func (g *group) expect() (e expectation) {
	probed := g.settings
	if g.full.burst > 0 { // frames that come seldom find the bucket full and take no time
		probed.Rate, probed.QueuePackets, probed.QueueBytes = 0, 0, 0
	}
	for k := range simulations {
		var small, full []sample
		for i := range g.names {
			seed := uint64(k*len(g.names)+i)*2 + 1
			small = append(small, simulate(probed, g.small, seed))
			full = append(full, simulate(g.settings, g.full, seed+1))
		}
		f := figuresOf(g.settings, small, full)
		e.loss = append(e.loss, f.loss)
		if len(f.delays) > 0 {
			e.delay = append(e.delay, f.median())
		}
		if f.rate > 0 {
			e.rate = append(e.rate, f.rate)
		}
	}
	for _, v := range [][]float64{e.loss, e.delay, e.rate} {
		slices.Sort(v)
	}
	return e
}

// outside reports whether a figure is beyond all simulated ones by more than some slack.
func outside(v float64, simulated []float64, slack float64) bool {
	return len(simulated) > 0 && (v < simulated[0]-slack || v > simulated[len(simulated)-1]+slack)
}

// calibration compares what a group's probes met with what was to be expected.
func (g *group) calibration(got figures, e expectation) model.LinkCalibration {
	c := model.LinkCalibration{From: g.names[0][0], To: g.names[0][1], Directions: len(g.names), Settings: g.words,
		Probes: uint64(got.sent), Received: uint64(got.received), Unmeasured: slices.Clone(g.notes), Loss: lossOf(got, e.loss)}
	off := func(format string, args ...any) { c.Off = append(c.Off, fmt.Sprintf(format, args...)) }
	if outside(got.loss, e.loss, 0) {
		off("%s of its frames are lost, and the settings come to %s", unit.FormatRatio(got.loss), unit.FormatRatio(c.Loss.Expected))
	}
	if len(got.delays) == 0 {
		c.Unmeasured = append(c.Unmeasured, "delay: no probe came through")
	} else {
		d := medianOf(got.delays, e.delay)
		c.DelayP50 = &d
		if outside(d.Value, e.delay, max(slackDelay.Seconds(), d.Expected/10)) {
			off("half of its frames take over %s, and the settings come to %s", unit.FormatNanos(d.Value*1e9), unit.FormatNanos(d.Expected*1e9))
		}
	}
	if got.rate > 0 && len(e.rate) > 0 {
		half := normal95 * max(got.rateError, deviationOf(e.rate))
		c.Rate = &model.Gauged{Value: got.rate, Low: got.rate - half, High: got.rate + half, Expected: float64(g.settings.Rate)}
		if outside(got.rate, e.rate, slackRate*c.Rate.Expected+4*got.rateError) {
			off("its rate is %v, and %v was asked", unit.BitRate(got.rate), g.settings.Rate)
		}
	}
	return c
}

// lossOf is the share of lost probes: Wilson's interval, for as many independent
// probes as would scatter like the model's.
func lossOf(got figures, simulated []float64) *model.Gauged {
	l := &model.Gauged{Value: got.loss, Expected: mean(simulated), High: 1}
	n := float64(got.sent)
	if d := deviationOf(simulated); d > 0 {
		n = min(n, max(1, l.Expected*(1-l.Expected)/(d*d)))
	}
	if n > 0 {
		z2 := normal95 * normal95
		mid := (got.loss + z2/(2*n)) / (1 + z2/n)
		half := normal95 / (1 + z2/n) * math.Sqrt(got.loss*(1-got.loss)/n+z2/(4*n*n))
		l.Low, l.High = min(max(mid-half, 0), got.loss), max(min(mid+half, 1), got.loss)
	}
	return l
}

// medianOf is the median: its interval by ranks, or as the model's scatters if that is more.
func medianOf(sorted, simulated []float64) model.Gauged {
	half := normal95 * 0.5 / math.Sqrt(float64(len(sorted)))
	m := model.Gauged{Value: at(sorted, 0.5), Low: at(sorted, max(0.5-half, 0)), High: at(sorted, min(0.5+half, 1)), Expected: mean(simulated)}
	scatter := normal95 * deviationOf(simulated)
	m.Low, m.High = min(m.Low, m.Value-scatter), max(m.High, m.Value+scatter)
	return m
}

// grouped joins ways whose settings differ in their seeds alone.
func grouped(ways []Way) (groups [][]int) {
	for i, w := range ways {
		same := func(g []int) bool {
			a, b := ways[g[0]].Settings, w.Settings
			a.Seed, b.Seed = 0, 0
			if a.Shape != nil && b.Shape != nil && a.Shape.Name == b.Shape.Name {
				a.Shape, b.Shape = nil, nil
			}
			return a == b && ways[g[0]].MTU == w.MTU && ways[g[0]].Burst == w.Burst
		}
		if k := slices.IndexFunc(groups, same); k >= 0 {
			groups[k] = append(groups[k], i)
		} else {
			groups = append(groups, []int{i})
		}
	}
	return groups
}

// idle reports whether settings do nothing to frames.
func idle(s impair.Settings) bool {
	return s.Rate == 0 && s.Delay == 0 && s.LossRatio() == 0 && s.Duplicate.Ratio == 0 && s.Corrupt.Ratio == 0
}
