package finding

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
			return poisson(20*r.ExpFloat64(),
				r)
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
				sum += len(Changes(trialOf(k.metric, drawn(length, k.start(r)))))
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
			found += len(Changes(part))
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
			for _, c := range Changes(trialOf(k.metric, v)) {
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
		if len(Changes(trialOf(k.metric, v[:315]))) == 0 {
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

// TestChanges finds changes whose truth is known: "kind start end before after period".
func TestChanges(t *testing.T) {
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
		want         []string
	}{
		{"a router gives out", "receive_pps", 200, rate(0.01, 262e3, 80, 148e3),
			[]string{"level-shift 80 200 262e3 148e3"}},
		{"and recovers", "receive_pps", 600, rate(0.01, 262e3, 80, 148e3, 130, 262e3),
			[]string{"level-shift 80 130 262e3 148e3", "level-shift 130 600 148e3 262e3"}},
		{"in a short run", "receive_pps", 40, rate(0.01, 262e3, 20, 148e3),
			[]string{"level-shift 20 40 262e3 148e3"}},
		{"in one too short", "receive_pps", 19, rate(0.01, 262e3, 10, 148e3), nil},
		{"three levels", "goodput_bps", 900, rate(0.005, 900e6, 200, 880e6, 500, 700e6),
			[]string{"level-shift 200 500 900e6 880e6", "level-shift 500 900 880e6 700e6"}},
		{"a staircase", "receive_pps", 900, rate(0.01, 200e3, 200, 180e3, 400, 160e3, 600, 140e3),
			[]string{"level-shift 200 400 200e3 180e3", "level-shift 400 600 180e3 160e3",
				"level-shift 600 900 160e3 140e3"}},
		{"autocorrelated noise", "receive_pps", 1200, func(r *rand.Rand) drawer {
			x := wander(0.9, r)
			return func(i int) float64 { return steps(i, 200e3, 600, 140e3) + 2000*x() }
		}, []string{"level-shift 600 1200 200e3 140e3"}},
		{"quiet, then wild", "lost_pps", 600, shaped(func(i int, r *rand.Rand) float64 {
			return math.Round(steps(i, 0, 80, 114e3) + steps(i, 0, 80, 8e3)*r.NormFloat64())
		}), []string{"level-shift 80 600 0 114e3"}},
		{"a little loss begins", "lost_pps", 1800, shaped(func(i int,
			r *rand.Rand) float64 {
			return poisson(steps(i, 0, 900, 5), r)
		}),
			[]string{"level-shift 900 1800 0 5"}},
		{"by a hundredth", "send_pps", 300, shaped(func(i int, r *rand.Rand) float64 {
			return steps(i, 40000, 150, 39600) + float64(r.IntN(3)-1)
		}), []string{"level-shift 150 300 40000 39600"}},
		{"by one packet", "send_pps", 3600, rate(0, 40000, 1800, 40001), nil},
		{"delay", "delay_p50_ns", 600, rate(0.03, 1e6, 250, 3e6), []string{"level-shift 250 600 1e6 3e6"}},
		{"one second without", "receive_pps", 300, rate(0.001, 40e3, 150, 0, 151, 40e3), nil},
		{"a spike at either end", "receive_pps", 300, rate(0.001, 5e3, 1, 40e3, 299, 5e3), nil},
		{"a drift all the time", "receive_pps", 1200, ramp(0.01, func(x float64) float64 { return 200e3 - 50*x }),
			[]string{"drift 0 1200 200e3 140e3"}},
		{"a slow drift", "receive_pps", 3600, ramp(0.005, func(x float64) float64 { return 200e3 - 0.6*x }),
			[]string{"drift 0 3600 200e3 197.8e3"}},
		{"a drift between levels", "receive_pps", 900, ramp(0.01,
			func(x float64) float64 { return 200e3 - 500*min(max(x-300, 0), 200) }),
			[]string{"drift 300 500 200e3 100e3"}},
		{"stalls every 10 s", "receive_pps", 300, shaped(func(i int, r *rand.Rand) float64 {
			return steps(i%10, 200e3, 4, 150e3, 5, 200e3) * (1 + 0.01*r.NormFloat64())
		}), []string{"periodic-stall 4 295 200e3 150e3 10"}},
		{"stalls of 2 s every minute", "receive_pps", 600, shaped(func(i int, r *rand.Rand) float64 {
			return steps(i%60, 200e3, 30, 20e3, 32, 200e3) * (1 + 0.01*r.NormFloat64())
		}), []string{"periodic-stall 30 572 200e3 20e3 60"}},
		{"stalls at any time", "receive_pps", 600, shaped(func(_ int, r *rand.Rand) float64 {
			if r.Float64() < 0.02 {
				return 20e3
			}
			return 200e3 * (1 + 0.01*r.NormFloat64())
		}), nil},
		{"regular losses", "lost_pps", 600, shaped(func(i int, r *rand.Rand) float64 {
			return poisson(steps(i%30, 2, 7, 442, 8, 2), r)
		}), []string{"loss-burst 7 578 2 442 30"}},
	} {
		for seed := range uint64(4) {
			got := Changes(trialOf(s.metric, drawn(s.n, s.start(rand.New(rand.NewPCG(seed, 5))))))
			if !slices.EqualFunc(got, s.want, meant) {
				t.Errorf("%s, seed %d: got %+v; want %v", s.name, seed, got, s.want)
			}
		}
	}
}

// expected reports whether a change is the one that was meant: within 3 s, a drift's
// corners within a fifth of its length, levels within 5 %.
func meant(c model.Change, want string) bool {
	var kind string
	var start, end, before, after, period float64
	fmt.Sscan(want, &kind, &start, &end, &before, &after, &period)
	slack := 3.0
	if kind == model.ChangeDrift {
		slack = (end - start) / 5
	}
	near := func(got, want, slack float64) bool { return math.Abs(got-want) <= slack }
	scale := 0.05 * max(math.Abs(before), math.Abs(after))
	return c.Kind == kind && near(c.StartS, start, slack) && near(c.EndS, end, slack) && near(c.PeriodS, period,
		0.05) &&
		near(c.Before, before, scale) && near(c.After, after, scale) && near(c.Size, after-before, scale)
}

// TestMovers names what moved with a fall from 262 to 148 kpps at 80 s.
func TestMovers(t *testing.T) {
	type series struct {
		metric, layer string
		core          int
		before, after float64
		when          float64
		scatter       float64
	}
	for _, c := range []struct {
		name   string
		series []series
		want   string
	}{
		{"a full core of the router", []series{
			{"cpu_softirq_ratio", "", 0, 0.30, 0.30, 80, 0.02}, {"cpu_softirq_ratio", "", 1, 0.45, 0.99, 80, 0.01},
			{"lost_pps", "network", -1, 0, 110e3, 80, 300}, {"lost_pps", "receiver-buffer", -1, 0, 40e3, 80, 300},
			{"dropped_pps", "network", -1, 0, 105e3, 81, 300}, // its clock is a second off
		}, "lost_pps network, dropped_pps network, cpu_softirq_ratio 1, lost_pps receiver-buffer"},
		{"its own sender", []series{{"send_pps", "", -1, 262e3, 148e3, 80, 300}, {"cpu_idle_ratio", "", 0, 0.5,
			0.01, 80, 0.01}},
			"send_pps, cpu_idle_ratio 0"},
		{"at another time, the other way, or too little", []series{
			{"cpu_softirq_ratio", "", 0, 0.4, 0.99, 120, 0.01}, {"cpu_softirq_ratio", "", 1, 0.4, 0.99, 60, 0.01},
			{"lost_pps", "network", -1, 9e3, 2e3, 80, 300}, {"cpu_busy_ratio", "", -1, 0.40, 0.45, 80, 0.01},
			{"lost_pps", "receiver-udp", -1, 0, 100, 80, 3}, {"temperature_c", "", -1, 50, 51, 80, 0.1},
		}, ""},
		{"noise", slices.Repeat([]series{{"cpu_softirq_ratio", "", 0, 0.5, 0.5, 80, 0.3}}, 40), ""},
	} {
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 6))
			res := trialOf("receive_pps", drawn(200, func(i int) float64 {
				return steps(i, 262e3, 80,
					148e3) * (1 + 0.01*r.NormFloat64())
			}))
			for _, s := range c.series {
				one := model.Series{Metric: s.metric, At: "router", Layer: s.layer, StepSeconds: 1}
				if s.core >= 0 {
					one.Core = &s.core
				}
				if s.metric == "lost_pps" || s.metric == "send_pps" {
					one.Flow = "up"
				}
				one.Values = drawn(200, func(i int) float64 {
					return max(0, steps(i, s.before, s.when,
						s.after)+s.scatter*r.NormFloat64())
				})
				res.Series = append(res.Series, one)
			}
			var names []string
			for _, f := range Changes(res) {
				if f.Metric != "receive_pps" {
					continue
				}
				for _, m := range f.Causes {
					name := strings.TrimSpace(m.Metric + " " + m.Layer)
					if m.Core != nil {
						name += fmt.Sprint(" ", *m.Core)
					}
					names = append(names, name)
				}
			}
			if got := strings.Join(names, ", "); got != c.want {
				t.Errorf("%s, seed %d: %q; want %q", c.name, seed, got, c.want)
			}
		}
	}
}

