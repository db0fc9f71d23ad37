package run

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/lab"
	"pelt/ledger"
	"pelt/model"
)

// A star has one sender and many receivers. A flow of its plan becomes one flow to each
// receiver, and their results are summed again, with the share of each receiver.

// usualReceivers is how many a star has if nobody says.
const usualReceivers = 10

// starOf is the name of a topology with its number of receivers.
func starOf(name string, p model.Plan) string {
	if name != lab.Star {
		return name
	}
	return fmt.Sprintf("%s:%d", name, cmp.Or(p.Receivers, usualReceivers))
}

// receiversOf lists a star's receivers; another lab has none of these.
func receiversOf(l *lab.Lab) []string {
	if !strings.HasPrefix(l.Facts().Topology, lab.Star+":") {
		return nil
	}
	var names []string
	for _, n := range l.Nodes() {
		if strings.HasPrefix(n.Name(), model.Receiver+"-") {
			names = append(names, n.Name())
		}
	}
	return names
}

// star reports whether each flow of the plan goes to many receivers.
func (s *site) star() bool {
	return slices.ContainsFunc(s.nodes, func(n node) bool { return n.branch != "" })
}

// perReceiver returns the flows that a flow of the plan becomes: in a star one for each of
// the first so many receivers, 0 for all.
func (s *site) perReceiver(f model.Flow, receivers int) []model.Flow {
	if !s.star() {
		return []model.Flow{f}
	}
	var list []model.Flow
	for i, r := range s.ends()[1:] {
		if receivers > 0 && i == receivers {
			break
		}
		one := f
		one.Name = f.Name + "/" + strconv.Itoa(i+1)
		one.Profile = f.Profile.Other(i)
		if one.From == model.Receiver {
			one.From = r.name
		} else {
			one.To = r.name
		}
		list = append(list, one)
	}
	return list
}

// The names of groups of nodes in a joined result.
const (
	manyReceivers = "receivers"
	manyLinks     = "links to receivers"
)

// groupName returns the name of a node's group, or the node's own name.
func groupName(node string) string {
	switch {
	case strings.HasPrefix(node, model.Receiver+"-"):
		return manyReceivers
	case strings.HasPrefix(node, "link ") && strings.Contains(node, "-"+model.Receiver+"-"):
		return manyLinks
	}
	return node
}

// planFlow returns the name of the plan's flow that a flow to one receiver belongs to.
func planFlow(flow string) string {
	name, _, _ := strings.Cut(flow, "/")
	return name
}

// joinMany joins the results of the flows to all receivers.
func joinMany(r *model.Result) {
	var flows []model.FlowResult
	for rest := r.Flows; len(rest) > 0; {
		other := func(f model.FlowResult) bool { return planFlow(f.Name) != planFlow(rest[0].Name) }
		n := slices.IndexFunc(rest, other)
		if n < 0 {
			n = len(rest)
		}
		flows, rest = append(flows, joinFlows(rest[:n])), rest[n:]
	}
	r.Flows = flows
	r.Series = joinSeries(r.Series)
	r.Observed = slices.DeleteFunc(r.Observed, func(o model.Observed) bool { return groupName(o.Node) != o.Node })
}

// joinFlows sums flows that were sent side by side.
func joinFlows(list []model.FlowResult) model.FlowResult {
	sum := list[0]
	for _, f := range list[1:] {
		sum.DurationS, sum.BurstMax = max(sum.DurationS, f.DurationS), max(sum.BurstMax, f.BurstMax)
		sum.Planned, sum.Attempted, sum.Accepted = sum.Planned+f.Planned, sum.Attempted+f.Attempted,
			sum.Accepted+f.Accepted
		sum.Received, sum.Duplicates, sum.Reordered = sum.Received+f.Received, sum.Duplicates+f.Duplicates,
			sum.Reordered+f.Reordered
		sum.Late, sum.Lost = sum.Late+f.Late, sum.Lost+f.Lost
	}
	sum.Name, sum.From, sum.To = planFlow(sum.Name), groupName(sum.From), groupName(sum.To)
	sum.GapCounts, sum.RoundTrip = nil, nil
	sum.JitterNS, sum.ReceivePPS, sum.GoodputBPS, sum.SendErrors = 0, 0, 0, nil
	for _, f := range list {
		sum.JitterNS += f.JitterNS / float64(len(list))
		share := model.ReceiverShare{Node: f.To, Attempted: f.Attempted, Received: f.Received,
			GoodputBPS: f.GoodputBPS}
		if groupName(f.To) == f.To {
			share.Node = f.From
		}
		if f.ReceivePPS > 0 {
			// The rate is over the time of all: a receiver that was served first, and of few
			// packets was done early, was no faster.
			took := float64(f.Received) / f.ReceivePPS
			part := took / max(took, sum.DurationS)
			share.GoodputBPS *= part
			sum.ReceivePPS += f.ReceivePPS * part
		}
		sum.GoodputBPS += share.GoodputBPS
		sum.Receivers = append(sum.Receivers, share)
		for name, n := range f.SendErrors {
			if sum.SendErrors == nil {
				sum.SendErrors = map[string]uint64{}
			}
			sum.SendErrors[name] += n
		}
	}
	sum.LossRatio = float64(sum.Lost) / float64(max(sum.Attempted, 1))
	if sum.DurationS > 0 {
		sum.SendPPS = float64(sum.Attempted) / sum.DurationS
		sum.SendGoodputBPS = sum.SendPPS * 8 * float64(sum.PayloadBytes)
	}
	sum.Delay = middle(list, func(f model.FlowResult) *model.Percentiles { return f.Delay })
	sum.SendGap = middle(list, func(f model.FlowResult) *model.Percentiles { return f.SendGap })
	sum.SendLate = middle(list, func(f model.FlowResult) *model.Percentiles { return f.SendLate })
	sum.Pacing = joinPacing(list)
	sum.Ledger = joinLedgers(list)
	return sum
}

