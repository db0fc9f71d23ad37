package change

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/test/golden"
)

// drawer draws the value of each second in turn.
type drawer func(i int) float64

// noiseKind makes a series without a change.
type noiseKind struct {
	name, metric string
	start        func(r *rand.Rand) drawer
}

// wander is autoregressive noise of standard deviation 1.
func wander(phi float64, r *rand.Rand) func() float64 {
	x := r.NormFloat64()
	return func() float64 {
		x = phi*x + math.Sqrt(1-phi*phi)*r.NormFloat64()
		return x
	}
}

// poisson draws by the sum of exponential times, or normally where the mean is large.
func poisson(mean float64, r *rand.Rand) float64 {
	if mean > 50 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	n, t := 0.0, r.ExpFloat64()
	for ; t < mean; t += r.ExpFloat64() {
		n++
	}
	return n
}

// heavy draws Student's t of 3 degrees of freedom.
func heavy(r *rand.Rand) float64 {
	sum := 0.0
	for range 3 {
		x := r.NormFloat64()
		sum += x * x
	}
	return r.NormFloat64() / math.Sqrt(sum/3)
}

func noiseKinds() []noiseKind {
	correlated := func(phi, white float64) func(r *rand.Rand) drawer {
		return func(r *rand.Rand) drawer {
			x := wander(phi, r)
			return func(int) float64 { return 260e3 + 2600*(x()+white*r.NormFloat64()) }
		}
	}
	each := func(draw func(r *rand.Rand) float64) func(r *rand.Rand) drawer {
		return func(r *rand.Rand) drawer { return func(int) float64 { return draw(r) } }
	}
	return []noiseKind{
		{"white", "receive_pps", correlated(0, 0)},
		{"AR(1) 0.5", "receive_pps", correlated(0.5, 0)},
		{"AR(1) 0.9", "receive_pps", correlated(0.9, 0)},
		{"AR(1) 0.99", "receive_pps", correlated(0.99, 0)},
		{"AR(1) 0.9 and white", "receive_pps", correlated(0.9, 1)},
		{"heavy tails", "receive_pps", each(func(r *rand.Rand) float64 { return 260e3 + 2600*heavy(r) })},
		{"outliers", "receive_pps", each(func(r *rand.Rand) float64 {
			v := 260e3 + 2600*r.NormFloat64()
			if r.Float64() < 0.01 {
				v -= 100e3 * r.Float64()
			}
			return v
		})},
		{"scatter that changes", "receive_pps", func(r *rand.Rand) drawer {
			slow := wander(0.995, r)
			return func(int) float64 { return 260e3 + 2600*math.Exp(0.7*slow())*r.NormFloat64() }
		}},
		{"sampling jitter", "receive_pps", func(r *rand.Rand) drawer {
			was := 0.0
			return func(int) float64 {
				late := 400e-6 * r.ExpFloat64()
				v := math.Round(40000 * (1 + late - was))
				was = late
				return v
			}
		}},
		{"one more or less", "send_pps", each(func(r *rand.Rand) float64 { return 40000 + float64(r.IntN(3)-1) })},
		{"constant", "send_pps", each(func(*rand.Rand) float64 { return 40000 })},
		{"no loss", "lost_pps", each(func(*rand.Rand) float64 { return 0 })},
		{"few losses", "lost_pps", each(func(r *rand.Rand) float64 { return poisson(0.02, r) })},
		{"Poisson", "lost_pps", each(func(r *rand.Rand) float64 { return poisson(3, r) })},
		{"negative binomial", "lost_pps", each(func(r *rand.Rand) float64 {
			return poisson(20*r.ExpFloat64(), r)
		})},
		{"wandering loss", "lost_pps", func(r *rand.Rand) drawer {
			slow := wander(0.95, r)
			return func(int) float64 { return poisson(40*math.Exp(0.3*slow()), r) }
		}},
		{"lognormal", "lost_pps",
			each(func(r *rand.Rand) float64 { return math.Round(200 * math.Exp(0.7*r.NormFloat64())) })},
	}
}

func drawn(n int, draw drawer) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = draw(i)
	}
	return out
}

func trialOf(metric string, values []float64) model.Result {
	return model.Result{Series: []model.Series{{Metric: metric, Flow: "up", At: "receiver", StepSeconds: 1,
		Values: values}}}
}

