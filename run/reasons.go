package run

import (
	"maps"
	"slices"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
)

// maxMissedRatio is the share of its schedule that a sender may miss before its trial is
// invalid: the tolerance that other search tools give a generator's rate. From
// toldMissedRatio on, a valid trial warns.
const maxMissedRatio = 0.05

const toldMissedRatio = 0.005

// minDurationRatio is the least share of the measured part that a sender must send for.
const minDurationRatio = 0.9

// effort sums what the senders of one flow of the plan reported about themselves: one
// sender, or one for each receiver of a star.
type effort struct {
	late    engine.LateTime
	refused uint64 // frames that the interface did not take
}

func (e effort) plus(s engine.SendReport) effort {
	if t := s.LateTime; t != nil {
		e.late.Nanos += max(t.Nanos, 0)
		e.late.RunNanos += max(t.RunNanos, 0)
		e.late.WaitNanos += max(t.WaitNanos, 0)
	}
	for cause, n := range s.Unsent {
		if s.Cable && cause == model.CauseRingFull {
			continue // the ring of a virtual cable is its other end's: the path lost them
		}
		e.refused += min(n, s.Attempted)
	}
	return e
}

// shortfall returns why the sender of a flow fell short of its order; nil if it did not.
func shortfall(f model.FlowResult, e effort, asked model.Flow, ordered model.Timing) model.Reasons {
	reason := func(code string, numbers map[string]float64) model.Reasons {
		return model.Reasons{{Code: code, Flow: f.Name, Node: f.From, Numbers: numbers}}
	}
	open := f.Streams * max(len(f.Receivers), 1)
	for _, s := range f.Silent {
		if open -= s.Streams; open == 0 {
			return model.Reasons{{Code: model.ReceiverSilent, Flow: f.Name, Node: f.To,
				Numbers: map[string]float64{"silent_s": s.AfterS}}}
		}
	}
	late := slots(f, model.PacingLate)
	tooLate := float64(late) > maxMissedRatio*float64(f.Planned) && asked.Protocol != model.TCP
	// Not every system counts TCP's segments; its sockets' bytes tell then.
	if f.Attempted == 0 && (!tooLate || f.DurationS <= 0) && (f.TCP == nil || f.TCP.SentBytes == 0) {
		return reason(model.NothingSent, nil)
	}
	if c := f.Connections; c != nil && c.Ended != "" { // as ordered
		return nil
	}
	if f.TCP != nil && f.TCP.Completion != nil && f.TCP.Completion.Done {
		return nil
	}
	if f.DurationS < minDurationRatio*ordered.MeasureSeconds && (asked.Packets == 0 || f.Attempted < asked.Packets) {
		return reason(model.SenderStalled, map[string]float64{"duration_s": f.DurationS,
			"ordered_s": ordered.MeasureSeconds})
	}
	if asked.Protocol == model.TCP || asked.Rate.IsMax() {
		return nil
	}
	if refused := float64(e.refused) / float64(f.Attempted); refused > maxMissedRatio {
		return reason(model.InterfaceRefused, map[string]float64{"refused_ratio": refused,
			"refused_packets": float64(e.refused)})
	}
	if !tooLate {
		return nil
	}
	code, numbers := lateCause(e.late, f.SenderCPU, f.DurationS)
	seconds := f.DurationS // a slow sender may take longer than was ordered
	if asked.Packets == 0 {
		seconds = min(seconds, ordered.MeasureSeconds)
	}
	maps.Copy(numbers, map[string]float64{
		"kept_pps": float64(f.Attempted) / f.DurationS, "asked_pps": float64(f.Planned) / seconds,
		"late_ratio": float64(late) / float64(f.Planned),
	})
	return reason(code, numbers)
}

// slots counts packets that were planned and not attempted, for one cause.
func slots(f model.FlowResult, cause string) (n uint64) {
	for _, l := range f.Ledger.Pacing {
		if l.Cause == cause {
			n += l.Packets
		}
	}
	return n
}

