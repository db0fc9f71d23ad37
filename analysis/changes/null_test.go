package changes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pelt/model"
)

// steady is traffic without a change: n values a second around a level, by a seed.
type steady struct {
	name   string
	metric string
	draw   func(n int, r *rand.Rand) []float64
}

// autoregressive noise of standard deviation 1.
func autoregressive(n int, phi float64, r *rand.Rand) []float64 {
	out := make([]float64, n)
	x := r.NormFloat64()
	for i := range out {
		out[i] = x
		x = phi*x + math.Sqrt(1-phi*phi)*r.NormFloat64()
	}
	return out
}

func around(level, scale float64, noise []float64) []float64 {
	for i := range noise {
		noise[i] = level + scale*noise[i]
	}
	return noise
}

func drawn(n int, one func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = one(i)
	}
	return out
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

// student draws of Student's t, whose tails are heavy.
func student(freedom int, r *rand.Rand) float64 {
	sum := 0.0
	for range freedom {
		x := r.NormFloat64()
		sum += x * x
	}
	return r.NormFloat64() / math.Sqrt(sum/float64(freedom))
}

// gamma draws for a shape of 1/2, 1, 3/2, ...
func gamma(halves int, r *rand.Rand) float64 {
	sum := 0.0
	for range halves {
		x := r.NormFloat64()
		sum += x * x / 2
	}
	return sum
}

func nulls() []steady {
	return []steady{
		{"white", "receive_pps", func(n int, r *rand.Rand) []float64 { return around(260e3, 2600, autoregressive(n, 0, r)) }},
		{"AR(1) 0.5", "receive_pps", func(n int, r *rand.Rand) []float64 { return around(260e3, 2600, autoregressive(n, 0.5, r)) }},
		{"AR(1) 0.9", "receive_pps", func(n int, r *rand.Rand) []float64 { return around(260e3, 2600, autoregressive(n, 0.9, r)) }},
		{"AR(1) 0.99", "receive_pps", func(n int, r *rand.Rand) []float64 { return around(260e3, 2600, autoregressive(n, 0.99, r)) }},
		{"AR(1) 0.9 and white", "receive_pps", func(n int, r *rand.Rand) []float64 {
			v := around(260e3, 2600, autoregressive(n, 0.9, r))
			for i := range v {
				v[i] += 2600 * r.NormFloat64()
			}
			return v
		}},
		{"Student 3", "receive_pps", func(n int, r *rand.Rand) []float64 {
			return drawn(n, func(int) float64 { return 260e3 + 2600*student(3, r) })
		}},
		{"outliers", "receive_pps", func(n int, r *rand.Rand) []float64 {
			return drawn(n, func(int) float64 {
				v := 260e3 + 2600*r.NormFloat64()
				if r.Float64() < 0.01 {
					v -= 100e3 * r.Float64()
				}
				return v
			})
		}},
		{"scatter that changes", "receive_pps", func(n int, r *rand.Rand) []float64 {
			slow := autoregressive(n, 0.995, r)
			return drawn(n, func(i int) float64 { return 260e3 + 2600*math.Exp(0.7*slow[i])*r.NormFloat64() })
		}},
		{"sampling jitter", "receive_pps", func(n int, r *rand.Rand) []float64 {
			late := drawn(n+1, func(int) float64 { return 400e-6 * r.ExpFloat64() })
			return drawn(n, func(i int) float64 { return math.Round(40000 * (1 + late[i+1] - late[i])) })
		}},
		{"one more or less", "send_pps", func(n int, r *rand.Rand) []float64 {
			return drawn(n, func(int) float64 { return 40000 + float64(r.IntN(3)-1) })
		}},
		{"constant", "send_pps", func(n int, r *rand.Rand) []float64 { return drawn(n, func(int) float64 { return 40000 }) }},
		{"none", "lost_pps", func(n int, r *rand.Rand) []float64 { return make([]float64, n) }},
		{"a few", "lost_pps", func(n int, r *rand.Rand) []float64 {
			return drawn(n, func(int) float64 { return poisson(0.02, r) })
		}},
		{"Poisson", "lost_pps", func(n int, r *rand.Rand) []float64 {
			return drawn(n, func(int) float64 { return poisson(3, r) })
		}},
		{"negative binomial", "lost_pps", func(n int, r *rand.Rand) []float64 {
			return drawn(n, func(int) float64 { return poisson(20*gamma(2, r), r) })
		}},
		{"Poisson whose mean wanders", "lost_pps", func(n int, r *rand.Rand) []float64 {
			slow := autoregressive(n, 0.95, r)
			return drawn(n, func(i int) float64 { return poisson(40*math.Exp(0.3*slow[i]), r) })
		}},
		{"lognormal", "lost_pps", func(n int, r *rand.Rand) []float64 {
			return drawn(n, func(int) float64 { return math.Round(200 * math.Exp(0.7*r.NormFloat64())) })
		}},
	}
}

