package run

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
	"pelt/test/golden"
	"pelt/unit"
)

// TestJoinMany: what flows, series and observations of a star become when they are joined stands in a golden file.
func TestJoinMany(t *testing.T) {
	line := func(host, cause string, n uint64, confidence string) model.Line {
		return model.Line{Layer: model.LayerNetwork, Host: host, Cause: cause, Packets: n, Confidence: confidence}
	}
	kept, worse := 0.05, 0.2 // distances from the profile: the sum tells the worst
	check := func(name string, held bool) model.Check { return model.Check{Name: name, Held: held, Law: name} }
	r := model.Result{
		Flows: []model.FlowResult{
			{Name: "up/1", From: "sender", To: "receiver-1", PayloadBytes: 100, DurationS: 1, Planned: 101,
				Attempted: 100, Received: 90, Lost: 10, GoodputBPS: 72_000, JitterNS: 10,
				Delay:  &model.Percentiles{Count: 90, Min: 5, P50: 10, P99: 20, Max: 30},
				Pacing: &model.Pacing{Distance: &kept},
				Ledger: model.Ledger{Lost: 10,
					Lines:  []model.Line{line("link switch-receiver-1", model.CauseLinkLoss, 10, "exact-seq")},
					Checks: []model.Check{check("balance", true)}}},
			{Name: "up/2", From: "sender", To: "receiver-2", PayloadBytes: 100, DurationS: 2, Planned: 100,
				Attempted: 100, Received: 70, Lost: 30, GoodputBPS: 28_000, JitterNS: 30,
				Silent:   []model.Silence{silence("receiver-2", 1, 1)},
				Delay:    &model.Percentiles{Count: 70, Min: 4, P50: 12, P99: 40, Max: 50},
				Pacing:   &model.Pacing{Distance: &worse},
				SendLate: &model.Percentiles{Count: 1, Max: 9},
				Ledger: model.Ledger{Lost: 30, Unattributed: 5,
					Lines: []model.Line{line("link switch-receiver-2", model.CauseLinkLoss, 20, "exact-seq"),
						line("switch", "NETFILTER_DROP", 5, "bounded")}, Checks: []model.Check{check("balance", false)}}},
			{Name: "down/1", From: "receiver-1", To: "sender", Attempted: 7, Received: 7, DurationS: 1},
		},
		Series: []model.Series{
			{Metric: "receive_pps", Flow: "up/1", At: "receiver-1",
				Values: []float64{1, 2, 3}}, {Metric: "receive_pps", Flow: "up/2", At: "receiver-2",
				Values: []float64{10, 20}},
			{Metric: "cpu_idle_ratio", At: "sender", Values: []float64{0.5}},
		},
		Observed: []model.Observed{{Node: "sender"}, {Node: "switch"}, {Node: "link switch-receiver-1"},
			{Node: "receiver-1", Mode: model.DropsSeq},
			{Node: "link switch-receiver-2"}, {Node: "receiver-2", Mode: model.DropsOff,
				Why: model.Doubts{{Code: model.NoRights}}}, {Node: "receiver-3", Mode: model.DropsSeq}},
	}
	r.Flows[0].ReceiverCPU, r.Flows[1].ReceiverCPU = model.CPU{BusiestRatio: 0.2}, model.CPU{BusiestRatio: 0.9}
	r.Flows[0].SenderCPU, r.Flows[1].SenderCPU = model.CPU{ThreadRatio: 0.3}, model.CPU{ThreadRatio: 0.1}
	r.Flows[0].ReceiveBufferBytes, r.Flows[1].ReceiveBufferBytes = 8000, 4000
	r.Flows[0].TruesizeBytes, r.Flows[1].TruesizeBytes = 700, 900
	joinMany(&r)
	text, err := json.MarshalIndent(struct {
		Flows    []model.FlowResult
		Series   []model.Series
		Observed []model.Observed
	}{r.Flows, r.Series, r.Observed}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/star.json", string(text)+"\n")
}

// A fleet's star that loses hosts: what the lost one had told stands for it, one that had told nothing is left out, and
// no packet counts as lost for want of a report.
func TestStarLosesReceivers(t *testing.T) {
	up := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 512,
		Rate: unit.PacketRate(1000), Streams: 1}
	trial := model.Trial{Flows: []model.Flow{up}, Timing: model.Timing{MeasureSeconds: 10}}
	var placed fleet.Trial
	out := fleet.Outcome{Cut: model.Reason{Code: model.HostSilent}, Load: map[string]engine.Load{
		"a": {CPU: model.CPU{BusiestRatio: 0.2}}, "b": {CPU: model.CPU{BusiestRatio: 0.9},
			Series: []model.Series{{Metric: "cpu_idle_ratio", Values: []float64{0.1}}}}}}
	for i, to := range []string{"a", "b", "c", "d"} {
		one := up
		one.Name, one.To = fmt.Sprintf("up/%d", i+1), "receiver-"+to
		placed.Flows = append(placed.Flows, fleet.PlacedFlow{Flow: one, From: "s", To: to})
		both := fleet.FlowOutcome{Send: &engine.Report{Send: &engine.SendReport{Planned: 7000, Attempted: 7000,
			Accepted: 7000, Streams: []uint64{7000}, DurationNanos: 7e9}},
			Receive: &engine.Report{Receive: &engine.ReceiveReport{Tally: model.Tally{Received: 7000, LastNanos: 7e9}}}}
		if to == "c" || to == "d" {
			both.Receive = nil
		}
		out.Flows = append(out.Flows, both)
	}
	s := newLiveAccount(trial, placed, &watch{site: &site{nodes: []node{{name: "sender", end: true}}}}, time.Now())
	for at := 1.0; at <= 7; at++ {
		for _, f := range placed.Flows {
			n := uint64(1000 * at)
			s.take(fleet.Progress{Flow: f.Flow.Name, Role: engine.Send, Agent: "s", Packets: n, AtS: at})
			if f.To < "c" || f.To == "c" && at <= 4 {
				s.take(fleet.Progress{Flow: f.Flow.Name, Role: engine.Receive, Agent: f.To, Packets: n, Reach: n,
					AtS: at})
			}
		}
	}
	r := account(trial, placed, out, path{told: s.untilCut(out)})
	f := r.Flows[0]
	if len(r.Flows) != 1 || f.Attempted != 18_000 || f.Lost != 0 || len(f.Receivers) != 3 ||
		f.ReceiverCPU.BusiestRatio != 0.9 {
		t.Errorf("%d packets, %d lost, receivers %+v, %+v", f.Attempted, f.Lost, f.Receivers, f.ReceiverCPU)
	}
	want := model.Doubts{{Code: model.ToldInPart, Flow: "up to receiver-c", Numbers: map[string]float64{"at_s": 4}},
		{Code: model.LeftOut, Flow: "up to receiver-d"}}
	if !reflect.DeepEqual(r.Warnings, want) {
		t.Errorf("warnings %v, want %v", r.Warnings, want)
	}
	if !slices.ContainsFunc(r.Series, func(x model.Series) bool {
		return x.Metric == "cpu_idle_ratio" && x.At == "receiver-b"
	}) {
		t.Errorf("series %+v: not that of the busiest receiver's processors", r.Series)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

func TestNodesOfAFlow(t *testing.T) {
	var all []seen
	for _, n := range []node{{name: "sender"}, {name: "link sender-switch"}, {name: "switch"},
		{name: "link switch-receiver-7", branch: "receiver-7"}, {name: "receiver-7", branch: "receiver-7"},
		{name: "link switch-receiver-17", branch: "receiver-17"}, {name: "receiver-17", branch: "receiver-17"}} {
		all = append(all, n.seen())
	}
	var up, down []string
	for _, n := range nodesOf(model.Flow{From: "sender", To: "receiver-7"}, all) {
		up = append(up, n.Name)
	}
	for _, n := range nodesOf(model.Flow{From: "receiver-7", To: "sender"}, all) {
		down = append(down, n.Name)
	}
	want := []string{"sender", "link sender-switch", "switch", "link switch-receiver-7", "receiver-7"}
	if !slices.Equal(up, want) {
		t.Errorf("up %v, want %v", up, want)
	}
	if slices.Reverse(want); !slices.Equal(down, want) {
		t.Errorf("down %v, want %v", down, want)
	}
}

func told(n uint64) *uint64 { return &n }

// Receivers that are served one after the other get their packets in a moment each; together
// they cannot get more than was sent.
func TestJoinManyServedInTurn(t *testing.T) {
	r := model.Result{}
	for k := 1; k <= 100; k++ {
		took := 0.001 * float64(k)
		pps := 16 / took
		r.Flows = append(r.Flows, model.FlowResult{Name: fmt.Sprintf("up/%d", k), From: "sender",
			To: fmt.Sprintf("receiver-%d", k), PayloadBytes: 100,
			DurationS: took, Attempted: 16, Received: 16, SendPPS: pps, ReceivePPS: pps, GoodputBPS: 800 * pps})
	}
	joinMany(&r)
	if f := r.Flows[0]; f.SendPPS < 15_999 || f.SendPPS > 16_001 || f.ReceivePPS < 15_999 || f.ReceivePPS > 16_001 ||
		f.GoodputBPS > 1.0001*f.SendGoodputBPS {
		t.Errorf("%v a second sent, %v received, %v of %v bit/s", f.SendPPS, f.ReceivePPS, f.GoodputBPS,
			f.SendGoodputBPS)
	}
}