// lateCause names what the sending threads did most while they were late: run, wait for a
// core, sleep, or wait for the hypervisor. A guest counts stolen time as running, so the
// mean steal is subtracted.
func lateCause(t engine.LateTime, c model.CPU, seconds float64) (code string, numbers map[string]float64) {
	if t.Nanos <= 0 {
		return model.SenderLate, map[string]float64{}
	}
	whole := float64(t.Nanos)
	ran := ratio(float64(t.RunNanos) / whole)
	waited := min(ratio(float64(t.WaitNanos)/whole), 1-ran)
	slept := 1 - ran - waited
	stolen := ratio(c.StealRatio * seconds * 1e9 / whole)
	code = model.SenderTimerLate
	worked := max(0, ran-stolen)
	switch max(worked, waited, slept, stolen) {
	case stolen:
		code = model.SenderStolen
	case waited:
		code = model.SenderStarved
	case worked:
		code = model.SenderCoreFull
	}
	return code, map[string]float64{"run_ratio": ran, "wait_ratio": waited, "sleep_ratio": slept,
		"steal_ratio": stolen}
}

// A link whose frames left late (userlink.LateLimit) did not do what was asked, if
// it were this share of them and more than a few.
const (
	maxLateRatio = 0.01
	maxLate      = 20
)

// linkDoubts returns why what links did is not what was asked, of those to a star's receivers
// together; nil if it is.
func linkDoubts(links []model.LinkResult) (doubts model.Reasons) {
	var names []string
	sums := map[string]map[string]float64{}
	for _, l := range links {
		name := model.NodeGroup(l.From) + " to " + model.NodeGroup(l.To)
		if sums[name] == nil {
			names, sums[name] = append(names, name), map[string]float64{}
		}
		n := sums[name]
		if l.Passed != nil {
			n["passed"] += float64(*l.Passed)
			n["late"] += l.LateRatio * float64(*l.Passed)
		}
		n["late_p99_s"] = max(n["late_p99_s"], float64(l.LateNS.P99)/1e9)
		n["overrun_frames"] += float64(l.Overrun)
		n["refused_frames"] += float64(l.Refused)
	}
	for _, name := range names {
		n := sums[name]
		late, passed := n["late"], n["passed"]
		delete(n, "late")
		delete(n, "passed")
		n["late_ratio"] = late / max(passed, 1)
		if n["overrun_frames"]+n["refused_frames"] > 0 || n["late_ratio"] > maxLateRatio && late > maxLate {
			doubts = append(doubts, model.Reason{Code: model.LinkBehind, Link: name, Numbers: n})
		}
	}
	return doubts
}

// cutReasons returns why a trial was cut; nil if it was not. A trial whose
// packets the sender's kernel refuses is invalid, for another one may fit.
func cutReasons(placed fleet.Trial, out fleet.Outcome) model.Reasons {
	if out.Cut.Code == "" {
		return nil
	}
	list := disturbed(placed, out)
	if list.Has(model.InterfaceGone, model.InterfaceMTU) { // which ended it
		return list
	}
	refused := refusals(placed, out)
	if refused == nil {
		refused = model.Reasons{{Code: model.TrialCut, Of: model.Reasons{out.Cut}}}
	}
	return append(list, refused...)
}

// refusals are why senders' kernels took no packet, or none any more.
func refusals(placed fleet.Trial, out fleet.Outcome) (list model.Reasons) {
	for i, o := range out.Flows {
		if o.Send == nil || o.Send.Send == nil || !o.Send.Send.Hopeless {
			continue
		}
		errno, most := "", uint64(0)
		for _, name := range slices.Sorted(maps.Keys(o.Send.Send.Errors)) {
			if n := o.Send.Send.Errors[name]; n > most {
				errno, most = name, n
			}
		}
		one := model.Reason{Code: model.SendRefused, Name: errno, Of: model.Reasons{out.Cut}}
		f := placed.Flows[i]
		if errno == "" && f.Flow.DontFragment && o.Send.PathMTU > 0 && // refused before the measured part
			model.Fragments(familyOf(f), f.Flow.PayloadBytes, o.Send.PathMTU) > 1 {
			errno, one.Name = "EMSGSIZE", "EMSGSIZE"
		}
		if errno == "EMSGSIZE" {
			one = model.Reason{Code: model.PacketTooBig, Name: errno}
			if o.Send.PathMTU > 0 {
				one.Numbers = map[string]float64{"path_mtu_bytes": float64(o.Send.PathMTU)}
			}
		}
		if s := o.Send.Send; one.Code == model.SendRefused && s.Accepted > 0 && s.HopelessNanos > 0 {
			one.Code, one.Numbers = model.RefusedSince, map[string]float64{
				"since_s":         max(float64(s.DurationNanos)-float64(s.HopelessNanos), 0) / 1e9,
				"refused_packets": float64(most), "attempted_packets": float64(s.Attempted)}
		}
		list = append(list, one)
	}
	return list
}

