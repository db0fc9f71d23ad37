package run

import (
	"maps"
	"slices"
	"strings"

	"pelt/engine"
	"pelt/fleet"
	"pelt/ledger"
	"pelt/model"
)

// addMeeting accounts for how the ends of a flow sought each other, if streams of it found no way. Counters tell of it
// only where nothing was sent afterwards.
func addMeeting(r *model.FlowResult, f fleet.PlacedFlow, m fleet.Meeting, nodes []seen, counters bool) {
	if len(m.Dead) == 0 {
		return
	}
	f.Flow.Family = familyOf(f)
	asks, answers := f.Flow, f.Flow // in the direction of these packets
	if f.Dialer != f.From {
		asks.From, asks.To = f.Flow.To, f.Flow.From
	} else {
		answers.From, answers.To = f.Flow.To, f.Flow.From
	}
	if !counters {
		nodes = withoutCounters(nodes)
	}
	if f.Flow.Protocol == model.TCP {
		m.Answers = withSeenAnswers(m, f.Flow.Name, nodes)
	}
	r.Meeting = &model.Meeting{From: asks.From, To: asks.To,
		Asks:    passage(asks, model.WayAsks, m.Asks, m.Answers, nodes),
		Answers: passage(answers, model.WayAnswers, m.Answers, m.Asks, nodes)}
	for _, i := range m.Dead {
		calls, listens := m.Asks.Streams[i], m.Answers.Streams[i]
		r.DeadStreams = append(r.DeadStreams, model.DeadStream{
			Stream: i, FromPort: calls.Local.Port(), ToPort: calls.Remote.Port(),
			Asked: calls.Sent, AsksHeard: min(listens.Heard, calls.Sent),
			Answered: listens.Sent, AnswersHeard: min(calls.Heard, listens.Sent)})
	}
}

// withSeenAnswers adds to what the ends of a flow of TCP know that its kernel answered: each answer that was seen
// dropped is one to a call that had arrived. Calls that were seen dropped had not.
func withSeenAnswers(m fleet.Meeting, flow string, nodes []seen) (answers engine.Meeting) {
	answers = m.Answers
	answers.Streams = slices.Clone(answers.Streams)
	seen, dropped := seenDropped(flow, model.WayAnswers, nodes), seenDropped(flow, model.WayAsks, nodes)
	answered := map[int]bool{}
	for _, i := range m.Dead {
		s := &answers.Streams[i]
		if n := min(seen, m.Asks.Streams[i].Sent); n > s.Sent {
			s.Sent, answered[i] = n, true
			seen -= n
		} else {
			dropped -= min(dropped, m.Asks.Streams[i].Sent)
		}
	}
	for _, i := range m.Dead {
		if sent := m.Asks.Streams[i].Sent; answered[i] {
			n := min(dropped, sent-1)
			answers.Streams[i].Heard = sent - n
			dropped -= n
		}
	}
	return answers
}

// seenDropped is how many packets of a meeting kernels were seen to drop, on one way. Hosts on one kernel see the same.
func seenDropped(flow, way string, nodes []seen) (sum uint64) {
	most := map[string]uint64{} // by kernel
	for _, n := range nodes {
		if n.Observation == nil || n.Observation.Drops == nil {
			continue
		}
		for _, f := range n.Observation.Drops.Flows {
			here, sites := uint64(0), n.Observation.Drops.Sites
			for _, c := range f.Counts {
				// What TCP itself drops had arrived: a call that it has answered before, or the same answer again.
				known := c.Site >= 0 && c.Site < len(sites)
				if known && strings.HasPrefix(sites[c.Site].Function, "tcp_") {
					continue
				}
				here += c.Packets
			}
			if f.Flow == flow && f.Way == way {
				most[n.Observation.Boot] = max(most[n.Observation.Boot], here)
			}
		}
	}
	for _, n := range most {
		sum += n
	}
	return sum
}

