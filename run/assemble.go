package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/engine"
	"pelt/fleet"
	"pelt/ledger"
	"pelt/model"
	"pelt/unit"
)

// maxMissedRatio is the share of its schedule that a sender may miss before
// its trial says nothing about the path: the tolerance that search tools in the
// field give a generator's rate. From toldMissedRatio on a valid trial says it.
const maxMissedRatio = 0.05

const toldMissedRatio = 0.005

// minDurationRatio is the share of the measured part that a sender must have
// been awake for.
const minDurationRatio = 0.9

// assemble joins both ends' accounts of a trial, and what was seen of the path
// between them, into its result.
func assemble(t model.Trial, placed fleet.Trial, out fleet.Outcome, p *path, spots []seen) model.Result {
	r := model.Result{Cell: t.Cell, Repeat: t.Repeat, State: model.Valid, Series: []model.Series{}, Flows: []model.FlowResult{}}
	var engines, doubts []string
	for i, f := range placed.Flows {
		o := tame(out.Flows[i], t.Timing)
		wrong := impossible(f.Flow, t.Timing, o)
		flow, courses := flowResult(f.Flow, p.family(f), p.oneClock, t.Timing, o, spots)
		flow.SenderCPU = hostLoad(flow.SenderCPU, watched(out.Watch[f.From], t.Timing))
		flow.ReceiverCPU = hostLoad(flow.ReceiverCPU, watched(out.Watch[f.To], t.Timing))
		if out.Probe != nil && flow.Delay == nil && ordered(out.Probe.RoundTrip) {
			flow.RoundTrip = out.Probe.RoundTrip
		}
		if wrong == "" && !p.star() { // its flows are judged together
			wrong = shortfall(flow, f.Flow, t.Timing)
		}
		if wrong == "" {
			wrong = p.held(flow, f.Flow)
		}
		if wrong == "" && o.Receive != nil && o.Receive.Receive != nil && o.Receive.Receive.Strays > 0 {
			wrong = fmt.Sprintf("flow %s: %d packets came to the %s another way than past its XDP program, and are in no account; let it use sockets (--engine xdp:udp)",
				flow.Name, o.Receive.Receive.Strays, flow.To)
		}
		if wrong != "" {
			doubts = append(doubts, wrong)
		}
		r.Flows = append(r.Flows, flow)
		r.Series = append(r.Series, flowSeries(f.Flow, t.Timing, flow.DurationS, o)...)
		if !p.star() {
			r.Series = append(r.Series, lossSeries(f.Flow, flow.DurationS, courses)...)
		}
		for _, name := range carriers(f, o) {
			if !slices.Contains(engines, name) {
				engines = append(engines, name)
			}
		}
	}
	for node, end := range p.ends {
		if plural(node) != node {
			continue // all of a star's are one machine
		}
		for _, s := range watched(out.Watch[end.ID], t.Timing).Series {
			s.At = node
			r.Series = append(r.Series, s)
		}
	}
	sortSeries(r.Series)
	zeroUnknown(r.Series)
	for _, s := range spots {
		r.Links = append(r.Links, s.links...)
		if s.doubt != "" {
			doubts = append(doubts, s.doubt)
		}
	}
	r.Warnings = doubtsOf(placed, out)
	addObserved(&r, spots)
	if p.star() {
		joinMany(&r)
		for i, f := range r.Flows {
			asked := t.Flows[i]
			asked.Packets *= uint64(len(p.among(t)))
			if wrong := shortfall(f, asked, t.Timing); wrong != "" {
				doubts = append(doubts, wrong)
			}
		}
	}
	for _, l := range r.Links {
		if wrong := linkDoubt(l); wrong != "" {
			doubts = append(doubts, wrong)
		}
	}
	doubts = fewer(doubts)
	r.Warnings = append(r.Warnings, missedSome(r.Flows)...)
	for _, g := range out.Gaps {
		r.Gaps = append(r.Gaps, model.ControlGap{Nodes: g.Nodes, StartS: g.From.Seconds(), DurationS: (g.To - g.From).Seconds()})
		r.Warnings = append(r.Warnings, fmt.Sprintf("from t=%.1f s on nothing was heard from the %s for %.1f s; the test went on, and what it measured there is in", g.From.Seconds(), strings.Join(g.Nodes, ", "), (g.To-g.From).Seconds()))
	}
	r.Engine, r.EngineReason = strings.Join(engines, "+"), reasons(placed, out)
	switch {
	case out.Cut != "" && hopeless(out):
		// Another trial may fit: this one was ordered what cannot be sent.
		r.State, r.Why = model.Invalid, out.Cut
	case out.Cut != "":
		r.State, r.Why = model.Aborted, out.Cut
	case len(doubts) > 0:
		r.State, r.Why = model.Invalid, strings.Join(doubts, "; ")
	}
	return r
}

