package run

import (
	"testing"

	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/unit"
)

// A link that is late on the way back spoils nothing that a UDP flow measures.
func TestDoubtsOfWays(t *testing.T) {
	flow := func(from string, protocol model.Protocol) fleet.PlacedFlow {
		return fleet.PlacedFlow{Flow: model.Flow{From: from, Protocol: protocol}}
	}
	for name, c := range map[string]struct {
		flows []fleet.PlacedFlow
		doubt bool
	}{
		"up":               {[]fleet.PlacedFlow{flow(model.Sender, model.UDP)}, false},
		"down":             {[]fleet.PlacedFlow{flow("receiver-1", model.UDP)}, true},
		"both":             {[]fleet.PlacedFlow{flow(model.Sender, model.UDP), flow(model.Receiver, model.UDP)}, true},
		"acknowledgements": {[]fleet.PlacedFlow{flow(model.Sender, model.TCP)}, true},
	} {
		ways := [2]model.LinkResult{{From: "switch", To: "receiver", Passed: told(10000)},
			{From: "receiver", To: "switch", Passed: told(10000), LateRatio: 0.5}}
		w := &linkWatch{accounts: []lab.LinkAccount{{Results: ways}}, carries: waysOf(c.flows)}
		links, doubts := w.results([]node{{link: 1}})
		if len(links) != 2 || (len(doubts) == 1) != c.doubt {
			t.Errorf("%s: %d ways told, doubts %v; want 2, and a doubt: %v", name, len(links), doubts, c.doubt)
		}
	}
}

// TestAskedOfSlowSender: a slow sender that takes half as long again was still asked for the plan's rate.
func TestAskedOfSlowSender(t *testing.T) {
	f := model.FlowResult{Name: "up", Planned: 20e3, Attempted: 14e3, DurationS: 1.5, Streams: 1,
		Ledger: model.Ledger{Pacing: []model.PacingLine{{Cause: model.PacingLate, Packets: 6e3}}}}
	asked := model.Flow{Name: "up", Rate: unit.PacketRate(20e3)}
	why := shortfall(f, effort{}, asked, model.Timing{MeasureSeconds: 1})
	if len(why) != 1 || why[0].Numbers["asked_pps"] != 20e3 {
		t.Errorf("%+v", why)
	}
}

// TestEngineReasons: each end says once by what it carried the flow, and why no frames did.
func TestEngineReasons(t *testing.T) {
	ends := fleet.FlowOutcome{
		Send: &engine.Report{Engine: "xdp", Why: model.Reasons{model.NewReason(model.FramesOut, "name", "va")}},
		Receive: &engine.Report{Engine: "udp", Why: model.Reasons{{Code: model.SocketsAsked},
			{Code: model.ProgramThere, Name: "vb"}}}}
	flow := fleet.PlacedFlow{Flow: model.Flow{From: model.Sender, To: model.Receiver}}
	got := finding.Why(model.Reasons(reasons(fleet.Trial{Flows: []fleet.PlacedFlow{flow, flow}},
		fleet.Outcome{Flows: []fleet.FlowOutcome{ends, ends}})))
	if want := "sender: XDP live frames out of va; " +
		"receiver: udp sockets, because sockets were asked for; vb has an XDP program already"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
