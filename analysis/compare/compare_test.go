package compare

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/model"
)

func levels(t *testing.T, doc model.Document, knob, base string) model.Comparison {
	t.Helper()
	c, err := Levels(doc, knob, base, all())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLevelsInWords(t *testing.T) {
	b := usual()
	b.variants = append(b.variants, "queue")
	c := levels(t, b.document(), "variant", "")
	const want = "log carries 78 % less than plain at 64 B frames up (148 against 672 kpps; 95 %: 77.58 to 78.41 % less), loses 71 points more and takes 12 points more CPU. queue cannot be told from plain. 8 of 28 comparisons are separable."
	if c.Verdict != want {
		t.Errorf("verdict\n%s\nwant\n%s", c.Verdict, want)
	}
	if len(c.Effects) == 0 || c.Effects[0].Metric != "receive_pps" || c.Effects[0].SameAs != "goodput_bps" || c.Effects[0].Test != model.PairedTest {
		t.Errorf("first effect %+v; want packets per second, the same test as goodput", c.Effects[0])
	}
	for i, e := range c.Effects[1:] {
		if e.Separable && !c.Effects[i].Separable {
			t.Error("a separable effect stands after one that is not")
		}
	}
	if got := levels(t, b.document(), "variant", "log").Verdict; !strings.HasPrefix(got, "plain carries 4.5 times as much as log at 64 B frames up (672 against 148 kpps; 95 %: 4.5 to 4.6 times)") {
		t.Errorf("with the other baseline: %s", got)
	}
}

func TestRunsAreNotInterleaved(t *testing.T) {
	a, b := usual(), usual()
	a.variants, b.variants = nil, nil
	plain, slow := a.pps, func(_ string, frame int) float64 { return usual().pps("log", frame) }
	a.pps = func(_ string, frame int) float64 { return plain("plain", frame) }
	b.pps, b.target, b.id, b.start, b.seed = slow, "lab:router", "20261121-103500-bbbb", 35*time.Minute, 2
	a.busy, b.busy = nil, nil
	c, err := Runs([]model.Document{a.document(), b.document()}, all())
	if err != nil {
		t.Fatal(err)
	}
	if c.Interleaved || !strings.HasPrefix(c.Notes[0], "Not interleaved: measured 35 min apart; what changed on the path meanwhile is in the difference") {
		t.Errorf("interleaved %v, notes %q", c.Interleaved, c.Notes)
	}
	if want := []string{"target: lab:nat; lab:router"}; !slices.Equal(c.Differ, want) {
		t.Errorf("differ %q; want %q", c.Differ, want)
	}
	if e := c.Effects[0]; !e.Separable || e.Test != model.UnpairedTest || e.Change > -0.75 || e.Change < -0.8 || c.Sides[1].Name != "lab:router" {
		t.Errorf("first effect %+v of %s", e, c.Sides[1].Name)
	}
}

// The effect of a variant that each run has alone is that of the variant, cell by cell.
func TestRunsOfOneVariantEach(t *testing.T) {
	a, b := usual(), usual()
	a.variants, b.variants, b.id, b.frames = []string{"plain"}, []string{"log"}, "20261121-103500-bbbb", []int{64, 512}
	c, err := Runs([]model.Document{a.document(), b.document()}, all())
	if err != nil {
		t.Fatal(err)
	}
	if c.Sides[0].Name != "plain" || c.Sides[1].Name != "log" || !slices.Contains(c.Differ, "variant: plain; log") {
		t.Errorf("sides %s and %s, differ %q", c.Sides[0].Name, c.Sides[1].Name, c.Differ)
	}
	for _, e := range c.Effects {
		if e.Cell["frame_bytes"].Number != 64 {
			t.Errorf("compared %s; want 64 B frames only, which both have", e.Cell.Key())
		}
	}
	for _, want := range []string{"of plain only, not of log: 1518 B frames up", "of log only, not of plain: 512 B frames up"} {
		if !slices.Contains(c.LeftOut, want) {
			t.Errorf("left out %q; want %q in it", c.LeftOut, want)
		}
	}
}

// A run whose one size is no factor is matched by what its flows had.
func TestRunsMatchWhatIsImplied(t *testing.T) {
	a, b := usual(), usual()
	a.variants, b.variants, b.id, b.target, b.frames = nil, nil, "b", "lab:router", []int{64}
	a.pps = func(string, int) float64 { return 100e3 }
	b.pps = a.pps
	a.busy, b.busy = nil, nil
	doc := b.document()
	for i := range doc.Results {
		doc.Results[i].Cell = nil
	}
	c, err := Runs([]model.Document{a.document(), doc}, all())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Effects) == 0 || c.Effects[0].Cell["frame_bytes"].Number != 64 {
		t.Errorf("effects %+v", c.Effects)
	}
}

