package run

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"pelt/engine"
	"pelt/fleet"
	"pelt/ledger"
	"pelt/model"
)

// account makes the result of a trial from the reports of both ends and the observations
// of the path.
func account(t model.Trial, placed fleet.Trial, out fleet.Outcome, path path) model.Result {
	star := strings.Contains(placed.Flows[0].Flow.Name, "/")
	r := model.Result{Cell: t.Cell, Repeat: t.Repeat, State: model.Valid, Series: []model.Series{},
		Flows: []model.FlowResult{}}
	var engines []string
	var doubts model.Reasons
	efforts := map[string]effort{} // by flow of the plan
	for i, f := range placed.Flows {
		o := withEmptyReports(out.Flows[i])
		for _, name := range carriers(f, o) {
			if !slices.Contains(engines, name) {
				engines = append(engines, name)
			}
		}
		if m := out.Flows[i].Meeting; m.None {
			flow := unmet(f.Flow, familyOf(f))
			addMeeting(&flow, f, m, path.nodes, out.Unmet)
			r.Flows = append(r.Flows, flow)
			continue
		}
		wrong := impossible(f.Flow, t.Timing, out.Flows[i])
		efforts[planFlow(f.Flow.Name)] = efforts[planFlow(f.Flow.Name)].plus(*o.Send.Send)
		flow, courses := flowResult(f.Flow, familyOf(f), placed.OneClock, t.Timing, o, path.nodes,
			lostBeside(out.Flows, i))
		flow.SenderCPU = hostCPU(flow.SenderCPU, out.Load[f.From].CPU)
		flow.ReceiverCPU = hostCPU(flow.ReceiverCPU, out.Load[f.To].CPU)
		lead := t.Timing.LeadSeconds > 0
		if out.Probe != nil && (flow.Delay == nil || lead) {
			flow.RoundTrip = out.Probe.RoundTrip
		}
		if out.Probe != nil && lead {
			flow.Probe = out.Probe.Facts
		}
		addMeeting(&flow, f, out.Flows[i].Meeting, path.nodes, false)
		if wrong == nil && !star { // its flows are judged together
			wrong = shortfall(flow, efforts[planFlow(flow.Name)], f.Flow, t.Timing)
		}
		if wrong == nil {
			wrong = transferDoubt(flow, f.Flow, path.slowest)
		}
		if strays := o.Receive.Receive.Strays; wrong == nil && strays > 0 {
			wrong = model.Reasons{{Code: model.FramesAstray, Flow: flow.Name, Node: flow.To,
				Numbers: map[string]float64{"packets": float64(strays)}}}
		}
		doubts = append(doubts, wrong...)
		r.Flows = append(r.Flows, flow)
		r.Series = append(r.Series, flowSeries(f.Flow, t.Timing, flow.DurationS, out.Flows[i])...)
		if !star {
			r.Series = append(r.Series, lossSeries(f.Flow, flow.DurationS, courses)...)
		}
	}
	r.Series = append(r.Series, hostSeries(placed, out)...)
	sortSeries(r.Series)
	r.Links, r.Warnings = path.links, endWarnings(placed, out)
	addObserved(&r, path.nodes)
	useCheckpoint(&r, out, path.told)
	if star {
		leaveOutUnknown(&r, out, path.told)
		joinMany(&r)
		for i, f := range r.Flows {
			asked := t.Flows[i]
			asked.Packets *= uint64(len(placed.Flows) / len(t.Flows))
			doubts = append(doubts, shortfall(f, efforts[f.Name], asked, t.Timing)...)
		}
	}
	if out.Unmet {
		doubts = model.Reasons{{Code: model.NothingThrough}}
	}
	doubts = append(doubts, path.doubts...)
	r.Warnings = append(r.Warnings, senderWarnings(r.Flows, len(doubts) == 0 && !t.Cell.Searching())...)
	for _, g := range out.Gaps {
		r.Gaps = append(r.Gaps, model.ControlGap{Nodes: g.Nodes, StartS: g.From.Seconds(),
			DurationS: (g.To - g.From).Seconds()})
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("no word from the %s for %.1f s from t=%.1f s on; the test went on, and its figures include that time",
				strings.Join(g.Nodes, ", "), (g.To-g.From).Seconds(), g.From.Seconds()))
	}
	r.Engine, r.EngineReason = strings.Join(engines, "+"), reasons(placed, out)
	if r.Why = cutReasons(placed, out); r.Why == nil {
		r.Why = append(disturbed(placed, out), doubts...)
	}
	r.State = r.Why.State()
	return r
}

