package finding

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/table"
	"pelt/test/golden"
	"pelt/test/sample"
	"pelt/unit"
	"pelt/words"
)

func defaultMetrics() []*table.Metric {
	all, err := Metrics(DefaultMetrics)
	if err != nil {
		panic(err)
	}
	return all
}

func limits(t rapid.TB, texts ...string) []table.Bound {
	t.Helper()
	var out []table.Bound
	for _, text := range texts {
		l, err := table.ParseBound(text)
		testenv.Must(t, err)
		out = append(out, l)
	}
	return out
}

// variants is a bench with only the trials that keep says.
func variants(keep func(*model.Result) bool) *model.Document {
	d := sample.Variants()
	d.Results = slices.DeleteFunc(d.Results, func(r model.Result) bool { return !keep(&r) })
	for i := range d.Results {
		keep(&d.Results[i])
	}
	return &d
}

func compareLevels(t rapid.TB, d *model.Document, base string, asked ...string) Comparison {
	t.Helper()
	c, err := Compare(Question{Docs: []*model.Document{d}, Base: base, Metrics: defaultMetrics(),
		Limits: limits(t, asked...)})
	testenv.Must(t, err)
	return c
}

// compareExamples are comparisons: of variants and of runs.
func compareExamples(t *testing.T) (out []example) {
	all := func(*model.Result) bool { return true }
	two := func(least int, levels ...string) func(*model.Result) bool {
		return func(r *model.Result) bool { return slices.Contains(levels, r.Cell["variant"].Text) && r.Repeat < least }
	}
	for _, c := range []struct {
		name string
		keep func(*model.Result) bool
		base string
	}{
		{"worse", all, ""},
		{"better", all, "log"},
		{"tied", func(r *model.Result) bool {
			return r.Cell["frame_bytes"] == model.Number(1518) && r.Cell["variant"].Text != "log" &&
				r.Cell["variant"].Text != "fast"
		}, ""},
		{"twice", func(r *model.Result) bool { return r.Repeat < 2 }, ""},
		{"once", func(r *model.Result) bool { return r.Repeat < 1 }, ""},
		{"mixed", func(r *model.Result) bool {
			if r.Cell["variant"].Text == "log" && r.Router != nil {
				r.Router.CPU = &model.CPUSplit{Core: -1, Idle: 0.99 - 0.001*float64(r.Repeat),
					Softirq: 0.01 + 0.001*float64(r.Repeat)}
			}
			return true
		}, ""},
		{"open in another metric", two(9, "plain", "queue"), ""},
		{"one figure measured twice", func(r *model.Result) bool {
			if r.Cell["variant"].Text == "queue" && r.Repeat > 1 {
				r.Router = nil
			}
			return two(9, "plain", "queue")(r)
		}, ""},
	} {
		out = append(out, example{c.name, compareLevels(t, variants(c.keep), c.base).Findings()})
	}

	// Runs are named by all settings that tell them apart, also by one that one of them lacks.
	runs := made{pps: 300e3, bits: 1e9, sender: 25_700, sizes: []int{200}, repeats: 3}
	a, b := runs.doc(), runs.doc()
	a.ID, b.ID = "a", "b"
	a.Plan.Flows[0].Rate, b.Plan.Flows[0].Rate = unit.PacketRate(5000), unit.PacketRate(10000)
	b.Plan.Links = []model.Link{{Rate: 20e6, QueuePackets: 50}}
	c, err := Compare(Question{Docs: []*model.Document{a, b}, Metrics: defaultMetrics()})
	testenv.Must(t, err)
	out = append(out, example{"runs: " + c.Sides[0].Name + " | " + c.Sides[1].Name, c.Findings()})

	// What is tied is no difference, however sure it is.
	tied := Comparison{Sides: []Side{{Doc: &model.Document{}}},
		Effects: []Effect{{Effect: table.Effect{P: 0.01, Verdict: table.Tied}}}}
	out = append(out, example{"tied and sure", tied.Findings()})

	// A setting of a lab's node is told, but no command for it: eth0 there is not the host's.
	d := sample.Ledger()
	setting := model.Advised{Advice: model.Advice{Knob: "eth0.txqueuelen", Host: "sender", Present: "1", Value: "2",
		Command: "ip link set dev eth0"}, Here: true}
	return append(out, example{"advice in a lab", Advise(&d, []model.Advised{setting})})
}