func TestRefusals(t *testing.T) {
	change := func(f func(*bench)) model.Document {
		b := usual()
		f(&b)
		return b.document()
	}
	invalid := usual().document()
	for i := range invalid.Results {
		invalid.Results[i].State = model.Invalid
	}
	other := change(func(b *bench) { b.id, b.frames = "b", []int{512} })
	for _, c := range []struct {
		name string
		got  func() (model.Comparison, error)
		want string
		ask  bool // an *AskError, else a *NothingError
	}{
		{"once", func() (model.Comparison, error) {
			return Levels(change(func(b *bench) { b.repeats = 1 }), "variant", "", all())
		}, "measured once each: nothing can be told apart; --repeats 3 or more", false},
		{"twice", func() (model.Comparison, error) {
			return Levels(change(func(b *bench) { b.repeats = 2 }), "variant", "", all())
		}, "measured twice each: how much it varies is unknown, so nothing can be told apart; --repeats 3 or more", false},
		{"invalid", func() (model.Comparison, error) { return Levels(invalid, "variant", "", all()) }, "plain has no valid trial: nothing can be compared", false},
		{"other cells", func() (model.Comparison, error) {
			return Runs([]model.Document{usual().document(), other}, all())
		}, "no setting stands on both sides", false},
		{"not measured", func() (model.Comparison, error) {
			return Levels(change(func(b *bench) { b.busy = nil }), "variant", "", Metrics{"cpu"})
		}, "nothing can be compared: none of the metrics was measured", false},
		{"unknown knob", func() (model.Comparison, error) { return Levels(usual().document(), "colour", "", all()) }, `the run has no setting "colour"; it varies frame_bytes and variant`, true},
		{"one level", func() (model.Comparison, error) { return Levels(usual().document(), "protocol", "", all()) }, "protocol is udp in all trials", true},
		{"directions", func() (model.Comparison, error) { return Levels(usual().document(), "direction", "", all()) }, "the directions are different flows", true},
		{"unknown base", func() (model.Comparison, error) { return Levels(usual().document(), "variant", "fast", all()) }, `variant has no level "fast"; want one of plain and log`, true},
		{"itself", func() (model.Comparison, error) {
			return Runs([]model.Document{usual().document(), usual().document()}, all())
		}, "stands twice", true},
		{"a knob of one run", func() (model.Comparison, error) {
			return Runs([]model.Document{usual().document(), change(func(b *bench) {
				b.id, b.variants = "b", nil
				b.pps = func(string, int) float64 { return 1e5 }
				b.busy = nil
			})}, all())
		}, "has several levels of variant, and another run says nothing of it", true},
	} {
		_, err := c.got()
		var ask *AskError
		var nothing *NothingError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &ask) != c.ask || errors.As(err, &nothing) == c.ask || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v (%T); want %q", c.name, err, err, c.want)
		}
	}
}

func TestMetricWords(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{"goodput", "goodput", ""}, {"cpu, loss", "cpu softirq goodput_per_cpu loss", ""}, {"delay_p99,delay", "delay_p99 delay_p50", ""},
		{"", "", `no metric ""; want some of pps,goodput,loss,delay,delay_p50,delay_p99,cpu,softirq,goodput_per_cpu`}, {"goodput,speed", "", `no metric "speed"`},
	} {
		got, err := ParseMetrics(c.text)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("ParseMetrics(%q): %v; want %s", c.text, err, c.err)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("ParseMetrics(%q) = %q, %v; want %s", c.text, got, err, c.want)
		}
	}
}

