package gauge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"pelt/lab/impair"
	"pelt/model"
	"pelt/unit"
)

func itoa(n int) string { return strconv.Itoa(n) }

// figures are what samples come to.
type figures struct {
	loss                float64
	sent, received      int
	delays              []float64 // s, of the first of each probe's copies, ascending
	rate, rateDeviation float64   // bit/s; 0: unknown
}

// percentiles of the delay that are told.
var percentiles = [...]float64{0.05, 0.5, 0.95}

// figuresOf joins samples of ways with the same settings.
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
	deviation := 0.0
	for _, one := range full {
		if r, d := slope(one, bitsOnLink(s, one.bytes)); r > 0 {
			rates, deviation = append(rates, r), max(deviation, d)
		}
	}
	if n := len(rates); n > 0 {
		f.rate = mean(rates)
		f.rateDeviation = deviation / math.Sqrt(float64(n))
		if n > 2 {
			f.rateDeviation = max(f.rateDeviation, deviationOf(rates)/math.Sqrt(float64(n)))
		}
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

// simulations are how often the model is asked what the settings come to.
const simulations = 64

// normal95 and normalFar are quantiles of the normal distribution: of the
// intervals, and of what chance brings once in 15 000 figures.
const (
	normal95  = 1.96
	normalFar = 4
)

// A link may be so far from what was asked before it is said to be: what moves its
// frames needs time, and a machine with other work more.
const (
	slackDelay = 500e-6 // s, or a tenth of the delay
	slackRate  = 0.02
)

// leastJitter is from where on the delays have a distribution to be compared, s.
const leastJitter = 1e-3

// group are ways with the same settings.
type group struct {
	settings    impair.Settings
	burst       int // bytes, as of its ways
	words       string
	names       [][2]string
	small, full []sample
	plans       []schedule // of small and full, for the model
	fulls       []schedule
	notes       []string
}

// calibration says what a group's samples come to beside what the model says.
func (g *group) calibration() model.LinkCalibration {
	c := model.LinkCalibration{From: g.names[0][0], To: g.names[0][1], Directions: len(g.names), Settings: g.words, Unmeasured: slices.Clone(g.notes)}
	got := figuresOf(g.settings, g.small, g.full)
	c.Probes, c.Received = uint64(got.sent), uint64(got.received)
	probed := g.settings
	if g.burst > 0 { // frames that come seldom find the bucket full and take no time
		probed.Rate, probed.QueuePackets, probed.QueueBytes = 0, 0, 0
	}
	var loss, rate []float64
	var delays [len(percentiles)][]float64
	var all []float64
	for k := range simulations {
		var small, full []sample
		for i := range g.plans {
			seed := uint64(k*len(g.plans)+i)*2 + 1
			small = append(small, simulate(probed, g.plans[i], seed))
			if g.fulls[i].count > 0 {
				full = append(full, simulate(g.settings, g.fulls[i], seed+1))
			}
		}
		f := figuresOf(g.settings, small, full)
		loss = append(loss, f.loss)
		if f.rate > 0 {
			rate = append(rate, f.rate)
		}
		if len(f.delays) > 0 {
			for i, q := range percentiles {
				delays[i] = append(delays[i], at(f.delays, q))
			}
		}
		if k < 8 {
			all = append(all, f.delays...)
		}
	}
	c.Loss = lossOf(got, loss)
	off := func(format string, args ...any) { c.Off = append(c.Off, fmt.Sprintf(format, args...)) }
	if far := normalFar*deviationOf(loss) + 1/float64(max(got.sent, 1)); got.sent > 0 && math.Abs(got.loss-c.Loss.Expected) > far {
		off("%s of its frames are lost, and the settings come to %s", unit.FormatRatio(got.loss), unit.FormatRatio(c.Loss.Expected))
	}
	if len(got.delays) == 0 {
		c.Unmeasured = append(c.Unmeasured, "delay: no probe came through")
	} else {
		for i, q := range percentiles {
			d := delayOf(got.delays, q, delays[i])
			*[]**model.Gauged{&c.DelayP5, &c.DelayP50, &c.DelayP95}[i] = &d
			if far := normalFar*deviationOf(delays[i]) + max(slackDelay, d.Expected/10); q == 0.5 && math.Abs(d.Value-d.Expected) > far {
				off("half of its frames take over %s, and the settings come to %s", unit.FormatNanos(d.Value*1e9), unit.FormatNanos(d.Expected*1e9))
			}
		}
		// What a machine adds to a fixed delay is all there is then.
		if slices.Sort(all); at(all, 0.95)-at(all, 0.05) >= leastJitter {
			d := distance(got.delays, all)
			c.DelayKS = &d
		}
	}
	if got.rate > 0 && len(rate) > 0 {
		half := normal95 * max(got.rateDeviation, deviationOf(rate))
		c.Rate = &model.Gauged{Value: got.rate, Low: got.rate - half, High: got.rate + half, Expected: float64(g.settings.Rate)}
		if far := normalFar*max(deviationOf(rate), got.rateDeviation) + slackRate*c.Rate.Expected; math.Abs(got.rate-c.Rate.Expected) > far {
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

// delayOf is a percentile: its interval by ranks, or as the model's scatters if
// that is more.
func delayOf(sorted []float64, q float64, simulated []float64) model.Gauged {
	n := float64(len(sorted))
	half := normal95 * math.Sqrt(q*(1-q)/n)
	g := model.Gauged{Value: at(sorted, q), Low: at(sorted, max(q-half, 0)), High: at(sorted, min(q+half, 1)), Expected: mean(simulated)}
	model := normal95 * deviationOf(simulated)
	g.Low, g.High = min(g.Low, g.Value-model), max(g.High, g.Value+model)
	return g
}

// distance is Kolmogorov's and Smirnov's between two sorted samples.
func distance(a, b []float64) (d float64) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x := min(a[i], b[j])
		for i < len(a) && a[i] <= x {
			i++
		}
		for j < len(b) && b[j] <= x {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return d
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
			return a == b && ways[g[0]].MTU == w.MTU && ways[g[0]].Burst == w.Burst && ways[g[0]].Backend == w.Backend
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
	return s.Rate == 0 && s.Delay == 0 && s.Jitter == 0 && s.LossRatio() == 0 && s.Duplicate.Ratio == 0 && s.Corrupt.Ratio == 0 && s.Reorder.Ratio == 0
}

// slow says why a way cannot be measured, "" if it can.
func slow(wait time.Duration) string {
	if wait < mostWaiting {
		return ""
	}
	return "loss, delay and rate: frames take longer than a calibration waits"
}