func TestCompareRefusals(t *testing.T) {
	d, other, empty, flooded := sample.Variants(), sample.Variants(), sample.Variants(), sample.Variants()
	flooded.Results = only(flooded.Results, func(r model.Result) bool {
		return r.Cell["frame_bytes"] == model.Number(1518)
	})
	other.ID = "b"
	for i := range other.Results {
		delete(other.Results[i].Cell, "variant")
		other.Results[i].Cell["frame_bytes"] = model.Number(512)
	}
	for i := range empty.Results {
		empty.Results[i].State = model.Invalid
	}
	if _, err := Compare(Question{Docs: []*model.Document{&d}, Key: "direction"}); !strings.Contains(err.Error(),
		"it varies") || strings.Count(err.Error(), "direction") > 1 {
		t.Errorf("a direction is offered, and refused: %v", err)
	}
	single, routers := sample.Single(), sample.Routers()
	for i := range routers[1].Results {
		routers[1].Results[i].Cell["direction"] = model.Word("sideways")
	}
	for code, c := range map[string]struct {
		q   Question
		ask bool
	}{
		"compare.ask":      {Question{Docs: []*model.Document{&single}}, true},
		"compare.setting":  {Question{Docs: []*model.Document{&d}, Key: "colour"}, true},
		"compare.level":    {Question{Docs: []*model.Document{&d}, Base: "none"}, true},
		"compare.twice":    {Question{Docs: []*model.Document{&d, &d}}, true},
		"compare.silent":   {Question{Docs: []*model.Document{&d, &other}}, true},
		"compare.unusable": {Question{Docs: []*model.Document{&empty}}, false},
		"compare.apart": {Question{Docs: []*model.Document{&routers[0], &routers[1]}, Metrics: defaultMetrics()},
			false},
		"compare.flood":      {Question{Docs: []*model.Document{&flooded}, Metrics: table.Named("loss_ratio")}, false},
		"compare.unmeasured": {Question{Docs: []*model.Document{&d}, Metrics: table.Named("set_up_p50_ns")}, false},
	} {
		_, err := Compare(c.q)
		var no *Refusal
		if !errors.As(err, &no) || no.Code != code || no.Ask != c.ask || strings.ContainsAny(err.Error(), "\n<") {
			t.Errorf("%v; want %s", err, code)
		}
	}
}

func TestInterval(t *testing.T) {
	inf := math.Inf(1)
	for want, e := range map[string]table.Effect{"-50 % to +20 %": {Low: -0.5, High: 0.2},
		"-50 % or more": {Low: -0.5, High: inf}} {
		if got := (Effect{Effect: e}).interval(words.English); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

func plainOnly(r *model.Result) bool { return r.Cell["variant"].Text == "plain" }

// Each setting and version that differs between two runs is told, and nothing of two runs that are alike.
func TestWhatDiffers(t *testing.T) {
	a, b := variants(plainOnly), variants(plainOnly)
	a.Plan.Links = []model.Link{{Rate: 1e9}, {Node: "receiver", Toward: "receiver", Rate: 1e9},
		{Node: "receiver", Toward: "router", Rate: 1e9}}
	b.Plan.Links = slices.Clone(a.Plan.Links)
	a.Plan.Target, b.Plan.Target, b.ID = "192.168.2.5", "192.168.2.5", "b"
	a.Plan.Variants = []model.Variant{{Name: "plain", Command: "a"}}
	b.Plan.Variants = slices.Clone(a.Plan.Variants)
	differ := func() (list []string) {
		c, err := Compare(Question{Docs: []*model.Document{a, b}, Metrics: defaultMetrics()})
		testenv.Must(t, err)
		for _, d := range c.Differ {
			list = append(list, d.Setting+": "+strings.Join(d.Values, " | "))
		}
		return list
	}
	if got := differ(); got != nil {
		t.Errorf("of runs that are alike: %q", got)
	}
	b.Plan.Target, b.Tool.Version, b.Host[1].Kernel, b.Host[0].LinkSpeedBits = "lab:nat", "0.2.0", "7.0", 1e8
	b.Plan.Links[0].Rate, b.Plan.Links[1].Rate, b.Plan.Flows[0].Streams = 2e9, 2e9, 4
	b.Plan.Variants[0].Command, b.Plan.Timing.MeasureSeconds = "b", 9
	for i := range a.Results {
		a.Results[i].Engine, b.Results[i].Engine = "udp", "xdp"
		b.Results[i].Cell["variant"] = model.Word("log")
	}
	golden.File(t, "testdata/differ.txt", strings.Join(differ(), "\n")+"\n")
}

func TestJudge(t *testing.T) {
	large := func(r *model.Result) bool {
		return r.Cell["frame_bytes"] == model.Number(1518) && r.Cell["variant"].Text == "log"
	}
	calm := func(r *model.Result) bool {
		return r.Cell["variant"].Text == "plain" || r.Cell["variant"].Text == "queue"
	}
	for name, c := range map[string]struct {
		limit string
		keep  func(*model.Result) bool
		want  table.Outcome
	}{
		"broken":                  {"goodput < -5%", func(*model.Result) bool { return true }, table.Failed},
		"held":                    {"goodput < -5%", calm, table.Passed},
		"points":                  {"cpu > 5%", func(*model.Result) bool { return true }, table.Failed},
		"not measured by anybody": {"set_up_p50_ns > 5%", calm, table.NotMeasured},
		"none valid": {"goodput < -95%", func(r *model.Result) bool {
			if large(r) {
				r.State = model.Invalid
			}
			return true
		}, table.NotMeasured},
		"too few": {"goodput < -95%", func(r *model.Result) bool { return !large(r) || r.Repeat < 2 },
			table.NotMeasured},
		"never planned": {"goodput < -95%", func(r *model.Result) bool { return !large(r) }, table.Passed},
		"of a flood": {"loss_ratio > 1%", func(r *model.Result) bool {
			return calm(r) && r.Cell["frame_bytes"] == model.Number(1518)
		}, table.NotMeasured},
	} {
		if got := compareLevels(t, variants(c.keep), "", c.limit); got.Outcome() != c.want {
			t.Errorf("%s: %s; want %s: %v", name, got.Outcome(), c.want, got.Limits)
		}
	}
	cut := variants(func(r *model.Result) bool { return !large(r) })
	cut.Complete = false
	if got := compareLevels(t, cut, "", "goodput < -95%").Outcome(); got != table.NotMeasured {
		t.Errorf("of a run that was cut: %s", got)
	}
}

// Whatever documents hold, a comparison or one clear line comes out, and JSON holds it.
func TestCompareAnyDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sample.Odd(t), sample.Odd(t)
		b.ID = "b"
		for _, docs := range [][]*model.Document{{&a}, {&a, &b}} {
			c, err := Compare(Question{Docs: docs, Metrics: defaultMetrics(), Limits: limits(t, "goodput < -5%")})
			var no *Refusal
			if err != nil {
				if !errors.As(err, &no) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%v", err)
				}
				continue
			}
			for _, f := range c.Findings() {
				if strings.Contains(f.Text(), "<no ") || strings.Contains(f.Text(), "NaN") {
					t.Fatalf("%s: %s", f.Code, f.Text())
				}
			}
			if text, err := json.Marshal(model.Finite(c.Document(model.Tool{}))); err != nil ||
				strings.Contains(string(text), "null") {
				t.Fatalf("%v: %s", err, text)
			}
		}
	})
}

