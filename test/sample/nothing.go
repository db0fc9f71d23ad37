package sample

import (
	"pelt/model"
	"pelt/unit"
)

// Nothing came through to the receiver: its firewall dropped the packets that open the way.
func Nothing() model.Document {
	d := Base("192.168.2.5", []int{64}, 3, 2)
	d.Plan.Flows[0].Rate = unit.PacketRate(1000)
	f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64,
		FrameBytes: 110, Streams: 1}
	dead(&f, 1, 1, model.Line{Layer: model.LayerReceiverFilter, Host: model.Receiver, Cause: "NETFILTER_DROP",
		Packets: 9, Confidence: "exact-count",
		Function: "nft_do_chain", Evidence: []model.Evidence{
			{Counter: "packets dropped by NETFILTER_DROP @ nft_do_chain+0x4a", Host: model.Receiver, Scope: "packet",
				Unit: "datagram", Role: "primary", Delta: 9},
			{Counter: "nft.inet.filter.input.5.packets", Host: model.Receiver, Scope: "namespace", Unit: "skb",
				Role: "confirms", Before: 3, After: 12, Delta: 9}}})
	r := Result(64, 0, f)
	r.State, r.Why = model.Invalid, model.Reasons{{Code: model.NothingThrough}}
	d.Results, d.Complete = append(d.Results, r), false
	return d
}

// NothingOnce carries the asked rate in two of three trials.
func NothingOnce() model.Document {
	d := Nothing()
	for repeat := 1; repeat < 3; repeat++ {
		d.Results = append(d.Results, Result(64, repeat, UDP("up", 64, 1000, 1000, 2, 70e3)))
	}
	d.Complete = true
	return d
}

// DeadStreams are every second one of eight; the others carry packets.
func DeadStreams() model.Document {
	d := Base("10.0.0.2", []int{64}, 1, 2)
	d.Plan.Flows[0].Rate, d.Plan.Flows[0].Streams = unit.PacketRate(500), 8
	f := UDP("up", 64, 500, 500, 2, 70e3)
	f.Streams = 8
	dead(&f, 2, 4, model.Line{Layer: model.LayerNetwork, Host: "10.0.0.1", Cause: "NETFILTER_DROP", Packets: 36,
		Confidence: "exact-count",
		Evidence: []model.Evidence{{Counter: "packets dropped by NETFILTER_DROP @ nft_do_chain+0x4a",
			Host: model.Sender, Scope: "packet", Unit: "datagram",
			Role: "primary", Delta: 36}}})
	f.Meeting.Asks.Attempted, f.Meeting.Asks.Received = f.Meeting.Asks.Attempted+8, 8
	f.Meeting.Answers = model.Passage{Attempted: 8, Received: 8,
		Ledger: model.Ledger{Lines: []model.Line{}, Checks: []model.Check{}}}
	d.Results = append(d.Results, Result(64, 0, f))
	return d
}

// StuckTCP opens its connections and carries nothing: its segments are too long for a link on the way.
func StuckTCP() model.Document {
	d := Base("10.0.0.2", []int{1460}, 1, 2)
	d.Plan.Flows[0].Protocol = model.TCP
	f := UDP("up", 1460, 4, 0, 2, 0)
	f.Protocol, f.FrameBytes, f.SendGap, f.Delay = model.TCP, model.FrameBytes(model.TCP, 4, 1460), nil, nil
	f.Planned, f.Attempted, f.Received, f.Lost, f.LossRatio = 4, 4, 0, 4, 1
	f.GoodputBPS, f.ReceivePPS = 0, 0
	f.TCP = &model.TCPFacts{Writes: 9, SentBytes: 13140, SegmentsOut: 4, Retransmits: 4, SegmentSizeBytes: 1448,
		Control: "cubic"}
	f.Ledger = model.Ledger{Lost: 4, Checks: []model.Check{}, Lines: []model.Line{{Layer: model.LayerNetwork,
		Host: "10.0.0.1", Cause: "PKT_TOO_BIG", Packets: 4, Confidence: "exact-count", Function: "ip_forward",
		Evidence: []model.Evidence{{Counter: "packets dropped by PKT_TOO_BIG @ ip_forward+0x2f9", Host: model.Sender,
			Scope: "packet", Unit: "segment", Role: "primary", Delta: 4}}}}}
	r := Result(1460, 0, f)
	r.Engine, r.EngineReason = "tcp", nil
	d.Results = append(d.Results, r)
	return d
}

// dead makes every so many streams of a flow carry nothing: nine packets of each were lost in one place.
func dead(f *model.FlowResult, every, streams int, where model.Line) {
	n := uint64(9 * streams)
	f.Meeting = &model.Meeting{From: model.Sender, To: model.Receiver,
		Asks: model.Passage{Attempted: n, Ledger: model.Ledger{Lost: n, Lines: []model.Line{where},
			Checks: []model.Check{}}},
		Answers: model.Passage{Ledger: model.Ledger{Lines: []model.Line{}, Checks: []model.Check{}}}}
	for i := range streams {
		f.DeadStreams = append(f.DeadStreams,
			model.DeadStream{Stream: every * i, FromPort: uint16(40001 + every*i), ToPort: 7359, Asked: 9})
	}
}
