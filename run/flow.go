package run

import (
	"cmp"
	"slices"

	"pelt/engine"
	"pelt/fleet"
	"pelt/ledger"
	"pelt/model"
)

// FlowAccount is the account of one flow, from the reports of its two ends and the nodes of its path in travel order,
// and how its losses went over time. The other flows of the trial lost beside packets.
func FlowAccount(f model.Flow, family int, oneClock bool, timing model.Timing, o fleet.FlowOutcome, path []ledger.Node,
	beside uint64) (model.FlowResult, []ledger.Course) {
	var courses []ledger.Course
	f.Family = family // which the plan may leave open
	r := f.Result(family)
	r.DurationS = timing.MeasureSeconds
	send, receive := *o.Send.Send, *o.Receive.Receive
	r.SenderCPU, r.ReceiverCPU = o.Send.CPU, o.Receive.CPU
	addSend(&r, send)
	r.Peer = send.Peer
	addPacing(&r, f, send)
	if f.Protocol == model.UDP && o.Send.PathMTU > 0 {
		if n := model.Fragments(family, f.PayloadBytes, o.Send.PathMTU); n > 1 {
			r.Fragments = n
		}
	}
	if f.Connections != "" {
		addConnections(&r, send, receive)
	} else if f.Protocol == model.TCP {
		addTCP(&r, f, oneClock, send, receive, path, beside)
	} else {
		addReceive(&r, receive)
		r.ReceiveBufferBytes, r.TruesizeBytes = max(receive.BufferBytes, 0), max(receive.TruesizeBytes, 0)
		r.Ledger, courses = balance(r, f, *o.Send, receive, path, beside)
		advise(&r, path)
		r.Uneven = uneven(send.Streams, receive)
	}
	if r.Attempted > 0 {
		r.LossRatio = float64(r.Lost) / float64(r.Attempted)
	}
	return r, courses
}

func addSend(r *model.FlowResult, s engine.SendReport) {
	r.Planned, r.Attempted, r.Accepted = s.Planned, s.Attempted, s.Accepted
	r.SendGap, r.GapCounts, r.SendLate, r.BurstMax, r.SendErrors = s.Gap, s.GapCounts, s.Lateness, s.BurstMax,
		s.Errors
	addMoves(r, s.Moved, 0)
	if s.Silent > 0 {
		r.Silent = []model.Silence{silence(r.To, s.Silent, len(s.Streams))}
	}
	if s.DurationNanos > 0 {
		r.DurationS = float64(s.DurationNanos) / 1e9
	}
	if r.DurationS > 0 {
		r.SendPPS = float64(s.Attempted) / r.DurationS
		r.SendGoodputBPS = r.SendPPS * 8 * float64(r.PayloadBytes)
	}
}

// addMoves adds changes of streams' addresses, at times of a clock by which the measured part began then.
func addMoves(r *model.FlowResult, moves []engine.Move, began int64) {
	for _, m := range moves {
		at := max(float64(m.Nanos-began), 0) / 1e9
		r.Moved = append(r.Moved, model.Move{Stream: m.Stream, From: m.From, To: m.To, AtS: at})
	}
}

func silence(node string, streams, of int) model.Silence {
	return model.Silence{Node: node, Streams: streams, Of: of, AfterS: engine.ConsentLasts.Seconds()}
}

func addReceive(r *model.FlowResult, in engine.ReceiveReport) {
	t := in.Tally
	// A receiver that claims more than was sent is wrong: the ledger's checks say so.
	r.Received = min(t.Received, r.Attempted)
	r.Duplicates, r.Reordered, r.Late = t.Duplicates, t.Reordered, t.Late
	r.Lost = r.Attempted - r.Received
	r.JitterNS, r.Delay = t.JitterNanos, t.Delay
	if in.Peer != nil {
		r.Peer = in.Peer
	}
	addMoves(r, in.Moved, t.FirstNanos)
	// A queue on the path may deliver for longer than the sender sent; the
	// rate is over whichever took longer. Between the first and the last there is
	// one gap less than packets.
	seconds, counted := r.DurationS, float64(r.Received)
	if span := float64(t.LastNanos-t.FirstNanos) / 1e9; span > seconds && r.Received > 1 {
		seconds, counted = span, counted-1
	}
	if r.Received > 0 && seconds > 0 {
		r.ReceivePPS = counted / seconds
		r.GoodputBPS = r.ReceivePPS * float64(r.PayloadBytes) * 8
	}
}

func balance(r model.FlowResult, f model.Flow, sent engine.Report, in engine.ReceiveReport, path []ledger.Node,
	beside uint64) (model.Ledger, []ledger.Course) {
	s := sent.Send
	return ledger.BalanceOverTime(ledger.Input{
		Sender: r.From, Receiver: r.To, Flow: r.Name, Family: f.Family,
		Planned: r.Planned, Attempted: r.Attempted, Accepted: r.Accepted, SendErrors: r.SendErrors,
		Segments: inBuffers(f),
		Streams:  s.Streams, Refused: s.Refused, Errnos: s.Errnos, Retried: s.Retried, WarmupSent: s.WarmupSent,
		PerStep:   s.PerStep,
		SlotsLate: s.Late, SlotsHeld: s.Held, SlotsQuiet: s.SlotsSilent, HeldS: float64(s.HeldNanos) / 1e9,
		SendBuffer: max(s.BufferBytes, 0),
		Unsent:     s.Unsent, Cable: s.Cable, PastSockets: sent.Engine == "xdp",
		WarmupReceived: in.WarmupReceived, ICMP: s.ICMP,
		Received: in.Tally.Received, Late: in.Tally.Late, WrongLength: in.Tally.WrongLength,
		SocketDrops: in.SocketDrops, SocketKnown: in.SocketKnown, Unread: in.Unread, Unmoved: in.Unmoved,
		Missing: in.Missing, MissingKnown: in.MissingKnown, StillCame: in.StillCame,
		TakenOff: in.Taken, Broken: in.Broken, Overrun: in.Overrun,
		Fragments: r.Fragments, PacketBytes: max(0, r.FrameBytes-model.FCSBytes), DurationS: r.DurationS,
		BufferBytes: in.BufferBytes, Beside: beside, Nodes: path, Peer: in.Peer,
	})
}

