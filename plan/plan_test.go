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

func good(t testing.TB) string {
	p, err := Curve.Of("lab:router")
	if err != nil {
		t.Fatal(err)
	}
	text, err := Print(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseRefuses(t *testing.T) {
	base := good(t)
	edit := func(old, new string) string {
		if !strings.Contains(base, old) {
			t.Fatalf("the plan has no %q:\n%s", old, base)
		}
		return strings.Replace(base, old, new, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", "f.yaml: is empty; want a plan as --print-plan writes it"},
		"only a comment":      {"# hello\n", "f.yaml: is empty; want a plan as --print-plan writes it"},
		"null":                {"~", "f.yaml:1: want fields as name: value"},
		"a list":              {"- a\n", "f.yaml:1: want fields as name: value"},
		"a word":              {"hello", `f.yaml:1: want fields as name: value`},
		"not yaml":            {"a: [1,\nb: }", "f.yaml:1: not YAML: "},
		"binary":              {"\x00\xff\xfe", "f.yaml: is not text in UTF-8"},
		"too large":           {strings.Repeat("#", MaxBytes+1), "f.yaml: is 1048577 bytes; a plan is at most 1048576"},
		"long line":           {"a: " + strings.Repeat("x", 100_000), "f.yaml:1: the line is longer than 65536 bytes"},
		"deep flow":           {strings.Repeat("[", 5000), "f.yaml:1: is nested deeper than any plan"},
		"deep flow in lines":  {strings.Repeat("[\n", 5000), "f.yaml:101: is nested deeper than any plan"},
		"deep blocks":         {strings.Repeat("- ", 5000), "f.yaml:1: is nested deeper than any plan"},
		"many lines":          {strings.Repeat("-\n", 400_000), "f.yaml:25001: is longer than any plan: a list has at most 10000 entries"},
		"many keys":           {"{" + strings.Repeat("a: b, c: d,\n", 80_000), "f.yaml:8334: is longer than any plan"},
		"two documents":       {base + "---\n" + base, "f.yaml:36: a second document starts here; want one plan a file"},
		"field twice":         {edit("engine: auto", "engine: auto\n  engine: udp"), "f.yaml:10: not YAML: mapping key \"engine\" already defined"},
		"unknown field":       {edit("flows:", "flowz:"), `f.yaml:18: unknown field "flowz"`},
		"unknown inner field": {edit("  from: sender", "  form: sender"), `f.yaml:20: unknown field "form"`},
		"unknown setting":     {edit("seed: 1", "sead: 1"), `f.yaml:15: sead: is no setting of a plan`},
		"setting of a cell":   {edit("seed: 1", "frame_bytes: 64"), `f.yaml:15: frame_bytes: is no setting of a plan`},
		"setting of plans":    {edit("  from: sender", "  set: {seed: 1}\n  from: sender"), `f.yaml:15: seed: is no setting of a flow`},
		"wrong type":          {edit("repeats: 3", "repeats: two"), `f.yaml:14: repeats: want a number, not "two"`},
		"text for a number":   {edit("repeats: 3", `repeats: "2"`), `f.yaml:14: repeats: want a number, not "2"`},
		"number for text":     {edit("engine: auto", "engine: 5"), `f.yaml:9: engine: want auto, udp, xdp, udp:xdp, xdp:udp or xdp:xdp, not "5"`},
		"number for a router": {edit("engine: auto", "dut: 5"), `f.yaml:9: dut: want text, not 5`},
		"fraction":            {edit("repeats: 3", "repeats: 2.5"), `f.yaml:14: repeats: want a whole number, not 2.5`},
		"number too large":    {edit("repeats: 3", "repeats: 99999999999999999999"), `f.yaml:14: repeats: want a number, not "9999`},
		"negative seed":       {edit("seed: 1", "seed: -1"), `f.yaml:15: seed: want a whole number, not "-1"`},
		"fraction of a seed":  {edit("seed: 1", "seed: 1.5"), `f.yaml:15: seed: want a whole number, not "1.5"`},
		"bool":                {edit("seed: 1", "ordered: 0"), `f.yaml:15: ordered: want true or false, not 0`},
		"list for an object":  {edit("flows:\n- name: up\n  from", "flows:\n  name: up\n  from"), "f.yaml:19: flows: want a list, not object"},
		"list for a setting":  {edit("seed: 1", "streams: [1]"), ""},
		"rate":                {edit("rate_pps: max", "rate_pps: 100bit/s/s"), "f.yaml:13: rate_pps: rate \"100bit/s/s\": want max, packets"},
		"anchor":              {edit("engine: auto", "engine: &a auto"), `f.yaml:9: want plain values, not "&a auto"`},
		"alias":               {edit("engine: auto", "engine: *a"), `f.yaml:9: want plain values, not "*a"`},
		"tag":                 {edit("engine: auto", "engine: !!str auto"), `f.yaml:9: want plain values, not "!!str auto"`},
		"merge":               {edit("engine: auto", "<<: {engine: auto}"), `f.yaml:9: want plain values, not "<<"`},
		"checked level":       {edit("  - 100\n", "  - 15\n"), "f.yaml:27: factors[0].levels[2]: payload_bytes: a UDP payload is 16 to 65507 B, not 15"},
		"checked flow":        {edit("streams: 1", "streams: 0"), "f.yaml:16: streams: want 1 to 128, not 0"},
		"level list":          {edit("  - 100\n", "  - [100]\n"), "f.yaml: want a number or a word, not [100]"},
		"level infinite":      {edit("  - 100\n", "  - .inf\n"), ""},
		"missing field":       {edit("target: lab:router\n", ""), "f.yaml: target: want HOST[:PORT]"},
		"later format":        {edit(model.PlanFormat+"\ncommand", "pelt/plan/3\ncommand"), `f.yaml:4: format: is "pelt/plan/3"; this pelt reads pelt/plan/2`},
		"format before":       {edit(model.PlanFormat+"\ncommand", "pelt/plan/1\ncommand"), `f.yaml:4: format: is "pelt/plan/1"; this pelt reads pelt/plan/2, as --print-plan writes it`},
		"time 0":              {edit("measure_s: 2", "measure_s: 0"), "f.yaml:10: measure_s: want 10 ms to 7 d, not 0 s"},
		"time NaN":            {edit("measure_s: 2", "measure_s: .nan"), `f.yaml:10: want plain values, not ".nan"`},
		"null list":           {edit("flows:\n", "links:\nflows:\n"), "f.yaml:18: want plain values"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text), "f.yaml")
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
				t.Errorf("Parse:\n got %v\nwant %s\nof\n%.1500s", err, c.want, c.text)
			}
		})
	}
}