// TestMoversOfStalls: losses every 30 s come with drops that a node counts a second later, and with a full core.
func TestMoversOfStalls(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	core := 3
	stalls := func(low, high float64, late int) drawer {
		return func(i int) float64 { return steps((i+30-late)%30, low, 7, high, 8, low) + low/10*r.Float64() }
	}
	res := trialOf("lost_pps", drawn(600, stalls(2, 400, 0)))
	res.Series = append(res.Series,
		model.Series{Metric: "dropped_pps", At: "router", Layer: "network", StepSeconds: 1, Values: drawn(600,
			stalls(0, 390, 1))},
		model.Series{Metric: "dropped_pps", At: "receiver", StepSeconds: 1, Values: drawn(600,
			func(int) float64 { return poisson(3, r) })},
		model.Series{Metric: "cpu_softirq_ratio", At: "router", Core: &core, StepSeconds: 1, Values: drawn(600,
			stalls(0.2, 1, 0))})
	found := Changes(res)
	if len(found) != 1 || found[0].Count != 20 || len(found[0].Causes) != 2 ||
		found[0].Causes[0].At != "router" || found[0].Causes[1].Core == nil {
		t.Fatalf("found %+v; want losses every 30 s with two movers", found)
	}
	if m := found[0].Causes; math.Abs(m[0].After-390) > 5 || math.Abs(m[1].Before-0.2) > 0.02 ||
		math.Abs(m[1].After-1) > 0.03 {
		t.Errorf("movers %+v", m)
	}
}

