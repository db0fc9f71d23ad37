package controls

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

// exactly is a control whose trials take what a list says, in turn.
func exactly(of map[string]map[float64][]float64) func(string, float64, int, *rand.Rand) float64 {
	return func(control string, loss float64, repeat int, _ *rand.Rand) float64 {
		list := of[control][loss]
		return list[repeat%len(list)]
	}
}

// around are ten values with a median of 1 and an interval that scales with it.
func around(middle float64) []float64 {
	var v []float64
	for _, x := range []float64{0.95, 0.96, 0.97, 0.98, 0.99, 1.01, 1.02, 1.03, 1.04, 1.05} {
		v = append(v, x*middle)
	}
	return v
}

func TestSentences(t *testing.T) {
	transfer := duel{controls: []string{"cubic", "bbr"}, losses: []float64{0, 0.01}, repeats: 10, bytes: 640e6, limit: 120}
	for _, c := range []struct {
		name       string
		controls   []string
		took       map[string]map[float64][]float64
		change     func(*duel)
		verdict    string
		conditions []string
		contrasts  []string
	}{
		{"one is faster under loss", nil,
			map[string]map[float64][]float64{"cubic": {0: around(0.7), 0.01: around(5.4)}, "bbr": {0: around(0.71), 0.01: around(0.71)}}, nil,
			"bbr is 7.6 times as fast as cubic at 1 % loss; at no loss they cannot be told apart.",
			[]string{"At no loss bbr takes 0.71 s (0.69 to 0.73), cubic 0.70 s (0.68 to 0.72): the two cannot be told apart (bbr 0.99 times as fast, 0.94 to 1.04; 10 trials each).",
				"At 1 % loss bbr takes 0.71 s (0.69 to 0.73), cubic 5.4 s (5.2 to 5.6): bbr is 7.6 times as fast (7.2 to 8.0)."},
			[]string{"At no loss bbr cannot be told from cubic (0.99 times as fast, 0.94 to 1.04; 10 trials each).",
				"At 1 % loss bbr takes 0.71 s (0.69 to 0.73), cubic 5.4 s (5.2 to 5.6): bbr is 7.6 times as fast (7.2 to 8.0)."}},
		{"never ended", []string{"cubic", "bbr", "reno"},
			map[string]map[float64][]float64{"cubic": {0: around(0.7), 0.01: around(500)}, "bbr": {0: around(1.4), 0.01: around(7.5)}, "reno": {0: around(0.7), 0.01: around(600)}}, nil,
			"bbr is at least 15 times as fast as cubic at 1 % loss; cubic is 2.0 times as fast as bbr at no loss. reno cannot be told from cubic under any of 2 conditions.",
			[]string{"At no loss bbr takes 1.40 s (1.36 to 1.44), reno 0.70 s (0.68 to 0.72), cubic 0.70 s (0.68 to 0.72): cubic is 2.0 times as fast as bbr (1.9 to 2.1); reno cannot be told from cubic (1.00 times as fast, 0.95 to 1.05; 10 trials each).",
				"At 1 % loss bbr takes 7.5 s (7.3 to 7.7), reno more than 120 s (none of 10 trials ended), cubic more than 120 s (none of 10 trials ended): bbr is at least 15 times as fast as cubic; reno cannot be told from cubic (no trial of either ended; 10 trials each)."},
			[]string{"At no loss bbr takes 1.40 s (1.36 to 1.44), cubic 0.70 s (0.68 to 0.72): cubic is 2.0 times as fast (1.9 to 2.1).",
				"At no loss reno cannot be told from cubic (1.00 times as fast, 0.95 to 1.05; 10 trials each).",
				"At 1 % loss bbr takes 7.5 s (7.3 to 7.7), cubic more than 120 s (none of 10 trials ended): bbr is at least 15 times as fast.",
				"At 1 % loss reno cannot be told from cubic (no trial of either ended; 10 trials each)."}},
		{"goodput", nil,
			map[string]map[float64][]float64{"cubic": {0: around(90e6), 0.01: around(4.2e6)}, "bbr": {0: around(88.1e6), 0.01: around(88.1e6)}},
			func(d *duel) { d.bytes = 0 },
			"bbr carries 21 times as much as cubic at 1 % loss; at no loss they cannot be told apart.",
			[]string{"At no loss bbr carries 88.1 Mbit/s (85.5 to 90.7), cubic 90.0 Mbit/s (87.3 to 92.7): the two cannot be told apart (bbr 0.98 times as much, 0.93 to 1.03; 10 trials each).",
				"At 1 % loss bbr carries 88.1 Mbit/s (85.5 to 90.7), cubic 4.20 Mbit/s (4.07 to 4.33): bbr carries 21 times as much (20 to 22)."},
			nil},
		{"too seldom", nil,
			map[string]map[float64][]float64{"cubic": {0: {0.7, 0.71, 0.72}, 0.01: {5, 5.4, 6}}, "bbr": {0: {0.7, 0.71, 0.72}, 0.01: {0.7, 0.71, 0.72}}},
			func(d *duel) { d.repeats = 3 },
			"3 trials each are too few to tell controls apart: with 2 comparisons 5 are the least (--repeats 5).",
			[]string{"At no loss bbr takes 0.71 s (0.70 to 0.72), cubic 0.71 s (0.70 to 0.72): the two cannot be told apart (bbr 1.00 times as fast, 0.97 to 1.03; 3 trials each are too few to tell).",
				"At 1 % loss bbr takes 0.71 s (0.70 to 0.72), cubic 5.4 s (5.0 to 6.0): the two cannot be told apart (bbr 7.6 times as fast, 6.9 to 8.6; 3 trials each are too few to tell)."},
			nil},
		{"one control", []string{"cubic"}, map[string]map[float64][]float64{"cubic": {0: around(0.7), 0.01: around(5.4)}}, nil,
			"cubic takes 0.70 s (0.68 to 0.72) at no loss and 5.4 s (5.2 to 5.6) at 1 % loss.",
			[]string{"At no loss cubic takes 0.70 s (0.68 to 0.72).", "At 1 % loss cubic takes 5.4 s (5.2 to 5.6)."}, []string{}},
		{"the baseline never worked", nil, map[string]map[float64][]float64{"cubic": {0: around(0.7), 0.01: around(5.4)}, "bbr": {0: around(0.7), 0.01: around(0.71)}},
			func(d *duel) {
				d.change = func(r *model.Result) {
					if r.Cell["control"].Text == "cubic" {
						r.State = model.Invalid
					}
				}
			},
			"Nothing can be compared: no condition has valid trials of cubic and of another control.",
			[]string{"At no loss bbr takes 0.70 s (0.68 to 0.72), cubic has no valid trial.", "At 1 % loss bbr takes 0.71 s (0.69 to 0.73), cubic has no valid trial."}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := transfer
			d.took = exactly(c.took)
			if c.controls != nil {
				d.controls = c.controls
			}
			if c.change != nil {
				c.change(&d)
			}
			got := table(t, d.document())
			if text := Verdict(got); text != c.verdict {
				t.Errorf("verdict:\n got %s\nwant %s", text, c.verdict)
			}
			for i, want := range c.conditions {
				if text := got.Conditions[i].Verdict; text != want {
					t.Errorf("condition %d:\n got %s\nwant %s", i, text, want)
				}
			}
			for i, want := range c.contrasts {
				if text := got.Contrasts[i].Text; text != want {
					t.Errorf("contrast %d:\n got %s\nwant %s", i, text, want)
				}
			}
			if c.contrasts != nil && len(got.Contrasts) != len(c.contrasts) {
				t.Errorf("%d contrasts; want %d", len(got.Contrasts), len(c.contrasts))
			}
			if slices.ContainsFunc(got.Notes, func(s string) bool { return strings.Contains(s, "%!") }) {
				t.Errorf("notes: %q", got.Notes)
			}
		})
	}
}

