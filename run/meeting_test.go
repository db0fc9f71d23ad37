package run

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pelt/engine"
	"pelt/fleet"
	"pelt/ledger"
	"pelt/model"
	"pelt/unit"
)

// metBy is one end's account of streams: of each what it sent and heard.
func metBy(local, remote uint16, counts ...[2]uint64) (m engine.Meeting) {
	for i, c := range counts {
		at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.Addr{}, port) }
		m.Streams = append(m.Streams, engine.MetStream{Stream: engine.Stream{Local: at(local + uint16(i)),
			Remote: at(remote)}, Sent: c[0], Heard: c[1]})
	}
	return m
}

// sought is a trial of flows that the sender's host calls for, whichever way they go; of each two streams.
func sought(names ...string) (model.Trial, fleet.Trial, fleet.Outcome) {
	timing := model.Timing{MeasureSeconds: 1}
	trial, placed, out := model.Trial{Timing: timing}, fleet.Trial{Timing: timing}, fleet.Outcome{}
	for _, name := range names {
		f := model.Flow{Name: name, Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64,
			Streams: 2, Rate: unit.PacketRate(1000)}
		from, to := "a", "b"
		if name == "down" {
			f.From, f.To, from, to = f.To, f.From, to, from
		}
		trial.Flows = append(trial.Flows, f)
		placed.Flows = append(placed.Flows, fleet.PlacedFlow{Flow: f, From: from, To: to, Dialer: "a",
			Send: fleet.Choice{Engine: "udp"}, Receive: fleet.Choice{Engine: "udp"}})
		out.Flows = append(out.Flows, fleet.FlowOutcome{Meeting: fleet.Meeting{Dead: []int{0, 1}, None: true,
			Asks: metBy(40000, 7359, [2]uint64{8, 0}, [2]uint64{7, 0}), Answers: metBy(7359, 40000, [2]uint64{2, 2},
				[2]uint64{0, 0})}})
	}
	return trial, placed, out
}

// watched are two hosts; the receiver's kernel dropped so many of each way's packets, and its filter counted nine.
func watched(flow string, asks, answers uint64) path {
	site := model.Site{Reason: "NETFILTER_DROP", Namespace: 1, Received: true}
	o := &model.Observation{Boot: "b", Namespace: 1, Mode: model.DropsSeq,
		Drops: &model.Drops{Sites: []model.Site{site}, Flows: []model.FlowDrops{
			{Flow: flow, Way: model.WayAsks, Counts: []model.SiteCount{{Packets: asks}}},
			{Flow: flow, Way: model.WayAnswers, Counts: []model.SiteCount{{Packets: answers}}}}}}
	sender := &model.Observation{Boot: "a", Namespace: 1, Mode: model.DropsOff}
	return path{nodes: []seen{{Node: ledger.Node{Name: model.Sender, Observation: sender}},
		{Node: ledger.Node{Name: model.Receiver, Observation: o}}}}
}

// TestMeetingRules: of two tables whose rules count nothing, one sees packets of the flow's family, and is named, unless
// a rule that counts has counted packets, which may be others.
func TestMeetingRules(t *testing.T) {
	for _, c := range []struct {
		listen  string
		counted uint64
		want    []string
	}{
		{"10.0.0.2", 0, []string{"nft.ip.fw.input.uncounted"}},
		{"fd00::2", 0, []string{"nft.ip6.fw.input.uncounted"}},
		{"10.0.0.2", 1, nil},
	} {
		trial, placed, out := sought("up")
		placed.Flows[0].Listen = netip.MustParseAddr(c.listen)
		path := watched("up", 15, 0)
		o := path.nodes[1].Observation
		o.Knobs = []model.HostSetting{{Name: "nft.ip.fw.input.uncounted", Value: "1"},
			{Name: "nft.ip6.fw.input.uncounted", Value: "1"}}
		o.Counters = []model.Counter{{Name: "nft.inet.filter.input.5.packets", Unit: "skb", Whole: c.counted}}
		facts := rulesNamed(account(trial, placed, out, path).Flows[0].Meeting.Asks)
		if !slices.Equal(facts, c.want) {
			t.Errorf("to %s, %d counted: %q, want %q", c.listen, c.counted, facts, c.want)
		}
	}
}

