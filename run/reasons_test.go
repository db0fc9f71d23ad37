package run

import (
	"strings"
	"testing"

	"pelt/engine"
	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
)

// flowThat is a second of a flow at 1 kpps that gave up slots.
func flowThat(late, held uint64) model.FlowResult {
	return model.FlowResult{Name: "up", Planned: 1000, Attempted: 1000 - late - held, DurationS: 1,
		Ledger: model.Ledger{Pacing: []model.PacingLine{
			{Cause: model.PacingLate, Packets: late}, {Cause: model.PacingBackpressure, Packets: held},
		}}}
}

func TestShortfall(t *testing.T) {
	paced := model.Flow{Protocol: model.UDP, Rate: mustRate(t, "1kpps")}
	unpaced := model.Flow{Protocol: model.UDP}
	second := model.Timing{MeasureSeconds: 1}
	stalled := flowThat(0, 0)
	stalled.DurationS = 0.5
	silent := func(streams, of, receivers int) model.FlowResult {
		f := flowThat(0, 0)
		f.Streams, f.DurationS, f.Receivers = of, 0.5, make([]model.ReceiverShare, receivers)
		for range max(receivers, 1) {
			f.Silent = append(f.Silent, silence("receiver", streams, of))
		}
		if streams < of {
			f.DurationS = 1
		}
		return f
	}
	for _, c := range []struct {
		name   string
		flow   model.FlowResult
		effort effort
		asked  model.Flow
		want   string
	}{
		{"kept its schedule", flowThat(0, 0), effort{}, paced, ""},
		{"late for five percent", flowThat(50, 0), effort{}, paced, ""},
		{"late for more", flowThat(51, 0), effort{}, paced, model.SenderLate},
		{"held back for half", flowThat(0, 500), effort{}, paced, ""},
		{"held back, and late for five percent", flowThat(50, 500), effort{}, paced, ""},
		{"sent nothing", model.FlowResult{Planned: 1000, DurationS: 1}, effort{}, paced, model.NothingSent},
		{"tcp sent nothing", model.FlowResult{DurationS: 1, TCP: &model.TCPFacts{}}, effort{},
			model.Flow{Protocol: model.TCP}, model.NothingSent},
		{"tcp where no segments are counted", model.FlowResult{DurationS: 1, TCP: &model.TCPFacts{SentBytes: 1e6}},
			effort{},
			model.Flow{Protocol: model.TCP}, ""},
		{"unpaced", flowThat(0, 0), effort{}, unpaced, ""},
		{"stalled", stalled, effort{}, unpaced, model.SenderStalled},
		{"no receiver answered", silent(1, 1, 0), effort{}, paced, model.ReceiverSilent},
		{"none of many receivers answered", silent(2, 2, 3), effort{}, paced, model.ReceiverSilent},
		{"a receiver did not answer on one of its streams", silent(1, 2, 0), effort{}, paced, ""},
		{"its interface refused five percent", flowThat(0, 0), effort{refused: 50}, paced, ""},
		{"its interface refused more", flowThat(0, 0), effort{refused: 51}, paced, model.InterfaceRefused},
		{"its interface refused most of a flood", flowThat(0, 0), effort{refused: 900}, unpaced, ""},
		{"tcp paced by the path", flowThat(500, 0), effort{}, model.Flow{Protocol: model.TCP, Rate: paced.Rate}, ""},
	} {
		got := shortfall(c.flow, c.effort, c.asked, second)
		if c.want == "" && got != nil || c.want != "" && (len(got) != 1 || got[0].Code != c.want) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
	}
}

func TestLateCause(t *testing.T) {
	for _, c := range []struct {
		name string
		time engine.LateTime
		cpu  model.CPU
		want string
	}{
		{"the system does not tell", engine.LateTime{}, model.CPU{HostRatio: 1}, model.SenderLate},
		{"ready without a core", engine.LateTime{Nanos: 1000, RunNanos: 300, WaitNanos: 600}, model.CPU{HostRatio: 1},
			model.SenderStarved},
		{"on its core", engine.LateTime{Nanos: 1000, RunNanos: 800, WaitNanos: 100}, model.CPU{HostRatio: 1},
			model.SenderCoreFull},
		{"asleep past its time", engine.LateTime{Nanos: 1000, RunNanos: 200, WaitNanos: 100},
			model.CPU{HostRatio: 0.1}, model.SenderTimerLate},
		{"stolen while on its core", engine.LateTime{Nanos: 4e8, RunNanos: 4e8},
			model.CPU{HostRatio: 0.7, StealRatio: 0.2}, model.SenderStolen},
		{"stolen, and counted as sleep", engine.LateTime{Nanos: 5e8, RunNanos: 1e8},
			model.CPU{HostRatio: 0.7, StealRatio: 0.2}, model.SenderStolen},
		{"little was stolen", engine.LateTime{Nanos: 2e9, RunNanos: 19e8}, model.CPU{HostRatio: 0.9, StealRatio: 0.1},
			model.SenderCoreFull},
		{"more than there was", engine.LateTime{Nanos: 10, RunNanos: 1e18, WaitNanos: 1e18}, model.CPU{},
			model.SenderCoreFull},
	} {
		got, numbers := lateCause(c.time, c.cpu, 2)
		if got != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, got, numbers, c.want)
		}
		for name, v := range numbers {
			if !(v >= 0 && v <= 1) {
				t.Errorf("%s: %s is %v", c.name, name, v)
			}
		}
	}
}

