package run

import (
	"testing"

	"pelt/model"
)

// TestConnections runs a list of both kinds in one stack, from the plan to the findings.
func TestConnections(t *testing.T) {
	t.Parallel()
	p := smallPlan(t)
	p.Factors = nil
	p.Timing = model.Timing{WarmupSeconds: 0.05, MeasureSeconds: 1, DrainSeconds: 0.5}
	p.Design = model.Design{Repeats: 1, Seed: 1, Ordered: true, Cells: []model.Cell{
		{"protocol": model.Word("tcp"), "connections": model.Word("rate")},
		{"protocol": model.Word("tcp"), "connections": model.Word("keep"), "rate_pps": model.Number(1000)},
	}}
	doc, err := Execute(t.Context(), p, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Results) != 2 || !doc.Complete {
		t.Fatalf("%d results, complete %v", len(doc.Results), doc.Complete)
	}
	for i, mode := range []string{model.ConnectionRate, model.ConnectionKeep} {
		r := doc.Results[i]
		f := r.Flows[0]
		c := f.Connections
		if r.State == model.Aborted || c == nil || c.Mode != mode || c.Established == 0 ||
			f.Received != c.Established || f.Lost != f.Attempted-f.Received {
			t.Fatalf("%s: %s (%v), %d attempted, %d received, %d lost, %+v", mode, r.State, r.Why, f.Attempted,
				f.Received, f.Lost, c)
		}
		if mode == model.ConnectionKeep && (c.OpenMax != c.Established || c.Established > 1000) {
			t.Errorf("%d open of %d established, want all, and 1000 at most: 1000 a second", c.OpenMax, c.Established)
		}
		if f.ReceivePPS <= 0 || f.GoodputBPS <= 0 || f.Ledger.Unattributed != f.Lost {
			t.Errorf("%s: %v a second, %v bit/s, ledger %+v", mode, f.ReceivePPS, f.GoodputBPS, f.Ledger)
		}
	}
	if len(doc.Findings) == 0 {
		t.Error("no findings")
	}
}
