package run

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"strings"

	"pelt/engine"
	"pelt/fleet"
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
			flow := f.Flow.Result(familyOf(f)) // no stream of it found a way
			flow.Ledger = emptyLedger()
			addMeeting(&flow, f, m, path.nodes, out.Unmet)
			r.Flows = append(r.Flows, flow)
			continue
		}
		wrong := impossible(f.Flow, t.Timing, out.Flows[i])
		efforts[model.PlanFlow(f.Flow.Name)] = efforts[model.PlanFlow(f.Flow.Name)].plus(*o.Send.Send)
		flow, courses := FlowAccount(f.Flow, familyOf(f), placed.OneClock, t.Timing, o,
			nodesOf(f.Flow, path.nodes), lostBeside(out.Flows, i))
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
			wrong = shortfall(flow, efforts[model.PlanFlow(flow.Name)], f.Flow, t.Timing)
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
	r.Links, r.Warnings = path.links, model.Doubts(endWarnings(placed, out))
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
		r.Warnings = append(r.Warnings, model.Reason{Code: model.ControlLost, Node: strings.Join(g.Nodes, ", "),
			Numbers: map[string]float64{"at_s": g.From.Seconds(), "gap_s": (g.To - g.From).Seconds()}})
	}
	r.Engine, r.EngineReason = strings.Join(engines, "+"), reasons(placed, out)
	if r.Why = cutReasons(placed, out); r.Why == nil {
		r.Why = append(disturbed(placed, out), doubts...)
	}
	r.State = r.Why.State()
	return r
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
func reasons(placed fleet.Trial, out fleet.Outcome) (list model.Doubts) {
	for node, r := range reports(placed, out) {
		told := []model.Reason(r.Why)
		if r.Engine == "udp" && told != nil {
			told = []model.Reason{socketsBecause(told...)}
		}
		for _, why := range told {
			why.Node = node
			if !slices.ContainsFunc(list, func(one model.Reason) bool { return reflect.DeepEqual(one, why) }) {
				list = append(list, why)
			}
		}
	}
	return list
}

// stillNanos is a pause that no healthy sender makes.
const stillNanos = 100e6

// senderWarnings warns of senders that were late for a part of their schedule, or that
// paused. A slow path makes gaps too, but then most gaps are long. Of a late sender a search and an invalid trial tell.
func senderWarnings(flows []model.FlowResult, late bool) (list model.Reasons) {
	for _, f := range flows {
		if late && float64(slots(f, model.PacingLate)) > toldMissedRatio*float64(f.Planned) {
			list = append(list, model.Reason{Code: model.GaveUp, Flow: f.Name})
		}
		if f.Pacing != nil { // whose gaps may well be long
			list = append(list, profileWarnings(f)...)
			continue
		}
		if g := f.SendGap; g != nil && g.Max > stillNanos && g.Max > 1000*g.P50 {
			list = append(list, model.Reason{Code: model.Paused, Flow: f.Name})
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
func endWarnings(placed fleet.Trial, out fleet.Outcome) model.Reasons {
	list := slices.Clone(out.Warnings)
	for node, r := range reports(placed, out) {
		for _, w := range r.Warnings {
			w.Node = model.NodeGroup(node)
			list = append(list, w)
		}
		if in := r.Receive; in != nil && in.Tally.Strangers > 0 {
			list = append(list, model.Reason{Code: model.StrangeSequences, Node: model.NodeGroup(node),
				Numbers: map[string]float64{"packets": float64(in.Tally.Strangers)}})
		}
	}
	for i, o := range out.Flows {
		if missing(o) || o.Send.Engine != "xdp" || o.Send.Send.Accepted == 0 {
			continue
		}
		if in := o.Receive.Receive; in.Strays+in.Tally.Received+in.WarmupReceived == 0 {
			f := placed.Flows[i].Flow
			list = append(list, model.Reason{Code: model.NoFrames, Flow: model.PlanFlow(f.Name),
				Node: model.NodeGroup(f.To)})
		}
	}
	slices.SortStableFunc(list, func(a, b model.Reason) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(list, func(a, b model.Reason) bool { return reflect.DeepEqual(a, b) })
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
