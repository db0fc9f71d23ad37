package plan

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// drawPlan is a plan with any settings, which may not go together.
func drawPlan(t *rapid.T) model.Plan {
	word := rapid.StringMatching(`[a-z0-9:.\-]{1,12}`)
	name := rapid.OneOf(word, rapid.SampledFrom([]string{"up", "null", "~", "true", "1", "1.5", "0x10", "yes", "- a",
		"a: b", "#", "a #b", "'", `"`, "é", " a ", "&x", "*x", "!t", "|", ">", "%", "@", "`", "{", "[", "1e3", ".inf",
		"2026-11-21", "---"}))
	p := model.Plan{Format: model.PlanFormat, Command: name.Draw(t, "command"), Target: "lab:" + word.Draw(t, "target"),
		Engine: "auto", Design: model.Design{Repeats: 3}, Timing: model.Timing{MeasureSeconds: 1}}
	for _, way := range []string{"up", "down"}[:rapid.IntRange(1, 2).Draw(t, "flows")] {
		p.Flows = append(p.Flows, model.Flow{Name: way, Protocol: model.UDP, PayloadBytes: 64, Streams: 1,
			From: name.Draw(t, "from") + "1", To: model.Receiver})
	}
	value := func(k model.Knob) model.Value {
		switch {
		case k.Kind == model.Numbers && k.Unit == unit.PPS:
			return model.Number(rapid.Float64Range(0.001, 1e9).Draw(t, k.Name))
		case k.Kind == model.Numbers && (k.Unit == unit.Seconds || k.Unit == unit.Ratio):
			return model.Number(rapid.Float64Range(k.Low, k.High).Draw(t, k.Name))
		case k.Kind == model.Numbers:
			return model.Number(math.Trunc(rapid.Float64Range(k.Low, k.High).Draw(t, k.Name)))
		case k.Kind == model.Switch:
			return model.Number(float64(rapid.IntRange(0, 1).Draw(t, k.Name)))
		}
		words := map[string][]string{"profile": {"poisson", "burst=64", "on=10ms,off=90ms,random", "ramp=1kpps..2kpps"},
			"seed": {"1", "18446744073709551615"}, "source_addresses": {"192.0.2.1", "fd00::1"}, "control": {"bbr"}}
		return model.Word(rapid.SampledFrom(append(slices.Clone(k.Words), words[k.Name]...)).Draw(t, k.Name))
	}
	settings := slices.DeleteFunc(slices.Clone(model.Knobs()), func(k model.Knob) bool {
		return k.Name == "" || slices.Contains([]string{"variant", "pair", "dut", "device", "at_s", "link.loss_ratio"}, k.Name)
	})
	for range rapid.IntRange(0, 4).Draw(t, "settings") {
		k := rapid.SampledFrom(settings).Draw(t, "setting")
		if v := value(k); p.Set(k.Name, v) == nil && k.Varies && rapid.Bool().Draw(t, "a factor") {
			p.Factors = append(p.Factors, model.Factor{Knob: k.Name, Levels: []model.Value{v}})
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "links") {
		l, factors, err := model.ParseLink(name.Draw(t, "node"), rapid.SampledFrom([]string{"rate=95500kbit,queue=64KiB",
			"delay=0ms,20ms,jitter=1ms", "loss=ge:1%/10%/70%/0.1%,seed=18446744073709551615", "mtu=1400,loss=0"}).Draw(t, "link"))
		testenv.Must(t, err)
		p.Links, p.Factors = append(p.Links, l), append(p.Factors, factors...)
	}
	return p
}

func TestPrintParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		if err := p.Check(); err != nil {
			t.Skip(err)
		}
		text, err := Print(p)
		testenv.Must(t, err)
		back, err := Parse(text, "f.yaml")
		if err != nil || !reflect.DeepEqual(back, p) {
			t.Fatalf("%+v\nprints as\n%s\nreads as\n%+v, %v", p, text, back, err)
		}
	})
}

// reread prints a plan and reads it again.
func reread(t testing.TB, p model.Plan) model.Plan {
	t.Helper()
	text, err := Print(p)
	testenv.Must(t, err)
	back, err := Parse(text, "plan.yaml")
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return back
}

// The longest list that flags can make prints and reads back.
func TestLongList(t *testing.T) {
	p, err := Curve.Of("lab:router", fmt.Sprintf("payload=16..%d/1", 15+unit.MaxListLength))
	testenv.Must(t, err)
	if back := reread(t, p); len(p.Factors[0].Levels) != unit.MaxListLength || !reflect.DeepEqual(back, p) {
		t.Errorf("%d sizes came back as %d", len(p.Factors[0].Levels), len(back.Factors[0].Levels))
	}
}

// The demo must end in 45 s: trials, their drain and half a second to set each up.
func TestDemo(t *testing.T) {
	p, err := Demo()
	testenv.Must(t, err)
	testenv.Must(t, p.Check())
	trials := p.Design.Repeats * len(p.Factors[0].Levels)
	each := p.Timing.WarmupSeconds + p.Timing.MeasureSeconds + p.Timing.DrainSeconds + 0.5
	if total := float64(trials) * each; total > 45 || math.IsNaN(total) {
		t.Errorf("the demo takes up to %.0f s", total)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(basis(f, Curve)))
	for _, text := range []string{"a: &x [1]\nb: *x", "? a\n: b", "- - - 1", "{a: {b: [1, {c: d}]}}", "a: |\n  x\n y",
		"!!binary x", "%YAML 1.2\n---\na: b", "a: 'b", "<<: *a", "\ufeffa: b", "? |\n  a\n: b"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b, "f")
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("an error of more than one line, or without the file: %q", err)
			}
			return
		}
		text, err := Print(p)
		testenv.Must(t, err)
		if back, err := Parse(text, "f"); err != nil {
			t.Fatalf("%+v prints as\n%s\nreads as %+v, %v", p, text, back, err)
		}
	})
}
