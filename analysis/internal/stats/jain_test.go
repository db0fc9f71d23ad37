package stats

import (
	"math"
	"testing"
)

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
		ok     bool
	}{
		{[]float64{5, 5, 5}, 1, true}, {[]float64{1, 0, 0, 0}, 0.25, true}, {[]float64{1, 2, 3}, 36.0 / 42, true}, {[]float64{0, 0}, 0, false}, {nil, 0, false},
	} {
		if got, ok := Jain(c.shares); ok != c.ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain(%v) = %v, %v; want %v, %v", c.shares, got, ok, c.want, c.ok)
		}
	}
}