// passage accounts for what one end of a flow sent the other.
func passage(f model.Flow, way string, from, to engine.Meeting, nodes []seen) model.Passage {
	p := model.Passage{SendErrors: map[string]uint64{}, ICMP: from.ICMP, Resets: from.Resets}
	refused := uint64(0)
	for i, s := range from.Streams {
		p.Attempted += s.Sent
		p.Received += min(to.Streams[i].Heard, s.Sent)
		for _, name := range slices.Sorted(maps.Keys(s.Errors)) {
			p.SendErrors[name] += s.Errors[name]
			refused += s.Errors[name]
		}
	}
	p.Ledger = ledger.Balance(ledger.Input{
		Sender: f.From, Receiver: f.To, Flow: f.Name, Family: f.Family, Way: way, ICMP: from.ICMP, Resets: from.Resets,
		Planned: p.Attempted, Attempted: p.Attempted, Accepted: p.Attempted - min(refused, p.Attempted),
		SendErrors: p.SendErrors, Received: p.Received, Nodes: nodesOf(f, nodes)})
	return p
}

// withoutCounters are nodes of which only verdicts are known. Rules that count nothing are suspects there only while no
// rule that counts has counted packets.
func withoutCounters(nodes []seen) []seen {
	nodes = slices.Clone(nodes)
	moved := func(rules model.Counter) bool { return rules.Whole > 0 && strings.HasSuffix(rules.Name, ".packets") }
	for i, n := range nodes {
		if n.Observation != nil {
			o := *n.Observation
			if slices.ContainsFunc(o.Counters, moved) {
				o.Knobs = slices.DeleteFunc(slices.Clone(o.Knobs), func(k model.HostSetting) bool {
					return strings.HasSuffix(k.Name, model.UncountedRules)
				})
			}
			o.Counters = nil
			nodes[i].Observation = &o
		}
	}
	return nodes
}

func emptyLedger() model.Ledger { return model.Ledger{Lines: []model.Line{}, Checks: []model.Check{}} }

// joinMeetings adds up how the receivers of a star were sought. Streams count on from receiver to receiver.
func joinMeetings(sum *model.FlowResult, list []model.FlowResult) {
	sum.Meeting, sum.DeadStreams = nil, nil
	var asks, answers []model.Passage
	for i, f := range list {
		if f.Meeting == nil {
			continue
		}
		if sum.Meeting == nil {
			sum.Meeting = &model.Meeting{From: model.NodeGroup(f.Meeting.From), To: model.NodeGroup(f.Meeting.To)}
		}
		asks, answers = append(asks, f.Meeting.Asks), append(answers, f.Meeting.Answers)
		for _, s := range f.DeadStreams {
			s.Stream += i * f.Streams
			sum.DeadStreams = append(sum.DeadStreams, s)
		}
	}
	if sum.Meeting != nil {
		sum.Meeting.Asks, sum.Meeting.Answers = joinPassages(asks), joinPassages(answers)
	}
}

func joinPassages(list []model.Passage) (sum model.Passage) {
	var ledgers []model.FlowResult
	for _, p := range list {
		sum.Attempted, sum.Received = sum.Attempted+p.Attempted, sum.Received+p.Received
		sum.ICMP, sum.Resets = append(sum.ICMP, p.ICMP...), sum.Resets+p.Resets
		for name, n := range p.SendErrors {
			if sum.SendErrors == nil {
				sum.SendErrors = map[string]uint64{}
			}
			sum.SendErrors[name] += n
		}
		ledgers = append(ledgers, model.FlowResult{Ledger: p.Ledger})
	}
	sum.Ledger = joinLedgers(ledgers)
	if len(list) == 1 { // the evidence is one receiver's
		sum.Ledger.Lines = slices.Clone(list[0].Ledger.Lines)
		for i := range sum.Ledger.Lines {
			sum.Ledger.Lines[i].Host = model.NodeGroup(sum.Ledger.Lines[i].Host)
		}
	}
	return sum
}