// TestSteadyTraffic watches each noise for eight hours in trials of two minutes to four hours. One false alarm a day is
// meant; four of a noise in a third of a day come once in some 2000 days, and so do 16 of all noises.
func TestSteadyTraffic(t *testing.T) {
	all := 0
	for _, k := range noiseKinds() {
		sum := 0
		for length, hours := range map[int]int{120: 1, 600: 1, 3600: 2, 14400: 4} {
			for run := range hours * 3600 / length {
				r := rand.New(rand.NewPCG(1, uint64(run)))
				sum += len(Of(trialOf(k.metric, drawn(length, k.start(r)))))
			}
		}
		if sum >= 4 {
			t.Errorf("%s: %d false alarms in 8 h; want one a day", k.name, sum)
		}
		all += sum
	}
	if all >= 16 {
		t.Errorf("%d false alarms in %d days; want one a day at most", all, len(noiseKinds())/3)
	}
	// Series of one trial share the alarms, also where they are searched while it runs.
	found := 0
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 9))
		var whole model.Result
		for i, k := range noiseKinds() {
			whole.Series = append(whole.Series, trialOf(k.metric, drawn(600, k.start(r))).Series[0])
			whole.Series[i].Flow = fmt.Sprint(i)
		}
		for n := 60; n <= 600; n += 60 {
			part := model.Result{Series: slices.Clone(whole.Series)}
			for i := range part.Series {
				part.Series[i].Values = part.Series[i].Values[:n]
			}
			found += len(Of(part))
		}
	}
	if found >= 4 {
		t.Errorf("%d false alarms in 100 min of trials with many series; want none", found)
	}
}

// TestPower: a fall by a thirteenth is found, nearly always at the right second, and one by half within 15 s.
func TestPower(t *testing.T) {
	for _, k := range []noiseKind{noiseKinds()[0], noiseKinds()[2], noiseKinds()[5]} {
		found, held, off := 0.0, 0.0, 0.0
		const times = 40
		for seed := range uint64(times) {
			v := drawn(600, k.start(rand.New(rand.NewPCG(seed, 44))))
			for i := 300; i < 600; i++ {
				v[i] -= 20.8e3
			}
			for _, c := range Of(trialOf(k.metric, v)) {
				if math.Abs(c.Size+20.8e3) < 10e3 {
					found++
					off += math.Abs(c.StartS - 300)
					if c.StartLowS <= 300 && 300 <= c.StartHighS {
						held++
					}
				}
			}
		}
		if found < 0.95*times || held < 0.9*found || off > 3*found {
			t.Errorf("%s: found %g of %d, %g within the interval, %g s off in all", k.name, found, times, held, off)
		}
		v := drawn(600, k.start(rand.New(rand.NewPCG(3, 45))))
		for i := 300; i < 315; i++ {
			v[i] /= 2
		}
		if len(Of(trialOf(k.metric, v[:315]))) == 0 {
			t.Errorf("%s: a rate that fell by half is not found after 15 s", k.name)
		}
	}
}

// steps is one of several levels, each from a second on.
func steps(i int, from ...float64) float64 {
	v := from[0]
	for k := 1; k+1 < len(from); k += 2 {
		if float64(i) >= from[k] {
			v = from[k+1]
		}
	}
	return v
}

