package table

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// noises are what figures of trials do beside what was set.
var noises = []struct {
	name string
	draw func(*rand.Rand) float64
}{
	{"even", func(r *rand.Rand) float64 { return math.Exp(0.05 * r.NormFloat64()) }},
	{"tails", func(r *rand.Rand) float64 { // of Student's t with two degrees of freedom, cut
		a, b := r.NormFloat64(), r.NormFloat64()
		return math.Exp(0.03 * r.NormFloat64() / math.Sqrt((a*a+b*b+0.01)/2))
	}},
	{"slow times", func(r *rand.Rand) float64 {
		x := math.Exp(0.02 * r.NormFloat64())
		if r.Float64() < 0.2 {
			x *= 0.7
		}
		return x
	}},
}

// draws is a sample of n repeats around a middle.
func draws(r *rand.Rand, noise func(*rand.Rand) float64, n int, middle float64) Sample {
	var s Sample
	for i := range n {
		s.Values = append(s.Values, middle*noise(r))
		s.blocks = append(s.blocks, block{nil, i})
	}
	return s
}

// against are pairs of k samples with one base. The first has another middle.
func against(r *rand.Rand, noise func(*rand.Rand) float64, k, n int, middle float64) []Pair {
	base := draws(r, noise, n, 1)
	pairs := []Pair{{A: draws(r, noise, n, middle), B: base}}
	for range k - 1 {
		pairs = append(pairs, Pair{A: draws(r, noise, n, 1), B: base})
	}
	return pairs
}

// slowly multiplies all values of a repeat by one factor: slow times harm all alike.
func slowly(r *rand.Rand, pairs []Pair) {
	for j := range pairs[0].B.Values {
		f := math.Exp(0.1 * r.NormFloat64())
		pairs[0].B.Values[j] *= f
		for _, p := range pairs {
			p.A.Values[j] *= f
		}
	}
}

func apart(e Effect) bool { return e.Verdict == BetterThan || e.Verdict == WorseThan }

// mostFalse is 5 % of runs and what chance adds to it, two standard deviations.
func mostFalse(runs int) int { return int(0.05*float64(runs) + 2*math.Sqrt(0.05*0.95*float64(runs))) }

// rarely fails if something that chance may do is done more often than in 5 % of runs.
func rarely(t *testing.T, runs int, what string, done func() bool) {
	t.Helper()
	times := 0
	for range runs {
		if done() {
			times++
		}
	}
	if times > mostFalse(runs) {
		t.Errorf("%s: %d of %d; want at most 5 %%", what, times, runs)
	}
}

// TestFalseAlarms counts how often any of several settings, which are all alike, is told from another.
func TestFalseAlarms(t *testing.T) {
	r, m := rand.New(rand.NewPCG(1, 2)), MetricOf("goodput_bps")
	for _, noise := range noises {
		for _, k := range []int{1, 8} {
			for _, n := range []int{2, 3, 5} {
				for _, slow := range []bool{false, true} {
					rarely(t, 500, fmt.Sprintf("%s, %d comparisons, %d repeats, slow repeats %v", noise.name, k, n,
						slow), func() bool {
						pairs := against(r, noise.draw, k, n, 1)
						if slow {
							slowly(r, pairs)
						}
						return slices.ContainsFunc(Family(m, pairs, len(pairs)), apart)
					})
				}
			}
			// Nine settings that are all alike, beside the one that came out best by chance.
			if k == 1 {
				continue
			}
			for _, n := range []int{3, 5} {
				rarely(t, 500, fmt.Sprintf("%s, the best of nine, %d repeats", noise.name, n), func() bool {
					var cells []Sample
					for range 9 {
						cells = append(cells, draws(r, noise.draw, n, 1))
					}
					slices.SortFunc(cells, func(a, b Sample) int {
						return cmp.Compare(median(b.Values), median(a.Values))
					})
					var pairs []Pair
					for _, c := range cells[1:] {
						pairs = append(pairs, Pair{A: c, B: cells[0]})
					}
					return slices.ContainsFunc(Family(m, pairs, 36), apart)
				})
			}
		}
	}
	for _, n := range []int{3, 5, 8} { // one is four times as noisy as the other
		rarely(t, 1000, fmt.Sprintf("unlike noise, %d repeats", n), func() bool {
			p := Pair{A: draws(r, noises[0].draw, n, 1), B: draws(r, noises[0].draw, n, 1)}
			for i, v := range p.A.Values {
				p.A.Values[i] = math.Pow(v, 4)
			}
			return apart(Family(m, []Pair{p}, 1)[0])
		})
	}
	lose := func(r *rand.Rand) (ratio float64) { // one packet in a thousand, of a thousand: often none
		for range 1000 {
			if r.Float64() < 0.001 {
				ratio += 0.001
			}
		}
		return ratio
	}
	rarely(t, 1000, "rare losses", func() bool {
		return apart(Family(MetricOf("loss_ratio"), against(r, lose, 1, 5, 1), 1)[0])
	})
}