func TestAsk(t *testing.T) {
	size := func(n float64) model.Cell { return model.Cell{"payload_bytes": model.Number(n)} }
	ledger, tcp, none := sample.Ledger(), sample.TCP(), model.Document{}
	for name, c := range map[string]struct {
		doc  *model.Document
		ask  Ask
		want string
	}{
		"the worst of each lossy setting": {&ledger, Ask{}, "[5 6 7] <nil>"},
		"one that lost nothing":           {&ledger, Ask{Trial: 4}, "[4] <nil>"},
		"all":                             {&ledger, Ask{All: true}, "[1 2 3 4 5 6 7 8] <nil>"},
		"a setting that lost nothing":     {&ledger, Ask{Cell: size(1472)}, "[4] <nil>"},
		"all of a setting":                {&ledger, Ask{Cell: size(64), All: true}, "[1 5] <nil>"},
		"TCP has no ledger":               {&tcp, Ask{}, "[] <nil>"},
		"nothing":                         {&none, Ask{}, "[] <nil>"},
		"no such trial":                   {&ledger, Ask{Trial: 9}, "[] the run has trials 1 to 8, not 9"},
		"none below":                      {&ledger, Ask{Trial: -1}, "[] the run has trials 1 to 8, not -1"},
		"no such setting": {&ledger, Ask{Cell: size(65)},
			"[] no trial of run 20261114-183000-7f3a has this setting; pelt explain without --cell lists the settings"},
	} {
		for _, r := range AsValid(table.Rows(c.doc)) {
			if r.TrialNumber() == 0 {
				t.Errorf("%s: a copy of a trial has no number", name)
			}
		}
		got, err := c.ask.Trials(c.doc)
		if text := fmt.Sprint(got, " ", err); text != c.want {
			t.Errorf("%s: %s; want %s", name, text, c.want)
		}
	}
}

// Loads of two runs are compared by their shares of the rates that the runs found.
func TestCompareLoads(t *testing.T) {
	a, b := sample.Latency(), sample.Latency()
	b.ID = "b"
	for i, d := range []*model.Document{&a, &b} {
		for _, r := range slices.Clone(d.Results) {
			for repeat := range 3 {
				again := r
				again.Cell, again.Repeat, again.Flows = maps.Clone(r.Cell), repeat, slices.Clone(r.Flows)
				again.Cell["rate_pps"] = model.Number(r.Cell["rate_pps"].Number * (1 + float64(i)))
				for j := range again.Flows {
					trip := *again.Flows[j].RoundTrip
					trip.P50 *= (1 + float64(i)) * (1 + 0.001*float64(repeat))
					again.Flows[j].RoundTrip = &trip
				}
				d.Results = append(d.Results, again)
			}
		}
		d.Results = d.Results[len(d.Results)/4:]
	}
	c, err := Compare(Question{Docs: []*model.Document{&a, &b},
		Metrics: []*table.Metric{table.MetricOf("round_trip_p50_ns")}})
	testenv.Must(t, err)
	// both has two flows
	if n := len(c.Conditions); n != 4*8 || len(c.Effects) != n || c.Effects[0].Verdict != table.WorseThan {
		t.Errorf("%d places, %d effects: want each flow at each load", n, len(c.Effects))
	}
}
