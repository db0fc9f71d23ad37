package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestStudent(t *testing.T) {
	for _, c := range []struct {
		probability float64
		freedom     int
		want        float64 // from the tables
	}{
		{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 3, 3.182}, {0.975, 4, 2.776}, {0.975, 9, 2.262}, {0.95, 10, 1.812}, {0.975, 200, 1.972},
	} {
		if got := Student(c.probability, c.freedom); math.Abs(got-c.want) > 0.001 {
			t.Errorf("Student(%v, %d) = %.4f; want %.3f", c.probability, c.freedom, got, c.want)
		}
	}
}

// The values are those of table 1a of Dunnett's paper; one comparison is Student's t.
func TestDunnett(t *testing.T) {
	for _, c := range []struct {
		others, freedom int
		want            float64
	}{
		{1, 5, 2.02}, {2, 5, 2.44}, {9, 5, 3.30}, {1, 10, 1.81}, {4, 10, 2.47}, {9, 10, 2.81}, {1, 20, 1.72}, {9, 20, 2.60}, {9, 100000, 2.42}, {1, 1, 6.31}, {1, 2, 2.92},
	} {
		if got := Dunnett(c.others, c.freedom); math.Abs(got-c.want) > 0.012 {
			t.Errorf("Dunnett(%d, %d) = %.4f; want %.2f", c.others, c.freedom, got, c.want)
		}
	}
}

func TestHalfInterval(t *testing.T) {
	if half, ok := HalfInterval([]float64{10, 12, 14}); !ok || math.Abs(half-4.303*2/math.Sqrt(3)) > 0.001 {
		t.Errorf("half interval of 10, 12, 14 = %v %v; want 4.968", half, ok)
	}
	if _, ok := HalfInterval([]float64{10}); ok {
		t.Error("one value has an interval")
	}
}

func TestRankCorrelation(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		a, b []float64
		want float64
		ok   bool
	}{
		{"alike", []float64{1, 2, 3}, []float64{10, 200, 201}, 1, true},
		{"reversed", []float64{1, 2, 3, 4}, []float64{4, 3, 2, -1}, -1, true},
		// d = 1 1 1 1 0, sum of squares 4: 1 - 6*4/(5*24) = 0.8.
		{"by hand", []float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 0.8, true},
		// Ranks 1 2.5 2.5 4 and 1 2 3 4: covariance 4.5, squares 4.5 and 5, so 4.5/sqrt(22.5).
		{"ties", []float64{1, 5, 5, 9}, []float64{1, 2, 3, 4}, 4.5 / math.Sqrt(22.5), true},
		// Ranks 1.5 1.5 3 and 3 1.5 1.5: 0.5*(-1.5)... = -0.75 of 1.5.
		{"ties on both sides", []float64{1, 1, 2}, []float64{7, 3, 3}, -0.5, true},
		{"infinite is last", []float64{1, 2, math.Inf(1)}, []float64{1, 2, 3}, 1, true},
		{"one", []float64{1}, []float64{2}, 0, false},
		{"none", nil, nil, 0, false},
		{"lengths", []float64{1, 2}, []float64{1, 2, 3}, 0, false},
		{"no number", []float64{1, nan, 3}, []float64{1, 2, 3}, 0, false},
		{"all equal", []float64{2, 2, 2}, []float64{1, 2, 3}, 0, false},
	} {
		got, ok := RankCorrelation(c.a, c.b)
		if ok != c.ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: RankCorrelation(%v, %v) = %v, %v; want %v, %v", c.name, c.a, c.b, got, ok, c.want, c.ok)
		}
	}
}

func TestRankCorrelationLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		list := rapid.SliceOfN(rapid.Map(rapid.IntRange(-5, 5), func(i int) float64 { return float64(i) }), n, n)
		a, b := list.Draw(t, "a"), list.Draw(t, "b")
		rho, ok := RankCorrelation(a, b)
		back, okBack := RankCorrelation(b, a)
		grown := make([]float64, n)
		for i := range a {
			grown[i] = math.Exp(a[i]) // keeps the order
		}
		same, _ := RankCorrelation(grown, b)
		if ok != okBack || math.Abs(rho-back) > 1e-12 || math.Abs(rho-same) > 1e-9 || rho < -1 || rho > 1 {
			t.Fatalf("RankCorrelation(%v, %v) = %v; swapped %v, grown %v", a, b, rho, back, same)
		}
	})
}
