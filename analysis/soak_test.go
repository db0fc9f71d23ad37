package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

// soakOf is a soak of one trial that lost what its series says.
func soakOf(state model.State, lost []float64, lines ...model.Line) model.Document {
	n := uint64(len(lost))
	f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 512, FrameBytes: 558, DurationS: float64(n),
		Planned: 40_000 * n, Attempted: 40_000 * n, SendPPS: 40e3, Ledger: model.Ledger{Lines: lines}}
	sent := make([]float64, n)
	for i, v := range lost {
		sent[i] = 40e3
		f.Lost += whole(v)
	}
	f.Received, f.Ledger.Lost, f.Ledger.Unattributed = f.Attempted-f.Lost, f.Lost, f.Lost
	for _, l := range lines {
		f.Ledger.Unattributed -= l.Packets
	}
	return model.Document{Plan: model.Plan{Command: "soak"}, Results: []model.Result{{State: state, Flows: []model.FlowResult{f}, Series: []model.Series{
		{Metric: "send_pps", Flow: "up", At: model.Sender, StepSeconds: 1, Values: sent},
		{Metric: "lost_pps", Flow: "up", At: model.Sender, StepSeconds: 1, Values: lost},
		{Metric: "lost_pps", Flow: "up", At: model.Sender, StepSeconds: 1, Layer: "x", Values: []float64{1e9}}, // a part, never the whole
	}}}}
}

func at(seconds int, lost map[int]float64) []float64 {
	all := make([]float64, seconds)
	for i, v := range lost {
		all[i] = v
	}
	return all
}

var queue = model.Line{Layer: model.LayerNetwork, Host: "router", Cause: "QDISC_DROP", Packets: 700}

func TestSoakVerdict(t *testing.T) {
	behind := soakOf(model.Invalid, at(60, map[int]float64{3: 700}), queue)
	behind.Results[0].Flows[0].Planned *= 2
	behind.Results[0].Why = "flow up: the sender missed 50 % of its schedule"
	both := soakOf(model.Valid, at(60, nil))
	both.Results[0].Flows = append(both.Results[0].Flows, model.FlowResult{Name: "down"})
	resumed := soakOf(model.Valid, at(60, nil))
	cut := soakOf(model.Aborted, at(30, map[int]float64{3: 1}))
	resumed.Results = []model.Result{cut.Results[0], resumed.Results[0], cut.Results[0]}
	for _, c := range []struct {
		name string
		doc  model.Document
		want string
	}{
		{"none", soakOf(model.Valid, at(600, nil)), "24 000 000 packets of 512 B in 10 min at 40.0 kpps: none was lost."},
		{"one", soakOf(model.Valid, at(60, map[int]float64{3: 1})), "2 400 000 packets of 512 B in 60 s at 40.0 kpps, of which 1 (<0.001 %) was lost: on the way, at no counter seen from here."},
		{"a place", soakOf(model.Valid, at(60, map[int]float64{3: 700}), queue), "2 400 000 packets of 512 B in 60 s at 40.0 kpps, of which 700 (0.029 %) were lost: queue on the way at router full (QDISC_DROP)."},
		{"places", soakOf(model.Valid, at(60, map[int]float64{3: 1702}), queue, model.Line{Layer: model.LayerReceiverBuffer, Host: model.Receiver, Cause: "SOCKET_RCVBUFF", Packets: 1000}),
			"2 400 000 packets of 512 B in 60 s at 40.0 kpps, of which 1 702 (0.071 %) were lost: 1 000 receiver socket buffer full (SOCKET_RCVBUFF), 700 queue on the way at router full (QDISC_DROP), 2 on the way, at no counter seen from here."},
		{"all", soakOf(model.Valid, slices.Repeat([]float64{40e3}, 10)), "400 000 packets of 512 B in 10 s at 40.0 kpps, all of which were lost: on the way, at no counter seen from here."},
		{"cut", soakOf(model.Aborted, at(650, nil)), "Not finished: in the first 10 min 50 s 26 000 000 packets of 512 B at 40.0 kpps: none was lost."},
		{"cut at once", soakOf(model.Aborted, at(2, nil)), "Not finished: in the first 2 s 80 000 packets of 512 B at 40.0 kpps: none was lost."},
		{"a sender that fell behind", behind, "Not valid, for a sender missed 50 % of its schedule: 2 400 000 packets of 512 B in 60 s at 40.0 kpps, of which 700 (0.029 %) were lost: queue on the way at router full (QDISC_DROP)."},
		{"not valid", soakOf(model.Invalid, at(60, nil)), "Not valid: 2 400 000 packets of 512 B in 60 s at 40.0 kpps: none was lost."},
		{"both ways", both, "Up: 2 400 000 packets of 512 B in 60 s at 40.0 kpps: none was lost; down: nothing was sent."},
		{"resumed", resumed, "2 400 000 packets of 512 B in 60 s at 40.0 kpps: none was lost."},
		{"nothing", model.Document{Plan: model.Plan{Command: "soak"}}, "Nothing was measured: no trial has finished."},
	} {
		got := Analyze(c.doc)[0]
		if got.Kind != KindVerdict || got.Text != c.want {
			t.Errorf("%s: %s\n got %s\nwant %s", c.name, got.Kind, got.Text, c.want)
		}
	}
}