// TestPower counts how often a difference of 15 % is found.
func TestPower(t *testing.T) {
	const runs = 400
	r, m := rand.New(rand.NewPCG(5, 6)), MetricOf("goodput_bps")
	for _, c := range []struct {
		k, n  int
		slow  bool
		least float64
	}{
		{1, 3, false, 0.65}, {1, 5, false, 0.95}, {8, 3, false, 0.6}, {8, 5, false, 0.9}, {8, 8, false, 0.99},
		{1, 8, true, 0.9}, {8, 3, true, 0.55}, {8, 5, true, 0.9}, // as sharp as if no repeat were slow
	} {
		found := 0
		for range runs {
			pairs := against(r, noises[0].draw, c.k, c.n, 0.85)
			if c.slow {
				slowly(r, pairs)
			}
			if Family(m, pairs, len(pairs))[0].Verdict == WorseThan {
				found++
			}
		}
		if got := float64(found) / runs; got < c.least {
			t.Errorf("%d comparisons, %d repeats, slow repeats %v: finds %.0f %% of differences of 15 %%; want %.0f %%",
				c.k, c.n, c.slow, 100*got, 100*c.least)
		}
	}
}

// TestFalseTies counts how often any of several settings is called tied although each differs by a little more than
// what matters, and how often one that does not differ is.
func TestFalseTies(t *testing.T) {
	const runs = 600
	r, m := rand.New(rand.NewPCG(9, 10)), MetricOf("goodput_bps")
	quiet := func(r *rand.Rand) float64 { return math.Exp(0.004 * r.NormFloat64()) }
	tied := func(e Effect) bool { return e.Verdict == Tied }
	for _, k := range []int{1, 8} {
		for _, n := range []int{3, 5} {
			right := 0
			rarely(t, runs, fmt.Sprintf("false ties of %d comparisons, %d repeats", k, n), func() bool {
				base := draws(r, quiet, n, 1)
				var pairs []Pair
				for range k {
					pairs = append(pairs, Pair{A: draws(r, quiet, n, 1+1.001*m.Resolution), B: base})
				}
				if tied(Family(m, against(r, quiet, k, n, 1), k)[0]) {
					right++
				}
				return slices.ContainsFunc(Family(m, pairs, len(pairs)), tied)
			})
			if right < runs*8/10 {
				t.Errorf("%d comparisons, %d repeats: %d true ties of %d found; want 80 %%", k, n, right, runs)
			}
		}
	}
}