// changesTold are changes as text, a line each.
func changesTold(found []model.Change) string {
	var out strings.Builder
	for _, c := range found {
		fmt.Fprintf(&out, "\t%s of %s: %.4g s (%.4g-%.4g) to %.4g s, %.3g to %.3g", c.Kind, c.Metric, c.StartS,
			c.StartLowS, c.StartHighS, c.EndS, c.Before, c.After)
		if c.Count > 0 {
			fmt.Fprintf(&out, ", %d times, %.4g packets", c.Count, c.Packets)
		}
		for _, m := range c.Causes {
			fmt.Fprintf(&out, "; with %s", strings.TrimSpace(m.Metric+" "+m.Layer))
			if m.Core != nil {
				fmt.Fprintf(&out, " of core %d", *m.Core)
			}
			fmt.Fprintf(&out, " at %s %.2g to %.2g", m.At, m.Before, m.After)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestChanges: what is found in made series, with two kinds of noise each, stands in a golden file beside the names
// that tell the truth.
func TestChanges(t *testing.T) {
	var out strings.Builder
	rate := func(ratio float64, from ...float64) func(r *rand.Rand) drawer {
		return func(r *rand.Rand) drawer {
			return func(i int) float64 { return steps(i, from...) * (1 + ratio*r.NormFloat64()) }
		}
	}
	shaped := func(value func(i int, r *rand.Rand) float64) func(r *rand.Rand) drawer {
		return func(r *rand.Rand) drawer { return func(i int) float64 { return value(i, r) } }
	}
	ramp := func(ratio float64, value func(x float64) float64) func(r *rand.Rand) drawer {
		return shaped(func(i int, r *rand.Rand) float64 { return value(float64(i)) * (1 + ratio*r.NormFloat64()) })
	}
	for _, s := range []struct {
		name, metric string
		n            int
		start        func(r *rand.Rand) drawer
	}{
		{"a router gives out", "receive_pps", 200, rate(0.01, 262e3, 80, 148e3)},
		{"and recovers", "receive_pps", 600, rate(0.01, 262e3, 80, 148e3, 130, 262e3)},
		{"in a short run", "receive_pps", 40, rate(0.01, 262e3, 20, 148e3)},
		{"in one too short", "receive_pps", 19, rate(0.01, 262e3, 10, 148e3)},
		{"three levels", "goodput_bps", 900, rate(0.005, 900e6, 200, 880e6, 500, 700e6)},
		{"a staircase", "receive_pps", 900, rate(0.01, 200e3, 200, 180e3, 400, 160e3, 600, 140e3)},
		{"autocorrelated noise", "receive_pps", 1200, func(r *rand.Rand) drawer {
			x := wander(0.9, r)
			return func(i int) float64 { return steps(i, 200e3, 600, 140e3) + 2000*x() }
		}},
		{"quiet, then wild", "lost_pps", 600, shaped(func(i int, r *rand.Rand) float64 {
			return math.Round(steps(i, 0, 80, 114e3) + steps(i, 0, 80, 8e3)*r.NormFloat64())
		})},
		{"a little loss begins", "lost_pps", 1800, shaped(func(i int,
			r *rand.Rand) float64 {
			return poisson(steps(i, 0, 900, 5), r)
		})},
		{"by a hundredth", "send_pps", 300, shaped(func(i int, r *rand.Rand) float64 {
			return steps(i, 40000, 150, 39600) + float64(r.IntN(3)-1)
		})},
		{"by one packet", "send_pps", 3600, rate(0, 40000, 1800, 40001)},
		{"delay", "delay_p50_ns", 600, rate(0.03, 1e6, 250, 3e6)},
		{"one second without", "receive_pps", 300, rate(0.001, 40e3, 150, 0, 151, 40e3)},
		{"a spike at either end", "receive_pps", 300, rate(0.001, 5e3, 1, 40e3, 299, 5e3)},
		{"a drift all the time", "receive_pps", 1200, ramp(0.01, func(x float64) float64 { return 200e3 - 50*x })},
		{"a slow drift", "receive_pps", 3600, ramp(0.005, func(x float64) float64 { return 200e3 - 0.6*x })},
		{"a drift between levels", "receive_pps", 900, ramp(0.01,
			func(x float64) float64 { return 200e3 - 500*min(max(x-300, 0), 200) })},
		{"stalls at any time", "receive_pps", 600, shaped(func(_ int, r *rand.Rand) float64 {
			if r.Float64() < 0.02 {
				return 20e3
			}
			return 200e3 * (1 + 0.01*r.NormFloat64())
		})},
		{"one second of loss", "lost_pps", 600,
			shaped(func(i int, r *rand.Rand) float64 { return steps(i, 0, 300, 500, 301, 0) })},
		{"seconds of loss with one between them, and with two", "lost_pps", 600,
			shaped(func(i int, r *rand.Rand) float64 {
				return steps(i, 0, 300, 500, 301, 0, 302, 500, 303, 0, 305, 500, 306, 0)
			})},
		{"too few lost to tell", "lost_pps", 600,
			shaped(func(i int, r *rand.Rand) float64 { return steps(i, 0, 300, 5, 301, 0) })},
		{"a burst in noise", "lost_pps", 600,
			shaped(func(i int, r *rand.Rand) float64 { return poisson(steps(i, 20, 300, 3000, 302, 20), r) })},
		{"a burst beside a shift", "lost_pps", 600,
			shaped(func(i int, r *rand.Rand) float64 { return poisson(steps(i, 20, 300, 9000, 301, 400), r) })},
		{"bursts", "lost_pps", 600, shaped(func(i int, r *rand.Rand) float64 {
			return poisson(steps(i%30, 2, 7, 442, 8, 2), r)
		})},
	} {
		for seed := range uint64(2) {
			found := Of(trialOf(s.metric, drawn(s.n, s.start(rand.New(rand.NewPCG(seed, 5))))))
			fmt.Fprintf(&out, "%s:\n%s", s.name, changesTold(found))
		}
	}
	for _, m := range movedTrials() {
		fmt.Fprintf(&out, "%s:\n%s", m.name, changesTold(slices.DeleteFunc(Of(m.trial),
			func(c model.Change) bool { return c.Metric != m.of })))
	}
	golden.File(t, "testdata/changes.txt", out.String())
}

// moved is a trial in which other series may move with those of a metric.
type moved struct {
	name, of string
	trial    model.Result
}

func movedTrials() (out []moved) {
	type series struct {
		metric, layer string
		core          int
		before, after float64
		when          float64
		scatter       float64
	}
	for name, all := range map[string][]series{
		"a fall at 80 s with a full core of the router": {
			{"cpu_softirq_ratio", "", 0, 0.30, 0.30, 80, 0.02}, {"cpu_softirq_ratio", "", 1, 0.45, 0.99, 80, 0.01},
			{"lost_pps", "network", -1, 0, 110e3, 80, 300}, {"lost_pps", "receiver-buffer", -1, 0, 40e3, 80, 300},
			{"dropped_pps", "network", -1, 0, 105e3, 81, 300}, // its clock is a second off
		},
		"a fall at 80 s with its own sender": {{"send_pps", "", -1, 262e3, 148e3, 80, 300},
			{"cpu_idle_ratio", "", 0, 0.5, 0.01, 80, 0.01}},
		"a fall at 80 s, and what moved at another time, the other way, or too little": {
			{"cpu_softirq_ratio", "", 0, 0.4, 0.99, 120, 0.01}, {"cpu_softirq_ratio", "", 1, 0.4, 0.99, 60, 0.01},
			{"lost_pps", "network", -1, 9e3, 2e3, 80, 300}, {"cpu_busy_ratio", "", -1, 0.40, 0.45, 80, 0.01},
			{"lost_pps", "receiver-udp", -1, 0, 100, 80, 3}, {"temperature_c", "", -1, 50, 51, 80, 0.1},
		},
		"a fall at 80 s with noise": slices.Repeat([]series{{"cpu_softirq_ratio", "", 0, 0.5, 0.5, 80, 0.3}}, 40),
	} {
		r := rand.New(rand.NewPCG(0, 6))
		res := trialOf("receive_pps", drawn(200,
			func(i int) float64 { return steps(i, 262e3, 80, 148e3) * (1 + 0.01*r.NormFloat64()) }))
		for _, s := range all {
			one := model.Series{Metric: s.metric, At: "router", Layer: s.layer, StepSeconds: 1}
			if s.core >= 0 {
				one.Core = &s.core
			}
			if s.metric == "lost_pps" || s.metric == "send_pps" {
				one.Flow = "up"
			}
			one.Values = drawn(200, func(i int) float64 {
				return max(0, steps(i, s.before, s.when, s.after)+s.scatter*r.NormFloat64())
			})
			res.Series = append(res.Series, one)
		}
		out = append(out, moved{name, "receive_pps", res})
	}

	// Losses every 30 s come with drops that a node counts a second later, and with a full core.
	r := rand.New(rand.NewPCG(1, 6))
	core, core0 := 3, 0
	stalls := func(low, high float64, late int) drawer {
		return func(i int) float64 { return steps((i+30-late)%30, low, 7, high, 8, low) + low/10*r.Float64() }
	}
	res := trialOf("lost_pps", drawn(600, stalls(2, 400, 0)))
	res.Series = append(res.Series,
		model.Series{Metric: "dropped_pps", At: "router", Layer: "network", StepSeconds: 1,
			Values: drawn(600, stalls(0, 390, 1))},
		model.Series{Metric: "dropped_pps", At: "receiver", StepSeconds: 1,
			Values: drawn(600, func(int) float64 { return poisson(3, r) })},
		model.Series{Metric: "cpu_softirq_ratio", At: "router", Core: &core, StepSeconds: 1,
			Values: drawn(600, stalls(0.2, 1, 0))})
	out = append(out, moved{"losses every 30 s", "lost_pps", res})

	// A shift at 400 s in a series with holes, and movers of other begins and steps.
	r = rand.New(rand.NewPCG(3, 3))
	res = trialOf("receive_pps", drawn(600, func(i int) float64 {
		if r.Float64() < 0.3 || i >= 200 && i < 260 {
			return math.NaN()
		}
		return steps(i, 262e3, 400, 148e3) * (1 + 0.01*r.NormFloat64())
	}))
	res.Series = append(res.Series,
		model.Series{Metric: "cpu_softirq_ratio", At: "router", Core: &core0, StartSeconds: -2.5, StepSeconds: 2.5,
			Values: drawn(250, func(i int) float64 { return min(1, steps(i, 0.4, 161, 0.99)+0.01*r.NormFloat64()) })},
		model.Series{Metric: "lost_pps", Flow: "up", At: "sender", Layer: "network", StartSeconds: 0.25,
			StepSeconds: 0.5,
			Values:      drawn(1200, func(i int) float64 { return poisson(steps(i, 0, 800, 114e3), r) })})
	out = append(out, moved{"a fall at 400 s in a series with holes", "receive_pps", res})
	slices.SortFunc(out, func(a, b moved) int { return cmp.Compare(a.name, b.name) })
	return out
}

// TestChangesOfAnything: whatever a document holds, figures are numbers, times are in
// order, and nothing that was given is changed.
func TestChangesOfAnything(t *testing.T) {
	odd := []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 1e14, 5e-324, 40000, 40001}
	rapid.Check(t, func(t *rapid.T) {
		var r model.Result
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rapid.IntRange(0, 4).Draw(t, "series") {
			s := model.Series{
				Metric: rapid.SampledFrom([]string{"receive_pps", "lost_pps", "goodput_bps",
					"cpu_idle_ratio", "delay_p50_ns", "", "_"}).Draw(t, "metric"),
				Flow:         rapid.SampledFrom([]string{"", "up"}).Draw(t, "flow"),
				StartSeconds: rapid.SampledFrom([]float64{0, 0, 0.5, -3, math.NaN(), 1e300}).Draw(t, "start"),
				StepSeconds: rapid.SampledFrom([]float64{1, 1, 1, 0.1, 5, 0, -1, math.Inf(1), math.NaN(),
					5e-324}).Draw(t, "step"),
			}
			cut, level, wild := rapid.IntRange(0, 200).Draw(t, "cut"), rapid.SampledFrom([]float64{0, 1, 1e6,
				1e15}).Draw(t, "level"),
				rapid.IntRange(0, 3).Draw(t, "wild")
			s.Values = drawn(rapid.IntRange(0, 200).Draw(t, "n"), func(i int) float64 {
				switch {
				case dice.IntN(20) < wild:
					return odd[dice.IntN(len(odd))]
				case dice.IntN(10) < wild:
					return 1e6 * dice.Float64()
				}
				return steps(i, level, float64(cut), level/2)
			})
			r.Series = append(r.Series, s)
		}
		before, _ := json.Marshal(model.Finite(r))
		found := Of(r)
		if after, _ := json.Marshal(model.Finite(r)); string(before) != string(after) {
			t.Fatal("what was given has changed")
		}
		if _, err := json.Marshal(found); err != nil {
			t.Fatal(err)
		}
		for _, c := range found {
			if !(c.StartLowS <= c.StartS && c.StartS <= c.StartHighS && c.StartS < c.EndS) || c.PValue < 0 ||
				c.PValue > MostAlarm {
				t.Fatalf("change %+v", c)
			}
		}
		if !slices.IsSortedFunc(found, func(a, b model.Change) int { return cmp.Compare(a.StartS, b.StartS) }) {
			t.Fatal("not in the order of time")
		}
	})
}
