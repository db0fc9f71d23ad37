package analysis

import (
	"fmt"
	"strings"
	"testing"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

func TestSpotWords(t *testing.T) {
	n, w := model.Number, model.Word
	for _, c := range []struct {
		cell model.Cell
		want string
	}{
		{model.Cell{"payload_bytes": n(1472), "interval_ns": n(5e6)}, "1472 B every 5 ms"},
		{model.Cell{"payload_bytes": n(1472), "interval_ns": n(12e6)}, "1472 B every 12 ms"},
		{model.Cell{"payload_bytes": n(1472), "interval_ns": n(12.5e6)}, "1472 B every 12.5 ms"},
		{model.Cell{"interval_ns": n(0)}, "1472 B without pauses"},
		{model.Cell{"rate_pps": w("max")}, "1472 B without pauses"},
		{model.Cell{"frame_bytes": n(1518), "rate_pps": n(20000), "streams": n(4)}, "1472 B at 20 kpps with 4 streams"},
		{model.Cell{"streams": n(1), "receivers": n(100), "receive_buffer_bytes": n(262144)}, "1472 B with 1 stream and 100 receivers and a receive buffer of 256 KiB"},
		{model.Cell{"send_buffer_bytes": n(0), "loss_ratio": n(0.05)}, "1472 B on links that lose 5 % with a send buffer of the usual size"},
		{model.Cell{"control": w("bbr"), "direction": w("both")}, "1472 B with bbr both ways at once"},
		{model.Cell{"delay_s": n(0.04)}, "1472 B with delay_s=0.04"},
	} {
		if got := (spot{cell: c.cell, payload: 1472}).words(); got != c.want {
			t.Errorf("%v: %q; want %q", c.cell, got, c.want)
		}
	}
}

func TestSpeedText(t *testing.T) {
	for _, c := range []struct {
		bps  float64
		want string
	}{{0, "0 B/s"}, {8 * 512, "512 B/s"}, {8 * 1023, "1 KiB/s"}, {8 * 1024 * 1024, "1 MiB/s"}, {98.2e6, "11.7 MiB/s"}, {1e9, "119 MiB/s"}, {8e12, "931 GiB/s"}} {
		if got := speedText(c.bps); got != c.want && !(c.bps == 8*1023 && got == "1.00 KiB/s") {
			t.Errorf("speedText(%v) = %q; want %q", c.bps, got, c.want)
		}
	}
}

// Reasons that differ in numbers only are one.
func TestWordsOnly(t *testing.T) {
	a := "flow up: the sender kept 80 kpps of the 99.5 kpps asked and missed 9.9 % of its schedule"
	b := "flow up: the sender kept 7.1 Mpps of the 8 Mpps asked and missed 12 % of its schedule"
	if wordsOnly(a) != wordsOnly(b) || strings.ContainsAny(wordsOnly(a), "0123456789") {
		t.Errorf("%q, %q", wordsOnly(a), wordsOnly(b))
	}
	if c := "flow down: the sender kept 80 kpps"; wordsOnly(a) == wordsOnly(c) {
		t.Errorf("%q is as %q", c, a)
	}
}

// spotOf makes a spot of speeds; a negative one is a repeat that is missing.
func spotOf(name int, speeds ...float64) (s spot) {
	s.cell = model.Cell{"payload_bytes": model.Number(float64(name))}
	for i, x := range speeds {
		if x >= 0 {
			s.trials = append(s.trials, sweepTrial{repeat: i, speed: x})
		}
	}
	s.speed = stats.Mean(s.speeds())
	return s
}

func TestCompare(t *testing.T) {
	best := spotOf(0, 100, 101, 99)
	for _, c := range []struct {
		name   string
		others []spot
		ties   string // payloads, the fastest first
	}{
		{"far off", []spot{spotOf(1, 90, 91, 89), spotOf(2, 80, 81, 79.1)}, "[]"},
		{"drift is taken off", []spot{spotOf(1, 99.5, 100.5, 98.5), spotOf(2, 80, 81, 79.01)}, "[]"},
		{"equal", []spot{spotOf(1, 100, 101, 99), spotOf(2, 50, 51, 49)}, "[1]"},
		{"within the scatter", []spot{spotOf(1, 101, 98, 99), spotOf(2, 50, 51, 49)}, "[1]"},
		// Its own scatter speaks for it, however still the others are.
		{"one bad repeat", []spot{spotOf(1, 100, 68, 99), spotOf(2, 90, 91, 89), spotOf(3, 91, 92, 90.01)}, "[1]"},
		{"no common repeat", []spot{spotOf(1, -1, -1, -1, 50), spotOf(2, 90, 91, 89.1)}, "[1]"},
		{"a missing repeat", []spot{spotOf(1, 90, -1, 89), spotOf(2, 80, 81, 79.1)}, "[]"},
	} {
		all := append([]spot{best}, c.others...)
		var ties []string
		for _, i := range compare(all, 0).ties {
			ties = append(ties, all[i].cell["payload_bytes"].String())
		}
		if got := fmt.Sprint(ties); got != c.ties {
			t.Errorf("%s: not separable %v; want %v", c.name, got, c.ties)
		}
	}
	if c := compare([]spot{spotOf(0, 5), spotOf(1, 1)}, 0); c.ok || len(c.ties) != 1 {
		t.Errorf("one trial each: %+v; want nothing separable", c)
	}
}

// A two-way layout by hand: rows 1 2 and 3 6 leave residuals of ±0.5: squares add up to 1, one degree of freedom.
func TestResidual(t *testing.T) {
	if noise, freedom := residual([]spot{spotOf(0, 1, 2), spotOf(1, 3, 6)}); !near(noise, 1, 1e-9) || freedom != 1 {
		t.Errorf("residual = %v with %d; want 1 with 1", noise, freedom)
	}
	// Additive levels leave nothing, missing trials or not.
	if noise, freedom := residual([]spot{spotOf(0, 1, 2, 4), spotOf(1, 3, -1, 6), spotOf(2, 10, 11, 13)}); noise > 1e-9 || freedom != 3 {
		t.Errorf("residual of additive levels = %v with %d; want 0 with 3", noise, freedom)
	}
}

func TestConditions(t *testing.T) {
	w := usualField()
	doc := w.document()
	for i := range doc.Results {
		doc.Results[i].Cell["loss_ratio"] = model.Number(0.05)
	}
	w.loss, w.rate = 0, 2e6
	for _, r := range w.document().Results {
		r.Cell["loss_ratio"] = model.Number(0)
		doc.Results = append(doc.Results, r)
	}
	doc.Plan.Factors = append(doc.Plan.Factors, model.Factor{Knob: "loss_ratio", Levels: []model.Value{model.Number(0.05), model.Number(0)}})
	f := of(t, doc, KindSweepConditions)
	if len(f.Cells) != 2 || f.Cells[0]["payload_bytes"].Number != 1472 || f.Cells[1]["payload_bytes"].Number != 4352 || f.Values["conditions"] != 2 {
		t.Errorf("conditions: %s %v", f.Text, f.Cells)
	}
}