// hostSeries returns the processor loads of the hosts. For receivers of a star that are hosts of their own, it is the
// busiest one's.
func hostSeries(placed fleet.Trial, out fleet.Outcome) (list []model.Series) {
	told := map[string]bool{}
	busiest, node := engine.Load{}, ""
	for _, f := range placed.Flows {
		for _, end := range []struct{ node, agent string }{{f.Flow.From, f.From}, {f.Flow.To, f.To}} {
			w := out.Load[end.agent]
			if groupName(end.node) != end.node {
				if !placed.OneClock && w.CPU.BusiestRatio > busiest.CPU.BusiestRatio {
					busiest, node = w, end.node
				}
				continue
			}
			if told[end.node] {
				continue
			}
			told[end.node] = true
			for _, s := range w.Series {
				s.At = end.node
				list = append(list, s)
			}
		}
	}
	for _, s := range busiest.Series {
		s.At = node
		list = append(list, s)
	}
	return list
}

// carriers names the engines of a flow, the sender's first.
func carriers(f fleet.PlacedFlow, o fleet.FlowOutcome) []string {
	names := []string{f.Send.Engine, f.Receive.Engine}
	for i, r := range []*engine.Report{o.Send, o.Receive} {
		if r != nil && r.Engine != "" {
			names[i] = r.Engine
		}
	}
	return names
}

// reports lists what the ends of a trial's flows reported, by their nodes.
func reports(placed fleet.Trial, out fleet.Outcome) iter.Seq2[string, *engine.Report] {
	return func(yield func(string, *engine.Report) bool) {
		for i, f := range placed.Flows {
			if r := out.Flows[i].Send; r != nil && !yield(f.Flow.From, r) {
				return
			}
			if r := out.Flows[i].Receive; r != nil && !yield(f.Flow.To, r) {
				return
			}
		}
	}
}

// reasons says why the ends used their engines, each reason once.
func reasons(placed fleet.Trial, out fleet.Outcome) string {
	var list []string
	for node, r := range reports(placed, out) {
		text := node + ": " + r.Why
		if r.Engine == "udp" {
			text = node + ": udp sockets, because " + r.Why
		}
		if r.Why != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, "; ")
}

// stillNanos is a pause that no healthy sender makes.
const stillNanos = 100e6

// senderWarnings warns of senders that were late for a part of their schedule, or that
// paused. A slow path makes gaps too, but then most gaps are long. Of a late sender a search and an invalid trial tell.
func senderWarnings(flows []model.FlowResult, late bool) (list []string) {
	for _, f := range flows {
		if late && float64(slots(f, model.PacingLate)) > toldMissedRatio*float64(f.Planned) {
			list = append(list, "flow "+f.Name+": the sender was late and gave up a part of its schedule")
		}
		if f.Pacing != nil { // whose gaps may well be long
			list = append(list, profileWarnings(f)...)
			continue
		}
		if g := f.SendGap; g != nil && g.Max > stillNanos && g.Max > 1000*g.P50 {
			list = append(list, fmt.Sprintf("flow %s: the sender paused for 0.1 s or longer", f.Name))
		}
	}
	return list
}

// hostCPU is the load of a host, with the engine's figure for its own threads.
func hostCPU(engine, host model.CPU) model.CPU {
	host.ThreadRatio = engine.ThreadRatio
	return host
}