func TestParseForgives(t *testing.T) {
	base := good(t)
	for name, text := range map[string]string{
		"comments":     strings.Replace(base, "engine: auto", "engine: auto # any", 1),
		"marker":       "---\n" + base,
		"windows":      strings.ReplaceAll(base, "\n", "\r\n"),
		"flow style":   strings.Replace(base, "- name: up\n  from: sender\n  to: receiver\n", "- {name: up, from: sender, to: \"receiver\"}\n", 1),
		"quoted":       strings.Replace(base, "engine: auto", `"engine": 'auto'`, 1),
		"final marker": base + "...\n",
	} {
		p, err := Parse([]byte(text), "f.yaml")
		want, _ := Parse([]byte(base), "f.yaml")
		if err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

func TestCurve(t *testing.T) {
	flags := "payload=64,6400 rate=1kpps direction=up,both streams=2 time=10s warmup=0 repeats=3 seed=18446744073709551615 " +
		"engine=udp family=6 dscp=46 df=true burst=4 source-port=5000 max-loss=1%"
	p, err := Curve.Of("nas:7358", strings.Fields(flags)...)
	if err != nil {
		t.Fatal(err)
	}
	flow := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64,
		Rate: unit.PacketRate(1000), Burst: 4, Streams: 2, Family: 6, DSCP: 46, DontFragment: true, SourcePort: 5000}
	down, loss := flow, 0.01
	down.Name, down.From, down.To = "down", model.Receiver, model.Sender
	want := model.Plan{
		Format: model.PlanFormat, Command: "curve", Target: "nas:7358", Flows: []model.Flow{flow, down},
		Factors: []model.Factor{{Knob: "direction", Levels: []model.Value{model.Word("up"), model.Word("both")}},
			{Knob: "payload_bytes", Levels: []model.Value{model.Number(64), model.Number(6400)}}},
		Design: model.Design{Repeats: 3, Seed: 18446744073709551615},
		Timing: model.Timing{MeasureSeconds: 10, DrainSeconds: 3}, Engine: "udp", Limits: model.Limits{MaxLossRatio: &loss},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("Curve:\n got %+v\nwant %+v", p, want)
	}
	udp := []float64{18, 64, 100, 200, 400, 800, 1472}
	for flags, c := range map[string]struct {
		flows  string
		levels []float64
	}{
		"":                                {"up", udp},
		"proto=tcp":                       {"up", []float64{64, 1460}},
		"direction=down":                  {"down", udp},
		"direction=both payload=64":       {"up down", []float64{64}},
		"direction=down,up payload=64":    {"up down", []float64{64}},
		"frame=64,1518":                   {"up", []float64{64, 1518}},
		"proto=tcp bulk=true control=bbr": {"up", []float64{64, 1460}},
		"source-address=192.0.2.1..192.0.2.2 streams=2 payload=64": {"up", []float64{64}},
	} {
		p, err := Curve.Of("lab:router", strings.Fields(flags)...)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		var flows []string
		for _, f := range p.Flows {
			flows = append(flows, f.Name)
		}
		var levels []float64
		for _, v := range p.Factors[len(p.Factors)-1].Levels {
			levels = append(levels, v.Number)
		}
		if strings.Join(flows, " ") != c.flows || !reflect.DeepEqual(levels, c.levels) || p.Timing.WarmupSeconds != 0.5 ||
			p.Timing.MeasureSeconds != 2 || p.Design.Repeats != 3 {
			t.Errorf("%s: flows %v, levels %v, timing %+v, repeats %d", flags, flows, levels, p.Timing, p.Design.Repeats)
		}
	}
}

func TestCurveRefuses(t *testing.T) {
	for flags, want := range map[string]string{
		"payload=64,15":               "--payload: a UDP payload is 16 to 65507 B, not 15",
		"payload=15":                  "--payload: a UDP payload is 16 to 65507 B, not 15",
		"payload=1..3":                "--payload: sizes",
		"frame=63":                    "--frame: want 64B to",
		"frame=64 payload=64":         "--frame: give --payload or --frame, not both",
		"payload=mtu proto=tcp":       "--payload: mtu is for --proto udp",
		"payload=mtu frame=64":        "--frame: give --payload or --frame, not both",
		"payload=mtu,mtu":             "--payload: mtu stands twice",
		"frame=64 proto=tcp":          "--frame: is for --proto udp",
		"proto=sctp":                  `--proto: want udp or tcp, not "sctp"`,
		"direction=left":              `--direction: want up, down or both, or a list of them, not "left"`,
		"direction=up,up":             "--direction: up stands twice",
		"streams=129":                 "--streams: want 1 to 128, not 129",
		"streams=0":                   "--streams: want 1 to 128, not 0",
		"streams=1,2":                 "--streams: want one value, not 2",
		"time=1ns":                    "--time: want 10 ms to 7 d, not 1 ns",
		"time=10":                     "--time: duration \"10\": lacks a unit",
		"repeats=0":                   "--repeats: want 1 to 1000, not 0",
		"engine=dpdk":                 `--engine: want auto, udp, xdp`,
		"drops=all":                   `--drops: want seq, count or off, not "all"`,
		"rate=2gpps":                  "--rate: rate \"2gpps\": is beyond",
		"rate=1kpps interval=1ms":     "--interval: give --rate or --interval, not both",
		"burst=4":                     "--burst: needs --rate or --interval",
		"bulk=true":                   "--bulk: is for --proto tcp",
		"bulk=maybe":                  "--bulk: want true or false",
		"control=bbr":                 "--control: is for --proto tcp",
		"df=true proto=tcp":           "--df: is for --proto udp",
		"gso=4 proto=tcp":             "--gso: is for --proto udp",
		"dscp=64":                     "--dscp: want 0 to 63, not 64",
		"family=5":                    "--family: want 4 or 6",
		"source-port=65536":           "--source-port: want 1 to 65535, not 65536",
		"source-port=65535 streams=2": "--source-port: 2 streams from port 65535 pass port 65535",
		"source-address=x":            "--source-address: addresses",
		"max-loss=200%":               "--max-loss: ratio",
		"seed=-1":                     "--seed: want a whole number",
		"receivers=0":                 "--receivers: want 1 to 256",
		"link=loss=200%":              "--link: link",
		"link=loss=0,1%":              "--link: link loss has several values",
	} {
		if _, err := Curve.Of("lab:router", strings.Fields(flags)...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s", flags, err, want)
		}
	}
	if _, err := Curve.Of("a b"); err == nil || !strings.HasPrefix(err.Error(), "TARGET: want HOST[:PORT]") {
		t.Errorf("a target of two words: %v", err)
	}
	if _, err := Curve.Of("nas", "link=rate=1gbit"); err == nil || !strings.HasPrefix(err.Error(), "--link: only a lab has links to shape") {
		t.Errorf("a link of a host: %v", err)
	}
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

// Flows may differ, and settings of one flow take the place of those of all.
func TestFlowsThatDiffer(t *testing.T) {
	text := strings.Replace(good(t), "  to: receiver\n", "  to: receiver\n  set: {rate_pps: every 5ms, dscp: 46}\n"+
		"- {name: down, from: receiver, to: sender, set: {protocol: tcp, bulk: true}}\n", 1)
	p, err := Parse([]byte(text), "plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if up, down := p.Flows[0], p.Flows[1]; up.Rate.String() != "every 5ms" || up.DSCP != 46 || up.Protocol != model.UDP ||
		!down.Rate.IsMax() || down.DSCP != 0 || !down.Bulk || down.Protocol != model.TCP || down.Streams != up.Streams {
		t.Errorf("read as %+v", p.Flows)
	}
	if back := reread(t, p); !reflect.DeepEqual(back, p) {
		t.Errorf("came back as %+v", back)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good(f)))
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

// TestPathMTULevel: a plan may wait for the path MTU, also in its file.
func TestPathMTULevel(t *testing.T) {
	for flags, levels := range map[string]int{"payload=mtu": 1, "payload=256,mtu,512": 3, "payload=mtu family=6 gso=4": 1} {
		p, err := Curve.Of("lab:router", strings.Fields(flags)...)
		if err != nil || !p.AsksPathMTU() || len(p.Factors[0].Levels) != levels {
			t.Fatalf("%s: %+v, %v", flags, p.Factors, err)
		}
		if q := reread(t, p); !reflect.DeepEqual(p, q) {
			t.Errorf("%s came back as %+v", flags, q)
		}
	}
	text := strings.Replace(good(t), "payload_bytes\n  levels:\n", "frame_bytes\n  levels:\n  - mtu\n", 1)
	if _, err := Parse([]byte(text), "plan.yaml"); err == nil || !strings.Contains(err.Error(), "plan.yaml:25: factors[0].levels[0]") {
		t.Errorf("a frame of mtu gave %v", err)
	}
}
