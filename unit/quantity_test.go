package unit

import (
	"math"
	"testing"
)

func TestExactAndBetween(t *testing.T) {
	for _, c := range []struct {
		u       Unit
		v       float64
		want    string
		low     float64
		between string
	}{
		{PPS, 1.5e6, "1.5 Mpps", 1.2e6, "1.20–1.50 Mpps"},
		{PPS, 150e3, "150 kpps", 150e3, ""},
		{BPS, 1e9, "1 Gbit/s", 9e8, "900 Mbit/s–1 Gbit/s"},
		{Ratio, 0.05, "5 %", 0, "0–5 %"},
		{Word, 2.5, "2.5", 1, "1–2.50"},
		{Seconds, math.NaN(), "–", math.NaN(), ""},
	} {
		if got := c.u.Exact(c.v); got != c.want {
			t.Errorf("%s.Exact(%v) = %q; want %q", c.u, c.v, got, c.want)
		}
		if got := c.u.Between(c.low, c.v); got != c.between {
			t.Errorf("%s.Between(%v, %v) = %q; want %q", c.u, c.low, c.v, got, c.between)
		}
	}
}

func TestColumn(t *testing.T) {
	for _, c := range []struct {
		u    Unit
		v    float64
		want string
	}{{PPS, 5000, "5.00 kpps"}, {PPS, 4999.9, "5.00 kpps"}, {PPS, 5, "5 pps"}, {PPS, 0, "0 pps"}, {PPS, 25e3, "25.0 kpps"}, {BPS, 1e9, "1.00 Gbit/s"},
		{BPS, -2e6, "-2.00 Mbit/s"}, {Seconds, 2, "2 s"}, {Count, 5000, "5 000"}, {PPS, math.NaN(), "–"}} {
		if got := c.u.Column(c.v); got != c.want {
			t.Errorf("%s.Column(%v) = %q, want %q", c.u, c.v, got, c.want)
		}
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		change float64
		points bool
		want   string
	}{
		{0.12, false, "+12 %"}, {0.999992, false, "+100 %"}, {-0.999992, false, "-99.9 %"}, {-1, false, "-100 %"}, {-0.5, false, "-50 %"}, {29, false, "30 times"}, {1499, false, "1 500 times"}, {1.514, false, "2.51 times"},
		{0, false, "+0 %"}, {math.Inf(1), false, "from 0"}, {math.NaN(), false, ""}, {0.004, true, "+0.4 points"},
	} {
		if got := Change(c.change, c.points); got != c.want {
			t.Errorf("Change(%g, %v) = %q, want %q", c.change, c.points, got, c.want)
		}
	}
}
