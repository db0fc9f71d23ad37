package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/lab"
	"pelt/ledger"
	"pelt/model"
)

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
func (s *site) perReceiver(f model.Flow, receivers int) (list []model.Flow) {
	if !s.star() {
		return []model.Flow{f}
	}
	all := s.ends()[1:]
	for i, r := range all[:min(cmp.Or(receivers, len(all)), len(all))] {
		one := f
		one.Name, one.Profile = f.Name+"/"+strconv.Itoa(i+1), f.Profile.Other(i)
		if one.From == model.Receiver {
			one.From = r.name
		} else {
			one.To = r.name
		}
		list = append(list, one)
	}
	return list
}

// flows are those that a trial sends.
func (s *site) flows(t model.Trial) (all []model.Flow) {
	for _, f := range t.Flows {
		all = append(all, s.perReceiver(f, t.Receivers)...)
	}
	return all
}

// joinMany joins the results of the flows to all receivers.
func joinMany(r *model.Result) {
	var flows []model.FlowResult
	for len(r.Flows) > 0 {
		other := func(f model.FlowResult) bool { return model.PlanFlow(f.Name) != model.PlanFlow(r.Flows[0].Name) }
		n := slices.IndexFunc(append(r.Flows, model.FlowResult{}), other)
		flows, r.Flows = append(flows, joinFlows(r.Flows[:n])), r.Flows[n:]
	}
	r.Flows = flows
	r.Series = joinSeries(r.Series)
	r.Observed = joinObserved(r.Observed)
}

// joinObserved says once how the nodes of a group were watched that most of it has in common, and names the others.
func joinObserved(list []model.Observed) (out []model.Observed) {
	watched := func(o model.Observed) string {
		o.Node = model.NodeGroup(o.Node)
		return fmt.Sprintf("%+v", o)
	}
	alike, most := map[string]int{}, map[string]string{} // nodes that were watched alike; by group those of most nodes
	for _, o := range list {
		key, group := watched(o), model.NodeGroup(o.Node)
		if alike[key]++; alike[key] > alike[most[group]] {
			most[group] = key
		}
	}
	told := map[string]bool{}
	for _, o := range list {
		if group := model.NodeGroup(o.Node); group != o.Node && watched(o) == most[group] {
			if told[group] {
				continue
			}
			o.Node, told[group] = group, true
		}
		out = append(out, o)
	}
	return out
}

