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

func (p *path) star() bool { return len(p.receivers) > 0 }

// endNames are the sender and the receivers.
func (p *path) endNames() []string {
	if !p.star() {
		return []string{model.Sender, model.Receiver}
	}
	return append([]string{model.Sender}, p.receivers...)
}

// starSpots are those of every flow of a star: sender and switch, and for each
// receiver its link, if that is emulated, and itself.
func starSpots(l *lab.Lab) []spot {
	links := map[[2]string]int{}
	for k, e := range l.Emulated() {
		links[e.Ends] = k + 1
	}
	inKernel := map[[2]string]int{}
	for k, e := range l.KernelLinks() {
		inKernel[e.Ends] = k + 1
	}
	var spots []spot
	between := ""
	for _, n := range l.Nodes() {
		s := spot{name: n.Name(), many: strings.HasPrefix(n.Name(), model.Receiver+"-")}
		ends := [2]string{between, n.Name()}
		if k := links[ends]; k > 0 {
			spots = append(spots, spot{name: roadName(ends), road: k, many: s.many})
		}
		if k := inKernel[ends]; k > 0 {
			wire := spot{name: roadName(ends), rails: k, many: s.many}
			wire.inode, _ = l.KernelLinks()[k-1].Wire().NamespaceInode() // 0 is unknown
			spots = append(spots, wire)
		}
		if !s.many {
			between = n.Name()
		}
		s.inode, _ = n.NamespaceInode() // 0 is unknown
		spots = append(spots, s)
	}
	return spots
}

// of tells whether a flow passes a spot.
func (s spot) of(f model.Flow) bool {
	if !s.many {
		return true
	}
	for _, end := range []string{f.From, f.To} {
		if s.name == end || s.road+s.rails > 0 && strings.HasSuffix(s.name, "-"+end) {
			return true
		}
	}
	return false
}

// among are the receivers of a star that a trial is of.
func (p *path) among(t model.Trial) []string {
	if t.Receivers == 0 {
		return p.receivers
	}
	return p.receivers[:min(t.Receivers, len(p.receivers))]
}

