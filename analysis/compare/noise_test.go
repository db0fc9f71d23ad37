package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pelt/model"
)

// noises are ways in which repeats of one thing differ, as logarithms.
func noises() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"normal": func(r *rand.Rand) float64 { return 0.03 * r.NormFloat64() },
		"skewed": func(r *rand.Rand) float64 { return -0.03 * r.ExpFloat64() },
		"spoilt": func(r *rand.Rand) float64 { // some repeats meet something else
			if r.IntN(10) == 0 {
				return -0.3 * r.Float64()
			}
			return 0.01 * r.NormFloat64()
		},
		"two levels": func(r *rand.Rand) float64 { // which core the load meets
			return 0.002*r.NormFloat64() + 0.2*float64(r.IntN(2))
		},
	}
}

// alarms counts comparisons of equals that call anything separable.
func alarms(t *testing.T, b bench, times int, runs bool) int {
	t.Helper()
	count := 0
	for seed := range uint64(times) {
		b.seed = 1 + 2*seed
		var c model.Comparison
		var err error
		if runs {
			other := b
			other.seed, other.id, other.target = b.seed+1, "20261121-110000-bbbb", "lab:router"
			c, err = Runs([]model.Document{b.document(), other.document()}, all())
		} else {
			c, err = Levels(b.document(), "variant", "", all())
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.Effects[0].Separable {
			count++
		}
	}
	return count
}

// TestNoiseIsNoDifference: of equals under any of these noises at most 5 % of whole
// comparisons have a false alarm anywhere. The bound allows three standard errors.
func TestNoiseIsNoDifference(t *testing.T) {
	const times = 100
	most := 0.05*times + 3*math.Sqrt(0.05*0.95*times)
	equal := func(string, int) float64 { return 200e3 }
	for name, noise := range noises() {
		for _, repeats := range []int{3, 8} {
			for _, runs := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/runs %v", name, repeats, runs), func(t *testing.T) {
					b := bench{id: "20261121-100000-aaaa", target: "lab:nat", frames: []int{64, 512, 1518}, variants: []string{"a", "b"}, repeats: repeats, noise: noise, pps: equal,
						busy: func(string, int) float64 { return 0.5 }}
					if !runs {
						b.drift = 0.1 // within blocks it harms all alike
					}
					got := alarms(t, b, times, runs)
					if float64(got) > most {
						t.Errorf("%d of %d comparisons of equals had a false alarm; want at most %.0f", got, times, most)
					}
				})
			}
		}
	}
}

// A single metric of a single cell is the plainest test; it errs as often as it says.
func TestAloneErrsAsItSays(t *testing.T) {
	const times = 600
	goodput, err := ParseMetrics("goodput")
	if err != nil {
		t.Fatal(err)
	}
	for _, runs := range []bool{false, true} {
		count := 0
		b := bench{id: "a", target: "x", frames: []int{64}, variants: []string{"a", "b"}, repeats: 4, noise: noises()["normal"], pps: func(string, int) float64 { return 200e3 }}
		if runs {
			b.variants = nil
		}
		for seed := range uint64(times) {
			b.seed = 2 * seed
			var c model.Comparison
			if runs {
				other := b
				other.id, other.seed, other.target = "b", b.seed+1, "y"
				c, err = Runs([]model.Document{b.document(), other.document()}, goodput)
			} else {
				c, err = Levels(b.document(), "variant", "", goodput)
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Effects[0].Separable {
				count++
			}
		}
		if rate := float64(count) / times; rate > 0.05+3*math.Sqrt(0.05*0.95/times) || !runs && rate < 0.025 {
			t.Errorf("runs %v: false alarms in %.3f of comparisons; want at most 0.05, and not much less where blocks pair", runs, rate)
		}
	}
}

// TestKnownChangesAreFound: a change that is planned for is found as often as planned,
// its interval holds the truth, and no other cell is called changed.
func TestKnownChangesAreFound(t *testing.T) {
	const times = 200
	for _, c := range []struct {
		name    string
		change  float64
		repeats int
		least   float64 // share of comparisons that find it
		most    float64
	}{
		{"half", -0.5, 3, 0.95, 1},
		{"tenth", -0.1, 6, 0.95, 1},
		{"double", 1, 3, 0.95, 1},
		{"far below the scatter", -0.001, 3, 0, 0.05},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, held, intervals := 0, 0, 0
			for seed := range uint64(times) {
				b := bench{id: "a", target: "x", frames: []int{64, 1518}, variants: []string{"a", "b"}, repeats: c.repeats, seed: seed, drift: 0.2,
					noise: func(r *rand.Rand) float64 { return 0.01 * r.NormFloat64() },
					pps: func(variant string, frame int) float64 {
						if variant == "b" && frame == 64 {
							return 200e3 * (1 + c.change)
						}
						return 200e3
					}}
				goodput, err := ParseMetrics("goodput")
				if err != nil {
					t.Fatal(err)
				}
				got, err := Levels(b.document(), "variant", "", goodput)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range got.Effects {
					truth := 0.0
					if e.Cell["frame_bytes"].Number == 64 {
						truth = c.change
						if e.Separable {
							found++
						}
					}
					intervals++
					if e.Low <= truth && truth <= e.High {
						held++
					}
				}
			}
			if rate := float64(found) / times; rate < c.least || rate > c.most {
				t.Errorf("found in %.2f of comparisons; want %.2f to %.2f", rate, c.least, c.most)
			}
			if rate := float64(held) / float64(intervals); rate < 0.95-3*math.Sqrt(0.05*0.95/float64(intervals)) {
				t.Errorf("%.3f of the 95 %% intervals hold the truth", rate)
			}
		})
	}
}

