package plan

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

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
		Design: model.Design{Kind: "grid", Repeats: rapid.IntRange(1, 10).Draw(t, "repeats"), Seed: rapid.Uint64().Draw(t, "seed"), Ordered: rapid.Bool().Draw(t, "ordered")},
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
			Family: rapid.SampledFrom([]int{0, 4, 6}).Draw(t, "family"), DontFragment: rapid.Bool().Draw(t, "df"), Control: rapid.SampledFrom([]string{"", "bbr", "1", "~"}).Draw(t, "control"),
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

func good(t testing.TB) string {
	p, err := Curve(Options{Target: "lab:router", Seed: 1})
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
		"two documents":       {base + "---\n" + base, "f.yaml:41: a second document starts here; want one plan a file"},
		"field twice":         {edit("engine: auto", "engine: auto\nengine: udp"), "f.yaml:36: not YAML: mapping key \"engine\" already defined"},
		"unknown field":       {edit("engine: auto", "engin: auto"), `f.yaml:35: unknown field "engin"`},
		"unknown inner field": {edit("  seed: 1", "  sead: 1"), `f.yaml:29: design: unknown field "sead"`},
		"wrong type":          {edit("repeats: 3", "repeats: two"), `f.yaml:28: design.repeats: want a whole number, not "two"`},
		"text for a number":   {edit("repeats: 3", `repeats: "2"`), `f.yaml:28: design.repeats: want a whole number, not "2"`},
		"number for text":     {edit("engine: auto", "engine: 5"), `f.yaml:35: engine: want text, not "5"`},
		"fraction":            {edit("repeats: 3", "repeats: 2.5"), `f.yaml:28: design.repeats: want a whole number, not "2.5"`},
		"number too large":    {edit("repeats: 3", "repeats: 99999999999999999999"), `f.yaml:28: design.repeats: want a whole number, not "99999999999999999999"`},
		"negative seed":       {edit("  seed: 1", "  seed: -1"), `f.yaml:29: design.seed: want a whole number, not negative, not "-1"`},
		"bool":                {edit("ordered: false", "ordered: 0"), `f.yaml:30: design.ordered: want true or false, not "0"`},
		"list for an object":  {edit("design:\n  kind: grid", "design:\n- kind: grid"), ""},
		"rate":                {edit("rate: max", "rate: 100"), `f.yaml:14: flows[0].rate: rate "100": want max, packets per second`},
		"anchor":              {edit("engine: auto", "engine: &a auto"), "f.yaml:35: engine: want text"},
		"alias":               {edit("engine: auto", "engine: *a"), "f.yaml:35: engine: want text"},
		"tag":                 {edit("engine: auto", "engine: !!str auto"), "f.yaml:35: engine: want text"},
		"merge":               {edit("engine: auto", "<<: {engine: auto}"), `f.yaml:35: unknown field "<<"`},
		"checked engine":      {edit("engine: auto", "engine: dpdk"), `f.yaml:35: engine: want auto, udp, xdp, or two as SENDER:RECEIVER, not "dpdk"`},
		"checked level":       {edit("  - 100\n", "  - 15\n"), "f.yaml:21: factors[0].levels[2]: flows[0].payload_bytes: a UDP payload is 16 to 65507 B, not 15"},
		"checked flow":        {edit("streams: 1", "streams: 0"), "f.yaml:15: flows[0].streams: want 1 to 128, not 0"},
		"level list":          {edit("  - 100\n", "  - [100]\n"), "f.yaml:21: factors[0].levels[2]: want a number or a word"},
		"level infinite":      {edit("  - 100\n", "  - .inf\n"), ""},
		"missing field":       {edit("target: lab:router\n", ""), "f.yaml: target: want HOST[:PORT]"},
		"later format":        {edit(model.PlanFormat+"\ncommand", "pelt/plan/2\ncommand"), `f.yaml:5: format: is "pelt/plan/2"; this pelt reads pelt/plan/1`},
		"time 0":              {edit("measure_s: 2", "measure_s: 0"), "f.yaml:33: timing.measure_s: want 10ms to 168h0m0s, not 0s"},
		"time NaN":            {edit("measure_s: 2", "measure_s: .nan"), "f.yaml:33: timing.measure_s: "},
		"null list":           {edit("flows:\n", "links:\nflows:\n"), "f.yaml:8: links: want a list"},
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
		"flow style":   strings.Replace(base, "timing:\n  warmup_s: 0.5\n  measure_s: 2\n  drain_s: 1\n", "timing: {warmup_s: 0.5, measure_s: 2.0, drain_s: 1}\n", 1),
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
	warm, loss := time.Duration(0), 0.01
	p, err := Curve(Options{
		Target: "nas:7358", Payloads: []int{64, 6400}, Rate: unit.PacketRate(1000), Direction: "up, both", Streams: 2, Time: 10 * time.Second, Warmup: &warm,
		Repeats: 3, Seed: 9, Engine: "udp", Family: 6, DSCP: 46, DontFragment: true, Burst: 4, SourcePort: 5000, MaxLoss: &loss,
	})
	if err != nil {
		t.Fatal(err)
	}
	flow := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64, Rate: unit.PacketRate(1000), Burst: 4, Streams: 2, Family: 6, DSCP: 46, DontFragment: true, SourcePort: 5000}
	down := flow
	down.Name, down.From, down.To = "down", model.Receiver, model.Sender
	want := model.Plan{
		Format: model.PlanFormat, Command: "curve", Target: "nas:7358", Flows: []model.Flow{flow, down},
		Factors: []model.Factor{{Knob: "direction", Levels: []model.Value{model.Word("up"), model.Word("both")}}, {Knob: "payload_bytes", Levels: []model.Value{model.Number(64), model.Number(6400)}}},
		Design:  model.Design{Kind: "grid", Repeats: 3, Seed: 9}, Timing: model.Timing{MeasureSeconds: 10, DrainSeconds: 3}, Engine: "udp", Limits: model.Limits{MaxLossRatio: &loss},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("Curve:\n got %+v\nwant %+v", p, want)
	}
	for name, c := range map[string]struct {
		options Options
		flows   string
		levels  []float64
	}{
		"defaults":   {Options{}, "up", []float64{18, 64, 100, 200, 400, 800, 1472}},
		"tcp":        {Options{Protocol: model.TCP}, "up", []float64{64, 1460}},
		"down":       {Options{Direction: "down"}, "down", []float64{18, 64, 100, 200, 400, 800, 1472}},
		"both":       {Options{Direction: "both", Payloads: []int{64}}, "up down", []float64{64}},
		"each":       {Options{Direction: "down,up", Payloads: []int{64}}, "up down", []float64{64}},
		"frames":     {Options{Frames: []int{64, 1518}}, "up", []float64{64, 1518}},
		"tcp frames": {Options{Protocol: model.TCP, Bulk: true, Control: "bbr"}, "up", []float64{64, 1460}},
	} {
		c.options.Target = "lab:router"
		p, err := Curve(c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
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
		if strings.Join(flows, " ") != c.flows || !reflect.DeepEqual(levels, c.levels) || p.Timing.WarmupSeconds != 0.5 || p.Timing.MeasureSeconds != 2 || p.Design.Repeats != 3 {
			t.Errorf("%s: flows %v, levels %v, timing %+v, repeats %d", name, flows, levels, p.Timing, p.Design.Repeats)
		}
	}
}

func TestCurveRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"target":       {Options{Target: "a b"}, `TARGET: want HOST[:PORT]`},
		"payload":      {Options{Payloads: []int{64, 15}}, "--payload: a UDP payload is 16 to 65507 B, not 15"},
		"only payload": {Options{Payloads: []int{15}}, "--payload: a UDP payload is 16 to 65507 B, not 15"},
		"frame":        {Options{Frames: []int{63}}, "--"},
		"frame beside": {Options{Frames: []int{64}, Payloads: []int{64}}, "--frame: stands beside --payload; give one of them"},
		"mtu of tcp":   {Options{Whole: true, Protocol: model.TCP}, "--payload: mtu is for --proto udp"},
		"mtu, frames":  {Options{Whole: true, Frames: []int{64}}, "--frame: stands beside --payload; give one of them"},
		"frame of tcp": {Options{Frames: []int{64}, Protocol: model.TCP}, "--frame: is for --proto udp"},
		"proto":        {Options{Protocol: "sctp"}, `--proto: want udp or tcp, not "sctp"`},
		"direction":    {Options{Direction: "left"}, `--direction: want up, down or both, or a list of them, not "left"`},
		"twice":        {Options{Direction: "up,up"}, "--direction: up stands twice"},
		"streams":      {Options{Streams: 129}, "--streams: want 1 to 128, not 129"},
		"time":         {Options{Time: time.Nanosecond}, "--time: want 10ms to 168h0m0s, not 1e-09s"},
		"repeats":      {Options{Repeats: -1}, "--repeats: want 1 to 1000, not -1"},
		"engine":       {Options{Engine: "dpdk"}, `--engine: want auto, udp, xdp, or two as SENDER:RECEIVER, not "dpdk"`},
		"rate":         {Options{Rate: unit.PacketRate(2e9)}, "--rate: 2Gpps is"},
		"burst":        {Options{Burst: 4}, "--burst: needs --rate or --interval"},
		"bulk":         {Options{Bulk: true}, "--bulk, --control: are for --proto tcp"},
		"df":           {Options{DontFragment: true, Protocol: model.TCP}, "--df: is for --proto udp"},
		"dscp":         {Options{DSCP: 64}, "--dscp: want 0 to 63, not 64"},
		"port":         {Options{SourcePort: 65536}, "--source-port: 1 streams from port 65536 pass port 65535"},
		"link":         {Options{Links: []model.Link{{LossRatio: 2}}}, "--link: want 0..1, not 2"},
		"link of host": {Options{Target: "nas", Links: []model.Link{{Rate: 1e9}}}, "--link: only a lab has links to shape"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.options.Target == "" {
				c.options.Target = "lab:router"
			}
			_, err := Curve(c.options)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("Curve: got %v\nwant %s", err, c.want)
			}
		})
	}
}