// each makes of a plan's flow the flows that are sent, to some of the receivers.
func (p *path) each(f model.Flow, receivers []string) []model.Flow {
	if !p.star() {
		return []model.Flow{f}
	}
	var list []model.Flow
	for i, r := range receivers {
		one := f
		one.Name = f.Name + "/" + strconv.Itoa(i+1)
		one.Profile = f.Profile.Other(i)
		if one.From == model.Receiver {
			one.From = r
		} else {
			one.To = r
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
	lines := [][]model.Line{sum.Ledger.Lines}
	checks := [][]model.Check{sum.Ledger.Checks}
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
		sum.Planned, sum.Attempted, sum.Accepted = sum.Planned+f.Planned, sum.Attempted+f.Attempted, sum.Accepted+f.Accepted
		sum.Received, sum.Duplicates, sum.Reordered = sum.Received+f.Received, sum.Duplicates+f.Duplicates, sum.Reordered+f.Reordered
		sum.Late, sum.Lost = sum.Late+f.Late, sum.Lost+f.Lost
		sum.SendPPS, sum.ReceivePPS = sum.SendPPS+f.SendPPS, sum.ReceivePPS+f.ReceivePPS
		sum.GoodputBPS, sum.SendGoodputBPS = sum.GoodputBPS+f.GoodputBPS, sum.SendGoodputBPS+f.SendGoodputBPS
		sum.DurationS, sum.BurstMax = max(sum.DurationS, f.DurationS), max(sum.BurstMax, f.BurstMax)
		sum.JitterNS += f.JitterNS
		sum.Ledger.Lost, sum.Ledger.Unattributed = sum.Ledger.Lost+f.Ledger.Lost, sum.Ledger.Unattributed+f.Ledger.Unattributed
		lines, checks = append(lines, f.Ledger.Lines), append(checks, f.Ledger.Checks)
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
	sum.Pacing = joinPacing(list)
	sum.Ledger.Lines, sum.Ledger.Checks = joinLines(lines), joinChecks(checks)
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
func joinLines(lists [][]model.Line) []model.Line {
	type key struct{ layer, host, cause string }
	at := map[key]int{}
	out := []model.Line{}
	for _, lines := range lists {
		for _, l := range lines {
			l.Host = plural(l.Host)
			k := key{l.Layer, l.Host, l.Cause}
			i, known := at[k]
			if !known {
				at[k] = len(out)
				l.Sequences, l.Evidence, l.Interface = nil, []model.Evidence{}, ""
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
		return cmp.Or(cmp.Compare(slices.Index(layers, a.Layer), slices.Index(layers, b.Layer)), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Cause, b.Cause))
	})
	return out
}

// surer tells whether one confidence is above another.
func surer(a, b string) bool {
	order := []string{"exact-seq", "exact-count", "bounded", "inferred"}
	return slices.Index(order, a) < slices.Index(order, b)
}

// joinChecks says of each law that it held for all, or of the first where it did not.
func joinChecks(lists [][]model.Check) []model.Check {
	out := []model.Check{}
	at := map[string]int{}
	held := map[string]int{}
	for i, checks := range lists {
		for _, c := range checks {
			k, known := at[c.Name]
			if !known {
				k = len(out)
				at[c.Name] = k
				out = append(out, model.Check{Name: c.Name, Held: true})
			}
			if c.Held {
				held[c.Name]++
			} else if out[k].Held {
				out[k].Held, out[k].Text = false, fmt.Sprintf("receiver %d: %s", i+1, c.Text)
			}
		}
	}
	for k := range out {
		if out[k].Held {
			out[k].Text = fmt.Sprintf("holds for each of %d receivers", held[out[k].Name])
		}
	}
	return out
}

// joinSeries sums the series of each plan's flow.
func joinSeries(list []model.Series) []model.Series {
	type key struct{ metric, flow, at string }
	at := map[key]int{}
	out := []model.Series{}
	for _, s := range list {
		if s.Flow == "" {
			out = append(out, s)
			continue
		}
		s.Flow, s.At = base(s.Flow), plural(s.At)
		k := key{s.Metric, s.Flow, s.At}
		i, known := at[k]
		if !known {
			at[k] = len(out)
			s.Values = slices.Clone(s.Values)
			out = append(out, s)
			continue
		}
		if len(s.Values) < len(out[i].Values) {
			out[i].Values = out[i].Values[:len(s.Values)]
		}
		for k := range out[i].Values {
			out[i].Values[k] += s.Values[k]
		}
	}
	return out
}

// joinLinks sums the accounts of the links to receivers, there and back apart.
func joinLinks(list []model.LinkResult) []model.LinkResult {
	type key struct{ from, to string }
	at := map[key]int{}
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
		k := key{l.From, l.To}
		i, known := at[k]
		if !known {
			at[k] = len(out)
			out, passed = append(out, l), append(passed, weight(l))
			continue
		}
		o := &out[i]
		if l.Backend != o.Backend {
			o.Backend, o.Reason = "", ""
		}
		if l.Mode != o.Mode {
			o.Mode = ""
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
		o.LateNS.P50, o.LateNS.P99, o.LateNS.Max = max(o.LateNS.P50, l.LateNS.P50), max(o.LateNS.P99, l.LateNS.P99), max(o.LateNS.Max, l.LateNS.Max)
		o.LossRatio = nil
		if o.Frames > 0 && o.Lost != nil {
			ratio := float64(*o.Lost) / float64(o.Frames)
			o.LossRatio = &ratio
		}
	}
	return out
}

// fewer keeps the first sentences of each kind. Those of one kind differ in
// their numbers only: a receiver's, and what it counted.
func fewer(list []string) []string {
	const most = 3
	count := map[string]int{}
	var out []string
	for _, s := range list {
		k := kindOf(s)
		if count[k]++; count[k] <= most {
			out = append(out, s)
		}
	}
	told := map[string]bool{}
	for i := len(out) - 1; i >= 0; i-- { // after the last of each
		k := kindOf(out[i])
		if more := count[k] - most; more > 0 && !told[k] {
			out = slices.Insert(out, i+1, fmt.Sprintf("and %d more of the kind", more))
		}
		told[k] = true
	}
	return out
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

func kindOf(sentence string) string { return number.ReplaceAllString(sentence, "#") }