// middle is the distribution of the receiver whose median is in the middle, with the
// count and the extremes of all; nil if none has any.
func middle(list []model.FlowResult, which func(model.FlowResult) *model.Percentiles) *model.Percentiles {
	var all []model.Percentiles
	for _, f := range list {
		if p := which(f); p != nil && p.Count > 0 {
			all = append(all, *p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b model.Percentiles) int { return cmp.Compare(a.P50, b.P50) })
	m := all[len(all)/2]
	m.Count, m.Out = 0, 0
	for _, p := range all {
		m.Count, m.Out = m.Count+p.Count, m.Out+p.Out
		m.Min, m.Max = min(m.Min, p.Min), max(m.Max, p.Max)
	}
	return &m
}

// joinPacing is the pacing of the flow that differs most from its profile; nil without one.
func joinPacing(list []model.FlowResult) (worst *model.Pacing) {
	for _, f := range list {
		if p := f.Pacing; p != nil && (worst == nil || p.Distance != nil &&
			(worst.Distance == nil || *p.Distance > *worst.Distance)) {
			worst = p
		}
	}
	return worst
}

// joinLedgers sums lines of one layer and cause at nodes of one kind, in travel order.
// Sequences and evidence are each receiver's own, and are left out.
func joinLedgers(list []model.FlowResult) model.Ledger {
	sum := model.Ledger{Lines: []model.Line{}, Checks: []model.Check{}}
	var pacing [][]model.PacingLine
	for i, f := range list {
		sum.Lost, sum.Unattributed = sum.Lost+f.Ledger.Lost, sum.Unattributed+f.Ledger.Unattributed
		pacing = append(pacing, f.Ledger.Pacing)
		for _, l := range f.Ledger.Lines {
			l.Host, l.Sequences, l.Evidence, l.Interface = groupName(l.Host), nil, []model.Evidence{}, ""
			k := slices.IndexFunc(sum.Lines, func(x model.Line) bool {
				return x.Layer == l.Layer && x.Host == l.Host && x.Cause == l.Cause
			})
			if k < 0 {
				sum.Lines = append(sum.Lines, l)
				continue
			}
			sum.Lines[k].Packets += l.Packets
			sum.Lines[k].Confidence = ledger.LessSure(sum.Lines[k].Confidence, l.Confidence)
		}
		for _, c := range f.Ledger.Checks {
			k := slices.IndexFunc(sum.Checks, func(x model.Check) bool { return x.Name == c.Name })
			if k < 0 {
				k = len(sum.Checks)
				sum.Checks = append(sum.Checks, model.Check{Name: c.Name, Held: true, Text: "holds for each receiver"})
			}
			if !c.Held && sum.Checks[k].Held {
				sum.Checks[k].Held, sum.Checks[k].Text = false, fmt.Sprintf("receiver %d: %s", i+1, c.Text)
			}
		}
	}
	layers := model.Layers()
	slices.SortStableFunc(sum.Lines, func(a, b model.Line) int {
		return cmp.Or(cmp.Compare(slices.Index(layers, a.Layer), slices.Index(layers, b.Layer)),
			cmp.Compare(a.Host, b.Host), cmp.Compare(a.Cause, b.Cause))
	})
	sum.Pacing = model.JoinPacing(pacing...)
	return sum
}

// joinSeries sums the series of each plan's flow.
func joinSeries(list []model.Series) []model.Series {
	out := []model.Series{}
	for _, s := range list {
		s.Flow, s.At = planFlow(s.Flow), groupName(s.At)
		i := slices.IndexFunc(out, func(x model.Series) bool {
			return s.Flow != "" && x.Metric == s.Metric && x.Flow == s.Flow && x.At == s.At
		})
		if i < 0 {
			s.Values = slices.Clone(s.Values)
			out = append(out, s)
			continue
		}
		sum := out[i].Values[:min(len(out[i].Values), len(s.Values))]
		for k := range sum {
			sum[k] += s.Values[k]
		}
		out[i].Values = sum
	}
	return out
}
