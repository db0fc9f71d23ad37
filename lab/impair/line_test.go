package impair

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func shapes() []*Table {
	out := []*Table{{Name: "three", Values: []int16{-8192, 0, 16384}}, {Name: "one", Values: []int16{4096}}}
	for _, name := range []string{"uniform", "normal", "pareto", "paretonormal"} {
		out = append(out, shaped(name))
	}
	return out
}

func shapeName(s *Table) string {
	if s == nil {
		return "uniform"
	}
	return s.Name
}

func TestExactDelayDistributions(t *testing.T) {
	for _, shape := range shapes() {
		for _, c := range []float64{0, 0.25, 0.5, 0.9} {
			n := 50_000
			if c > 0.5 {
				n = 10_000 // of 880 000
			}
			s := Settings{Delay: 50 * time.Millisecond, Jitter: 10 * time.Millisecond, Shape: shape, Correlation: c,
				Seed: 21}
			// Of correlated delays every so manieth only, which the test takes for free draws.
			step := 1
			for k := c; k > 1e-4; k *= c {
				step++
			}
			var some []int64
			for i, d := range delays(offers(t, s, n*step)) {
				if i%step == 0 {
					some = append(some, d)
				}
			}
			what := fmt.Sprintf("%s with a correlation of %g", shapeName(shape), c)
			if shape != nil && len(shape.Values) == 1 {
				for _, d := range some {
					if d != 55e6 {
						t.Fatalf("%s: a delay of %d ns, want one value of half a jitter", what, d)
					}
				}
				continue
			}
			wantDistribution(t, what, some, shapeUnder(s))
		}
	}
}

// What is cut at 0 is the only change that a small delay makes.
func TestDelayIsNeverNegative(t *testing.T) {
	s := Settings{Delay: 12 * time.Millisecond, Jitter: 10 * time.Millisecond, Shape: shaped("normal"), Seed: 2}
	got := delays(offers(t, s, 50_000))
	zero := 0
	for _, d := range got {
		if d < 0 {
			t.Fatalf("a delay of %d ns", d)
		}
		if d == 0 {
			zero++
		}
	}
	wantShare(t, "delays of 0", zero, len(got), 0.5*math.Erfc(1.2/math.Sqrt2))
	wantDistribution(t, "normal cut at 0", got, shapeUnder(s))
}

// The Gaussian behind the delays has the correlation c. Of the delays' ranks that
// makes 6/pi asin(c/2), whatever the shape; of normal delays c itself.
func TestDelayCorrelation(t *testing.T) {
	const n = 200_000
	for _, shape := range []*Table{nil, shaped("normal"), shaped("paretonormal")} {
		for _, c := range []float64{0, 0.25, 0.5, 0.75, 0.95} {
			s := Settings{Delay: 50 * time.Millisecond, Jitter: 10 * time.Millisecond, Shape: shape, Correlation: c,
				Seed: 8}
			what, d := fmt.Sprintf("%s with a correlation of %g", shapeName(shape), c), delays(offers(t, s, n))
			ranks, under := make([]float64, n), shapeUnder(s)
			for i, v := range d {
				ranks[i] = under(float64(v))
			}
			wantLag1(t, what+", ranks", ranks, 6/math.Pi*math.Asin(c/2), 4/math.Sqrt(n))
			if shape != nil && shape.Name == "normal" {
				wantLag1(t, what, floats(d), c, 4/math.Sqrt(n))
				var two []float64
				for i := 0; i < n; i += 2 {
					two = append(two, float64(d[i]))
				}
				wantLag1(t, what+", lag 2", two, c*c, 4/math.Sqrt(n/2))
			}
		}
	}
}