func TestParseLimit(t *testing.T) {
	for _, c := range []struct{ text, err string }{
		{"goodput < -5%", ""}, {"loss>1%", ""}, {" delay_p99  >  20 % ", ""}, {"cpu > 10%", ""}, {"goodput < 0%", ""},
		{"", "want METRIC < or > PERCENT"}, {"goodput = 5%", "want METRIC"}, {"speed < -5%", `no metric "speed"; want one of pps, goodput, loss`}, {"goodput < -5", "want a number of percent after <"},
		{"goodput < five%", "want a number of percent"}, {"goodput < 5%", "would hold where nothing changed"}, {"loss > -1%", "would hold where nothing changed"}, {"goodput < NaN%", "want a number"},
		{"goodput < -100%", "nothing falls by 100 %"}, {"goodput <= -5%", "want a number of percent"}, {"delay > 5%", `no metric "delay"`},
	} {
		_, err := ParseLimit(c.text)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("ParseLimit(%q): %v; want %q", c.text, err, c.err)
		}
	}
}

// A variant that lets nothing through has no logarithm, and is told all the same.
func TestNothingArrives(t *testing.T) {
	b := usual()
	plain := b.pps
	b.pps = func(variant string, frame int) float64 {
		if variant == "log" {
			return 0
		}
		return plain(variant, frame)
	}
	c := levels(t, b.document(), "variant", "")
	if e := c.Effects[0]; !e.Separable || e.Change != -1 {
		t.Errorf("%+v; want all of it lost", e)
	}
	c = levels(t, b.document(), "variant", "log")
	if !slices.ContainsFunc(c.LeftOut, func(s string) bool { return strings.Contains(s, "it is 0 on the baseline") }) {
		t.Errorf("left out %q; want that no percentage can be given", c.LeftOut)
	}
}

// Figures too small to be any do not overflow what is told relative to them.
func TestNextToNothingArrives(t *testing.T) {
	b := usual()
	b.pps = func(string, int) float64 { return 100e3 }
	d := b.document()
	for i := range d.Results {
		r := &d.Results[i]
		if r.Cell["variant"].Text == "plain" {
			r.Flows[0].GoodputBPS = math.Min(float64(r.Repeat), 1) * 5e-324
		}
	}
	c := levels(t, d, "variant", "")
	for _, e := range c.Effects {
		for _, x := range []float64{e.Change, e.Low, e.High, e.P} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%+v", e)
			}
		}
	}
	if !slices.ContainsFunc(c.LeftOut, func(s string) bool { return strings.Contains(s, "it is 0 on the baseline") }) {
		t.Errorf("left out %q; want goodput in it", c.LeftOut)
	}
}

// The order of trials, and trials that do not count, change nothing.
func TestOrderDoesNotMatter(t *testing.T) {
	doc := usual().document()
	want := levels(t, doc, "variant", "").Verdict
	rapid.Check(t, func(t *rapid.T) {
		d := doc
		d.Results = rapid.Permutation(doc.Results).Draw(t, "order")
		spoilt := d.Results[0]
		spoilt.State, spoilt.Why = model.Aborted, "cut"
		spoilt.Flows = []model.FlowResult{{Name: "up", GoodputBPS: rapid.Float64().Draw(t, "goodput")}}
		d.Results = append(d.Results, spoilt)
		c, err := Levels(d, "variant", "", all())
		if err != nil || c.Verdict != want {
			t.Fatalf("%v\n%s\nwant\n%s", err, c.Verdict, want)
		}
	})
}