// rulesNamed are the settings that name rules which may have dropped packets.
func rulesNamed(p model.Passage) (names []string) {
	for _, l := range p.Ledger.Lines {
		for _, e := range l.Evidence {
			if e.Role == model.RoleFact {
				names = append(names, e.Counter)
			}
		}
	}
	return names
}

// Calls of TCP that were seen dropped had not arrived, even if answers to others were dropped, too.
func TestCallsDroppedAreNotReceived(t *testing.T) {
	for _, c := range []struct {
		calls          []uint64 // of each stream
		asks, answers  uint64   // seen dropped
		heard, replied uint64
	}{
		{[]uint64{8}, 0, 0, 0, 0},
		{[]uint64{8}, 0, 5, 8, 5},
		{[]uint64{8}, 3, 5, 5, 5},
		{[]uint64{8}, 8, 5, 1, 5}, // other programs' calls
		{[]uint64{8, 8}, 11, 5, 5, 5},
		{[]uint64{8, 8}, 2, 14, 14, 14},
	} {
		trial, placed, out := sought("up")
		placed.Flows[0].Flow.Protocol, placed.Flows[0].Flow.Streams = model.TCP, len(c.calls)
		m := &out.Flows[0].Meeting
		m.Dead, m.Asks, m.Answers, out.Unmet = nil, engine.Meeting{}, engine.Meeting{}, true
		for i, n := range c.calls {
			m.Dead = append(m.Dead, i)
			m.Asks.Streams = append(m.Asks.Streams, metBy(40000, 7359, [2]uint64{n, 0}).Streams...)
			m.Answers.Streams = append(m.Answers.Streams, metBy(7359, 40000, [2]uint64{0, 0}).Streams...)
		}
		path := watched("up", c.asks, c.answers)
		drops := path.nodes[1].Observation.Drops
		drops.Sites = append(drops.Sites, model.Site{Reason: "NOT_SPECIFIED", Function: "tcp_v4_rcv", Namespace: 1})
		drops.Flows[0].Counts = append(drops.Flows[0].Counts, model.SiteCount{Site: 1, Packets: 3}) // answered before
		got := account(trial, placed, out, path).Flows[0].Meeting
		if got.Asks.Received != c.heard || got.Answers.Attempted != c.replied || got.Answers.Received != 0 {
			t.Errorf("%+v: %d calls arrived, %d were answered", c, got.Asks.Received, got.Answers.Attempted)
		}
	}
}

// A flow without a way beside another one that has it does not spoil the trial. What counters say is then of both.
func TestOneFlowUnmet(t *testing.T) {
	trial, placed, out := sought("up", "down")
	sent := engine.SendReport{Planned: 1000, Attempted: 1000, Accepted: 1000, Streams: []uint64{1000, 0},
		DurationNanos: 1e9}
	in := engine.ReceiveReport{}
	in.Tally.Received, in.Tally.Bytes, in.Tally.LastNanos = 1000, 64000, 1e9
	out.Flows[0] = fleet.FlowOutcome{Send: &engine.Report{Send: &sent}, Receive: &engine.Report{Receive: &in},
		Meeting: fleet.Meeting{Dead: []int{1},
			Asks: metBy(40000, 7359, [2]uint64{2, 2}, [2]uint64{8, 0}), Answers: metBy(7359, 40000, [2]uint64{2, 2},
				[2]uint64{0, 0})}}
	nodes := watched("down", 0, 0)
	nodes.nodes[1].Observation.Mode, nodes.nodes[1].Observation.Drops = model.DropsOff, nil
	nodes.nodes[1].Observation.Counters = []model.Counter{{Name: "nft.inet.filter.input.5.packets", Unit: "skb",
		Whole: 100, Measure: 100}}
	r := account(trial, placed, out, nodes)
	up, down := r.Flows[0], r.Flows[1]
	if r.State != model.Valid || up.Received != 1000 || len(up.DeadStreams) != 1 || up.DeadStreams[0].Stream != 1 {
		t.Errorf("%s (%+v), %+v", r.State, r.Why, up)
	}
	if len(down.DeadStreams) != 2 || down.Attempted != 0 || down.Meeting.Asks.Ledger.Unattributed != 13 {
		t.Errorf("the flow without a way is %+v", down)
	}
}

