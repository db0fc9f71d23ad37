package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pelt/analysis/controls"
	"pelt/model"
)

// duel is a run of pelt cc: cubic and bbr carry 640 MB over links without loss and
// with 1 %, reno too.
func duel(change func(*model.Result)) model.Document {
	doc := model.Document{Format: model.RunFormat, Plan: model.Plan{
		Command: "cc", Target: "lab:direct", Timing: model.Timing{MeasureSeconds: 120}, Design: model.Design{Kind: "grid", Repeats: 10},
		Flows: []model.Flow{{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, Streams: 1, Bulk: true, Bytes: 640e6}},
		Factors: []model.Factor{{Knob: "control", Levels: []model.Value{model.Word("cubic"), model.Word("bbr"), model.Word("reno")}},
			{Knob: "link.loss_ratio", Levels: []model.Value{model.Number(0), model.Number(0.01)}}},
	}, Host: []model.Host{{Node: model.Sender, Cores: 2}}}
	middle := map[string][]float64{"cubic": {0.7, 5.4}, "bbr": {0.71, 0.71}, "reno": {0.7, 5.8}}
	for repeat := range 10 {
		for _, control := range []string{"cubic", "bbr", "reno"} {
			for i, loss := range []float64{0, 0.01} {
				took := middle[control][i] * (0.955 + 0.01*float64(repeat))
				f := model.FlowResult{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, Streams: 1, DurationS: took, Attempted: 440000, TCP: &model.TCPFacts{
					Control: control, SegmentSizeBytes: 1448, SegmentsOut: 440000, Retransmits: uint64(440000 * loss), BusyS: took, ReceivedBytes: 640e6,
					Completion: &model.Completion{Bytes: 640e6, Done: true, Seconds: took, By: model.ByRead}}}
				f.RoundTrip = &model.Percentiles{Count: 100, Min: 1e5, P50: 1.5e5, P95: 2e5}
				r := model.Result{Cell: model.Cell{"control": model.Word(control), "link.loss_ratio": model.Number(loss)}, Repeat: repeat, State: model.Valid, Engine: "udp", Flows: []model.FlowResult{f}}
				r.Links = []model.LinkResult{{From: model.Sender, To: model.Receiver, Backend: "user", AskedRatio: loss}}
				if change != nil {
					change(&r)
				}
				doc.Results = append(doc.Results, r)
			}
		}
	}
	return doc
}

// toldOf are the texts of a kind of findings.
func toldOf(found []model.Finding, kind string) (texts []string) {
	for _, f := range found {
		if f.Kind == kind {
			texts = append(texts, f.Text)
		}
	}
	return texts
}

func TestControlFindings(t *testing.T) {
	is := func(control string, loss float64, r *model.Result) bool {
		return r.Cell["control"].Text == control && r.Cell["link.loss_ratio"].Number == loss
	}
	for _, c := range []struct {
		name   string
		change func(*model.Result)
		kind   string
		want   []string
	}{
		{"verdict", nil, KindVerdict, []string{"bbr is 7.6 times as fast as cubic at 1 % loss; at no loss they cannot be told apart. cubic is 1.07 times as fast as reno at 1 % loss; at no loss they cannot be told apart."}},
		{"conditions", nil, KindControl, []string{"At no loss bbr takes 0.71 s", "At 1 % loss bbr takes 0.71 s"}},
		{"mathis", nil, KindMathis, []string{"Held against the model of Mathis (1.22 segments a round trip over the root of the loss): with 1 % lost reno carries 883 Mbit/s, 0.94 of its 942 Mbit/s."}},
		{"mathis does not hold", func(r *model.Result) { r.Flows[0].RoundTrip.P50 = 1e4 }, KindMathis, []string{"with 1 % lost reno carries 883 Mbit/s, 0.06 of its 14.1 Gbit/s. Much less than it comes where TCP waits for its timer"}},
		{"offload", nil, KindOffload, []string{"The emulated links lose packet by packet: they part buffers"}},
		{"lab", nil, KindLab, []string{"In a lab all nodes share this machine's 2 cores"}},
		{"nothing limited", nil, KindLimited, nil},
		{"nothing unfinished", nil, KindUnfinished, nil},
		{"no streams", nil, KindFairness, nil},
		{"all valid", nil, KindInvalid, nil},
		{"window", func(r *model.Result) {
			if is("bbr", 0, r) && r.Repeat < 4 {
				r.Flows[0].TCP.RwndLimitedS = 0.4
			}
		}, KindLimited, []string{"4 of 60 trials were held by the receiver's window for over 10 % of the time, not by the congestion control alone: bbr at no loss."}},
		{"processor", func(r *model.Result) {
			if is("cubic", 0.01, r) && r.Repeat == 0 {
				r.Flows[0].ReceiverCPU.BusiestRatio = 0.99
			}
		}, KindLimited, []string{"1 of 60 trials was held by a processor that was full, not by the congestion control alone: cubic at 1 % loss."}},
		{"unfinished", func(r *model.Result) {
			if is("cubic", 0.01, r) && r.Repeat > 2 {
				r.Flows[0].TCP.Completion.Done, r.Flows[0].TCP.Completion.Seconds = false, 120
			}
		}, KindUnfinished, []string{"Transfers that did not end in time: 7 of 10 with cubic at 1 % loss. The time of a trial is 120 s; a longer --time would let them end."}},
		{"queues", func(r *model.Result) {
			if is("cubic", 0.01, r) {
				r.Flows[0].RoundTrip.P95 = 28.1e6
			}
		}, KindControl, []string{"At no loss bbr", "Beside it 95 % of small packets waited in queues for at most 28.0 ms with cubic, 100 µs with bbr and 100 µs with reno."}},
		{"streams", func(r *model.Result) {
			if is("cubic", 0.01, r) {
				r.Flows[0].TCP.PerStream = []model.TCPStream{{Control: "cubic", GoodputBPS: 20e6}, {Control: "bbr", GoodputBPS: 80e6}}
			}
		}, KindFairness, []string{"At 1 % loss side by side bbr gets 80 % (80 to 80 %), cubic gets 20 % (20 to 20 %) (Jain's index 0.74, even is 1)."}},
		{"invalid", func(r *model.Result) {
			if is("cubic", 0.01, r) && r.Repeat > 7 {
				r.State = model.Invalid
			}
		}, KindInvalid, []string{"2 of 60 trials are invalid and left out; 2 repeats have no valid one; see Not counted."}},
		{"nothing valid", func(r *model.Result) { r.State = model.Invalid }, KindVerdict, []string{"Nothing can be said about the path: no trial is valid."}},
	} {
		doc := duel(c.change)
		found := Analyze(doc)
		if found[0].Kind != KindVerdict || len(toldOf(found, KindVerdict)) != 1 {
			t.Errorf("%s: the verdict is not the first and only one: %v", c.name, found)
		}
		got := toldOf(found, c.kind)
		if len(got) != len(c.want) {
			t.Errorf("%s: %s finds\n%s\nwant %d", c.name, c.kind, strings.Join(got, "\n"), len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got[i], want)
			}
		}
	}
}

