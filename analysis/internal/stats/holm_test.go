package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestHolm(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name    string
		p, want []float64
	}{
		{"none", nil, nil},
		{"one", []float64{0.03}, []float64{0.03}},
		// 4*0.005, 3*0.01, 2*0.03, then 0.04 may not fall below 0.06: Holm's paper, by hand.
		{"four", []float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{"at most 1", []float64{0.9, 0.8}, []float64{1, 1}},
		{"not made", []float64{nan, 0.02, 0.01}, []float64{nan, 0.02, 0.02}},
	} {
		got := Holm(c.p)
		if len(got) != len(c.want) {
			t.Errorf("%s: Holm(%v) = %v; want %v", c.name, c.p, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 || math.IsNaN(got[i]) != math.IsNaN(c.want[i]) {
				t.Errorf("%s: Holm(%v) = %v; want %v", c.name, c.p, got, c.want)
			}
		}
	}
}

// Holm rejects what Bonferroni does, never what no test alone would, and keeps the order.
func TestHolmLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 20).Draw(t, "p")
		got := Holm(p)
		for i := range p {
			if got[i] < p[i] || got[i] > min(1, p[i]*float64(len(p)))+1e-12 {
				t.Fatalf("Holm(%v) = %v", p, got)
			}
			for j := range p {
				if p[i] < p[j] && got[i] > got[j] {
					t.Fatalf("Holm(%v) = %v changes the order", p, got)
				}
			}
		}
	})
}

func TestStudentBeyond(t *testing.T) {
	for _, c := range []struct {
		t       float64
		freedom int
		want    float64 // from the tables
	}{{0, 3, 1}, {12.706, 1, 0.05}, {-4.303, 2, 0.05}, {9.925, 2, 0.01}, {2.262, 9, 0.05}, {4.781, 9, 0.001}, {1e9, 2, 0}} {
		if got := StudentBeyond(c.t, c.freedom); math.Abs(got-c.want) > 2e-5 {
			t.Errorf("StudentBeyond(%v, %d) = %v; want %v", c.t, c.freedom, got, c.want)
		}
	}
}
