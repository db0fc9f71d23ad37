package finding

import (
	"net/netip"
	"testing"

	"pelt/model"
	"pelt/table"
)

func setupExamples(*testing.T) []example {
	// What links lost counts over all valid trials whose links stayed as they were, for each share that was asked.
	of := func(from, to string, frames, lost uint64, asked float64) model.LinkResult {
		return model.LinkResult{From: from, To: to, Frames: frames, Lost: &lost, AskedRatio: asked}
	}
	trial := func(state model.State, links ...model.LinkResult) model.Result {
		return model.Result{State: state, Flows: []model.FlowResult{{Name: "up"}, {Name: "down"}}, Links: links}
	}
	changed := trial(model.Valid, of("sender", "router", 1000, 900, 0.05))
	changed.Made = []model.MadeChange{{Words: "link=loss=90%"}}
	lossy := model.Document{Results: []model.Result{
		trial(model.Valid, of("sender", "router", 1000, 40, 0.05), of("router", "receiver", 960, 0, 0)),
		trial(model.Valid, of("sender", "router", 1000, 58, 0.05), of("router", "sender", 500, 26, 0.05)),
		trial(model.Valid, of("sender", "router", 1000, 11, 0.01),
			model.LinkResult{From: "router", To: "sender", AskedRatio: 0.01}),
		trial(model.Invalid, of("sender", "router", 1000, 700, 0.05)), changed,
	}}

	// A change of a flow's source address is told once a trial, with its streams and what was lost meanwhile.
	at := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
	flow := func(streams int, lost uint64, moves ...model.Move) model.Result {
		f := model.FlowResult{Name: "up", Streams: streams, Moved: moves}
		if lost > 0 {
			f.Ledger.Lines = []model.Line{{Layer: model.LayerApplication, Cause: model.CauseNewAddress, Packets: lost}}
		}
		return model.Result{State: model.Valid, Flows: []model.FlowResult{f}}
	}
	port := model.Move{From: at("10.0.0.1:40000"), To: at("10.0.0.1:51123"), AtS: 3.2}
	address := model.Move{Stream: 2, From: at("10.0.0.1:40000"), To: at("[fd77::1]:40000"), AtS: 3.2}
	again := model.Move{From: at("10.0.0.1:51123"), To: at("10.0.0.1:9"), AtS: 5}
	moved := model.Document{Results: []model.Result{flow(1, 150, port), flow(4, 0), flow(4, 0, address),
		flow(4, 1, port, again), flow(1, 0, again), flow(1, 0, again)}}

	// To the host that calls nothing came any more after six of nine seconds, or after eight; or nothing was sent then.
	cameTo := func(seconds int, from string, lost uint64) []table.Row {
		f := model.FlowResult{Name: "down", Protocol: model.UDP, From: from, To: model.Sender, Attempted: 9000,
			Received: 9000 - lost, Lost: lost, SendPPS: 1000}
		values := make([]float64, 9)
		for i := range seconds {
			values[i] = 1000
		}
		return table.Rows(&model.Document{Results: []model.Result{{State: model.Valid, Flows: []model.FlowResult{f},
			Series: []model.Series{{Metric: "receive_pps", Flow: "down", StepSeconds: 1, Values: values}}}}})
	}

	// Of four streams two lost what a rule, or a full queue, took.
	uneven := func(others uint64, line model.Line) []table.Row {
		f := model.FlowResult{Name: "up", Streams: 4, Attempted: 4000, Lost: 600 + others,
			Uneven: &model.Uneven{Streams: []int{1, 3}, Attempted: 2000, Lost: 600}}
		line.Packets = f.Lost
		f.Ledger.Lines = []model.Line{line}
		return table.Rows(&model.Document{Results: []model.Result{{State: model.Valid, Flows: []model.FlowResult{f}}}})
	}
	rule := model.Line{Layer: model.LayerNetwork, Cause: "NETFILTER_DROP", Host: "10.0.1.1"}
	queue := model.Line{Layer: model.LayerNetwork, Cause: "QDISC_DROP", Host: "10.0.1.1"}
	down := func(lost uint64, times uint64) []table.Row {
		return table.Rows(&model.Document{Host: []model.Host{{Node: model.Sender, Interface: "eth0"}},
			Results: []model.Result{{State: model.Valid,
				Flows: []model.FlowResult{{Name: "up", Attempted: 9, Lost: lost}},
				Counters: []model.Counter{{Name: "dev.eth0.carrier_down", Host: model.Sender, Whole: times},
					{Name: "dev.eth1.carrier_down", Host: model.Sender, Whole: 7}}}}})
	}
	dead := table.Rows(meetingOf(0, 0, nil, nil, someStreams))
	short := usualStar()
	short.Sizes, short.IntervalMS = []int{1472, 2000}, []float64{5}
	usual := table.Rows(short.doc())
	return []example{
		{"losses that links made", madeLoss(table.Rows(&lossy))}, {"moves", movesRule(table.Rows(&moved))},
		{"a carrier that was lost", carriersRule(down(5, 3))},
		{"one that cost nothing", carriersRule(down(0, 1))},
		{"nothing arrives at the host that calls", movesRule(cameTo(6, model.Receiver, 3000))},
		{"but for a second", movesRule(cameTo(8, model.Receiver, 1000))},
		{"because nothing is sent", movesRule(cameTo(6, model.Receiver, 0))},
		{"from another host", movesRule(cameTo(6, "router", 3000))},
		{"streams of which a rule drops two", unevenRule(uneven(0, rule))},
		{"streams of which a full queue drops two", unevenRule(uneven(4, queue))},
		{"streams that carry nothing would have lost what they would have carried", TooLossy(dead, 0.01)},
		{"more than 5 % lost", TooLossy(usual, 0.05)},
		{"hardly more than 9.7 % lost", TooLossy(usual, 0.097)},
		{"without rows", TooLossy(nil, 0)},
	}
}
