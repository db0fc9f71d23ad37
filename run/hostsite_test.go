package run

import (
	"net/netip"
	"strings"
	"testing"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
)

// TestMeantThere: an address that each host takes for another one is no target.
func TestMeantThere(t *testing.T) {
	for _, c := range []struct{ near, far, want string }{
		{"10.0.0.1", "10.1.0.1", ""},
		{"127.0.0.1", "10.1.0.1", ""},
		{"127.0.0.1", "127.0.0.2", ""}, // two on this very host
		{"10.0.0.1", "127.0.0.1", "127.0.0.1 is each host itself"},
		{"10.0.0.1", "::1", "::1 is each host itself"},
		{"10.0.0.1", "fe80::1%eth0", "is of one link of this host"},
	} {
		err := checkFarAddress(netip.MustParseAddr(c.near), netip.MustParseAddr(c.far))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %q", c.near, c.far, err, c.want)
		}
	}
}

// TestImpossibleConnections: a report of another host may say anything.
func TestImpossibleConnections(t *testing.T) {
	timing := model.Timing{MeasureSeconds: 1}
	flow := model.Flow{Name: "up", Protocol: model.TCP, Streams: 1, PayloadBytes: model.ConnectionMessageBytes, Connections: model.ConnectionRate}
	outcome := func(change func(*model.ConnectionFacts)) fleet.FlowOutcome {
		c := &model.ConnectionFacts{Mode: model.ConnectionRate, Established: 9, PerSecond: []uint64{9}}
		change(c)
		return fleet.FlowOutcome{
			Send:    &engine.Report{Send: &engine.SendReport{Attempted: 10, Accepted: 10, Streams: []uint64{10}, DurationNanos: 1e9, Connections: c}},
			Receive: &engine.Report{Receive: &engine.ReceiveReport{}},
		}
	}
	if why := impossible(flow, timing, outcome(func(*model.ConnectionFacts) {})); why != nil {
		t.Errorf("a good account: %s", why)
	}
	if why := impossible(flow, timing, outcome(func(c *model.ConnectionFacts) { c.Established = 11 })); len(why) != 1 || why[0].Name != "sender connections" {
		t.Errorf("more established than attempted: %v", why)
	}
	none := outcome(func(*model.ConnectionFacts) {})
	none.Send.Send.Connections = nil
	if why := impossible(flow, timing, none); len(why) != 1 || why[0].Name != "sender kind" {
		t.Errorf("no account of connections: %v", why)
	}
}
