package pace

import (
	"math"
	"slices"
	"testing"
)

// distance is the Kolmogorov-Smirnov distance of values from a distribution.
func distance(values []float64, below func(float64) float64) (d float64) {
	slices.Sort(values)
	n := float64(len(values))
	for i, v := range values {
		p := below(v)
		d = max(d, p-float64(i)/n, float64(i+1)/n-p)
	}
	return d
}

func exponentialBelow(mean float64) func(float64) float64 {
	return func(v float64) float64 { return 1 - math.Exp(-v/mean) }
}

// critical is what the distance of n values passes by chance once in a thousand
// times; the seeds are fixed, so the tests pass always or never.
func critical(n int) float64 { return 1.95 / math.Sqrt(float64(n)) }

// The gaps of a flow are exponential, and those of one of its four streams are sums of
// four (Erlang).
func TestPoissonGaps(t *testing.T) {
	for seed := range uint64(3) {
		for _, of := range []struct {
			rate string
			mean float64
		}{{"40kpps", 25_000}, {"1/10pps", 10e9}} {
			const n = 200_000
			gaps := func(streams uint64) (list []float64) {
				next := Poisson(schedule(t, of.rate), seed)(0, streams)
				last := next()
				for range n / streams {
					at := next()
					list = append(list, float64(at-last))
					last = at
				}
				return list
			}
			one, four := gaps(1), gaps(4)
			if d := distance(one, exponentialBelow(of.mean)); d > critical(n)+1/of.mean {
				t.Errorf("%s seed %d: gaps are %.5f from exponential, want below %.5f", of.rate, seed, d, critical(n))
			}
			erlang := func(v float64) float64 {
				x := v / of.mean
				return 1 - math.Exp(-x)*(1+x+x*x/2+x*x*x/6)
			}
			if d := distance(four, erlang); d > critical(n/4)+1/of.mean {
				t.Errorf("%s seed %d: four gaps are %.5f from their distribution, want below %.5f", of.rate, seed, d,
					critical(n/4))
			}
		}
	}
}

// In windows of any length the variance of the number of packets is its mean,
// and neighbours tell nothing about each other.
func TestPoissonCounts(t *testing.T) {
	for _, window := range []int64{300, 16_000, 50_000, 1_000_000, 4_096_000, 100_000_000} {
		next := Poisson(schedule(t, "1Mpps"), 5)(0, 1)
		at := next()
		n := int(min(20_000, 8_000_000_000/window))
		mean := float64(window) / 1000
		var sum, squares, products, last float64
		for i := range int64(n) {
			off := -mean
			for ; at < (i+1)*window; at = next() {
				off++
			}
			sum, squares, products = sum+off, squares+off*off, products+off*last
			last = off
		}
		// Index of dispersion: (n-1) times it is chi-squared, of deviation sqrt(2/n).
		dispersion, spread := squares/float64(n)/mean, math.Sqrt((2+1/mean)/float64(n))
		if math.Abs(dispersion-1) > 4*spread {
			t.Errorf("windows of %d ns: variance is %.4f of the mean, want 1 to %.4f", window, dispersion, 4*spread)
		}
		if r := products / squares; math.Abs(r) > 4/math.Sqrt(float64(n)) {
			t.Errorf("windows of %d ns: neighbours correlate by %.4f", window, r)
		}
		if math.Abs(sum/float64(n)) > 4*math.Sqrt(mean/float64(n)) {
			t.Errorf("windows of %d ns: mean is off by %.4f", window, sum/float64(n))
		}
	}
}

func TestRandomOnOffTimes(t *testing.T) {
	const gap = 1000 // ns: times on are seen to that, times off without one of less
	next := RandomOnOff(schedule(t, "1Mpps"), 100*gap, 900*gap, 9)(0, 1)
	var on, off []float64
	began, last := int64(0), int64(0)
	for len(off) < 20_000 {
		at := next()
		if pause := at - last - gap; pause > 0 {
			on, off = append(on, float64(last+gap-began)), append(off, float64(pause))
			began = at
		}
		last = at
	}
	for name, x := range map[string]struct {
		values []float64
		mean   int64
	}{"on": {on, 100 * gap}, "off": {off, 900 * gap}} {
		if d := distance(x.values, exponentialBelow(float64(x.mean))); d > critical(len(x.values))+0.01 {
			t.Errorf("times %s are %.5f from exponential, want below %.5f", name, d, critical(len(x.values)))
		}
	}
}
