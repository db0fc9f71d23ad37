package heat

import (
	"slices"
	"testing"
)

func TestApart(t *testing.T) {
	half := 0.0
	span := func(i int) (at, h float64) { return float64(i), half }
	for _, c := range []struct {
		name     string
		n, first int
		half     float64
		want     []int
	}{
		{"room for all", 4, -1, 0.4, []int{0, 1, 2, 3}},
		{"every second", 7, -1, 0.9, []int{0, 2, 4, 6}},
		{"the given one stays", 8, 3, 0.9, []int{0, 3, 5, 7}},
		{"none", 0, -1, 1, nil},
		{"one", 1, 0, 5, []int{0}},
	} {
		half = c.half
		if got := Apart(c.n, c.first, span); !slices.Equal(got, c.want) {
			t.Errorf("%s: Apart = %v; want %v", c.name, got, c.want)
		}
	}
}

func TestUnit(t *testing.T) {
	names := []string{"bit/s", "kbit/s", "Mbit/s"}
	for _, c := range []struct {
		high, times float64
		name        string
		div         float64
	}{{999, 1000, "bit/s", 1}, {96e6, 1000, "Mbit/s", 1e6}, {5e12, 1000, "Mbit/s", 1e6}, {96e6, 1, "bit/s", 1}} {
		if name, div := (Scale{High: c.high}).Unit(names, c.times); name != c.name || div != c.div {
			t.Errorf("Unit of %v = %s, %v; want %s, %v", c.high, name, div, c.name, c.div)
		}
	}
}