func TestConditionText(t *testing.T) {
	number, word := model.Number, model.Word
	for _, c := range []struct {
		cell       model.Cell
		want, open string
	}{
		{model.Cell{}, "", ""},
		{model.Cell{"link.loss_ratio": number(0.01)}, "1 % loss", "At 1 % loss "},
		{model.Cell{"link.loss_ratio": number(0)}, "no loss", "At no loss "},
		{model.Cell{"link.loss_ratio": number(0.1), "link.delay_s": number(0.02)}, "20 ms delay and 10 % loss", "At 20 ms delay and 10 % loss "},
		{model.Cell{"link-receiver.loss_ratio": number(0.001)}, "0.1 % loss at receiver", "At 0.1 % loss at receiver "},
		{model.Cell{"link.rate_bps": number(100e6)}, "100 Mbit/s rate", "At 100 Mbit/s rate "},
		{model.Cell{"link.rate_bps": number(0)}, "no limit of the rate", "At no limit of the rate "},
		{model.Cell{"link.queue_packets": number(100)}, "a queue of 100 packets", "At a queue of 100 packets "},
		{model.Cell{"link.loss_ratio": number(0), "streams": number(4)}, "no loss with 4 streams", "At no loss with 4 streams "},
		{model.Cell{"streams": number(1), "direction": word("down")}, "with 1 stream down", "With 1 stream down "},
	} {
		if got := conditionText(c.cell); got != c.want {
			t.Errorf("conditionText(%v) = %q; want %q", c.cell, got, c.want)
		}
		if got := Opening(model.ControlSetting{Cell: c.cell, Text: c.want}); got != c.open {
			t.Errorf("Opening(%v) = %q; want %q", c.cell, got, c.open)
		}
	}
}