// The longest list that options can make prints and reads back.
func TestLongList(t *testing.T) {
	var sizes []int
	for n := range unit.MaxListLength {
		sizes = append(sizes, 16+n)
	}
	p, err := Curve(Options{Target: "lab:router", Payloads: sizes})
	if err != nil {
		t.Fatal(err)
	}
	text, err := Print(p)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Parse(text, "f"); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%d sizes: %v", len(sizes), err)
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

// A plan of format 1 stays readable for ever.
func TestVersion1(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "version1", "plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(text, "plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Links[0].Rate != 1e9 || p.Flows[0].Rate.String() != "every 5ms" || p.Factors[0].Levels[0] != model.Word("up") || *p.Limits.MaxLossRatio != 0.001 || p.Design.Seed != 18446744073709551615 {
		t.Errorf("read as %+v", p)
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
	for _, o := range []Options{{Whole: true}, {Whole: true, Payloads: []int{256, 512}}, {Whole: true, Family: 6, Segments: 4}} {
		o.Target = "lab:router"
		p, err := Curve(o)
		if err != nil || !p.AsksPathMTU() || len(p.Factors[0].Levels) != len(o.Payloads)+1 {
			t.Fatalf("%+v: %+v, %v", o, p.Factors, err)
		}
		text, err := Print(p)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := Parse(text, "plan.yaml"); err != nil || !reflect.DeepEqual(p, q) {
			t.Errorf("%s\ncame back as %+v, %v", text, q, err)
		}
	}
	text := `format: pelt/plan/1
command: curve
target: lab:router
flows:
- {name: up, protocol: udp, from: sender, to: receiver, payload_bytes: 64, rate: max, streams: 1}
factors:
- {knob: frame_bytes, levels: [64, mtu]}
design: {kind: grid, repeats: 1, seed: 1}
timing: {warmup_s: 0, measure_s: 1, drain_s: 1}
engine: auto
`
	if _, err := Parse([]byte(text), "plan.yaml"); err == nil || !strings.Contains(err.Error(), "plan.yaml:7: factors[0].levels[1]") {
		t.Errorf("a frame of mtu gave %v", err)
	}
}
