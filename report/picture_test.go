package report

import (
	"testing"

	"pelt/model"
	"pelt/report/rows"
)

// A link's losses are drawn between its two nodes, whichever way the flow runs.
func TestLinkLossesStandBetweenTheirNodes(t *testing.T) {
	r := rows.Row{Nodes: []string{"receiver", "router", "sender"}}
	r.Attempted, r.Lost = 100, 30
	r.Ledger = model.Ledger{Lost: 30, Lines: []model.Line{
		{Layer: model.LayerNetwork, Host: "link sender-router", Cause: "QDISC_DROP", Packets: 10},
		{Layer: model.LayerNetwork, Host: "router", Cause: "NETFILTER_DROP", Packets: 20},
	}}
	route := newRoute(model.Document{}, r, nil)
	for i, want := range []int{0, 0, 1, 1, 0} { // receiver, wire, router, wire, sender
		n := 0
		for _, s := range route.stations[i].stops {
			n += len(s.losses)
		}
		if n != want {
			t.Errorf("station %d (%q): %d losses, want %d", i, route.stations[i].name, n, want)
		}
	}
}