// The receivers of a star that get nothing are told by their streams, and are no losses.
func TestStarUnmet(t *testing.T) {
	trial, placed, out := sought("up/1", "up/2")
	for i := range placed.Flows {
		placed.Flows[i].Flow.To = []string{"receiver-1", "receiver-2"}[i]
	}
	trial.Flows = trial.Flows[:1]
	trial.Flows[0].Name = "up"
	out.Unmet = true
	r := account(trial, placed, out, path{})
	f := r.Flows[0]
	if len(r.Flows) != 1 || f.Meeting == nil || f.Meeting.To != model.ManyReceivers || f.Meeting.Asks.Attempted != 30 ||
		!r.Why.Has(model.NothingThrough) {
		t.Fatalf("%+v, %+v", r.Why, f)
	}
	var streams []int
	for _, s := range f.DeadStreams {
		streams = append(streams, s.Stream)
	}
	if !slices.Equal(streams, []int{0, 1, 2, 3}) {
		t.Errorf("dead streams %v", streams)
	}
}

// The rule that lost the packets of one receiver of a star is named; those of several are not.
func TestStarRule(t *testing.T) {
	for blocked, want := range map[int][]string{1: {"nft.ip.fw.input.uncounted"}, 2: nil} {
		trial, placed, out := sought("up/1", "up/2")
		nodes := watched("up/1", 15, 0)
		nodes.nodes[1].Name = "receiver-1"
		nodes.nodes[1].Observation.Knobs = []model.HostSetting{{Name: "nft.ip.fw.input.uncounted", Value: "1"}}
		for i := range placed.Flows {
			placed.Flows[i].Flow.To = []string{"receiver-1", "receiver-2"}[i]
			placed.Flows[i].Listen = netip.MustParseAddr("10.0.0.2")
		}
		if blocked == 1 {
			out.Flows[1].Meeting = fleet.Meeting{}
		}
		trial.Flows = trial.Flows[:1]
		trial.Flows[0].Name = "up"
		asks := account(trial, placed, out, nodes).Flows[0].Meeting.Asks
		if got := rulesNamed(asks); !slices.Equal(got, want) || asks.Ledger.Lines[0].Host != model.ManyReceivers {
			t.Errorf("%d blocked: %q, want %q; %+v", blocked, got, want, asks.Ledger.Lines)
		}
	}
}

// A trial whose ends missed each other by chance is tried again, a few times, and its result says so.
func TestUntilMet(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name    string
		missed  int // tries
		failing int // the try that fails
		cut     int // the try after which the run is cut
		tries   int
		again   float64 // as the result tells
	}{
		{"at once", 0, 0, 0, 1, 0},
		{"missed once", 1, 0, 0, 2, 1},
		{"missed twice", 2, 0, 0, 3, 2},
		{"missed always", 9, 0, 0, 3, 2},
		{"failed", 9, 2, 0, 2, 0},
		{"cut", 9, 0, 1, 1, 0},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		notes, tries := 0, 0
		r := &runner{}
		r.Events = func(e Event) {
			if e.Note != nil {
				notes++
			}
		}
		result, err := r.untilMet(ctx, func() (x model.Result, err error) {
			tries++
			if r.lossy = tries <= c.missed; tries == c.failing {
				err = failed
			}
			if tries == c.cut {
				cancel()
			}
			return x, err
		})
		cancel()
		again := 0.0
		for _, w := range result.Warnings {
			again += w.Numbers["tries"]
		}
		if tries != c.tries || notes != tries-1 || again != c.again || (err != nil) != (c.failing > 0) {
			t.Errorf("%s: %d tries, %d notes, %v, %v", c.name, tries, notes, result.Warnings, err)
		}
	}
}
