package live

import (
	"testing"

	"pelt/model"
)

func TestLossesByNow(t *testing.T) {
	line := model.Line{Layer: model.LayerReceiverBuffer, Host: "receiver", Cause: "SOCKET_RCVBUFF", Packets: 300}
	for want, f := range map[string]model.FlowSoFar{
		"1 000 sent, none lost": {Attempted: 1000, Received: 1000},
		"1 000 sent, lost: 300 receiver socket buffer full, 100 unexplained": {Attempted: 1000, Received: 600,
			Lines: []model.Line{line}},
		"1 000 sent, lost: 200 receiver socket buffer full": {Attempted: 1000, Received: 800, Lines: []model.Line{line}},
	} {
		f.Name, f.Protocol, f.From, f.To = "up", model.UDP, "sender", "receiver"
		n := &Now{Started: Started{Nodes: []string{"sender", "receiver"}}, Account: &Account{Flows: []model.FlowSoFar{f}}}
		if got := n.Losses(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