func trial(metric string, values []float64) model.Result {
	return model.Result{Series: []model.Series{{Metric: metric, Flow: "up", At: "receiver", StepSeconds: 1, Values: values}}}
}

// alarms counts the changes found in so many seconds of steady traffic, in trials of a
// length.
func alarms(s steady, length, seconds int, seed uint64) (found int, kinds map[string]int) {
	kinds = map[string]int{}
	for run := range seconds / length {
		r := rand.New(rand.NewPCG(seed, uint64(run)))
		for _, c := range Find(trial(s.metric, s.draw(length, r))) {
			kinds[c.Kind]++
			found++
		}
	}
	return found, kinds
}

// At most one false alarm in a day is meant. Each null is watched for a day in trials of
// two minutes to four hours: one alarm is expected at that rate, and six or more of
// them come once in 1600. All nulls together allow 17 and, once in 300, 30.
func TestSteadyTrafficIsNoChange(t *testing.T) {
	all := 0
	for _, s := range nulls() {
		sum := 0
		for length, hours := range map[int]int{120: 1, 600: 3, 3600: 8, 14400: 12} {
			found, kinds := alarms(s, length, hours*3600, 1)
			if sum += found; found > 0 {
				t.Logf("%s, %d h in trials of %d s: %v", s.name, hours, length, kinds)
			}
		}
		if sum >= 6 {
			t.Errorf("%s: %d false alarms in 24 h; want about 1 at most", s.name, sum)
		}
		all += sum
	}
	if all >= 30 {
		t.Errorf("%d false alarms in %d h; want about %d at most", all, 24*len(nulls()), len(nulls()))
	}
}

// The same of a trial with many series, which share the alarms, and of one asked while it
// runs.
func TestSteadySeriesShareAlarms(t *testing.T) {
	found, asked := 0, 0
	for seed := range uint64(30) { // ten minutes each: 5 h
		r := rand.New(rand.NewPCG(seed, 9))
		var whole model.Result
		for i, s := range nulls() {
			x := trial(s.metric, s.draw(600, r)).Series[0]
			x.Flow = fmt.Sprint("flow ", i)
			whole.Series = append(whole.Series, x)
		}
		found += len(Find(whole))
		if seed >= 3 {
			continue
		}
		alarmed := map[string]bool{} // by series, however often
		for n := 30; n <= 600; n += 30 {
			part := model.Result{Series: append([]model.Series(nil), whole.Series...)}
			for i := range part.Series {
				part.Series[i].Values = part.Series[i].Values[:n]
			}
			for _, c := range Find(part) {
				alarmed[c.Flow+c.Kind] = true
			}
		}
		asked += len(alarmed)
	}
	if found >= 4 { // 0.21 expected
		t.Errorf("%d false alarms in 5 h of trials with %d series; want about 0", found, len(nulls()))
	}
	if asked >= 4 {
		t.Errorf("%d false alarms in half an hour of trials that are asked every 30 s; want about 0", asked)
	}
}

// Tests for alarms must be able to fail: with thresholds for one a minute there are many more.
func TestAlarmsAreSeen(t *testing.T) {
	found := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := nulls()[0]
		of := trial(s.metric, s.draw(600, r)).Series[0]
		track := newTrack(of, rate)
		o := odds{series: 1, seconds: 600 * AlarmHours * 60}
		track.noise.slope, track.noise.factors = 0, []float64{1} // and noise taken for white, as it is
		cuts := track.levels(loose(o))
		found += len(cuts)
	}
	if found == 0 {
		t.Error("no false alarm in 400 min with one allowed each minute")
	}
}

// loose are odds that allow a chance of any size.
func loose(o odds) odds { o.surest = math.Inf(1); return o }

// BenchmarkAlarms reports false alarms an hour in 16 days of each null.
func BenchmarkAlarms(b *testing.B) {
	for _, length := range []int{30, 60, 600, 3600, 86400} {
		for _, s := range nulls() {
			b.Run(fmt.Sprintf("%s/%d", s.name, length), func(b *testing.B) {
				hours := 96
				switch {
				case testing.Short(): // CI only asks whether they run
					hours = length / 3600
				case length > 60:
					hours = 384
				}
				for b.Loop() {
					found, _ := alarms(s, length, hours*3600, 3)
					b.ReportMetric(float64(found)/max(float64(hours), 1), "alarms/hour")
				}
			})
		}
	}
}