func TestEffort(t *testing.T) {
	late := &engine.LateTime{Nanos: 10, RunNanos: 4, WaitNanos: 5}
	for _, c := range []struct {
		name string
		of   []engine.SendReport
		want effort
	}{
		{"two of a star's", []engine.SendReport{{LateTime: late}, {}, {LateTime: late}},
			effort{late: engine.LateTime{Nanos: 20, RunNanos: 8, WaitNanos: 10}}},
		{"a card that took fewer", []engine.SendReport{{Attempted: 9,
			Unsent: map[string]uint64{model.CauseRingFull: 3, "ENXIO": 2}}}, effort{refused: 5}},
		{"the other end of a cable was full",
			[]engine.SendReport{{Attempted: 9, Cable: true,
				Unsent: map[string]uint64{model.CauseRingFull: 3, "ENXIO": 2}}}, effort{refused: 2}},
		{"more than it attempted", []engine.SendReport{{Attempted: 9, Unsent: map[string]uint64{"ENXIO": 1 << 63}}},
			effort{refused: 9}},
		{"negative times", []engine.SendReport{{LateTime: &engine.LateTime{Nanos: -1, RunNanos: -1, WaitNanos: -1}}},
			effort{}},
	} {
		var got effort
		for _, s := range c.of {
			got = got.plus(s)
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestLinkDoubt(t *testing.T) {
	passed := func(n uint64) *uint64 { return &n }
	for _, c := range []struct {
		name  string
		link  model.LinkResult
		doubt bool
	}{
		{"on time", model.LinkResult{Passed: passed(10000)}, false},
		{"one percent late", model.LinkResult{Passed: passed(10000), LateRatio: 0.01}, false},
		{"more late", model.LinkResult{Passed: passed(10000), LateRatio: 0.011}, true},
		{"few late", model.LinkResult{Passed: passed(20), LateRatio: 1}, false},
		{"no room for one", model.LinkResult{Passed: passed(10000), Overrun: 1}, true},
		{"one not handed on", model.LinkResult{Passed: passed(10000), Refused: 1}, true},
	} {
		c.link.From, c.link.To = "sender", "router"
		got := linkDoubts([]model.LinkResult{c.link})
		if (len(got) == 1) != c.doubt || c.doubt &&
			(got[0].Code != model.LinkBehind || got[0].Link != "sender to router") {
			t.Errorf("%s: %+v, want a doubt: %v", c.name, got, c.doubt)
		}
	}
}

func TestLinkDoubtsOfAStar(t *testing.T) {
	var links []model.LinkResult
	for _, to := range []string{"receiver-1", "receiver-2"} {
		links = append(links, model.LinkResult{From: "switch", To: to, Passed: told(15), LateRatio: 0.8},
			model.LinkResult{From: to, To: "switch", Passed: told(15)})
	}
	got := linkDoubts(links)
	if len(got) != 1 || got[0].Link != "switch to receivers" || got[0].Numbers["late_ratio"] != 0.8 {
		t.Errorf("%+v, want one doubt about the links to receivers", got)
	}
}

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
		"commands":         {nil, true},
	} {
		ways := [2]model.LinkResult{{From: "switch", To: "receiver", Passed: told(10000)},
			{From: "receiver", To: "switch", Passed: told(10000), LateRatio: 0.5}}
		w := &linkWatch{accounts: []lab.LinkAccount{{Results: ways}}, carries: waysOf(c.flows)}
		links, doubts := w.results([]node{{link: 1}}, true)
		if len(links) != 2 || (len(doubts) == 1) != c.doubt {
			t.Errorf("%s: %d ways told, doubts %v; want 2, and a doubt: %v", name, len(links), doubts, c.doubt)
		}
	}
}

func TestCutReasons(t *testing.T) {
	hopeless := func(errno string) []fleet.FlowOutcome {
		return []fleet.FlowOutcome{{}, {Send: &engine.Report{PathMTU: 1300,
			Send: &engine.SendReport{Hopeless: true, Errors: map[string]uint64{errno: 64, "EAGAIN": 1}}}}}
	}
	for _, c := range []struct {
		name string
		out  fleet.Outcome
		want string
	}{
		{"not cut", fleet.Outcome{}, ""},
		{"a host was lost", fleet.Outcome{Cut: "the receiver was lost", Flows: []fleet.FlowOutcome{{}}},
			model.TrialCut},
		{"too long", fleet.Outcome{Cut: "no", Flows: hopeless("EMSGSIZE")}, model.PacketTooBig},
		{"forbidden", fleet.Outcome{Cut: "no", Flows: hopeless("EPERM")}, model.SendRefused},
	} {
		got := cutReasons(fleet.Trial{}, c.out)
		if c.want == "" && got != nil || c.want != "" && (len(got) != 1 || got[0].Code != c.want) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
		if c.want == model.PacketTooBig && got[0].Numbers["path_mtu_bytes"] != 1300 {
			t.Errorf("%s: numbers %v, want the path's MTU", c.name, got[0].Numbers)
		}
	}
}

// What a host did to a trial makes it invalid, and is said in place of what it led to; foreign
// packets are only told.
func TestDisturbedTrials(t *testing.T) {
	for _, c := range []struct {
		name             string
		sender, receiver model.Reasons
		strangers        uint64
		cut              string
		want             model.State
		why              string
	}{
		{"slept", model.Reasons{{Code: model.HostSlept, Numbers: map[string]float64{"slept_s": 3.2}}}, nil, 0, "",
			model.Invalid,
			"the host of the sender slept for 3.20 s"},
		{"slept and cut", nil, model.Reasons{{Code: model.HostSlept, Numbers: map[string]float64{"slept_s": 3.2}}}, 0,
			"lost", model.Aborted,
			"the host of the receiver slept for 3.20 s; lost"},
		{"both interfaces went", model.Reasons{{Code: model.InterfaceGone, Name: "va"}},
			model.Reasons{{Code: model.InterfaceGone, Name: "vb"}}, 0,
			"the connection was lost", model.Invalid, "the interface va of the sender went away; the interface vb of the receiver went away"},
		{"foreign packets", nil, nil, 3, "", model.Valid, ""},
	} {
		trial, placed, out := honest()
		out.Cut = c.cut
		out.Flows[0].Send.Disturbed, out.Flows[0].Receive.Disturbed = c.sender, c.receiver
		out.Flows[0].Receive.Receive.Tally.Strangers = c.strangers
		r := account(trial, placed, out, path{})
		if r.State != c.want || r.Why.String() != c.why {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, r.State, r.Why, c.want, c.why)
		}
		if told := strings.Contains(strings.Join(r.Warnings, "\n"),
			"3 packets came with sequence numbers far from"); told != (c.strangers > 0) {
			t.Errorf("%s: warnings %q", c.name, r.Warnings)
		}
	}
}