// endWarnings lists the warnings of the ends and of the controller, each once.
func endWarnings(placed fleet.Trial, out fleet.Outcome) []string {
	list := slices.Clone(out.Warnings)
	for node, r := range reports(placed, out) {
		for _, w := range r.Warnings {
			list = append(list, groupName(node)+": "+w)
		}
		if in := r.Receive; in != nil && in.Tally.Strangers > 0 {
			list = append(list,
				fmt.Sprintf("%s: %d packets came with sequence numbers far from all others, and count as foreign: "+
					"somebody else sends into the flow, or packets are changed on the way", groupName(node), in.Tally.Strangers))
		}
	}
	for i, o := range out.Flows {
		if missing(o) || o.Send.Engine != "xdp" || o.Send.Send.Accepted == 0 {
			continue
		}
		if in := o.Receive.Receive; in.Strays+in.Tally.Received+in.WarmupReceived == 0 {
			list = append(list,
				fmt.Sprintf("%s: no XDP frame arrived at the %s; the path may still carry what sockets send: try --engine udp",
					planFlow(placed.Flows[i].Flow.Name), groupName(placed.Flows[i].Flow.To)))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// missing reports whether the report of an end is missing.
func missing(o fleet.FlowOutcome) bool {
	return o.Send == nil || o.Send.Send == nil || o.Receive == nil || o.Receive.Receive == nil
}

// withEmptyReports puts an empty report where an end sent none.
func withEmptyReports(o fleet.FlowOutcome) fleet.FlowOutcome {
	var send, receive engine.Report
	if o.Send != nil {
		send = *o.Send
	}
	if o.Receive != nil {
		receive = *o.Receive
	}
	if send.Send == nil {
		send.Send = &engine.SendReport{}
	}
	if receive.Receive == nil {
		receive.Receive = &engine.ReceiveReport{}
	}
	return fleet.FlowOutcome{Send: &send, Receive: &receive}
}

// lostBeside is what the other flows of a trial lost.
func lostBeside(all []fleet.FlowOutcome, flow int) (n uint64) {
	for i, o := range all {
		if i == flow || missing(o) {
			continue
		}
		sent, in := o.Send.Send, o.Receive.Receive
		if sent.TCP != nil {
			n += sent.TCP.Retransmits
			continue
		}
		went, came := sent.Attempted+sent.WarmupSent, in.Tally.Received+in.WarmupReceived
		n += went - min(came, went)
	}
	return n
}

func flowResult(f model.Flow, family int, oneClock bool, timing model.Timing, o fleet.FlowOutcome, nodes []seen,
	beside uint64) (model.FlowResult, []ledger.Course) {
	var courses []ledger.Course
	r := model.FlowResult{
		Name: f.Name, Protocol: f.Protocol, From: f.From, To: f.To, PayloadBytes: f.PayloadBytes,
		FrameBytes: model.FrameBytes(f.Protocol, family, f.PayloadBytes), Streams: f.Streams,
		DurationS: timing.MeasureSeconds,
	}
	send, receive := *o.Send.Send, *o.Receive.Receive
	r.SenderCPU, r.ReceiverCPU = o.Send.CPU, o.Receive.CPU
	addSend(&r, send)
	addPacing(&r, f, send)
	if f.Protocol == model.UDP && o.Send.PathMTU > 0 {
		if n := model.Fragments(family, f.PayloadBytes, o.Send.PathMTU); n > 1 {
			r.Fragments = n
		}
	}
	if f.Connections != "" {
		addConnections(&r, send, receive)
	} else if f.Protocol == model.TCP {
		addTCP(&r, f, oneClock, send, receive, nodes, beside)
	} else {
		addReceive(&r, receive)
		r.ReceiveBufferBytes, r.TruesizeBytes = max(receive.BufferBytes, 0), max(receive.TruesizeBytes, 0)
		r.Ledger, courses = balance(r, f, *o.Send, receive, nodes, beside)
		advise(&r, f, receive, nodes)
		r.Uneven = uneven(send.Streams, receive)
	}
	if r.Attempted > 0 {
		r.LossRatio = float64(r.Lost) / float64(r.Attempted)
	}
	return r, courses
}

// FlowAccount is the account of one flow of UDP between the hosts of one machine, from the reports of its two ends and
// the nodes of its path in travel order.
func FlowAccount(f model.Flow, timing model.Timing, send, receive *engine.Report, path []ledger.Node) model.FlowResult {
	var nodes []seen
	for _, n := range path {
		nodes = append(nodes, seen{Node: n})
	}
	r, _ := flowResult(f, f.Family, true, timing, fleet.FlowOutcome{Send: send, Receive: receive}, nodes, 0)
	return r
}

func addSend(r *model.FlowResult, s engine.SendReport) {
	r.Planned, r.Attempted, r.Accepted = s.Planned, s.Attempted, s.Accepted
	r.SendGap, r.GapCounts, r.SendLate, r.BurstMax, r.SendErrors = s.Gap, s.GapCounts, s.Lateness, s.BurstMax,
		s.Errors
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
	for _, m := range in.Moved {
		at := max(float64(m.Nanos-t.FirstNanos), 0) / 1e9
		r.Moved = append(r.Moved, model.Move{Stream: m.Stream, From: m.From, To: m.To, AtS: at})
	}
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

func balance(r model.FlowResult, f model.Flow, sent engine.Report, in engine.ReceiveReport, nodes []seen,
	beside uint64) (model.Ledger, []ledger.Course) {
	s := sent.Send
	return ledger.BalanceOverTime(ledger.Input{
		Sender: r.From, Receiver: r.To, Flow: r.Name,
		Planned: r.Planned, Attempted: r.Attempted, Accepted: r.Accepted, SendErrors: r.SendErrors,
		Segments: inBuffers(f),
		Streams:  s.Streams, Refused: s.Refused, Errnos: s.Errnos, Retried: s.Retried, WarmupSent: s.WarmupSent,
		PerStep:   s.PerStep,
		SlotsLate: s.Late, SlotsHeld: s.Held, SlotsQuiet: s.SlotsSilent, HeldS: float64(s.HeldNanos) / 1e9, SendBuffer: max(s.BufferBytes, 0),
		Unsent: s.Unsent, Cable: s.Cable, PastSockets: sent.Engine == "xdp",
		WarmupReceived: in.WarmupReceived, ICMP: s.ICMP,
		Received: in.Tally.Received, Late: in.Tally.Late, WrongLength: in.Tally.WrongLength,
		SocketDrops: in.SocketDrops, SocketKnown: in.SocketKnown, Unread: in.Unread, Unmoved: in.Unmoved,
		Missing: in.Missing, MissingKnown: in.MissingKnown, StillCame: in.StillCame,
		TakenOff: in.Taken, Broken: in.Broken, Overrun: in.Overrun,
		Fragments: r.Fragments, PacketBytes: max(0, r.FrameBytes-model.FCSBytes), DurationS: r.DurationS, BufferBytes: in.BufferBytes, TruesizeBytes: in.TruesizeBytes,
		Beside: beside, Nodes: nodesOf(f, nodes),
	})
}

// Streams are uneven if each of some lost so many packets, such a share of its own, and this many times the share of
// any other: neither chance nor a burst does that.
const (
	unevenPackets = 50
	unevenShare   = 0.02
	unevenTimes   = 8
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
	nodes []seen, beside uint64) {
	facts := model.TCPFacts{}
	if sent.TCP != nil {
		facts = *sent.TCP
		facts.Completion = completion(f, oneClock, sent, in)
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
	r.Ledger = ledger.Balance(ledger.Input{TCP: true, Sender: r.From, Receiver: r.To, Flow: r.Name,
		Planned: r.Attempted, Attempted: r.Attempted, Accepted: r.Attempted, Received: r.Received,
		DurationS: r.DurationS, Beside: beside, Nodes: nodesOf(f, nodes)})
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

// flowSeries keeps whole steps only: a last one cut short would look like a
// fall of the rate. A trial shorter than a step is one step of its own length.
func flowSeries(f model.Flow, t model.Timing, seconds float64, o fleet.FlowOutcome) []model.Series {
	var out []model.Series
	step := float64(engine.StepNanos) / 1e9
	whole := int(seconds/step + 0.01)
	add := func(metric, at string, counts []uint64, factor float64) {
		s := model.Series{Metric: metric, Flow: f.Name, At: at, StepSeconds: step}
		if whole == 0 {
			s.StepSeconds = seconds
		}
		for _, n := range counts[:min(len(counts), max(whole, 1))] {
			s.Values = append(s.Values, float64(n)*factor/s.StepSeconds)
		}
		if len(s.Values) > 0 && s.StepSeconds > 0 {
			out = append(out, s)
		}
	}
	sent := o.Send != nil && o.Send.Send != nil
	if sent {
		out = append(out, tcpSeries(f, t, *o.Send.Send)...)
		add("send_pps", f.From, o.Send.Send.PerStep, 1)
	}
	if o.Receive != nil && o.Receive.Receive != nil {
		tally := o.Receive.Receive.Tally
		packets, bytes := slices.Clone(tally.PerStep), slices.Clone(tally.StepBytes)
		// The receiver's series ends with the last packet; after it nothing came.
		until := min(whole, int(t.MeasureSeconds/step+0.01))
		for sent && f.Protocol == model.UDP && len(packets) < until {
			packets, bytes = append(packets, 0), append(bytes, 0)
		}
		add("receive_pps", f.To, packets, 1)
		add("goodput_bps", f.To, bytes, 8)
	}
	return out
}

// lossSeries are the lost packets by the second in which they were sent: all, and by line.
// They keep whole steps only; a trial below a step has none.
func lossSeries(f model.Flow, seconds float64, courses []ledger.Course) (list []model.Series) {
	step := float64(engine.StepNanos) / 1e9
	whole := int(seconds/step + 0.01)
	for _, c := range courses {
		s := model.Series{Metric: "lost_pps", Flow: f.Name, At: f.From, Layer: c.Layer, Cause: c.Cause,
			StepSeconds: step}
		if c.Host != "" {
			s.At = c.Host
		}
		for _, n := range c.Lost[:min(len(c.Lost), whole)] {
			s.Values = append(s.Values, float64(n)/step)
		}
		if len(s.Values) > 0 {
			list = append(list, s)
		}
	}
	return list
}

func sortSeries(series []model.Series) {
	core := func(s model.Series) int {
		if s.Core == nil {
			return -1
		}
		return *s.Core
	}
	slices.SortStableFunc(series, func(a, b model.Series) int {
		return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.At, b.At),
			cmp.Compare(core(a), core(b)))
	})
}

// inBuffers is how many packets a kernel may count as one.
func inBuffers(f model.Flow) int {
	if f.Joined {
		return model.MaxSegments
	}
	return f.Segments
}