func TestSoakTellsWhen(t *testing.T) {
	spread := at(300, map[int]float64{50: 500, 100: 600, 130: 700, 299: 100})
	spread[200] = math.NaN()
	changed := soakOf(model.Valid, at(10, nil))
	r := &changed.Results[0]
	r.Made = []model.MadeChange{{AtS: 80, Words: "router=rules=1000"}, {AtS: 700, Words: "link=loss=1%", Failure: "no such link."}}
	r.Gaps = []model.ControlGap{{Nodes: []string{"receiver"}, StartS: 125, DurationS: 12}}
	r.Changes = []model.Change{{Kind: model.ChangeShift, Metric: "receive_pps", StartS: 80, Before: 2e4, After: 1e4, Size: -1e4}}
	for _, c := range []struct {
		name   string
		doc    model.Document
		want   []string
		values map[string]float64 // of the last
	}{
		{"steady", soakOf(model.Valid, at(600, nil)), nil, nil},
		{"one second", soakOf(model.Valid, at(600, map[int]float64{431: 5})), []string{"loss: Of 600 seconds one lost packets, the one at 431 s."}, map[string]float64{"lossy_seconds": 1, "first_loss_s": 431}},
		{"short", soakOf(model.Valid, at(14, map[int]float64{6: 600, 7: 1000, 9: 900})), []string{"loss: Of 14 seconds 3 lost packets, the first at 6 s, the last at 9 s; in the worst second, from 7 s on, 1 000 of 40 000 (2.5 %)."},
			map[string]float64{"worst_second_s": 7, "worst_second_lost_packets": 1000, "worst_second_loss_ratio": 0.025}},
		{"minutes", soakOf(model.Valid, spread), []string{"loss: Of 299 seconds 4 lost packets, the first at 50 s, the last at 299 s; in the worst second, from 130 s on, 700 of 40 000 (1.8 %); in the worst minute, from 71 s on, 1 300 of 2 400 000 (0.054 %)."},
			map[string]float64{"worst_minute_s": 71, "worst_minute_lost_packets": 1300}},
		{"events", changed, []string{
			"change: After 80 s the rate that arrived fell from 20.0 to 10.0 kpps.",
			"timed-change: router=rules=1000 was made at 80 s, as planned.",
			"timed-change: link=loss=1% was to be made at 11 min 40 s, and was not: no such link.",
			"control-gap: From 125 s on nothing was heard of receiver for 12 s; the test went on, and what was measured meanwhile is in the figures.",
		}, map[string]float64{"start_s": 125, "duration_s": 12}},
		{"not valid", soakOf(model.Invalid, at(14, nil)), []string{"invalid: What was lost in a trial that is not valid says nothing about the path at the rate that was asked."}, nil},
	} {
		var got []string
		found := Analyze(c.doc)[1:]
		for _, f := range found {
			got = append(got, f.Kind+": "+f.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
			continue
		}
		for k, v := range c.values {
			if got := found[len(found)-1].Values[k]; math.Abs(got-v) > 1e-9 {
				t.Errorf("%s: %s is %v; want %v", c.name, k, got, v)
			}
		}
	}
}

// The worst stretch is what trying each of them finds.
func TestWorstStretch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lost := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(n int) float64 { return float64(n) }), 1, 50).Draw(t, "lost")
		length := rapid.IntRange(1, 60).Draw(t, "length")
		at, got := worst(lost, length)
		most := 0.0
		for i := range lost {
			sum := 0.0
			for _, v := range lost[i:min(i+length, len(lost))] {
				sum += v
			}
			most = max(most, sum)
		}
		if got != most || within(model.Series{StepSeconds: 1, Values: lost}, float64(at), length) != got {
			t.Fatalf("worst(%v, %d) = %v at %d; want %v", lost, length, got, at, most)
		}
	})
}

// Whatever a soak's document holds, one verdict comes first, and no value of a finding is
// one that JSON cannot hold.
func TestAnySoak(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}))
	rapid.Check(t, func(t *rapid.T) {
		doc := soakOf(rapid.SampledFrom([]model.State{model.Valid, model.Invalid, model.Aborted}).Draw(t, "state"), rapid.SliceOfN(number, 0, 200).Draw(t, "lost"))
		r := &doc.Results[0]
		f := &r.Flows[0]
		f.Name, f.Attempted, f.Lost, f.Planned, f.DurationS, f.SendPPS = rapid.SampledFrom([]string{"", "é", "up"}).Draw(t, "name"), rapid.Uint64().Draw(t, "attempted"), rapid.Uint64().Draw(t, "lost"), rapid.Uint64().Draw(t, "planned"), number.Draw(t, "duration"), number.Draw(t, "pps")
		for i := range r.Series {
			r.Series[i].Flow, r.Series[i].StartSeconds = f.Name, number.Draw(t, "start")
		}
		r.Made = []model.MadeChange{{AtS: number.Draw(t, "made")}}
		r.Gaps = []model.ControlGap{{StartS: number.Draw(t, "gap"), DurationS: number.Draw(t, "for")}}
		found := Analyze(doc)
		if found[0].Kind != KindVerdict || slices.Contains(kinds(doc)[1:], KindVerdict) {
			t.Fatalf("kinds %v: want one verdict, first", kinds(doc))
		}
		for _, f := range found {
			for k, v := range f.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s of %s is %v", k, f.Kind, v)
				}
			}
		}
		Warnings(doc)
		Passed(doc)
	})
}
