package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := Median(c.v); got != c.want {
			t.Errorf("Median(%v) = %v; want %v", c.v, got, c.want)
		}
	}
}

// Efron's table of 1979, section 3, has the chances for 13 values: 0.0015 0.0142
// 0.0550 0.1242 0.1936 0.2230 and back.
func TestResampledOdd(t *testing.T) {
	v := make([]float64, 13)
	for i := range v {
		v[i] = float64(i + 1)
	}
	got := map[float64]float64{}
	d := resampled(v)
	for i, x := range d.values {
		got[x] = d.chances[i]
	}
	for place, want := range map[float64]float64{2: 0.0015, 3: 0.0142, 4: 0.0550, 5: 0.1242, 6: 0.1936, 7: 0.2230, 8: 0.1936, 11: 0.0142, 12: 0.0015} {
		if math.Abs(got[place]-want) > 0.0001 { // the last digit of the table is not to be had again
			t.Errorf("chance of place %v = %.5f; want %.4f", place, got[place], want)
		}
	}
}

// Every sample of four or five that can be drawn, counted.
func TestResampledTriesAll(t *testing.T) {
	for _, v := range [][]float64{{1, 2, 4, 8}, {1, 2, 4, 8, 16}, {1, 1, 3, 7}, {1, 2, 4, 8, 16, 32}, {5, 5, 5, 6, 6}} {
		n := len(v)
		count, total := map[float64]float64{}, math.Pow(float64(n), float64(n))
		for k := range int(total) {
			s := make([]float64, n)
			for i := range s {
				s[i], k = v[k%n], k/n
			}
			count[Median(s)] += 1 / total
		}
		d := resampled(v)
		if len(d.values) != len(count) {
			t.Errorf("%v: %d medians; want %d", v, len(d.values), len(count))
		}
		for i, x := range d.values {
			if math.Abs(d.chances[i]-count[x]) > 1e-9 {
				t.Errorf("%v: chance of %v = %v; want %v", v, x, d.chances[i], count[x])
			}
		}
	}
	for _, n := range []int{100, 101, 1000, 2001} {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(i)
		}
		d := resampled(v)
		if last := d.sums[len(d.sums)-1]; math.Abs(last-1) > 1e-6 {
			t.Errorf("the chances of %d values add up to %v", n, last)
		}
	}
}

func TestMedianInterval(t *testing.T) {
	for _, c := range []struct {
		name      string
		v         []float64
		low, high float64
	}{
		{"none", nil, 0, 0}, {"one", []float64{7}, 7, 7}, {"four: their range", []float64{4, 1, 3, 2}, 1, 4}, {"all equal", []float64{2, 2, 2, 2, 2, 2}, 2, 2},
		// 5.8 % of the samples of five have each end as their median.
		{"five", []float64{1, 2, 3, 4, 5}, 1, 5},
		// Of 13 even ones neither bias nor acceleration: 1.57 % up to the third, 7.07 % up to the fourth.
		{"thirteen", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 4, 10},
	} {
		if low, high := MedianInterval(c.v); low != c.low || high != c.high {
			t.Errorf("%s: MedianInterval(%v) = %v to %v; want %v to %v", c.name, c.v, low, high, c.low, c.high)
		}
	}
}

// By its definition: Efron's BCa of drawn samples, with many of them.
func TestMedianIntervalDrawn(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{7, 10} {
		v := make([]float64, n)
		for i := range v {
			v[i] = math.Exp(random.NormFloat64())
		}
		const times = 20000
		drawn := make([]float64, times)
		for k := range drawn {
			s := make([]float64, n)
			for i := range s {
				s[i] = v[random.IntN(n)]
			}
			drawn[k] = Median(s)
		}
		slices.Sort(drawn)
		at, below := Median(v), 0.0
		for _, x := range drawn {
			switch {
			case x < at:
				below++
			case x == at:
				below += 0.5
			}
		}
		z0, mean := normalQuantile(below/times), 0.0
		left := make([]float64, n)
		for i := range v {
			left[i] = Median(slices.Delete(slices.Clone(v), i, i+1))
			mean += left[i] / float64(n)
		}
		var squares, cubes float64
		for _, x := range left {
			squares, cubes = squares+math.Pow(mean-x, 2), cubes+math.Pow(mean-x, 3)
		}
		accel := cubes / (6 * math.Pow(squares, 1.5))
		end := func(z float64) float64 { return normal(z0 + (z0+z)/(1-accel*(z0+z))) }
		low, high := MedianInterval(v)
		exact := resampled(slices.Sorted(slices.Values(v)))
		// Drawn ends scatter: those of the exact interval must have about their share below.
		for _, c := range []struct{ got, want float64 }{{low, end(-1.96)}, {high, end(1.96)}} {
			if from, to := exact.below(c.got), exact.upTo(c.got); c.want < from-0.01 || c.want > to+0.01 {
				t.Errorf("n=%d: %v holds %.4f to %.4f of the medians; want %.4f", n, c.got, from, to, c.want)
			}
		}
	}
}

func TestMedianIntervalCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for _, c := range []struct {
		n     int
		least float64
	}{{5, 0.91}, {6, 0.90}, {10, 0.90}, {20, 0.91}} {
		const times = 1500
		held := 0
		for range times {
			v := make([]float64, c.n)
			for i := range v {
				v[i] = math.Exp(1.2 * random.NormFloat64()) // its median is 1
			}
			if low, high := MedianInterval(v); low <= 1 && 1 <= high {
				held++
			}
		}
		if share := float64(held) / times; share < c.least || share > 0.98 {
			t.Errorf("intervals of %d skewed values hold the median in %.3f of all; want %v to 0.98", c.n, share, c.least)
		}
	}
}

func TestRatioOfMedians(t *testing.T) {
	if ratio, low, high, ok := RatioOfMedians([]float64{4, 6, 5}, []float64{1, 2}); !ok || ratio != 5/1.5 || low != 2 || high != 6 {
		t.Errorf("few: %v %v %v %v; want 3.333, the range 2 to 6", ratio, low, high, ok)
	}
	if ratio, low, high, ok := RatioOfMedians([]float64{4, 4, 4, 4, 4}, []float64{2, 2, 2, 2, 2}); !ok || ratio != 2 || low != 2 || high != 2 {
		t.Errorf("all equal: %v %v %v %v; want 2", ratio, low, high, ok)
	}
	for _, bad := range [][]float64{nil, {0, 1}, {-1}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if _, _, _, ok := RatioOfMedians(bad, []float64{1}); ok {
			t.Errorf("a ratio of %v", bad)
		}
		if _, _, _, ok := RatioOfMedians([]float64{1}, bad); ok {
			t.Errorf("a ratio to %v", bad)
		}
	}
	// One side never varies: the interval is that of the other by percentiles.
	ratio, low, high, _ := RatioOfMedians([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, []float64{2, 2, 2, 2, 2})
	if math.Abs(ratio-3.5) > 1e-9 || math.Abs(low-2) > 1e-9 || math.Abs(high-5) > 1e-9 {
		t.Errorf("one side fixed: %v (%v to %v); want 3.5 (2 to 5)", ratio, low, high)
	}
	// Swapped sides give the reciprocal.
	random := rand.New(rand.NewPCG(5, 5))
	a, b := make([]float64, 9), make([]float64, 12)
	for i := range a {
		a[i] = math.Exp(random.NormFloat64())
	}
	for i := range b {
		b[i] = 3 * math.Exp(random.NormFloat64())
	}
	r, l, h, _ := RatioOfMedians(a, b)
	s, k, g, _ := RatioOfMedians(b, a)
	if math.Abs(r*s-1) > 1e-9 || math.Abs(l*g-1) > 0.02 || math.Abs(h*k-1) > 0.02 || !(l < r && r < h) {
		t.Errorf("%v (%v to %v) and swapped %v (%v to %v)", r, l, h, s, k, g)
	}
}

func TestRatioOfMediansCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	const times = 400
	held := 0
	for range times {
		a, b := make([]float64, 10), make([]float64, 10)
		for i := range a {
			a[i], b[i] = 3*math.Exp(random.NormFloat64()), math.Exp(0.4*random.NormFloat64())
		}
		if _, low, high, _ := RatioOfMedians(a, b); low <= 3 && 3 <= high {
			held++
		}
	}
	if share := float64(held) / times; share < 0.91 {
		t.Errorf("intervals hold the ratio in %.3f of all; want 0.91 or more", share)
	}
}