func TestDoubts(t *testing.T) {
	doc := usual().document()
	for i := range doc.Results {
		if doc.Results[i].Cell["variant"].Text == "log" {
			doc.Results[i].Engine = "xdp"
		}
	}
	alone := doc.Results[0]
	alone.Cell = model.Cell{"frame_bytes": model.Number(64)}
	doc.Results = append(doc.Results, alone, alone)
	c := levels(t, doc, "variant", "")
	if n := len(c.Notes); !strings.HasPrefix(c.Notes[n-1], "Packets were not carried alike: plain by udp and log by xdp.") {
		t.Errorf("notes %q", c.Notes)
	}
	if want := "a trial that sets no variant (2 times)"; !slices.Contains(c.LeftOut, want) {
		t.Errorf("left out %q; want %q", c.LeftOut, want)
	}
}

// Whatever documents hold, a comparison or one clear line comes out, with numbers that are some.
func TestAnyDocuments(t *testing.T) {
	figure := rapid.OneOf(rapid.Float64Range(0, 1e6), rapid.Float64(), rapid.SampledFrom([]float64{0, 1, -1, math.NaN(), math.Inf(1), 1e300, 5e-324}))
	document := rapid.Custom(func(t *rapid.T) model.Document {
		d := model.Document{ID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id"), Plan: model.Plan{Target: "x", Variants: []model.Variant{{Name: "p"}, {Name: "q"}}}}
		for i := range rapid.IntRange(0, 24).Draw(t, "results") {
			r := model.Result{Repeat: i / 4, State: rapid.SampledFrom([]model.State{model.Valid, model.Valid, model.Valid, model.Invalid}).Draw(t, "state"), Cell: model.Cell{"variant": model.Word([]string{"p", "q"}[i%2])}}
			if rapid.Bool().Draw(t, "sized") {
				r.Cell["payload_bytes"] = model.Number(float64(64 * (i / 2 % 2)))
			}
			if rapid.Bool().Draw(t, "watched") {
				r.Router = &model.RouterWatch{CPU: &model.CPUSplit{Idle: figure.Draw(t, "idle"), Softirq: figure.Draw(t, "softirq")}}
			}
			for range rapid.IntRange(0, 2).Draw(t, "flows") {
				r.Flows = append(r.Flows, model.FlowResult{Name: rapid.SampledFrom([]string{"up", "down", ""}).Draw(t, "name"), Protocol: rapid.SampledFrom([]model.Protocol{model.UDP, model.TCP, ""}).Draw(t, "protocol"),
					Attempted: rapid.Uint64Max(2).Draw(t, "attempted"), LossRatio: figure.Draw(t, "loss"), ReceivePPS: figure.Draw(t, "pps"), GoodputBPS: figure.Draw(t, "goodput"),
					Delay: &model.Percentiles{Count: 1, P50: figure.Draw(t, "p50"), P99: figure.Draw(t, "p99")}})
			}
			d.Results = append(d.Results, r)
		}
		return d
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := document.Draw(t, "a"), document.Draw(t, "b")
		for name, compare := range map[string]func() (model.Comparison, error){
			"levels": func() (model.Comparison, error) { return Levels(a, "variant", "", all()) },
			"runs":   func() (model.Comparison, error) { return Runs([]model.Document{a, b}, all()) },
		} {
			c, err := compare()
			var ask *AskError
			var nothing *NothingError
			if err != nil && (!errors.As(err, &ask) && !errors.As(err, &nothing) || strings.Contains(err.Error(), "\n")) {
				t.Fatalf("%s: %v", name, err)
			}
			for _, e := range c.Effects {
				for _, x := range []float64{e.Change, e.Low, e.High, e.P, e.FamilyP, e.Hidden, e.Baseline.Mean, e.Other.Low, e.Other.High} {
					if math.IsNaN(x) || math.IsInf(x, 0) {
						t.Fatalf("%s: %+v", name, e)
					}
				}
				if e.P > e.FamilyP || e.Separable && e.P > 0.05 || e.Low > e.High || strings.Contains(e.Text, "NaN") || strings.Contains(e.Text, "Inf") {
					t.Fatalf("%s: %+v", name, e)
				}
			}
		}
	})
}
