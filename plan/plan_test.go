package plan

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/unit"
)

func drawPlan(t *rapid.T) model.Plan {
	word := rapid.StringMatching(`[a-z0-9:.\-]{1,12}`)
	awkward := rapid.SampledFrom([]string{"up", "null", "~", "true", "1", "1.5", "0x10", "yes", "- a", "a: b", "#", "a #b", "'", `"`, "é", " a ", "&x", "*x", "!t", "|", ">", "%", "@", "`", "{", "[", "1e3", ".inf", "2026-11-21", "---"})
	ratio := rapid.Float64Range(0, 1)
	p := model.Plan{
		Format: model.PlanFormat, Command: rapid.OneOf(word, awkward).Draw(t, "command"), Target: "lab:" + word.Draw(t, "target"),
		Design: model.Design{Repeats: rapid.IntRange(1, 10).Draw(t, "repeats"), Seed: rapid.Uint64().Draw(t, "seed"), Ordered: rapid.Bool().Draw(t, "ordered")},
		Timing: model.Timing{WarmupSeconds: ratio.Draw(t, "warm-up"), MeasureSeconds: rapid.Float64Range(0.01, 600000).Draw(t, "measure"), DrainSeconds: ratio.Draw(t, "drain")},
		Engine: rapid.SampledFrom([]string{"auto", "udp", "xdp"}).Draw(t, "engine"),
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "flows") {
		rate := unit.Rate{}
		if rapid.Bool().Draw(t, "paced") {
			rate = unit.PacketRate(rapid.Uint64Range(1, 1e9).Draw(t, "rate"))
		}
		p.Flows = append(p.Flows, model.Flow{
			Name: []string{"up", "down"}[i], Protocol: model.UDP, From: rapid.OneOf(word, awkward).Draw(t, "from") + "1", To: model.Receiver,
			PayloadBytes: rapid.IntRange(16, 65507).Draw(t, "payload"), Rate: rate, Streams: rapid.IntRange(1, 128).Draw(t, "streams"),
			Family: rapid.SampledFrom([]int{0, 4, 6}).Draw(t, "family"), DontFragment: rapid.Bool().Draw(t, "df"),
		})
	}
	if rapid.Bool().Draw(t, "linked") {
		p.Links = []model.Link{{Node: rapid.OneOf(word, awkward).Draw(t, "node"), Rate: unit.BitRate(rapid.Uint64Range(1000, 10e12).Draw(t, "bit rate")), DelaySeconds: ratio.Draw(t, "delay"),
			LossRatio: ratio.Draw(t, "loss"), Seed: rapid.Uint64().Draw(t, "link seed")}}
	}
	if rapid.Bool().Draw(t, "factored") {
		p.Factors = []model.Factor{
			{Knob: "rate_pps", Levels: []model.Value{model.Word("max"), model.Number(rapid.Float64Range(0.001, 1e9).Draw(t, "level"))}},
			{Knob: "payload_bytes", Levels: []model.Value{model.Number(float64(rapid.IntRange(16, 65507).Draw(t, "size")))}},
		}
	}
	if rapid.Bool().Draw(t, "limited") {
		r := ratio.Draw(t, "limit")
		p.Limits.MaxLossRatio = &r
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text, "plan.yaml")
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return back
}

// The longest list that flags can make prints and reads back.
func TestLongList(t *testing.T) {
	p, err := Curve.Of("lab:router", fmt.Sprintf("payload=16..%d/1", 15+unit.MaxListLength))
	if err != nil {
		t.Fatal(err)
	}
	if back := reread(t, p); len(p.Factors[0].Levels) != unit.MaxListLength || !reflect.DeepEqual(back, p) {
		t.Errorf("%d sizes came back as %d", len(p.Factors[0].Levels), len(back.Factors[0].Levels))
	}
}

// The demo must end in 45 s: trials, their drain and half a second to set each up.
func TestDemo(t *testing.T) {
	p, err := Demo()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	trials := p.Design.Repeats * len(p.Factors[0].Levels)
	each := p.Timing.WarmupSeconds + p.Timing.MeasureSeconds + p.Timing.DrainSeconds + 0.5
	if total := float64(trials) * each; total > 45 || math.IsNaN(total) {
		t.Errorf("the demo takes up to %.0f s", total)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(basis(f, Curve)))
	for _, text := range []string{"a: &x [1]\nb: *x", "? a\n: b", "- - - 1", "{a: {b: [1, {c: d}]}}", "a: |\n  x\n y", "!!binary x", "%YAML 1.2\n---\na: b", "a: 'b", "<<: *a", "\ufeffa: b", "? |\n  a\n: b"} {
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
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Parse(text, "f"); err != nil {
			t.Fatalf("%+v prints as\n%s\nreads as %+v, %v", p, text, back, err)
		}
	})
}