func TestFigureWords(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{{0.7123, 2, "0.71"}, {5.44, 2, "5.4"}, {54.4, 2, "54"}, {1234, 2, "1200"}, {0.0996, 2, "0.10"}, {9.96, 2, "10"}, {0, 2, "0"}, {999.6, 3, "1000"}} {
		if got := numberText(c.v, c.digits); got != c.want {
			t.Errorf("numberText(%v, %d) = %s; want %s", c.v, c.digits, got, c.want)
		}
	}
	for v, want := range map[float64]string{0.98: "0.98", 1.02: "1.02", 1.999: "2.0", 7.62: "7.6", 21.3: "21", 123.4: "123", 5e7: "over a million", 0.012: "0.01"} {
		if got := timesText(v); got != want {
			t.Errorf("timesText(%v) = %s; want %s", v, got, want)
		}
	}
	for _, c := range []struct {
		e    model.Estimate
		want string
	}{
		{model.Estimate{Median: 0.71, Low: 0.69, High: 0.74}, "0.71 s (0.69 to 0.74)"},
		{model.Estimate{Median: 0.7101, Low: 0.7090, High: 0.7121}, "0.710 s (0.709 to 0.712)"},
		{model.Estimate{Median: 0.71, Low: 0.71, High: 0.71}, "0.71 s"},
		{model.Estimate{Median: 0.08, Low: 0.03, High: 0.12}, "80 ms (30 ms to 0.12 s)"},
	} {
		if got := ranged(c.e, secondsText); got != c.want {
			t.Errorf("ranged(%v) = %s; want %s", c.e, got, c.want)
		}
	}
}

func TestLooksInWords(t *testing.T) {
	for _, c := range []struct {
		repeats, most int
		want          string
	}{{10, 0, "10"}, {10, 30, "10, 15, 20, 25 and 30"}, {5, 15, "5, 7, 9 and so on to 15"}} {
		if got := numbers(model.Design{Repeats: c.repeats, MostRepeats: c.most}); got != c.want {
			t.Errorf("%d to %d: %q, want %q", c.repeats, c.most, got, c.want)
		}
	}
}

// What is lost of a buffer of segments is told as the links were asked to do it.
func TestOffloadInWords(t *testing.T) {
	lost := uint64(3)
	doc := model.Document{Plan: model.Plan{Target: "lab:direct"}, Results: []model.Result{{State: model.Valid, Links: []model.LinkResult{{Backend: model.BackendUser, Lost: &lost}}}}}
	for _, c := range []struct {
		links   []model.Link
		factors []model.Factor
		want    string
	}{
		{nil, nil, "The emulated links lose packet by packet"},
		{[]model.Link{{Buffers: "parts"}}, nil, "The emulated links lose packet by packet"},
		{[]model.Link{{Buffers: model.BuffersWhole}}, nil, "The emulated links lose whole buffers of segments"},
		{nil, []model.Factor{{Knob: "link.buffers"}}, "The emulated links lose single packets where buffers are parts"},
	} {
		doc.Plan.Links, doc.Plan.Factors = c.links, c.factors
		if got := Offload(doc); !strings.HasPrefix(got, c.want) {
			t.Errorf("links %v, factors %v: %q; want %q", c.links, c.factors, got, c.want)
		}
	}
}