// Streams are uneven if each of some lost so many packets, such a share of its own, and this many times the share of
// any other: neither chance nor a burst does that.
const (
	unevenPackets = 50
	unevenShare   = 0.02
	unevenTimes   = 4
)

// uneven finds the streams that lost far more than the others; nil if there are none.
func uneven(attempted []uint64, in engine.ReceiveReport) *model.Uneven {
	if !in.MissingKnown || len(in.Missing) != len(attempted) {
		return nil
	}
	lost := func(i int) uint64 { return min(in.Missing[i].Packets, attempted[i]) }
	share := func(i int) float64 { return float64(lost(i)) / float64(max(attempted[i], 1)) }
	var streams []int
	for i := range attempted {
		streams = append(streams, i)
	}
	slices.SortStableFunc(streams, func(a, b int) int { return cmp.Compare(share(b), share(a)) })
	for n := len(streams) - 1; n > 0; n-- {
		least := streams[n-1]
		if lost(least) < unevenPackets || share(least) < max(unevenShare, unevenTimes*share(streams[n])) {
			continue
		}
		u := model.Uneven{Streams: slices.Sorted(slices.Values(streams[:n]))}
		for _, i := range u.Streams {
			u.Attempted, u.Lost = u.Attempted+attempted[i], u.Lost+lost(i)
		}
		return &u
	}
	return nil
}

func addTCP(r *model.FlowResult, f model.Flow, oneClock bool, sent engine.SendReport, in engine.ReceiveReport,
	path []ledger.Node, beside uint64) {
	facts := model.TCPFacts{}
	if sent.TCP != nil {
		facts = *sent.TCP
		facts.Completion = completion(f, oneClock, sent, in)
	}
	if sent.Peer != nil && r.Attempted == 0 { // it does not tell its segments: those that came, and those sent again
		r.Attempted = in.Tally.Received + facts.Retransmits
		facts.SegmentsOut = r.Attempted
	}
	if in.Peer != nil {
		r.Peer = in.Peer
	}
	facts.ReceivedBytes = in.Tally.Bytes
	if in.TCP != nil {
		facts.SegmentsIn = in.TCP.SegmentsIn
		for i := range min(len(facts.PerStream), len(in.TCP.PerStream)) {
			facts.PerStream[i].ReceivedBytes = in.TCP.PerStream[i].ReceivedBytes
		}
	}
	r.TCP = &facts
	r.Lost = min(facts.Retransmits, r.Attempted)
	r.Received = r.Attempted - r.Lost
	r.Ledger = ledger.Balance(ledger.Input{TCP: true, Sender: r.From, Receiver: r.To, Flow: r.Name, Family: f.Family,
		Planned: r.Attempted, Attempted: r.Attempted, Accepted: r.Attempted, Received: r.Received,
		DurationS: r.DurationS, Beside: beside, Nodes: path})
	// The rate is over the whole time: a path that stalls carries nothing meanwhile.
	seconds := max(r.DurationS, float64(in.Tally.LastNanos-in.Tally.FirstNanos)/1e9)
	if c := facts.Completion; c != nil && c.Done && c.Seconds > 0 {
		seconds = c.Seconds
	}
	if seconds > 0 {
		r.GoodputBPS = float64(in.Tally.Bytes) * 8 / seconds
		r.ReceivePPS = float64(in.Tally.Received) / seconds
	}
	if r.DurationS > 0 {
		r.SendGoodputBPS = float64(facts.SentBytes) * 8 / r.DurationS
	}
}

// addConnections fills in a flow of connections, which count as its packets.
func addConnections(r *model.FlowResult, sent engine.SendReport, in engine.ReceiveReport) {
	c := model.ConnectionFacts{}
	if sent.Connections != nil {
		c = *sent.Connections
	}
	r.Connections, r.TCP = &c, &model.TCPFacts{}
	r.Received = min(c.Established, r.Attempted)
	r.Lost = r.Attempted - r.Received
	r.Ledger = model.Ledger{Lost: r.Lost, Unattributed: r.Lost, Lines: []model.Line{}, Checks: []model.Check{}}
	if r.DurationS > 0 {
		r.ReceivePPS = float64(r.Received) / r.DurationS
		r.GoodputBPS = float64(in.Tally.Bytes) * 8 / r.DurationS
	}
}

// inBuffers is how many packets a kernel may count as one.
func inBuffers(f model.Flow) int {
	if f.Joined {
		return model.MaxSegments
	}
	return f.Segments
}
