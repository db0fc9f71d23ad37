package rows

import (
	"slices"
	"testing"

	"pelt/model"
)

func account(lost, rest uint64, lines ...model.Line) model.FlowResult {
	return model.FlowResult{Name: "up", Protocol: model.UDP, From: "sender", To: "receiver", Attempted: 1000, Received: 1000 - lost, Lost: lost,
		Ledger: model.Ledger{Lost: lost, Unattributed: rest, Lines: lines}}
}

func TestLedgersOfRepeatsAddUp(t *testing.T) {
	buffer := func(n uint64, confidence, function string) model.Line {
		return model.Line{Layer: model.LayerReceiverBuffer, Host: "receiver", Cause: "SOCKET_RCVBUFF", Packets: n, Confidence: confidence, Function: function,
			Sequences: []model.Span{{From: n, Count: n}}, Evidence: []model.Evidence{{Counter: "Udp.RcvbufErrors", Before: 100, After: 100 + n, Delta: n, Excess: 1}},
			Advice: []model.Advice{{Knob: function}}}
	}
	at := func(node string) model.Line {
		return model.Line{Layer: model.LayerNetwork, Host: node, Cause: "QDISC_DROP", Packets: 1, Confidence: "exact-seq"}
	}
	doc := model.Document{
		Lab: &model.LabFacts{Nodes: []string{"sender", "r1", "r2", "receiver"}},
		Results: []model.Result{
			{State: model.Valid, Flows: []model.FlowResult{account(11, 0, at("r2"), buffer(10, "exact-seq", "a"))},
				Observed: []model.Observed{{Node: "sender", Mode: model.DropsSeq}, {Node: "receiver", Mode: model.DropsOff, Why: "no BPF"}}},
			{State: model.Valid, Flows: []model.FlowResult{account(23, 2, at("r1"), buffer(20, "bounded", "b"))},
				Observed: []model.Observed{{Node: "sender", Mode: model.DropsCount}, {Node: "receiver", Mode: model.DropsSeq}}},
			{State: model.Invalid, Flows: []model.FlowResult{account(500, 500)}},
		},
	}
	r := Fold(doc).Rows[0]
	if r.Lost != 34 || r.Ledger.Lost != 34 || r.Ledger.Unattributed != 2 {
		t.Errorf("lost %d, ledger %+v; want 34 and 2 of the valid trials", r.Lost, r.Ledger)
	}
	var order []string
	for _, l := range r.Ledger.Lines {
		order = append(order, l.Layer+"@"+l.Host)
	}
	if want := []string{"network@r1", "network@r2", "receiver-buffer@receiver"}; !slices.Equal(order, want) {
		t.Fatalf("lines %q; want %q, the travel order", order, want)
	}
	b := r.Ledger.Lines[2]
	if b.Packets != 30 || b.Confidence != "bounded" || b.Function != "b" || b.Advice[0].Knob != "b" || b.Sequences != nil {
		t.Errorf("summed line %+v; want 30 packets, as sure as the least sure, words of the larger one, no sequences", b)
	}
	if e := b.Evidence[0]; len(b.Evidence) != 1 || e.Delta != 30 || e.Excess != 2 || e.Before != 0 || e.After != 0 {
		t.Errorf("summed evidence %+v; want one of 30 with 2 over and no readings", b.Evidence)
	}
	if o := r.Observed; len(o) != 2 || o[0].Mode != model.DropsCount || o[1].Mode != model.DropsOff || o[1].Why != "no BPF" {
		t.Errorf("observed %+v; want the worst of each node", o)
	}
	if doc.Results[0].Flows[0].Ledger.Lines[1].Evidence[0].Delta != 10 || doc.Results[0].Flows[0].Ledger.Lines[1].Evidence[0].Before != 100 {
		t.Error("adding up changed the document")
	}
}

func TestNodes(t *testing.T) {
	lab := &model.LabFacts{Nodes: []string{"sender", "nat", "receiver"}}
	seen := []model.Observed{{Node: "sender"}, {Node: "dut"}, {Node: "receiver"}}
	for _, c := range []struct {
		name     string
		lab      *model.LabFacts
		observed []model.Observed
		from, to string
		want     []string
	}{
		{"lab", lab, nil, "sender", "receiver", []string{"sender", "nat", "receiver"}},
		{"lab, back", lab, nil, "receiver", "sender", []string{"receiver", "nat", "sender"}},
		{"hosts", nil, nil, "sender", "receiver", []string{"sender", "receiver"}},
		{"hosts with a node between", nil, seen, "receiver", "sender", []string{"receiver", "dut", "sender"}},
		{"names that the lab has not", lab, nil, "a", "b", []string{"a", "b"}},
	} {
		if got := Nodes(c.lab, c.observed, c.from, c.to); !slices.Equal(got, c.want) {
			t.Errorf("%s: Nodes = %q; want %q", c.name, got, c.want)
		}
	}
}
