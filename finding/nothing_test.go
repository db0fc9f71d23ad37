package finding

import (
	"maps"
	"slices"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
	"pelt/unit"
)

// meetingOf is a trial between two hosts whose streams found no way: of each nine packets were sent, and so many
// arrived there and back.
func meetingOf(heard, back uint64, asks, answers []model.Line, edit ...func(d *model.Document)) *model.Document {
	d := sample.Nothing()
	d.ID, d.Plan.Target, d.Plan.Flows[0].Rate, d.Host[1].Address = "abc", "10.0.2.2", unit.Rate{}, "10.0.2.2"
	f := &d.Results[0].Flows[0]
	f.DeadStreams[0] = model.DeadStream{FromPort: 40000, ToPort: 7359, Asked: 9, AsksHeard: heard, Answered: heard,
		AnswersHeard: back}
	f.Meeting.Asks = model.Passage{Attempted: 9, Received: heard, Ledger: model.Ledger{Lost: 9 - heard, Lines: asks}}
	f.Meeting.Answers = model.Passage{Attempted: heard, Received: back,
		Ledger: model.Ledger{Lost: heard - back, Lines: answers}}
	for _, e := range edit {
		e(&d)
	}
	return &d
}

// lineAt is a line of nine packets.
func lineAt(layer, host, cause string) []model.Line {
	return []model.Line{{Layer: layer, Host: host, Cause: cause, Packets: 9, Confidence: "exact-count",
		Evidence: []model.Evidence{{}}}}
}

// someStreams makes four of eight streams dead, and the others measured.
func someStreams(d *model.Document) {
	r := &d.Results[0]
	r.State, r.Why = model.Valid, nil
	f := &r.Flows[0]
	f.Streams, f.Planned, f.Attempted, f.Received, f.DurationS = 8, 1000, 1000, 1000, 1
	f.SendPPS, f.ReceivePPS, f.GoodputBPS = 1000, 1000, 512e3
	dead := f.DeadStreams[0]
	f.DeadStreams = nil
	for i := range 4 {
		dead.Stream, dead.FromPort = 2*i+1, uint16(40001+2*i)
		f.DeadStreams = append(f.DeadStreams, dead)
	}
	for i := range f.Meeting.Asks.Ledger.Lines {
		f.Meeting.Asks.Ledger.Lines[i].Packets *= 4
	}
}

// stuck is a flow of TCP whose connections open and then carry nothing.
func stuck(lines []model.Line, edit ...func(d *model.Document)) *model.Document {
	d := sample.StuckTCP()
	d.ID, d.Plan.Target, d.Host[1].Address = "abc", "10.0.2.2", "10.0.2.2"
	d.Results[0].Cell["payload_bytes"] = model.Number(64)
	f := &d.Results[0].Flows[0]
	if f.PayloadBytes, f.Ledger.Lines = 64, lines; len(lines) == 0 {
		f.Ledger.Unattributed = f.Lost
	}
	for _, e := range edit {
		e(&d)
	}
	return &d
}

// again adds a trial to the one of a document.
func again(edit func(r *model.Result, f *model.FlowResult)) func(d *model.Document) {
	return func(d *model.Document) {
		r := d.Results[0]
		f, facts := r.Flows[0], *r.Flows[0].TCP
		r.Cell, f.TCP = maps.Clone(r.Cell), &facts
		edit(&r, &f)
		r.Flows = []model.FlowResult{f}
		d.Results = append(d.Results, r)
	}
}

func carries(_ *model.Result, f *model.FlowResult) { f.GoodputBPS, f.TCP.ReceivedBytes = 1e6, 1e6 }

