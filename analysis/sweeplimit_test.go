package analysis

import (
	"math"
	"testing"

	"pelt/model"
)

func TestWireBytes(t *testing.T) {
	for _, c := range []struct {
		name     string
		spot     spot
		overhead int
		want     float64
	}{
		{"IPv4", spot{payload: 1280, fragments: 1, family: 4}, 0, 1280 + 42},
		{"IPv6", spot{payload: 1280, fragments: 1, family: 6}, 0, 1280 + 62},
		{"with overhead", spot{payload: 1280, fragments: 1, family: 4}, 24, 1280 + 42 + 24},
		{"shortest", spot{payload: 16, fragments: 1, family: 4}, 0, 60},
		{"last fragment padded", spot{payload: 1473, fragments: 2, family: 4, packet: 1500}, 0, 1514 + 60},
		{"last fragment just long enough", spot{payload: 1472 + 26, fragments: 2, family: 4, packet: 1500}, 0, 1514 + 60},
		{"last of IPv6 is never padded", spot{payload: 1453, fragments: 2, family: 6, packet: 1500}, 0, 14 + 40 + 8 + 1448 + 14 + 40 + 8 + 13},
		{"fragments of an unknown path", spot{payload: 1473, fragments: 2, family: 4}, 0, 1481 + 2*34},
		{"two fragments", spot{payload: 2000, fragments: 2, family: 4}, 0, 2000 + 8 + 2*34},
		{"two of IPv6 with overhead", spot{payload: 2000, fragments: 2, family: 6}, 4, 2000 + 8 + 2*(62-8+8) + 8},
	} {
		if got := wireBytes(c.spot, c.overhead); got != c.want {
			t.Errorf("%s: wireBytes = %v; want %v", c.name, got, c.want)
		}
	}
}

func TestWayOf(t *testing.T) {
	const m = 1_000_000
	const share = 1000.0 / 1042
	for _, c := range []struct {
		name      string
		target    string
		receivers int
		links     []model.Link
		want      float64 // bit/s at 1000 B; 0 is unknown
	}{
		{"each receiver", "lab:star", 10, []model.Link{{Node: "receiver", Toward: "receiver", Rate: m}}, 10 * m * share},
		{"both ways", "lab:star", 10, []model.Link{{Node: "receiver", Rate: m}}, 10 * m * share},
		{"the way back only", "lab:star", 10, []model.Link{{Node: "receiver", Rate: m, Toward: "sender"}}, 0},
		{"away from the switch's sender", "lab:star", 10, []model.Link{{Node: "receiver", Rate: m, Toward: "switch"}}, 0},
		{"all links, the sender's too", "lab:star", 10, []model.Link{{Rate: m}}, m * share},
		{"the sender's own", "lab:star", 10, []model.Link{{Node: "sender", Rate: 3 * m}}, 3 * m * share},
		{"the sender's is wider", "lab:star", 10, []model.Link{{Rate: m}, {Node: "sender", Rate: 100 * m}}, 10 * m * share},
		{"later overrides", "lab:star", 10, []model.Link{{Node: "receiver", Rate: m}, {Node: "receiver", Rate: 2 * m}}, 20 * m * share},
		{"one has its own", "lab:star", 10, []model.Link{{Node: "receiver", Rate: m}, {Node: "receiver-3", Rate: 5 * m}}, 14 * m * share},
		{"one only has a rate", "lab:star", 10, []model.Link{{Node: "receiver-3", Rate: 5 * m}}, 0},
		{"overhead", "lab:star", 10, []model.Link{{Node: "receiver", Rate: m, OverheadBytes: 20}}, 10 * m * 1000.0 / 1062},
		{"one beyond those that take part", "lab:star", 2, []model.Link{{Node: "receiver", Rate: 10 * m}, {Node: "receiver-10", Rate: m}}, 20 * m * share},
		{"no rate", "lab:star", 10, []model.Link{{Node: "receiver", LossRatio: 0.1}}, 0},
		{"router, far link", "lab:router", 0, []model.Link{{Node: "receiver", Rate: m}}, m * share},
		{"router, the slower of two", "lab:router", 0, []model.Link{{Node: "receiver", Rate: m}, {Node: "sender", Rate: m / 2}}, m / 2 * share},
		{"router, toward it", "lab:router", 0, []model.Link{{Node: "receiver", Rate: m, Toward: "router"}}, 0},
		{"direct", "lab:direct", 0, []model.Link{{Rate: m, Toward: "receiver"}}, m * share},
		{"real hosts", "192.168.1.5", 0, []model.Link{{Rate: m}}, 0},
	} {
		a := &analyst{doc: model.Document{Plan: model.Plan{Target: c.target, Receivers: c.receivers, Links: c.links}}}
		s := spot{payload: 1000, fragments: 1, family: 4, protocol: model.UDP,
			trials: []sweepTrial{{result: model.Result{Flows: []model.FlowResult{{From: model.Sender, To: model.Receiver}}}}}}
		got := 0.0
		if w, ok := a.wayOf(s); ok {
			got = w.allows(s)
		}
		if math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%s: at most %.0f bit/s; want %.0f", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		target, knob string
		rate, want   float64
	}{
		{"lab:star", "link-receiver.rate_bps", 2 * m, 20 * m * share},
		{"lab:star", "link-receiver.rate_bps", 0, 0},
		{"lab:star", "link-receiver-3.rate_bps", 5 * m, 14 * m * share},
		{"lab:star", "link-receiver-3.rate_bps", 0, 0},
		{"lab:star", "link-receiver.overhead_bytes", 58, 10 * m * 1000.0 / 1100},
		{"lab:direct", "link.rate_bps", 4 * m, 4 * m * share},
		{"lab:direct", "link.rate_bps", 0, 0},
		{"lab:direct", "link.delay_s", 0.02, m * share},
	} {
		a := &analyst{doc: model.Document{Plan: model.Plan{Target: c.target, Links: []model.Link{{Node: "receiver", Rate: m}}}}}
		s := spot{payload: 1000, fragments: 1, family: 4, protocol: model.UDP, cell: model.Cell{c.knob: model.Number(c.rate), "receivers": model.Number(10)},
			trials: []sweepTrial{{result: model.Result{Flows: []model.FlowResult{{From: model.Sender, To: model.Receiver}}}}}}
		if c.target == "lab:direct" {
			delete(s.cell, "receivers")
		}
		got := 0.0
		if w, ok := a.wayOf(s); ok {
			got = w.allows(s)
		}
		if math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%s with %s=%v: at most %.0f bit/s; want %.0f", c.target, c.knob, c.rate, got, c.want)
		}
	}
	back := spot{payload: 1000, fragments: 1, family: 4, protocol: model.UDP, trials: []sweepTrial{{result: model.Result{Flows: []model.FlowResult{{From: model.Receiver, To: model.Sender}}}}}}
	a := &analyst{doc: model.Document{Plan: model.Plan{Target: "lab:router", Links: []model.Link{{Rate: m}}}}}
	if w, ok := a.wayOf(back); ok {
		t.Errorf("a flow to the sender has the way %+v", w)
	}
}