// TestEffects are comparisons by hand.
func TestEffects(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name, metric string
		a, b         []float64
		verdict      Verdict
		change       float64
		needed       bool
	}{
		{"a third less", "goodput_bps", []float64{200, 201, 199}, []float64{300, 301, 299}, WorseThan, -1.0 / 3, false},
		{"less delay is better", "delay_p50_ns", []float64{200, 201, 199}, []float64{300, 301, 299}, BetterThan,
			-1.0 / 3, false},
		{"neither is better", "send_pps", []float64{200, 201, 199}, []float64{300, 301, 299}, Differs, -1.0 / 3, false},
		{"the same", "goodput_bps", []float64{300, 300.1, 299.9}, []float64{300, 300, 300}, Tied, 0, false},
		{"once each", "goodput_bps", []float64{200}, []float64{300}, TooFew, -1.0 / 3, true},
		{"two that agree", "goodput_bps", []float64{200, 200}, []float64{300, 300}, TooFew, -1.0 / 3, true},
		{"noisy", "goodput_bps", []float64{200, 300, 250}, []float64{300, 220, 310}, TooFew, -1.0 / 6, true},
		{"nothing measured", "goodput_bps", nil, []float64{300, 301, 299}, TooFew, math.NaN(), true},
		{"no loss on both", "loss_ratio", []float64{0, 0, 0}, []float64{0, 0, 0}, Tied, 0, false},
		{"loss from 0", "loss_ratio", []float64{0.02, 0.021, 0.019}, []float64{0, 0, 0}, WorseThan, 0.02, false},
		{"a loss that does not matter", "loss_ratio", []float64{0.0001, 0.0001, 0.0002}, []float64{0, 0, 0}, Tied,
			0.0001, false},
		{"half a point of many", "loss_ratio", []float64{0.555, 0.5551, 0.5549}, []float64{0.55, 0.5501, 0.5499}, Tied,
			0.005, false},
		{"jitter from 0", "jitter_ns", []float64{500, 510, 490}, []float64{0, 0, 0}, WorseThan, inf, false},
		{"jitter to 0", "jitter_ns", []float64{0, 0, 0}, []float64{500, 510, 490}, BetterThan, -1, false},
		{"no jitter on both", "jitter_ns", []float64{0, 0, 0}, []float64{0, 0, 0}, Tied, 0, false},
	} {
		e := Family(MetricOf(c.metric), []Pair{{A: Sample{Values: c.a}, B: Sample{Values: c.b}}}, 1)[0]
		same := e.Change == c.change || math.Abs(e.Change-c.change) < 1e-9 || math.IsNaN(c.change) &&
			math.IsNaN(e.Change)
		if e.Verdict != c.verdict || !same || e.Needed > 0 != c.needed {
			t.Errorf("%s: %v against %v: %+v; want %s, a change of %g", c.name, c.a, c.b, e, c.verdict, c.change)
		}
		if c.name == "no jitter on both" && (e.Low != 0 || e.High != 0) {
			t.Errorf("%s: an interval of %g..%g", c.name, e.Low, e.High)
		}
		if e.Low > e.Change || e.High < e.Change {
			t.Errorf("%s: the interval %g..%g lacks the change %g", c.name, e.Low, e.High, e.Change)
		}
	}
}

// TestContradiction: most values rose a little, so the middle did, but the mean fell
// far. The table would show the one and the test the other, so nothing is told.
func TestContradiction(t *testing.T) {
	a := Sample{Values: append(slices.Repeat([]float64{100}, 11), slices.Repeat([]float64{50}, 10)...)}
	b := Sample{Values: slices.Repeat([]float64{99}, 21)}
	e := Family(MetricOf("goodput_bps"), []Pair{{A: a, B: b}}, 1)[0]
	if e.Verdict != TooFew || e.Change <= 0 || e.Low > -0.1 {
		t.Errorf("%+v; want nothing told, a rise, and an interval that reaches far below", e)
	}
}

// TestNeeded asks whether as many more repeats as Needed says find the difference about four times in five.
func TestNeeded(t *testing.T) {
	const runs = 400
	r, m := rand.New(rand.NewPCG(13, 14)), MetricOf("goodput_bps")
	// A sample with just the noise and the difference that it is to have.
	base, other := []float64{0.95, 1, 1 / 0.95}, []float64{0.95 * 0.92, 0.92, 0.92 / 0.95}
	e := Family(m, []Pair{{A: Sample{Values: other}, B: Sample{Values: base}}}, 1)[0]
	if e.Verdict != TooFew || e.Needed < 3 {
		t.Fatalf("8 %% in noise of 5 %% at three repeats: %+v", e)
	}
	found := 0
	for range runs {
		if apart(Family(m, against(r, noises[0].draw, 1, 3+e.Needed, 0.92), 1)[0]) {
			found++
		}
	}
	if got := float64(found) / runs; got < 0.7 || got > 0.95 {
		t.Errorf("%d more repeats find it in %.0f %% of runs; want about 80 %%", e.Needed, 100*got)
	}
}

