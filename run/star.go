package run

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pelt/lab"
	"pelt/model"
)

// A star has one sender and many receivers. A flow of its plan becomes one to
// each of them, and their results are joined again: what they all saw stands in
// sums, and each one's share beside it.

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

// each makes of a plan's flow the flows that are sent: in a star one to each of the first
// receivers, 0 for all of them.
func (s *site) each(f model.Flow, receivers int) []model.Flow {
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

// The names of many in a joined result.
const (
	manyReceivers = "receivers"
	manyLinks     = "links to receivers"
)

// atOnce puts the rates of flows that were sent side by side over the time of all: one that
// was served first, and of few packets was done early, was no faster.
func atOnce(list []model.FlowResult) []model.FlowResult {
	longest := 0.0
	for _, f := range list {
		longest = max(longest, f.DurationS)
	}
	list = slices.Clone(list)
	for i := range list {
		f := &list[i]
		if f.ReceivePPS <= 0 {
			continue
		}
		if took := float64(f.Received) / f.ReceivePPS; took < longest {
			f.ReceivePPS, f.GoodputBPS = f.ReceivePPS*took/longest, f.GoodputBPS*took/longest
		}
	}
	return list
}

func base(flow string) string {
	name, _, _ := strings.Cut(flow, "/")
	return name
}

// joinMany makes one result of each plan's flow again.
func joinMany(r *model.Result) {
	var flows []model.FlowResult
	for start := 0; start < len(r.Flows); {
		end := start
		for end < len(r.Flows) && base(r.Flows[end].Name) == base(r.Flows[start].Name) {
			end++
		}
		flows = append(flows, joinFlows(r.Flows[start:end]))
		start = end
	}
	r.Flows = flows
	r.Series = joinSeries(r.Series)
	r.Links = joinLinks(r.Links)
	r.Observed = slices.DeleteFunc(r.Observed, func(o model.Observed) bool { return plural(o.Node) != o.Node })
	r.Warnings = fewer(r.Warnings)
}

// plural names the kind of a node or link of which there are many.
func plural(node string) string {
	switch {
	case strings.HasPrefix(node, model.Receiver+"-"):
		return manyReceivers
	case strings.HasPrefix(node, "link ") && strings.Contains(node, "-"+model.Receiver+"-"):
		return manyLinks
	}
	return node
}

func joinFlows(list []model.FlowResult) model.FlowResult {
	list = atOnce(list)
	sum := list[0]
	sum.Name, sum.From, sum.To = base(sum.Name), plural(sum.From), plural(sum.To)
	sum.SendErrors = maps.Clone(sum.SendErrors)
	sum.GapCounts, sum.RoundTrip = nil, nil
	pacing := [][]model.PacingLine{sum.Ledger.Pacing}
	share := func(f model.FlowResult) model.ReceiverShare {
		node := f.To
		if plural(node) == node {
			node = f.From
		}
		return model.ReceiverShare{Node: node, Attempted: f.Attempted, Received: f.Received, GoodputBPS: f.GoodputBPS}
	}
	sum.Receivers = []model.ReceiverShare{share(list[0])}
	for _, f := range list[1:] {
		sum.Receivers = append(sum.Receivers, share(f))
		sum.Planned, sum.Attempted, sum.Accepted = sum.Planned+f.Planned, sum.Attempted+f.Attempted,
			sum.Accepted+f.Accepted
		sum.Received, sum.Duplicates, sum.Reordered = sum.Received+f.Received, sum.Duplicates+f.Duplicates,
			sum.Reordered+f.Reordered
		sum.Late, sum.Lost = sum.Late+f.Late, sum.Lost+f.Lost
		sum.SendPPS, sum.ReceivePPS = sum.SendPPS+f.SendPPS, sum.ReceivePPS+f.ReceivePPS
		sum.GoodputBPS, sum.SendGoodputBPS = sum.GoodputBPS+f.GoodputBPS, sum.SendGoodputBPS+f.SendGoodputBPS
		sum.DurationS, sum.BurstMax = max(sum.DurationS, f.DurationS), max(sum.BurstMax, f.BurstMax)
		sum.JitterNS += f.JitterNS
		sum.Ledger.Lost, sum.Ledger.Unattributed = sum.Ledger.Lost+f.Ledger.Lost,
			sum.Ledger.Unattributed+f.Ledger.Unattributed
		pacing = append(pacing, f.Ledger.Pacing)
		for name, n := range f.SendErrors {
			if sum.SendErrors == nil {
				sum.SendErrors = map[string]uint64{}
			}
			sum.SendErrors[name] += n
		}
	}
	sum.JitterNS /= float64(len(list))
	sum.LossRatio = 0
	if sum.Attempted > 0 {
		sum.LossRatio = float64(sum.Lost) / float64(sum.Attempted)
	}
	if sum.DurationS > 0 { // they were sent side by side
		sum.SendPPS = float64(sum.Attempted) / sum.DurationS
		sum.SendGoodputBPS = sum.SendPPS * 8 * float64(sum.PayloadBytes)
	}
	sum.Delay = middle(list, func(f model.FlowResult) *model.Percentiles { return f.Delay })
	sum.SendGap = middle(list, func(f model.FlowResult) *model.Percentiles { return f.SendGap })
	sum.SendLate = middle(list, func(f model.FlowResult) *model.Percentiles { return f.SendLate })
	sum.Pacing = joinPacing(list)
	sum.Ledger.Lines, sum.Ledger.Checks, sum.Ledger.Pacing = joinLines(list), joinChecks(list),
		model.JoinPacing(pacing...)
	return sum
}

// middle is the median over the receivers of each percentile; the extremes are
// those of all. nil if none has any.
func middle(list []model.FlowResult, which func(model.FlowResult) *model.Percentiles) *model.Percentiles {
	var all []*model.Percentiles
	for _, f := range list {
		if p := which(f); p != nil && p.Count > 0 {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	of := func(get func(*model.Percentiles) float64) float64 {
		var values []float64
		for _, p := range all {
			values = append(values, get(p))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	m := model.Percentiles{Min: all[0].Min}
	for _, p := range all {
		m.Count, m.Out = m.Count+p.Count, m.Out+p.Out
		m.Min, m.Max = min(m.Min, p.Min), max(m.Max, p.Max)
		m.Mean += p.Mean / float64(len(all))
	}
	m.P50 = of(func(p *model.Percentiles) float64 { return p.P50 })
	m.P90 = of(func(p *model.Percentiles) float64 { return p.P90 })
	m.P99 = of(func(p *model.Percentiles) float64 { return p.P99 })
	m.P95 = of(func(p *model.Percentiles) float64 { return p.P95 })
	m.P999 = of(func(p *model.Percentiles) float64 { return p.P999 })
	return &m
}

// joinLines sums lines of one layer and cause at nodes of one kind, in travel
// order. Sequences and evidence are each receiver's own, and are left out.
func joinLines(list []model.FlowResult) []model.Line {
	out := []model.Line{}
	for _, f := range list {
		for _, l := range f.Ledger.Lines {
			l.Host = plural(l.Host)
			l.Sequences, l.Evidence, l.Interface = nil, []model.Evidence{}, ""
			i := slices.IndexFunc(out, func(x model.Line) bool {
				return x.Layer == l.Layer && x.Host == l.Host &&
					x.Cause == l.Cause
			})
			if i < 0 {
				out = append(out, l)
				continue
			}
			out[i].Packets += l.Packets
			if surer(out[i].Confidence, l.Confidence) {
				out[i].Confidence = l.Confidence
			}
		}
	}
	layers := model.Layers()
	slices.SortStableFunc(out, func(a, b model.Line) int {
		return cmp.Or(cmp.Compare(slices.Index(layers, a.Layer), slices.Index(layers, b.Layer)),
			cmp.Compare(a.Host, b.Host), cmp.Compare(a.Cause, b.Cause))
	})
	return out
}

// surer tells whether one confidence is above another.
func surer(a, b string) bool {
	order := []string{"exact-seq", "exact-count", "bounded", "inferred"}
	return slices.Index(order, a) < slices.Index(order, b)
}

// joinChecks says of each check for how many receivers it held, or where it first did not.
func joinChecks(list []model.FlowResult) []model.Check {
	out := []model.Check{}
	held := map[string]int{}
	for i, f := range list {
		for _, c := range f.Ledger.Checks {
			k := slices.IndexFunc(out, func(x model.Check) bool { return x.Name == c.Name })
			if k < 0 {
				k, out = len(out), append(out, model.Check{Name: c.Name, Held: true})
			}
			if !c.Held && out[k].Held {
				out[k].Held, out[k].Text = false, fmt.Sprintf("receiver %d: %s", i+1, c.Text)
			} else if out[k].Held {
				held[c.Name]++
				out[k].Text = fmt.Sprintf("holds for each of %d receivers", held[c.Name])
			}
		}
	}
	return out
}

// joinSeries sums the series of each plan's flow.
func joinSeries(list []model.Series) []model.Series {
	out := []model.Series{}
	for _, s := range list {
		if s.Flow == "" {
			out = append(out, s)
			continue
		}
		s.Flow, s.At = base(s.Flow), plural(s.At)
		i := slices.IndexFunc(out, func(x model.Series) bool {
			return x.Metric == s.Metric && x.Flow == s.Flow &&
				x.At == s.At
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

// joinLinks sums the accounts of the links to receivers, there and back apart.
func joinLinks(list []model.LinkResult) []model.LinkResult {
	var out []model.LinkResult
	var passed []float64
	sum := func(to **uint64, more *uint64) {
		if *to == nil || more == nil {
			*to = nil // of one it is not known
			return
		}
		n := **to + *more
		*to = &n
	}
	weight := func(l model.LinkResult) float64 {
		if l.Passed == nil {
			return float64(l.Frames)
		}
		return float64(*l.Passed)
	}
	for _, l := range list {
		l.From, l.To = plural(l.From), plural(l.To)
		i := slices.IndexFunc(out, func(x model.LinkResult) bool { return x.From == l.From && x.To == l.To })
		if i < 0 {
			out, passed = append(out, l), append(passed, weight(l))
			continue
		}
		o := &out[i]
		if l.Backend != o.Backend {
			o.Backend, o.Reason = "", ""
		}
		if l.Seed != o.Seed {
			o.Seed = 0
		}
		o.Frames, o.Refused, o.Overrun = o.Frames+l.Frames, o.Refused+l.Refused, o.Overrun+l.Overrun
		sum(&o.Passed, l.Passed)
		sum(&o.Lost, l.Lost)
		sum(&o.QueueFull, l.QueueFull)
		sum(&o.Duplicated, l.Duplicated)
		sum(&o.Corrupted, l.Corrupted)
		if more := weight(l); more > 0 {
			o.LateRatio = (o.LateRatio*passed[i] + l.LateRatio*more) / (passed[i] + more)
			o.AskedRatio = (o.AskedRatio*passed[i] + l.AskedRatio*more) / (passed[i] + more)
			passed[i] += more
		}
		o.LateNS.P50, o.LateNS.P99, o.LateNS.Max = max(o.LateNS.P50, l.LateNS.P50), max(o.LateNS.P99, l.LateNS.P99),
			max(o.LateNS.Max, l.LateNS.Max)
		o.LossRatio = nil
		if o.Frames > 0 && o.Lost != nil {
			ratio := float64(*o.Lost) / float64(o.Frames)
			o.LossRatio = &ratio
		}
	}
	return out
}

// fewer keeps the first sentence of each kind. Those of one kind differ in their numbers
// only: a receiver's, and what it counted.
func fewer(list []string) (out []string) {
	kind := func(sentence string) string { return number.ReplaceAllString(sentence, "#") }
	count := map[string]int{}
	for _, s := range list {
		if count[kind(s)]++; count[kind(s)] == 1 {
			out = append(out, s)
		}
	}
	for i, s := range out {
		if more := count[kind(s)] - 1; more > 0 {
			out[i] = fmt.Sprintf("%s, and %d more of the kind", s, more)
		}
	}
	return out
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