// carriers are the engines that carried a flow, the sender's first.
func carriers(f fleet.PlacedFlow, o fleet.FlowOutcome) []string {
	names := []string{f.Send.Engine, f.Receive.Engine}
	for i, r := range []*engine.Report{o.Send, o.Receive} {
		if r != nil && r.Engine != "" {
			names[i] = r.Engine
		}
	}
	return names
}

// reasons says why ends were carried by the engine they were, each once.
func reasons(placed fleet.Trial, out fleet.Outcome) string {
	var list []string
	for i, f := range placed.Flows {
		for _, end := range []struct {
			node   string
			report *engine.Report
		}{{f.Flow.From, out.Flows[i].Send}, {f.Flow.To, out.Flows[i].Receive}} {
			if end.report == nil || end.report.Why == "" {
				continue
			}
			text := end.node + ": " + end.report.Why
			if end.report.Engine == "udp" {
				text = end.node + ": udp sockets, because " + end.report.Why
			}
			if !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return strings.Join(list, "; ")
}

// stillNanos is a pause of a sender that no healthy host makes.
const stillNanos = 100e6

// missedSome tells of senders that kept most of their schedule, not all, or
// stood still for a while: a path that takes packets slowly makes gaps too, but
// then most of them are long.
func missedSome(flows []model.FlowResult) (list []string) {
	for _, f := range flows {
		if missed := f.Planned - min(f.Attempted, f.Planned); f.Protocol == model.UDP && float64(missed) > toldMissedRatio*float64(f.Planned) {
			list = append(list, fmt.Sprintf("flow %s: the sender missed some of its schedule", f.Name))
		}
		if f.Pacing != nil { // whose gaps may well be long
			list = append(list, unlike(f)...)
			continue
		}
		if g := f.SendGap; g != nil && g.Max > stillNanos && g.Max > 1000*g.P50 {
			list = append(list, fmt.Sprintf("flow %s: the sender stood still for a tenth of a second or more", f.Name))
		}
	}
	return list
}

func hopeless(out fleet.Outcome) bool {
	return slices.ContainsFunc(out.Flows, func(o fleet.FlowOutcome) bool {
		return o.Send != nil && o.Send.Send != nil && o.Send.Send.Hopeless
	})
}

// hostLoad joins what the engine knows of its own threads with what the watch
// saw of the whole host.
func hostLoad(c model.CPU, w fleet.Watched) model.CPU {
	thread := c.ThreadRatio
	c = w.CPU
	c.ThreadRatio = thread
	return c
}

// doubtsOf gathers what the ends and the control plane had to warn of, each once.
func doubtsOf(placed fleet.Trial, out fleet.Outcome) []string {
	list := slices.Clone(out.Warnings)
	for i, f := range placed.Flows {
		for _, end := range []struct {
			node   string
			report *engine.Report
		}{{f.Flow.From, out.Flows[i].Send}, {f.Flow.To, out.Flows[i].Receive}} {
			if end.report == nil {
				continue
			}
			for _, w := range end.report.Warnings {
				list = append(list, end.node+": "+w)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// shortfall says how the generator fell short of its order, "" if it did not.
func shortfall(f model.FlowResult, asked model.Flow, ordered model.Timing) string {
	if f.Attempted == 0 {
		return fmt.Sprintf("flow %s: nothing was sent", f.Name)
	}
	if c := f.Connections; c != nil && c.Ended != "" { // as ordered
		return ""
	}
	if f.TCP != nil && f.TCP.Completion != nil && f.TCP.Completion.Done {
		return ""
	}
	if f.DurationS < minDurationRatio*ordered.MeasureSeconds && (asked.Packets == 0 || f.Attempted < asked.Packets) {
		return fmt.Sprintf("flow %s: the sender measured %.2g s of the %.2g s ordered: this host was stalled", f.Name, f.DurationS, ordered.MeasureSeconds)
	}
	missed := f.Planned - min(f.Attempted, f.Planned)
	if asked.Protocol == model.TCP || asked.Rate.IsMax() || float64(missed) <= maxMissedRatio*float64(f.Planned) {
		return ""
	}
	return fmt.Sprintf("flow %s: the sender kept %s of the %s asked and missed %s of its schedule; %s",
		f.Name, unit.FormatPPS(float64(f.Attempted)/f.DurationS), unit.FormatPPS(float64(f.Planned)/f.DurationS),
		unit.FormatRatio(float64(missed)/float64(f.Planned)), cause(f))
}

// busyThread is the share of a core that a sender's thread gets when nothing
// else wants it and its packets are too close to sleep in between.
const busyThread = 0.9

// cause tells why a paced sender was late: its own limit, or other work.
func cause(f model.FlowResult) string {
	if f.SenderCPU.ThreadRatio < busyThread && f.SenderCPU.HostRatio > f.SenderCPU.ThreadRatio+0.1 {
		return fmt.Sprintf("its thread got %s of a core: other work on that host took the rest, its hypervisor did, or the network interface made it wait", unit.FormatRatio(f.SenderCPU.ThreadRatio))
	}
	if f.SenderCPU.ThreadRatio >= busyThread {
		return "its core was full: ask for less, allow more --burst, or spread it over --streams"
	}
	return "its host woke it late, or its network interface took packets more slowly than that; allow more --burst, or ask for less"
}

func flowResult(f model.Flow, family int, oneClock bool, timing model.Timing, o fleet.FlowOutcome, spots []seen) (model.FlowResult, []ledger.Course) {
	var courses []ledger.Course
	r := model.FlowResult{
		Name: f.Name, Protocol: f.Protocol, From: f.From, To: f.To, PayloadBytes: f.PayloadBytes,
		FrameBytes: model.FrameBytes(f.Protocol, family, f.PayloadBytes), Streams: f.Streams,
		DurationS: timing.MeasureSeconds,
	}
	if o.Send != nil && o.Send.Send != nil {
		addSend(&r, *o.Send.Send)
		addPacing(&r, f, *o.Send.Send)
		r.SenderCPU = o.Send.CPU
		if f.Protocol == model.UDP && o.Send.PathMTU > 0 {
			if n := model.Fragments(family, f.PayloadBytes, o.Send.PathMTU); n > 1 {
				r.Fragments = n
			}
		}
	}
	var receive engine.ReceiveReport
	if o.Receive != nil && o.Receive.Receive != nil {
		receive = *o.Receive.Receive
		r.ReceiverCPU = o.Receive.CPU
	}
	if f.Connections != "" {
		addConnections(&r, o.Send, receive)
	} else if f.Protocol == model.TCP {
		addTCP(&r, f, oneClock, o.Send, receive)
	} else {
		addReceive(&r, receive)
		r.ReceiveBufferBytes, r.TruesizeBytes = max(receive.BufferBytes, 0), max(receive.TruesizeBytes, 0)
		r.Ledger, courses = balance(r, f, o.Send, receive, spots)
		advise(&r, f, receive, spots)
	}
	if r.Attempted > 0 {
		r.LossRatio = float64(r.Lost) / float64(r.Attempted)
	}
	return r, courses
}

func addSend(r *model.FlowResult, s engine.SendReport) {
	r.Planned, r.Attempted, r.Accepted = s.Planned, s.Attempted, s.Accepted
	r.SendGap, r.GapCounts, r.BurstMax, r.SendErrors = s.Gap, s.GapCounts, s.BurstMax, s.Errors
	if s.DurationNanos > 0 {
		r.DurationS = float64(s.DurationNanos) / 1e9
	}
	if r.DurationS > 0 {
		r.SendPPS = float64(s.Attempted) / r.DurationS
		r.SendGoodputBPS = r.SendPPS * 8 * float64(r.PayloadBytes)
	}
}

func addReceive(r *model.FlowResult, in engine.ReceiveReport) {
	t := in.Tally
	// The two ends count on their own: a receiver that claims more than was
	// sent is a broken account, and the ledger's checks say so.
	r.Received = min(t.Received, r.Attempted)
	r.Duplicates, r.Reordered, r.Late = t.Duplicates, t.Reordered, t.Late
	r.Lost = r.Attempted - r.Received
	r.JitterNS, r.Delay = t.JitterNanos, t.Delay
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

func balance(r model.FlowResult, f model.Flow, sent *engine.Report, in engine.ReceiveReport, spots []seen) (model.Ledger, []ledger.Course) {
	input := ledger.Input{
		Sender: r.From, Receiver: r.To, Flow: r.Name,
		Planned: r.Planned, Attempted: r.Attempted, Accepted: r.Accepted, SendErrors: r.SendErrors, Segments: inBuffers(f),
		WarmupReceived: in.WarmupReceived,
		Received:       in.Tally.Received, Late: in.Tally.Late, WrongLength: in.Tally.WrongLength,
		SocketDrops: in.SocketDrops, SocketKnown: in.SocketKnown, Unread: in.Unread,
		Missing: in.Missing, MissingKnown: in.MissingKnown,
		TakenOff: in.Taken, Broken: in.Broken, Overrun: in.Overrun,
		Fragments: r.Fragments, DurationS: r.DurationS, BufferBytes: in.BufferBytes, TruesizeBytes: in.TruesizeBytes,
		Nodes: nodesOf(f, spots),
	}
	if sent != nil && sent.Send != nil {
		s := sent.Send
		input.Streams, input.Refused, input.Errnos, input.Retried, input.WarmupSent = s.Streams, s.Refused, s.Errnos, s.Retried, s.WarmupSent
		input.PerStep = s.PerStep
		input.Unsent, input.Cable, input.PastSockets = s.Unsent, s.Cable, sent.Engine == "xdp"
	}
	return ledger.BalanceOverTime(input)
}

func addTCP(r *model.FlowResult, f model.Flow, oneClock bool, sent *engine.Report, in engine.ReceiveReport) {
	facts := model.TCPFacts{}
	if sent != nil && sent.Send != nil && sent.Send.TCP != nil {
		facts = *sent.Send.TCP
		facts.Completion = completion(f, oneClock, *sent.Send, in)
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
	r.Ledger = model.Ledger{Lost: r.Lost, Unattributed: r.Lost, Lines: []model.Line{}, Checks: []model.Check{}}
	// Not only while bytes came: a path that stalls has carried nothing then.
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
		// A meter's series ends with what came last; nothing came in the seconds after it. A
		// sender that claims a longer time than it was given is not believed.
		for until := min(whole, int(t.MeasureSeconds/step+0.01)); sent && f.Protocol == model.UDP && len(packets) < until; {
			packets, bytes = append(packets, 0), append(bytes, 0)
		}
		add("receive_pps", f.To, packets, 1)
		add("goodput_bps", f.To, bytes, 8)
	}
	return out
}

// lossSeries are when what was lost had been sent, of all and by line. Like those of
// a flow they keep whole steps only; a trial below a step has none.
func lossSeries(f model.Flow, seconds float64, courses []ledger.Course) (list []model.Series) {
	step := float64(engine.StepNanos) / 1e9
	whole := int(seconds/step + 0.01)
	for _, c := range courses {
		s := model.Series{Metric: "lost_pps", Flow: f.Name, At: f.From, Layer: c.Layer, Cause: c.Cause, StepSeconds: step}
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
		return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.At, b.At), cmp.Compare(core(a), core(b)))
	})
}

// zeroUnknown makes what is no number 0.
func zeroUnknown(series []model.Series) {
	for i := range series {
		for j, v := range series[i].Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				series[i].Values[j] = 0
			}
		}
	}
}

// inBuffers is how many packets a kernel may count as one.
func inBuffers(f model.Flow) int {
	if f.Joined {
		return model.MaxSegments
	}
	return f.Segments
}
