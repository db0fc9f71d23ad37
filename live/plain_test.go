package live

import (
	"testing"

	"pelt/model"
)

func TestAccountText(t *testing.T) {
	line := model.Line{Layer: model.LayerReceiverBuffer, Cause: "SOCKET_RCVBUFF", Packets: 300}
	for want, f := range map[string]model.FlowSoFar{
		"up: 1 000 sent, none lost": {Name: "up", Attempted: 1000, Received: 1000},
		"up: 1 000 sent, 300 lost at receiver-buffer (SOCKET_RCVBUFF), 100 lost and not named yet": {Name: "up", Attempted: 1000, Received: 600, Lines: []model.Line{line}},
		"up: 1 000 sent, 200 lost at receiver-buffer (SOCKET_RCVBUFF)":                             {Name: "up", Attempted: 1000, Received: 800, Lines: []model.Line{line}},
	} {
		if got := (&Account{Flows: []model.FlowSoFar{f}}).Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