// TestChangesWithGaps has a shift at 400 s in a series with holes, and movers of other begins and steps.
func TestChangesWithGaps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	core := 0
	res := trialOf("receive_pps", drawn(600, func(i int) float64 {
		if r.Float64() < 0.3 || i >= 200 && i < 260 {
			return math.NaN()
		}
		return steps(i, 262e3, 400, 148e3) * (1 + 0.01*r.NormFloat64())
	}))
	res.Series = append(res.Series,
		model.Series{Metric: "cpu_softirq_ratio", At: "router", Core: &core, StartSeconds: -2.5, StepSeconds: 2.5,
			Values: drawn(250, func(i int) float64 {
				return min(1, steps(i, 0.4, 161,
					0.99)+0.01*r.NormFloat64())
			})},
		model.Series{Metric: "lost_pps", Flow: "up", At: "sender", Layer: "network", StartSeconds: 0.25,
			StepSeconds: 0.5,
			Values:      drawn(1200, func(i int) float64 { return poisson(steps(i, 0, 800, 114e3), r) })})
	found := slices.DeleteFunc(Changes(res), func(c model.Change) bool { return c.Metric != "receive_pps" })
	if len(found) != 1 || math.Abs(found[0].StartS-400) > 3 || len(found[0].Causes) != 2 ||
		found[0].Causes[0].Metric != "lost_pps" {
		t.Errorf("found %+v; want one shift at 400 s with the losses and the core", found)
	}
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
		found := Changes(r)
		if after, _ := json.Marshal(model.Finite(r)); string(before) != string(after) {
			t.Fatal("what was given has changed")
		}
		if _, err := json.Marshal(found); err != nil {
			t.Fatal(err)
		}
		for _, c := range found {
			if !(c.StartLowS <= c.StartS && c.StartS <= c.StartHighS && c.StartS < c.EndS) || c.PValue < 0 ||
				c.PValue > mostAlarm {
				t.Fatalf("change %+v", c)
			}
		}
		if !slices.IsSortedFunc(found, func(a, b model.Change) int { return cmp.Compare(a.StartS, b.StartS) }) {
			t.Fatal("not in the order of time")
		}
	})
}

// BenchmarkChangesOfADay searches 20 series of a day.
func BenchmarkChangesOfADay(b *testing.B) {
	r := rand.New(rand.NewPCG(24, 20))
	var day model.Result
	for i := range 20 {
		k := noiseKinds()[i%len(noiseKinds())]
		day.Series = append(day.Series, trialOf(k.metric, drawn(86400, k.start(r))).Series[0])
		day.Series[i].Flow = fmt.Sprint(i)
	}
	for b.Loop() {
		Changes(day)
	}
}