func nothingExamples(*testing.T) []example {
	filtered := lineAt(model.LayerReceiverFilter, model.Receiver, "NETFILTER_DROP")
	ruled := lineAt(model.LayerReceiverFilter, model.Receiver, "NETFILTER_DROP")
	ruled[0].Evidence[0] = model.Evidence{Counter: "nft.inet.filter.input.5.packets", Delta: 9}
	uncounted := lineAt(model.LayerReceiverFilter, model.Receiver, "NETFILTER_DROP")
	uncounted[0].Evidence[0] = model.Evidence{Counter: "nft.inet.filter.input.uncounted", Role: model.RoleFact, After: 1}
	dotted := lineAt(model.LayerReceiverFilter, model.Receiver, "NETFILTER_DROP")
	dotted[0].Evidence[0] = model.Evidence{Counter: "nft.inet.my:table.:output.input.5.packets", Delta: 9}
	hostile := lineAt(model.LayerReceiverFilter, model.Receiver, "NETFILTER_DROP")
	hostile[0].Evidence = []model.Evidence{{Counter: "nft.inet.filter.x; flush ruleset.input.5.packets", Delta: 9},
		{Counter: "reboot..filter.input.uncounted", Role: model.RoleFact, After: 1}}
	few := lineAt(model.LayerReceiverFilter, model.Receiver, "NETFILTER_DROP")
	few[0].Packets = 3
	wire := lineAt(model.LayerNetwork, "", model.CauseElimination)
	refused := lineAt(model.LayerNetwork, "10.0.1.1", model.CauseICMP+"port unreachable")
	atRouter := lineAt(model.LayerNetwork, "10.0.1.1", "NETFILTER_DROP")
	older := lineAt(model.LayerNetwork, "router", "NETFILTER_DROP")
	older[0].Evidence[0] = model.Evidence{Counter: "iptables.filter.zone_wan.forward.2.packets", Delta: 9}
	mesh := func(d *model.Document) {
		d.Plan.Command, d.Plan.Target, d.Results[0].Cell = "mesh", "fleet:", model.Cell{"pair": model.Word("a" +
			model.PairSeparator + "b")}
	}
	star := func(target string, dead ...int) func(*model.Document) {
		return func(d *model.Document) {
			someStreams(d)
			d.Plan.Command, d.Plan.Target = "sweep", target
			f := &d.Results[0].Flows[0]
			f.Streams, f.To, f.Meeting.To, f.DeadStreams = 1, "receivers", "receivers", nil
			d.Host[1].Node = "receivers"
			for i, name := range []string{"a", "b", "c"} {
				f.Receivers = append(f.Receivers,
					model.ReceiverShare{Node: "receiver-" + name, Attempted: 500, Received: 500, GoodputBPS: 256e3})
				if slices.Contains(dead, i) {
					f.DeadStreams = append(f.DeadStreams,
						model.DeadStream{Stream: i, FromPort: 40000, ToPort: 7359, Asked: 9})
				}
			}
		}
	}
	long := lineAt(model.LayerNetwork, "10.0.1.1", "PKT_TOO_BIG")
	atReceivers := lineAt(model.LayerReceiverFilter, "receivers", "NETFILTER_DROP")
	return examplesOf(map[string]*model.Document{
		"TCP opens, and carries nothing, both ways": stuck(long, func(d *model.Document) {
			down := d.Results[0].Flows[0]
			down.Name, down.From, down.To = "down", down.To, down.From
			d.Results[0].Flows = append(d.Results[0].Flows, down)
		}),
		"TCP opens, and carries nothing: nobody knows why": stuck(nil, func(d *model.Document) {
			d.Results[0].Flows[0].Streams = 4
		}),
		"TCP carries nothing in one size": stuck(long, again(func(r *model.Result, f *model.FlowResult) {
			r.Cell["payload_bytes"], f.PayloadBytes = model.Number(1460), 1460
			carries(r, f)
		})),
		"TCP carries nothing in one of two repeats": stuck(long, again(carries)),
		"TCP carries nothing with one congestion control": stuck(long, func(d *model.Document) {
			d.Results[0].Cell["control"] = model.Word("reno")
		}, again(func(r *model.Result, f *model.FlowResult) {
			r.Cell["control"] = model.Word("bbr")
			carries(r, f)
		})),
		"a receiver of a star":                               meetingOf(0, 0, atReceivers, nil, star("fleet:a,b,c,d", 1)),
		"two receivers of a star":                            meetingOf(0, 0, atReceivers, nil, star("lab:star", 0, 2)),
		"firewall of the far host, its rule":                 meetingOf(0, 0, ruled, nil),
		"firewall of the far host, a rule without a counter": meetingOf(0, 0, uncounted, nil),
		"firewall of an older router":                        meetingOf(0, 0, older, nil),
		"firewall whose names have dots, and are a hook's":   meetingOf(0, 0, dotted, nil),
		"firewall whose names are commands":                  meetingOf(0, 0, hostile, nil),
		"a router refuses":                                   meetingOf(0, 0, refused, nil),
		"a router does not reach the host": meetingOf(0, 0,
			lineAt(model.LayerNetwork, "10.0.1.1", model.CauseICMP+"host unreachable"), nil),
		"the host answers for one behind it": meetingOf(0, 0,
			lineAt(model.LayerNetwork, "10.0.2.2", model.CauseICMP+"host unreachable"), nil),
		"a loop": meetingOf(0, 0,
			lineAt(model.LayerNetwork, "10.0.1.1", model.CauseICMP+"time to live exceeded"), nil),
		"a few of them in a known place": meetingOf(0, 0, few, nil),
		"vanished":                       meetingOf(0, 0, wire, nil),
		"no route": meetingOf(0, 0,
			lineAt(model.LayerSendCall, model.Sender, "ENETUNREACH"), nil),
		"answers, firewall of this host": meetingOf(9, 0, nil,
			lineAt(model.LayerReceiverFilter, model.Sender, "NETFILTER_DROP")),
		"answers, forbidden there": meetingOf(9, 0, nil,
			lineAt(model.LayerSendCall, model.Receiver, "EPERM")),
		"a rule or connection tracking": meetingOf(0, 0,
			lineAt(model.LayerNetwork, "10.0.1.1", "NETFILTER_HOOK"), nil),
		"answers, vanished":     meetingOf(9, 0, nil, wire),
		"answers, nobody knows": meetingOf(9, 0, nil, nil),
		"answers, refused":      meetingOf(9, 0, nil, refused),
		"answers, reverse path filter": meetingOf(9, 0, nil,
			lineAt(model.LayerReceiverIP, model.Sender, "IP_RPFILTER")),
		"a few": meetingOf(3, 1, nil, nil),
		"one stream": meetingOf(0, 0, atRouter, nil, someStreams, func(d *model.Document) {
			f := &d.Results[0].Flows[0]
			f.DeadStreams = f.DeadStreams[:1]
		}),
		"some streams, the answers": meetingOf(9, 0, nil, atRouter, someStreams),
		"a pair of a mesh":          meetingOf(0, 0, filtered, nil, mesh),
		"a lab": meetingOf(0, 0, filtered, nil,
			func(d *model.Document) { d.Plan.Target, d.Lab = "lab:router", &model.LabFacts{} }),
		"TCP": meetingOf(0, 0, nil, nil, func(d *model.Document) {
			f := &d.Results[0].Flows[0]
			f.Protocol, f.DeadStreams[0].Asked, f.Meeting.Asks = model.TCP, 0, model.Passage{}
		}),
		"TCP, refused": meetingOf(0, 0, lineAt(model.LayerNetwork, "", model.CauseReset), nil, func(d *model.Document) {
			d.Results[0].Flows[0].Protocol = model.TCP
		}),
		"another setting came through": meetingOf(0, 0, filtered, nil, func(d *model.Document) {
			other := meetingOf(0, 0, nil, nil, someStreams).Results[0]
			other.Cell = model.Cell{"payload_bytes": model.Number(1472)}
			other.Flows[0].Meeting, other.Flows[0].DeadStreams, other.Flows[0].PayloadBytes = nil, nil, 1472
			d.Results = append(d.Results, other)
		}),
		"both directions": meetingOf(0, 0, filtered, nil, func(d *model.Document) {
			down := d.Results[0].Flows[0]
			down.Name, down.From, down.To = "down", down.To, down.From
			d.Results[0].Flows = append(d.Results[0].Flows, down)
		}),
	}, nothingRule, unusableRule)
}

// Only where nothing else came through is that the answer of a run.
func TestNothingThrough(t *testing.T) {
	longer := again(func(r *model.Result, f *model.FlowResult) {
		r.Cell["payload_bytes"], f.PayloadBytes = model.Number(1460), 1460
		carries(r, f)
	})
	for name, c := range map[string]struct {
		doc              *model.Document
		nothing, blocked bool
	}{
		"no packet came through":                {meetingOf(0, 0, nil, nil), true, true},
		"streams that carry packets":            {meetingOf(0, 0, nil, nil, someStreams), false, false},
		"TCP that opens and carries nothing":    {stuck(nil), true, true},
		"TCP that carries nothing at one size":  {stuck(nil, longer), false, true},
		"TCP that carries nothing in one trial": {stuck(nil, again(carries)), false, false},
	} {
		rows := table.Rows(c.doc)
		if nothing, blocked := NothingThrough(rows), Blocked(rows); nothing != c.nothing || blocked != c.blocked {
			t.Errorf("%s: nothing came through: %v, blocked: %v", name, nothing, blocked)
		}
	}
}
