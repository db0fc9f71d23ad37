package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

func TestMannWhitney(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		a, b []float64
		want float64
	}{
		// M. Hollander, D. Wolfe, Nonparametric statistical methods, 1973, p. 69: one-sided
		// 0.1272, W = 35; of the 3003 arrangements 382 are as far to one side.
		{"published", []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}, []float64{1.15, 0.88, 0.90, 0.74, 1.21}, 2 * 382.0 / 3003},
		// The ages of SciPy's documentation of mannwhitneyu: U = 17, p = 0.1111.
		{"published too", []float64{19, 22, 16, 29, 24}, []float64{20, 11, 17, 12}, 14.0 / 126},
		{"wide apart", []float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2.0 / 252},
		{"one each", []float64{1}, []float64{2}, 1},
		{"all equal", []float64{3, 3, 3}, []float64{3, 3}, 1},
		// Every arrangement of the three cut ones is the same: 2 of 20.
		{"cut ones tie", []float64{1, 2, 3}, []float64{inf, inf, inf}, 2.0 / 20},
		// Ranks 1 2.5 2.5 4: sums of pairs 3.5 3.5 5 5 6.5 6.5, of which 4 are as far as 3.5.
		{"ties by hand", []float64{1, 2}, []float64{2, 3}, 4.0 / 6},
	} {
		if got := MannWhitney(c.a, c.b); !(math.Abs(got-c.want) < 1e-12) {
			t.Errorf("%s: MannWhitney(%v, %v) = %.6f; want %.6f", c.name, c.a, c.b, got, c.want)
		}
		if got := MannWhitney(c.b, c.a); !(math.Abs(got-c.want) < 1e-12) {
			t.Errorf("%s, swapped: %.6f; want %.6f", c.name, got, c.want)
		}
	}
	for _, none := range [][2][]float64{{nil, {1}}, {{1}, nil}, {{math.NaN()}, {1}}, {{1}, {2, math.NaN()}}} {
		if got := MannWhitney(none[0], none[1]); !math.IsNaN(got) {
			t.Errorf("MannWhitney(%v, %v) = %v; want NaN", none[0], none[1], got)
		}
	}
}

// tryAll is the definition: every way to part the values, by the sum of their ranks.
func tryAll(a, b []float64) float64 {
	all := append(append([]float64{}, a...), b...)
	place := ranks(all)
	mid := float64(len(a)*(len(all)+1)) / 2
	var seen float64
	for _, r := range place[:len(a)] {
		seen += r
	}
	var far, total float64
	for set := range uint(1) << len(all) {
		if bits.OnesCount(set) != len(a) {
			continue
		}
		var sum float64
		for i, r := range place {
			if set>>i&1 == 1 {
				sum += r
			}
		}
		total++
		if math.Abs(sum-mid) >= math.Abs(seen-mid)-1e-9 {
			far++
		}
	}
	return far / total
}

func TestMannWhitneyTriesAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		levels := []int{3, 8, 1000}[random.IntN(3)] // many ties, some, hardly any
		draw := func() []float64 {
			v := make([]float64, 1+random.IntN(6))
			for i := range v {
				v[i] = float64(random.IntN(levels))
			}
			return v
		}
		a, b := draw(), draw()
		if got, want := MannWhitney(a, b), tryAll(a, b); math.Abs(got-want) > 1e-12 {
			t.Errorf("MannWhitney(%v, %v) = %v; all arrangements give %v", a, b, got, want)
		}
	}
}

// The approximation takes over where samples are large: there it must go on from
// the exact one, with ties and without.
func TestMannWhitneyLarge(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for _, levels := range []int{6, 100000} {
		for range 20 {
			a, b := make([]float64, 20), make([]float64, 20)
			for i := range a {
				a[i], b[i] = float64(random.IntN(levels)), float64(random.IntN(levels))*0.9
			}
			place := ranks(append(append([]float64{}, a...), b...))
			var sum float64
			for _, r := range place[:20] {
				sum += r
			}
			if exact, approx := MannWhitney(a, b), normalRanks(math.Abs(sum-410), 20, 20, place); math.Abs(exact-approx) > 0.015 {
				t.Errorf("levels %d: exact %.4f, approximation %.4f", levels, exact, approx)
			}
		}
	}
	// SciPy's documentation: the same ages by the approximation with continuity.
	place := ranks([]float64{19, 22, 16, 29, 24, 20, 11, 17, 12})
	if got := normalRanks(math.Abs(32-25), 5, 4, place); math.Abs(got-0.11134688653314041) > 1e-9 {
		t.Errorf("approximation = %.12f; want 0.111346886533", got)
	}
	high := make([]float64, 25)
	for i := range high {
		high[i] = 100 + float64(i)
	}
	if got := MannWhitney(high, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}); !(got < 1e-4) {
		t.Errorf("wide apart, large: %v", got)
	}
}

func TestMannWhitneyLeast(t *testing.T) {
	for _, c := range []struct {
		n, m int
		want float64
	}{{1, 1, 1}, {3, 3, 0.1}, {5, 5, 2.0 / 252}, {4, 6, 2.0 / 210}, {10, 10, 2.0 / 184756}} {
		a, b := make([]float64, c.n), make([]float64, c.m)
		for i := range a {
			a[i] = float64(i)
		}
		for i := range b {
			b[i] = float64(100 + i)
		}
		if got, seen := MannWhitneyLeast(c.n, c.m), MannWhitney(a, b); math.Abs(got-c.want) > 1e-9 || math.Abs(seen-got) > 1e-9 {
			t.Errorf("least of %d and %d = %v, seen %v; want %v", c.n, c.m, got, seen, c.want)
		}
	}
}