// The repeats that a comparison asks for do show a change of 5 %.
func TestNeededRepeatsSuffice(t *testing.T) {
	goodput, err := ParseMetrics("goodput")
	if err != nil {
		t.Fatal(err)
	}
	b := bench{id: "a", target: "x", frames: []int{64}, variants: []string{"a", "b"}, repeats: 40, seed: 3, noise: noises()["normal"], pps: func(string, int) float64 { return 200e3 }}
	c, err := Levels(b.document(), "variant", "", goodput)
	if err != nil {
		t.Fatal(err)
	}
	// By hand: of a scatter of 0.03*sqrt(2) between variants, 8.0 = (1.96+0.84)² normal
	// repeats of 0.87² standard deviations each, and some more for Student.
	b.repeats = 4
	c4, err := Levels(b.document(), "variant", "", goodput)
	if err != nil {
		t.Fatal(err)
	}
	if c.Effects[0].Needed != 0 || c4.Effects[0].Needed < 4 {
		t.Fatalf("needed after 40 repeats %d, after 4 %d; want 0 and more than 4", c.Effects[0].Needed, c4.Effects[0].Needed)
	}
	const times = 300
	found := 0
	b.repeats = 9
	b.pps = func(variant string, _ int) float64 {
		if variant == "b" {
			return 210e3
		}
		return 200e3
	}
	for seed := range uint64(times) {
		b.seed = seed
		got, err := Levels(b.document(), "variant", "", goodput)
		if err != nil {
			t.Fatal(err)
		}
		if got.Effects[0].Separable {
			found++
		}
	}
	if rate := float64(found) / times; rate < 0.75 || rate > 0.95 {
		t.Errorf("9 repeats find 5 %% under a scatter of 3 %% in %.2f of comparisons; want about 0.8", rate)
	}
}

// Two settings are the fewest whose scatter can doubt each other's: three equal
// repeats of a path with two levels come by chance too often for a t test alone.
func TestLuckOfTwoSettings(t *testing.T) {
	const times = 1500
	goodput, err := ParseMetrics("goodput")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for seed := range uint64(times) {
		b := bench{id: "a", target: "x", frames: []int{64, 512}, variants: []string{"a", "b"}, repeats: 3, seed: seed, noise: noises()["two levels"], pps: func(string, int) float64 { return 200e3 }}
		c, err := Levels(b.document(), "variant", "", goodput)
		if err != nil {
			t.Fatal(err)
		}
		if c.Effects[0].Separable {
			count++
		}
	}
	if count > times*5/100 {
		t.Errorf("%d of %d comparisons of equals had a false alarm; want at most 5 %%", count, times)
	}
}