// A trial whose sender was late is invalid for one reason; one whose sender was
// transferDoubt back is valid, and the packets that were not attempted are no loss.
func TestLateAndHeldSenders(t *testing.T) {
	for _, c := range []struct {
		name             string
		late, held, left uint64
		want             model.State
	}{{"late", 600, 0, 0, model.Invalid}, {"held", 0, 600, 0, model.Valid}, {"not answered", 0, 0, 600, model.Valid}} {
		trial, placed, out := honest()
		trial.Flows[0].Rate = mustRate(t, "1600pps")
		placed.Flows[0].Flow.Rate = trial.Flows[0].Rate
		s := out.Flows[0].Send.Send
		s.Planned, s.Late, s.Held, s.HeldNanos = s.Attempted+600, c.late, c.held, int64(c.held)*1e6
		s.SlotsSilent = c.left
		s.LateTime = &engine.LateTime{Nanos: 1e9, WaitNanos: 9e8}
		r := account(trial, placed, out, path{})
		f := r.Flows[0]
		if r.State != c.want || f.Lost != 10 || len(f.Ledger.Pacing) != 1 || f.Ledger.Pacing[0].Packets != 600 {
			t.Errorf("%s: %s %v, %d lost, pacing %+v; want %s and 10 lost", c.name, r.State, r.Why, f.Lost,
				f.Ledger.Pacing, c.want)
		}
		if c.want == model.Invalid && (len(r.Why) != 1 || r.Why[0].Code != model.SenderStarved ||
			r.Why[0].Numbers["asked_pps"] != 1600) {
			t.Errorf("%s: %+v, want %s", c.name, r.Why, model.SenderStarved)
		}
	}
}