// joinFlows sums flows that were sent side by side.
func joinFlows(list []model.FlowResult) model.FlowResult {
	sum := list[0]
	for i, f := range list[1:] {
		for _, m := range f.Moved {
			m.Stream += (i + 1) * f.Streams
			sum.Moved = append(slices.Clip(sum.Moved), m)
		}
		sum.Silent = append(slices.Clip(sum.Silent), f.Silent...)
		sum.DurationS, sum.BurstMax = max(sum.DurationS, f.DurationS), max(sum.BurstMax, f.BurstMax)
		sum.Count(f)
	}
	sum.Name, sum.From, sum.To = model.PlanFlow(sum.Name), model.NodeGroup(sum.From), model.NodeGroup(sum.To)
	sum.GapCounts, sum.RoundTrip, sum.SendErrors, sum.Probe, sum.Uneven = nil, nil, nil, nil, nil
	sum.JitterNS, sum.ReceivePPS, sum.GoodputBPS = 0, 0, 0
	for _, f := range list {
		sum.JitterNS += f.JitterNS / float64(len(list))
		share := model.ReceiverShare{Node: f.To, Attempted: f.Attempted, Received: f.Received,
			GoodputBPS: f.GoodputBPS}
		if model.NodeGroup(f.To) == f.To {
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
		if sum.Pacing == nil || gapDistance(f.Pacing) > gapDistance(sum.Pacing) {
			sum.Pacing = f.Pacing // of the flow that differs most from its profile
		}
	}
	sum.LossRatio = float64(sum.Lost) / float64(max(sum.Attempted, 1))
	if sum.DurationS > 0 {
		sum.SendPPS = float64(sum.Attempted) / sum.DurationS
		sum.SendGoodputBPS = sum.SendPPS * 8 * float64(sum.PayloadBytes)
	}
	sum.SenderCPU = busiest(list, func(f model.FlowResult) model.CPU { return f.SenderCPU })
	sum.ReceiverCPU = busiest(list, func(f model.FlowResult) model.CPU { return f.ReceiverCPU })
	for _, f := range list {
		sum.TruesizeBytes = max(sum.TruesizeBytes, f.TruesizeBytes)
		if f.ReceiveBufferBytes > 0 && f.ReceiveBufferBytes < sum.ReceiveBufferBytes {
			sum.ReceiveBufferBytes = f.ReceiveBufferBytes
		}
	}
	sum.Delay = middle(list, func(f model.FlowResult) *model.Percentiles { return f.Delay })
	sum.SendGap = middle(list, func(f model.FlowResult) *model.Percentiles { return f.SendGap })
	sum.SendLate = middle(list, func(f model.FlowResult) *model.Percentiles { return f.SendLate })
	sum.Ledger = joinLedgers(list)
	joinMeetings(&sum, list)
	return sum
}

// busiest is the load of the end that has the busiest core or thread: it may be the limit.
func busiest(list []model.FlowResult, which func(model.FlowResult) model.CPU) model.CPU {
	load := func(f model.FlowResult) float64 { return max(which(f).BusiestRatio, which(f).ThreadRatio) }
	return which(slices.MaxFunc(list, func(a, b model.FlowResult) int { return cmp.Compare(load(a), load(b)) }))
}

func gapDistance(p *model.Pacing) float64 {
	if p == nil || p.Distance == nil {
		return 0
	}
	return *p.Distance
}

// middle is the distribution of the receiver whose median is in the middle, with the
// count and the extremes of all; nil if none has any.
func middle(list []model.FlowResult, which func(model.FlowResult) *model.Percentiles) *model.Percentiles {
	all := model.Percentiles{Min: math.Inf(1), Max: math.Inf(-1)}
	var each []*model.Percentiles
	for _, f := range list {
		if p := which(f); p != nil && p.Count > 0 {
			each = append(each, p)
			all.Count, all.Out = all.Count+p.Count, all.Out+p.Out
			all.Min, all.Max = min(all.Min, p.Min), max(all.Max, p.Max)
		}
	}
	if len(each) == 0 {
		return nil
	}
	slices.SortFunc(each, func(a, b *model.Percentiles) int { return cmp.Compare(a.P50, b.P50) })
	m := *each[len(each)/2]
	m.Count, m.Out, m.Min, m.Max = all.Count, all.Out, all.Min, all.Max
	return &m
}

// joinLedgers sums lines of one layer and cause at nodes of one kind, in travel order.
// Sequences and evidence are each receiver's own, and are left out.
func joinLedgers(list []model.FlowResult) model.Ledger {
	sum := emptyLedger()
	var pacing [][]model.PacingLine
	for _, f := range list {
		sum.Lost, sum.Unattributed = sum.Lost+f.Ledger.Lost, sum.Unattributed+f.Ledger.Unattributed
		pacing = append(pacing, f.Ledger.Pacing)
		for _, p := range f.Ledger.Possible {
			p.Host, p.Evidence = model.NodeGroup(p.Host), nil
			sum.Possible = model.JoinPossible(sum.Possible, []model.Possible{p})
		}
		for _, l := range f.Ledger.Lines {
			l.Host, l.Sequences, l.Evidence, l.Interface = model.NodeGroup(l.Host), nil, []model.Evidence{}, ""
			k := slices.IndexFunc(sum.Lines, l.SamePlace)
			if k < 0 {
				sum.Lines = append(sum.Lines, l)
				continue
			}
			sum.Lines[k].Join(l)
			sum.Lines[k].Confidence = ledger.LessSure(sum.Lines[k].Confidence, l.Confidence)
		}
		for _, c := range f.Ledger.Checks {
			k := slices.IndexFunc(sum.Checks, func(x model.Check) bool { return x.Name == c.Name })
			if k < 0 {
				k = len(sum.Checks)
				sum.Checks = append(sum.Checks, model.Check{Name: c.Name, Held: true, Law: "each"})
			}
			if !c.Held && sum.Checks[k].Held {
				sum.Checks[k] = c // the first receiver's that does not hold
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
		if s.Flow != "" {
			s.Flow, s.At = model.PlanFlow(s.Flow), model.NodeGroup(s.At)
		}
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
