package heat

import (
	"image/color"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What a colour-blind reader goes by is the lightness: it must rise all the way.
func TestLightnessRises(t *testing.T) {
	light := func(c color.RGBA) float64 { return 0.2126*float64(c.R) + 0.7152*float64(c.G) + 0.0722*float64(c.B) }
	for i := range 64 {
		a, b := Colour(float64(i)/64), Colour(float64(i+1)/64)
		if light(b) <= light(a) {
			t.Errorf("colour %v at %d/64 is not darker than the next, %v", a, i, b)
		}
	}
}

func TestColour(t *testing.T) {
	for _, c := range []struct {
		place float64
		want  string
		dark  bool
	}{{0, "#440154", true}, {1, "#fde725", false}, {-3, "#440154", true}, {7, "#fde725", false}, {math.NaN(), "#440154", true}, {1.0 / 15, "#481a6c", true}} {
		got := Colour(c.place)
		if Hex(got) != c.want || Dark(got) != c.dark {
			t.Errorf("Colour(%v) = %s, dark %v; want %s, %v", c.place, Hex(got), Dark(got), c.want, c.dark)
		}
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		log    bool
		want   Scale
		ticks  []float64
	}{
		{"from zero", []float64{30, 90}, false, Scale{0, 90, false}, []float64{0, 20, 40, 60, 80}},
		{"orders apart", []float64{1, 500, 12000}, true, Scale{1, 12000, true}, []float64{1, 10, 100, 1000, 10000}},
		{"near each other", []float64{50, 90}, true, Scale{0, 90, false}, []float64{0, 20, 40, 60, 80}},
		{"negative", []float64{-50, 50}, true, Scale{-50, 50, false}, []float64{-40, -20, 0, 20, 40}},
		{"nothing", nil, true, Scale{0, 1, false}, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}},
		{"all zero", []float64{0, 0}, true, Scale{0, 1, false}, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}},
		{"not numbers", []float64{math.NaN(), math.Inf(1), 4}, false, Scale{0, 4, false}, []float64{0, 1, 2, 3, 4}},
	} {
		got := NewScale(c.values, c.log)
		if got != c.want || !slices.Equal(got.Ticks(), c.ticks) {
			t.Errorf("%s: NewScale = %+v with ticks %v; want %+v, %v", c.name, got, got.Ticks(), c.want, c.ticks)
		}
	}
}

// Whatever the values, each has a place, larger ones none before, and ticks are few.
func TestScaleHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1e9))).Draw(t, "values")
		s := NewScale(values, rapid.Bool().Draw(t, "log"))
		slices.Sort(values)
		last := 0.0
		for _, v := range values {
			p := s.Place(v)
			if !(p >= last && p <= 1) {
				t.Fatalf("%+v: place %v of %v; want %v to 1", s, p, v, last)
			}
			last = p
		}
		if n := len(s.Ticks()); n > 12 {
			t.Fatalf("%+v: %d ticks", s, n)
		}
	})
}