// Of values that come the same way, the next one lies where NextOf says 19 times in 20.
func TestNextOf(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 10} {
		const times = 20000
		within, values := 0, make([]float64, n)
		draw := func() float64 { return 250e3 * math.Exp(0.1*random.NormFloat64()) }
		for range times {
			for i := range values {
				values[i] = draw()
			}
			low, high := NextOf(values)
			if next := draw(); low <= next && next <= high {
				within++
			}
		}
		if share := float64(within) / times; math.Abs(share-0.95) > 0.006 {
			t.Errorf("of %d values: %.3f of the next ones are within; want 0.95", n, share)
		}
	}
}

func TestStudent(t *testing.T) {
	for _, c := range []struct { // from the tables
		chance float64
		free   int
		want   float64
	}{{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.995, 2, 9.925}, {0.975, 9, 2.262}, {0.9995, 9, 4.781}, {0.975, 120,
		1.980}} {
		if got := StudentQuantile(c.chance, c.free); math.Abs(got-c.want) > 6e-4 {
			t.Errorf("StudentQuantile(%g, %d) = %.4f; want %.3f", c.chance, c.free, got, c.want)
		}
		if got := nearQuantile(c.chance, c.free); math.Abs(got-c.want) > 0.02*c.want {
			t.Errorf("nearQuantile(%g, %d) = %.4f; want about %.3f", c.chance, c.free, got, c.want)
		}
	}
	if got := welch([]float64{1, 2, 3}, make([]float64, 9)); got != 2 {
		t.Errorf("where only three of twelve values are noisy: %d degrees of freedom; want 2", got)
	}
	for _, c := range []struct {
		free1, free2 int
		want         float64
	}{{1, 4, 7.709}, {2, 4, 6.944}, {2, 16, 3.634}, {4, 32, 2.668}} { // at 5 %
		if got := fisherBeyond(c.want, c.free1, 1, c.free2); math.Abs(got-0.05) > 1e-4 {
			t.Errorf("fisherBeyond(%g, %d, 1, %d) = %.5f; want 0.05", c.want, c.free1, c.free2, got)
		}
	}
}

// TestBinomialBeyond: the chance is the sum of those of each number of hits.
func TestBinomialBeyond(t *testing.T) {
	hits := func(n, k int, p float64) float64 {
		ways, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		return math.Exp(ways - a - b + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	for _, c := range []struct {
		n int
		p float64
	}{{1, 0.3}, {7, 0.5}, {60, 0.97}, {400, 0.02}, {3000000, 0.0004}} {
		mean := int(float64(c.n) * c.p)
		for _, k := range []int{0, 1, mean / 2, mean, mean + 1, mean + 3, mean + 200, c.n, c.n + 1} {
			want := 0.0
			for i := k; i <= min(c.n, mean+2000); i++ {
				want += hits(c.n, i, c.p)
			}
			if got := BinomialBeyond(c.n, k, c.p); math.Abs(got-want) > 1e-6*want+1e-12 {
				t.Errorf("%d or more of %d, each with %g: %g; want %g", k, c.n, c.p, got, want)
			}
		}
	}
	if never, always := BinomialBeyond(9, 1, 0), BinomialBeyond(9, 9, 1); never != 0 || always != 1 {
		t.Errorf("of 9 with chance 0 and 1: %g, %g", never, always)
	}
}

func TestHolm(t *testing.T) {
	for _, c := range []struct {
		name    string
		chances []float64
		tests   int
		want    []float64
	}{
		// 4*0.005, 3*0.01, 2*0.03, then 0.04 may not fall below 0.06: Holm's paper, by hand.
		{"four", []float64{0.01, 0.04, 0.03, 0.005}, 4, []float64{0.03, 0.06, 0.06, 0.02}},
		{"at most 1", []float64{0.9, 0.8}, 2, []float64{1, 1}},
		{"two of three tests", []float64{0.01, 0.02}, 3, []float64{0.03, 0.04}},
		{"more chances than tests", []float64{0.01, 1}, 1, []float64{0.01, 1}},
	} {
		got := holm(c.chances, c.tests)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%s: holm(%v, %d) = %v; want %v", c.name, c.chances, c.tests, got, c.want)
				break
			}
		}
	}
}
