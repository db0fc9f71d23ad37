package run

import (
	"fmt"
	"slices"
	"testing"

	"pelt/model"
)

func TestJoinMany(t *testing.T) {
	line := func(host, cause string, n uint64, confidence string) model.Line {
		return model.Line{Layer: model.LayerNetwork, Host: host, Cause: cause, Packets: n, Confidence: confidence}
	}
	check := func(name string, held bool) model.Check { return model.Check{Name: name, Held: held, Text: name} }
	r := model.Result{
		Flows: []model.FlowResult{
			{Name: "up/1", From: "sender", To: "receiver-1", PayloadBytes: 100, DurationS: 1, Planned: 101, Attempted: 100, Received: 90, Lost: 10, GoodputBPS: 72_000, JitterNS: 10,
				Delay:  &model.Percentiles{Count: 90, Min: 5, P50: 10, P99: 20, Max: 30},
				Ledger: model.Ledger{Lost: 10, Lines: []model.Line{line("link switch-receiver-1", model.CauseLinkLoss, 10, "exact-seq")}, Checks: []model.Check{check("balance", true)}}},
			{Name: "up/2", From: "sender", To: "receiver-2", PayloadBytes: 100, DurationS: 2, Planned: 100, Attempted: 100, Received: 70, Lost: 30, GoodputBPS: 28_000, JitterNS: 30,
				Delay:  &model.Percentiles{Count: 70, Min: 4, P50: 12, P99: 40, Max: 50},
				Ledger: model.Ledger{Lost: 30, Unattributed: 5, Lines: []model.Line{line("link switch-receiver-2", model.CauseLinkLoss, 20, "exact-seq"), line("switch", "NETFILTER_DROP", 5, "bounded")}, Checks: []model.Check{check("balance", false)}}},
			{Name: "down/1", From: "receiver-1", To: "sender", Attempted: 7, Received: 7, DurationS: 1},
		},
		Series: []model.Series{
			{Metric: "receive_pps", Flow: "up/1", At: "receiver-1", Values: []float64{1, 2, 3}}, {Metric: "receive_pps", Flow: "up/2", At: "receiver-2", Values: []float64{10, 20}},
			{Metric: "cpu_idle_ratio", At: "sender", Values: []float64{0.5}},
		},
		Observed: []model.Observed{{Node: "sender"}, {Node: "switch"}, {Node: "link switch-receiver-1"}, {Node: "receiver-1"}},
	}
	joinMany(&r)
	if len(r.Flows) != 2 || r.Flows[1].Name != "down" || r.Flows[1].From != manyReceivers || len(r.Flows[1].Receivers) != 1 || r.Flows[1].Receivers[0].Node != "receiver-1" {
		t.Fatalf("flows %+v", r.Flows)
	}
	f := r.Flows[0]
	if f.Name != "up" || f.To != manyReceivers || f.Planned != 201 || f.Attempted != 200 || f.Received != 160 || f.Lost != 40 || f.LossRatio != 0.2 || f.GoodputBPS != 100_000 || f.SendPPS != 100 || f.JitterNS != 20 {
		t.Errorf("sums %+v", f)
	}
	if d := f.Delay; d.Count != 160 || d.Min != 4 || d.Max != 50 || d.P50 != 12 {
		t.Errorf("delay %+v", d)
	}
	if l := f.Ledger; l.Lost != 40 || l.Unattributed != 5 || len(l.Lines) != 2 || l.Lines[0].Host != manyLinks || l.Lines[0].Packets != 30 || l.Lines[1].Host != "switch" {
		t.Errorf("ledger %+v", l)
	}
	if c := f.Ledger.Checks; len(c) != 1 || c[0].Held || c[0].Text != "receiver 2: balance" {
		t.Errorf("checks %+v", c)
	}
	if len(f.Receivers) != 2 || f.Receivers[1] != (model.ReceiverShare{Node: "receiver-2", Attempted: 100, Received: 70, GoodputBPS: 28_000}) {
		t.Errorf("shares %+v", f.Receivers)
	}
	if len(r.Series) != 2 || len(r.Series[0].Values) != 2 || r.Series[0].Values[1] != 22 || r.Series[0].At != manyReceivers {
		t.Errorf("series %+v", r.Series)
	}
	if len(r.Observed) != 2 {
		t.Errorf("observed %+v", r.Observed)
	}
}

func TestNodesOfAFlow(t *testing.T) {
	var all []seen
	for _, n := range []node{{name: "sender"}, {name: "link sender-switch"}, {name: "switch"}, {name: "link switch-receiver-7", branch: "receiver-7"}, {name: "receiver-7", branch: "receiver-7"},
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
		r.Flows = append(r.Flows, model.FlowResult{Name: fmt.Sprintf("up/%d", k), From: "sender", To: fmt.Sprintf("receiver-%d", k), PayloadBytes: 100,
			DurationS: took, Attempted: 16, Received: 16, SendPPS: pps, ReceivePPS: pps, GoodputBPS: 800 * pps})
	}
	joinMany(&r)
	if f := r.Flows[0]; f.SendPPS < 15_999 || f.SendPPS > 16_001 || f.ReceivePPS < 15_999 || f.ReceivePPS > 16_001 || f.GoodputBPS > 1.0001*f.SendGoodputBPS {
		t.Errorf("%v a second sent, %v received, %v of %v bit/s", f.SendPPS, f.ReceivePPS, f.GoodputBPS, f.SendGoodputBPS)
	}
}
