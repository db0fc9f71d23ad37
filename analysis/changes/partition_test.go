package changes

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// costOf a partition: what is left of weighted squares, and the penalties.
func costOf(values, weights []float64, cuts []int, penalty float64) float64 {
	sum := penalty * float64(len(cuts))
	from := 0
	for _, to := range append(slices.Clone(cuts), len(values)) {
		var w, wy float64
		for i := from; i < to; i++ {
			w, wy = w+weights[i], wy+weights[i]*values[i]
		}
		for i := from; i < to; i++ {
			sum += weights[i] * (values[i] - wy/w) * (values[i] - wy/w)
		}
		from = to
	}
	return sum
}

// optimal is the least cost by trying every place of the last cut: B. Jackson and
// others, An algorithm for optimal partitioning of data on an interval (2005).
func optimal(values, weights []float64, penalty float64) float64 {
	best := make([]float64, len(values)+1)
	best[0] = -penalty
	for to := 1; to <= len(values); to++ {
		best[to] = math.Inf(1)
		for from := range to {
			best[to] = min(best[to], best[from]+penalty+costOf(values[from:to], weights[from:to], nil, 0))
		}
	}
	return best[len(values)]
}

func TestPartitionIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-10, 10), rapid.Map(rapid.IntRange(-3, 3), func(i int) float64 { return float64(i) })), n, n).Draw(t, "values")
		weights := rapid.SliceOfN(rapid.Float64Range(0.1, 10), n, n).Draw(t, "weights")
		penalty := rapid.Float64Range(0.01, 100).Draw(t, "penalty")
		cuts := partition(values, weights, penalty)
		for i, c := range cuts {
			if c <= 0 || c >= n || i > 0 && c <= cuts[i-1] {
				t.Fatalf("cuts %v of %d values", cuts, n)
			}
		}
		got, want := costOf(values, weights, cuts, penalty), optimal(values, weights, penalty)
		if got > want*(1+1e-9)+1e-9 {
			t.Fatalf("partition %v costs %v; the best costs %v", cuts, got, want)
		}
	})
}

func TestMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Map(rapid.IntRange(-9, 9), func(i int) float64 { return float64(i) / 2 }), 1, 40).Draw(t, "v")
		sorted := slices.Sorted(slices.Values(v))
		want := (sorted[len(v)/2] + sorted[(len(v)-1)/2]) / 2
		if got := median(slices.Clone(v)); got != want {
			t.Fatalf("median of %v = %v; want %v", v, got, want)
		}
		span := 2*rapid.IntRange(0, 8).Draw(t, "half") + 1
		for i, got := range runningMedian(v, span) {
			if want := median(slices.Clone(v[max(0, i-span/2):min(len(v), i+span/2+1)])); got != want {
				t.Fatalf("running median of %v over %d at %d = %v; want %v", v, span, i, got, want)
			}
		}
	})
}

// Values from tables: Abramowitz and Stegun, table 26.7 for chi squared, whose half is a
// gamma variable.
func TestGammaTail(t *testing.T) {
	for _, c := range []struct{ x, shape, want float64 }{
		{0.5, 0.5, 0.317310508}, {1, 1, 0.367879441}, {2.5, 1.5, 0.171797144}, {10, 5, 0.029252688}, {5, 10, 0.968171943}, {20, 1, 2.0611536e-9},
	} {
		if got := gammaTail(c.x, c.shape); math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("gammaTail(%v, %v) = %.9g; want %.9g", c.x, c.shape, got, c.want)
		}
	}
}

func TestBinomialTail(t *testing.T) {
	for _, c := range []struct {
		n, k int
		p    float64
		want float64
	}{
		{4, 4, 0.5, 0.0625}, {4, 3, 0.5, 0.3125}, {10, 0, 0.1, 1}, {10, 1, 0.1, 0.6513215599}, {10, 1, 0, 0}, {5, 5, 1, 1}, {100, 20, 0.1, 0.0019785}, // the last from a table
	} {
		if got := binomialTail(c.n, c.k, c.p); math.Abs(got-c.want) > 1e-4*c.want {
			t.Errorf("binomialTail(%d, %d, %v) = %v; want %v", c.n, c.k, c.p, got, c.want)
		}
	}
}