// A stored table is told as it is; without one the same comes out.
func TestControlTableStored(t *testing.T) {
	doc := duel(nil)
	want := Analyze(doc)
	doc.Control = controls.Table(doc)
	if got := Analyze(doc); !slices.EqualFunc(got, want, func(a, b model.Finding) bool { return a.Text == b.Text && a.Kind == b.Kind }) {
		t.Errorf("stored:\n%v\nwant\n%v", got, want)
	}
	nan := &model.Estimate{Median: math.NaN(), Low: math.Inf(-1), High: math.Inf(1)}
	for _, odd := range []*model.ControlTable{{}, {Cells: []model.ControlCell{{Valid: 1}}}, {Conditions: make([]model.ControlSetting, 2), Controls: []string{"a", "b"},
		Cells:     []model.ControlCell{{Valid: 1, Control: "a", Goodput: nan, Jain: nan, Converged: nan, Standing: nan, Completion: nan, Unfinished: 9, Mathis: &model.Mathis{}, Shares: map[string]*model.Estimate{"a": nil, "b": nan}}, {Condition: 9, Jain: nan, Unfinished: 1, Goodput: nan, Mathis: &model.Mathis{}}},
		Contrasts: []model.ControlContrast{{Condition: -4}, {Condition: 0, Control: "b", Baseline: "a", Ratio: math.NaN(), Separable: true}, {Condition: 1, Control: "b", Separable: true}}}} {
		doc.Control = odd
		for _, f := range Analyze(doc) {
			for name, x := range f.Values {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%s is %v", name, x)
				}
			}
		}
	}
}

// What a real host keeps between connections falsifies the trials after.
func TestControlWarnsOfKeptMetrics(t *testing.T) {
	doc := duel(nil)
	doc.Plan.Flows = []model.Flow{{From: model.Sender, To: model.Receiver}}
	for value, want := range map[string]int{"0": 1, "1": 0, "": 0} {
		doc.Host = []model.Host{{Node: model.Sender, TCPSettings: map[string]string{"no_metrics_save": value}}, {Node: model.Receiver, TCPSettings: map[string]string{"no_metrics_save": "0"}}}
		if got := Warnings(doc); len(got) != want {
			t.Errorf("no_metrics_save %q: %q", value, got)
		}
	}
}

func TestControlWarnings(t *testing.T) {
	if got := Warnings(duel(nil)); len(got) != 0 {
		t.Errorf("a clean run: %q", got)
	}
	got := Warnings(duel(func(r *model.Result) {
		if r.Cell["control"].Text == "bbr" {
			r.Flows[0].TCP.Control = "cubic"
		}
		if r.Repeat == 0 {
			r.Flows[0].TCP.SamplesMissed = 50
		}
	}))
	for i, want := range []string{"the kernel used another congestion control: cubic where bbr was asked for", "6 of 60 trials missed samples of TCP: series have gaps, totals have not"} {
		if len(got) != 2 || got[i] != want {
			t.Fatalf("warnings %q; want %q", got, want)
		}
	}
}