// disturbed is what the hosts did to the trial, each thing once.
func disturbed(placed fleet.Trial, out fleet.Outcome) (list model.Reasons) {
	for node, r := range reports(placed, out) {
		for _, d := range r.Disturbed {
			d.Node = model.NodeGroup(node)
			told := func(l model.Reason) bool { return l.Code == d.Code && l.Node == d.Node && l.Name == d.Name }
			if !slices.ContainsFunc(list, told) {
				list = append(list, d)
			}
		}
	}
	return list
}

// impossible returns which figures in the reports of a flow contradict each other; nil if
// none. The ends may be other people's programs, or broken.
func impossible(f model.Flow, t model.Timing, o fleet.FlowOutcome) model.Reasons {
	if missing(o) {
		return model.Reasons{{Code: model.AccountMissing, Flow: f.Name}}
	}
	wrong := func(name string, numbers map[string]float64) model.Reasons {
		return model.Reasons{{Code: model.AccountWrong, Flow: f.Name, Name: name, Numbers: numbers}}
	}
	s, in := o.Send.Send, o.Receive.Receive.Tally
	longest := (t.MeasureSeconds + engine.OvertimeSeconds) * 1e9
	span := float64(in.LastNanos) - float64(in.FirstNanos)
	var sum uint64
	for _, n := range s.Streams {
		sum += n
	}
	attempted := float64(s.Attempted)
	switch {
	case s.DurationNanos < 0 || float64(s.DurationNanos) > longest:
		return wrong("sender duration", map[string]float64{"duration_s": float64(s.DurationNanos) / 1e9})
	case (s.Connections == nil) != (f.Connections == ""):
		return wrong("sender kind", nil)
	case s.Connections != nil && s.Connections.Established > s.Attempted:
		return wrong("sender connections", map[string]float64{"attempted": attempted,
			"established": float64(s.Connections.Established)})
	case s.Accepted > s.Attempted || sum != s.Attempted || len(s.Streams) != f.Streams:
		return wrong("sender sum", map[string]float64{"attempted_packets": attempted,
			"accepted_packets": float64(s.Accepted), "streams_packets": float64(sum)})
	case s.Late > s.Planned || s.Held > s.Planned-s.Late || s.SlotsSilent > s.Planned-s.Late-s.Held || s.HeldNanos < 0:
		return wrong("sender schedule", map[string]float64{"planned_packets": float64(s.Planned),
			"late_packets": float64(s.Late), "held_packets": float64(s.Held)})
	case span < 0 || span > longest+(t.WarmupSeconds+t.DrainSeconds)*1e9:
		return wrong("receiver duration", map[string]float64{"duration_s": span / 1e9})
	case f.Protocol == model.UDP && (in.Received > s.Attempted || in.Bytes/uint64(f.PayloadBytes) != in.Received ||
		in.Bytes%uint64(f.PayloadBytes) != 0):
		return wrong("receiver sum", map[string]float64{"attempted_packets": attempted,
			"received_packets": float64(in.Received), "received_bytes": float64(in.Bytes)})
	case f.Bytes > 0 && in.Bytes > f.Bytes:
		return wrong("receiver bytes", map[string]float64{"ordered_bytes": float64(f.Bytes),
			"received_bytes": float64(in.Bytes)})
	case !s.Gap.Ordered() || !s.Lateness.Ordered() || s.Asked != nil && !s.Asked.Gap.Ordered() ||
		!in.Delay.Ordered() || !(in.JitterNanos >= 0):
		return wrong("order of percentiles", nil)
	}
	return nil
}

func ratio(r float64) float64 {
	return min(max(r, 0), 1)
}
