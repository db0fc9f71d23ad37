package controls

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pelt/model"
)

// noises are how trials may scatter around a median of 1.
func noises() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"lognormal": func(r *rand.Rand) float64 { return math.Exp(0.8 * r.NormFloat64()) },
		"two modes": func(r *rand.Rand) float64 { return []float64{0.7, 1.4}[r.IntN(2)] * math.Exp(0.1*r.NormFloat64()) },
		"coarse":    func(r *rand.Rand) float64 { return math.Ceil(4*math.Exp(0.5*r.NormFloat64())) / 4 }, // many ties
		"cut":       func(r *rand.Rand) float64 { return math.Exp(1.5*r.NormFloat64()) * 2 },              // beyond the limit about 1 in 3
	}
}

// alarmed says whether a run calls any two different at any of its looks, wherever it
// stops.
func alarmed(doc model.Document) bool {
	for _, repeats := range doc.Plan.Design.Looks() {
		g, _ := read(doc, repeats)
		if slices.ContainsFunc(g.contrasts(alpha(looks(doc.Plan.Design))), func(c model.ControlContrast) bool { return c.Separable }) {
			return true
		}
	}
	return false
}

// In runs of equal controls under several conditions, at most 1 in 20 may call any two
// different; with so many runs chance alone allows some more.
func TestNoiseIsNoDifference(t *testing.T) {
	const times = 150
	for name, noise := range noises() {
		for _, most := range []int{0, 14} {
			alarms := 0
			for seed := range uint64(times) {
				d := duel{controls: []string{"cubic", "bbr", "reno"}, losses: []float64{0, 0.01}, repeats: 7, most: most, bytes: 1e6, limit: 3, seed: seed,
					took: func(_ string, _ float64, _ int, r *rand.Rand) float64 { return noise(r) }}
				if alarmed(d.document()) {
					alarms++
				}
			}
			// 7.5 expected at the most; 16 or more of them come once in 250.
			if alarms > 15 {
				t.Errorf("%s, up to %d repeats: %d false alarms in %d runs", name, most, alarms, times)
			}
		}
	}
}

// The test for alarms must be able to fail: without looks sharing the chance there
// are more.
func TestNoiseIsSeen(t *testing.T) {
	const times = 60
	alarms := 0
	for seed := range uint64(times) {
		d := duel{controls: []string{"cubic", "bbr", "reno"}, losses: []float64{0, 0.01}, repeats: 7, most: 30, bytes: 1e6, seed: seed,
			took: func(_ string, _ float64, _ int, r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) }}
		doc := d.document()
		for _, repeats := range doc.Plan.Design.Looks() {
			g, _ := read(doc, repeats)
			if slices.ContainsFunc(g.contrasts(1), func(c model.ControlContrast) bool { return c.P < falseAlarms }) {
				alarms++
				break
			}
		}
	}
	if alarms < times/3 {
		t.Errorf("%d alarms in %d runs that judge without care; the noise is none", alarms, times)
	}
}

// Differences of the size that people run such tests for are found, by runs that stop
// as soon as they are told apart too.
func TestDifferencesAreFound(t *testing.T) {
	const times = 60
	for _, most := range []int{0, 20} {
		found, short := 0, 0
		for seed := range uint64(times) {
			d := duel{controls: []string{"cubic", "bbr"}, losses: []float64{0.01, 0.1}, repeats: 10, most: most, bytes: 1e6, seed: seed,
				took: func(control string, _ float64, _ int, r *rand.Rand) float64 {
					return math.Exp(0.5*r.NormFloat64()) * map[string]float64{"cubic": 5, "bbr": 1}[control]
				}}
			doc := d.document()
			n := max(10, most)
			if Apart(doc, n) {
				found++
			}
			if Apart(doc, 10) {
				short++
			}
		}
		if found < times-1 || short < times-3 {
			t.Errorf("up to %d repeats: %d of %d runs find both, %d with 10 repeats", most, found, times, short)
		}
	}
}

// What Apart judges by is what the table says at the end.
func TestApartAgrees(t *testing.T) {
	for seed := range uint64(40) {
		d := duel{controls: []string{"cubic", "bbr"}, losses: []float64{0, 0.01}, repeats: 6, bytes: 1e6, seed: seed,
			took: func(control string, _ float64, _ int, r *rand.Rand) float64 {
				return math.Exp(0.5*r.NormFloat64()) * map[string]float64{"cubic": 2, "bbr": 1}[control]
			}}
		doc := d.document()
		all := true
		for _, c := range table(t, doc).Contrasts {
			all = all && c.Separable
			if !c.Separable != (c.FamilyP >= 0.05) || c.Separable && (c.Low <= 0 || c.Ratio < c.Low || c.Ratio > c.High) {
				t.Errorf("seed %d: %+v", seed, c)
			}
		}
		if got := Apart(doc, 6); got != all {
			t.Errorf("seed %d: apart %v, table %v", seed, got, all)
		}
	}
}
