// Package rows folds the trials of a document into what a reader compares: one
// row per cell and flow, with the middle and the spread of its repeats.
//
// A model.Document comes in, rows with plain numbers in base units go out. The
// package formats nothing and judges nothing: a trial that is not valid counts
// only where its cell has no valid one, and then the row says so.
package rows

import (
	"math"
	"slices"

	"pelt/model"
)

// Stat is the middle and the spread of one figure over repeats.
type Stat struct {
	Median, Min, Max float64
	N                int // 0 means nobody measured it: the other fields are 0
}

// Spread reports whether the repeats differ.
func (s Stat) Spread() bool { return s.N > 1 && s.Max > s.Min }

// Delays are the medians over repeats of each percentile, in nanoseconds.
type Delays struct {
	P50, P90, P99, P999 Stat
	Min, Max            float64 // of all repeats
}

// TCP are the figures only a TCP flow has.
type TCP struct {
	WritesPerSecond   Stat
	SegmentsPerSecond Stat   // data segments at the receiver; at the sender where the receiver cannot tell
	Retransmits       uint64 // of all trials of the row
	RTTNanos          Stat
	Control           string // congestion control, the last one read back
	SegmentSizeBytes  int
}

// Row is one cell's trials of one flow.
type Row struct {
	Cell     model.Cell
	Flow     string
	Protocol model.Protocol
	From, To string
	Nodes    []string // that the flow passes, the two ends included, in its travel order
	Payload  int      // B
	Frame    int      // B, before fragmentation
	Pieces   int      // IP packets per datagram, where known; else 0
	Streams  int
	Engine   string
	Trials   []int       // indices into Document.Results that the figures are of
	State    model.State // of those trials
	Why      string      // of the first, unless valid

	SendPPS, ReceivePPS, GoodputBPS, SendBPS, JitterNanos Stat
	DurationS                                             Stat
	PacketsEach                                           Stat       // sent to each receiver
	Receivers                                             *Receivers // nil for a flow to one

	Pacing    *Pacing // of a flow with a profile; else nil
	Share     float64 // of the best row of the same flow, 0..1: packets, or goodput for TCP; NaN for a row that is not valid or while nothing was received
	Delay     *Delays // one way
	RoundTrip *Delays
	TCP       *TCP
	// Connections are nil but for a flow of them, whose TCP says nothing.
	Connections *Connections

	Planned                uint64           // of all trials of the row; 0 for a flow without a schedule
	Attempted, Lost        uint64           // of all trials of the row
	Ledger                 model.Ledger     // of all trials of the row, summed; without checks
	Observed               []model.Observed // how closely each node was watched, at the least; none where nobody wrote it down
	SenderCPU, ReceiverCPU model.CPU        // medians
}

// Trouble is a trial whose figures say nothing, or not all, about the path.
type Trouble struct {
	Result int // index into Document.Results
	Row    int // index of the first row of its cell, -1 if the cell has none
}

// Table is the whole document, folded.
type Table struct {
	Rows    []Row
	Keys    []string // knobs that differ between cells, sizes first
	Flows   []string // names of flows in the order of the plan, then of appearance
	Trouble []Trouble
}

// Fold makes the table. Rows are in the order of the flows, then of the cells:
// numbers ascending, words in the order of the plan.
func Fold(doc model.Document) Table {
	var t Table
	index := map[string]int{}
	var members [][]member
	for i, r := range doc.Results {
		for j := range r.Flows {
			f := &doc.Results[i].Flows[j]
			key := r.Cell.Key() + "\x00" + f.Name
			at, ok := index[key]
			if !ok {
				at = len(t.Rows)
				index[key] = at
				t.Rows = append(t.Rows, Row{Cell: r.Cell, Flow: f.Name})
				members = append(members, nil)
			}
			members[at] = append(members[at], member{i, r.State, f})
		}
	}
	for i := range t.Rows {
		t.Rows[i].fill(doc, members[i])
	}
	t.Keys = varying(doc)
	t.Flows = flowOrder(doc)
	sortRows(doc, &t)
	share(t.Rows)
	t.Trouble = troubles(doc, t.Rows)
	return t
}

// Of is the row of one flow of one trial, whatever its state.
func Of(doc model.Document, r model.Result, f model.FlowResult) Row {
	one := model.Document{Plan: doc.Plan, Lab: doc.Lab, Results: []model.Result{r}}
	row := Row{Cell: r.Cell, Flow: f.Name}
	row.fill(one, []member{{0, r.State, &f}})
	return row
}

// Groups splits the rows where flow or protocol change: each group is one table.
func (t Table) Groups() [][]Row {
	var groups [][]Row
	at := map[string]int{}
	for _, r := range t.Rows {
		key := r.kind()
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

type member struct {
	result int
	state  model.State
	flow   *model.FlowResult
}

// believable keeps the valid trials, or all when there is none.
func believable(all []member) []member {
	var valid []member
	for _, m := range all {
		if m.state == model.Valid {
			valid = append(valid, m)
		}
	}
	if len(valid) > 0 {
		return valid
	}
	return all
}

func (r *Row) fill(doc model.Document, all []member) {
	ms := believable(all)
	first := ms[0].flow
	r.Protocol, r.From, r.To = first.Protocol, first.From, first.To
	r.Payload, r.Frame, r.Pieces, r.Streams = first.PayloadBytes, first.FrameBytes, first.Fragments, first.Streams
	r.Engine = doc.Results[ms[0].result].Engine
	r.State = ms[0].state
	if r.State != model.Valid {
		r.Why = doc.Results[ms[0].result].Why
	}
	for _, m := range ms {
		r.Trials = append(r.Trials, m.result)
		r.Planned += m.flow.Planned
		r.Attempted += m.flow.Attempted
		r.Lost += m.flow.Lost
	}
	of := func(get func(*model.FlowResult) float64) Stat {
		var v []float64
		for _, m := range ms {
			if Measured(*m.flow) {
				v = append(v, get(m.flow))
			}
		}
		return stat(v)
	}
	r.SendPPS = of(func(f *model.FlowResult) float64 { return f.SendPPS })
	r.ReceivePPS = of(func(f *model.FlowResult) float64 { return f.ReceivePPS })
	r.GoodputBPS = of(func(f *model.FlowResult) float64 { return f.GoodputBPS })
	r.SendBPS = of(func(f *model.FlowResult) float64 { return f.SendGoodputBPS })
	r.JitterNanos = of(func(f *model.FlowResult) float64 { return f.JitterNS })
	r.DurationS = of(func(f *model.FlowResult) float64 { return f.DurationS })
	r.PacketsEach = packetsEach(ms)
	r.Receivers = spreadOver(ms)
	r.Delay = delays(ms, func(f *model.FlowResult) *model.Percentiles { return f.Delay })
	r.RoundTrip = delays(ms, func(f *model.FlowResult) *model.Percentiles { return f.RoundTrip })
	r.TCP, r.Connections, r.Pacing = tcp(ms), connections(ms), pacing(ms)
	r.Observed = worstWatch(doc, ms)
	r.Nodes = Nodes(doc.Lab, r.Observed, r.From, r.To)
	r.Ledger = sumLedgers(ms, r.Nodes)
	r.SenderCPU = cpu(ms, func(f *model.FlowResult) model.CPU { return f.SenderCPU })
	r.ReceiverCPU = cpu(ms, func(f *model.FlowResult) model.CPU { return f.ReceiverCPU })
}

// stat ignores what is not a number: it was not measured.
func stat(values []float64) Stat {
	v := slices.DeleteFunc(values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	if len(v) == 0 {
		return Stat{}
	}
	slices.Sort(v)
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		// Halves first: the sum of two finite numbers may not be finite.
		mid = v[len(v)/2-1]/2 + mid/2
	}
	return Stat{Median: mid, Min: v[0], Max: v[len(v)-1], N: len(v)}
}

func delays(ms []member, get func(*model.FlowResult) *model.Percentiles) *Delays {
	var p50, p90, p99, p999, low, high []float64
	for _, m := range ms {
		if p := get(m.flow); p != nil && p.Count > 0 {
			p50, p90, p99, p999 = append(p50, p.P50), append(p90, p.P90), append(p99, p.P99), append(p999, p.P999)
			low, high = append(low, p.Min), append(high, p.Max)
		}
	}
	if len(p50) == 0 {
		return nil
	}
	return &Delays{P50: stat(p50), P90: stat(p90), P99: stat(p99), P999: stat(p999), Min: stat(low).Min, Max: stat(high).Max}
}

func tcp(ms []member) *TCP {
	var t TCP
	var writes, segments, rtt []float64
	for _, m := range ms {
		f := m.flow
		if f.TCP == nil || !Measured(*f) {
			continue
		}
		if f.DurationS > 0 {
			n := f.TCP.SegmentsIn
			if n == 0 {
				n = f.TCP.SegmentsOut
			}
			writes = append(writes, float64(f.TCP.Writes)/f.DurationS)
			segments = append(segments, float64(n)/f.DurationS)
		}
		if f.TCP.RTTNanos > 0 {
			rtt = append(rtt, f.TCP.RTTNanos)
		}
		t.Retransmits += f.TCP.Retransmits
		t.Control, t.SegmentSizeBytes = f.TCP.Control, f.TCP.SegmentSizeBytes
	}
	if ms[0].flow.Protocol != model.TCP {
		return nil
	}
	t.WritesPerSecond, t.SegmentsPerSecond, t.RTTNanos = stat(writes), stat(segments), stat(rtt)
	return &t
}

func cpu(ms []member, get func(*model.FlowResult) model.CPU) model.CPU {
	var v [4][]float64
	for _, m := range ms {
		c := get(m.flow)
		for i, x := range []float64{c.ThreadRatio, c.HostRatio, c.SoftirqRatio, c.BusiestRatio} {
			v[i] = append(v[i], x)
		}
	}
	return model.CPU{ThreadRatio: stat(v[0]).Median, HostRatio: stat(v[1]).Median, SoftirqRatio: stat(v[2]).Median, BusiestRatio: stat(v[3]).Median}
}

// LossRatio is the share lost of all that was attempted in the row's trials, so
// that it is the sum of its ledger's lines; ok is false when nothing was.
func (r Row) LossRatio() (ratio float64, ok bool) {
	if r.Attempted == 0 {
		return 0, false
	}
	return float64(r.Lost) / float64(r.Attempted), true
}

// MissedRatio is the share of the schedule that the sender did not keep; 0 for
// a flow without one.
func (r Row) MissedRatio() float64 {
	if r.Planned <= r.Attempted {
		return 0
	}
	return float64(r.Planned-r.Attempted) / float64(r.Planned)
}

// Measured reports whether a flow sent anything: else its zeros are no figures.
func Measured(f model.FlowResult) bool {
	return f.Attempted > 0 || f.TCP != nil && (f.TCP.Writes > 0 || f.TCP.Completion != nil)
}

// kind is the same for rows of one table.
func (r Row) kind() string {
	key := r.Flow + "\x00" + string(r.Protocol)
	if r.Connections != nil {
		key += "\x00" + r.Connections.Mode
	}
	return key
}

// Offered is what the sender put in per second: packets, or writes for TCP.
func (r Row) Offered() Stat {
	if r.TCP != nil && r.Connections == nil {
		return r.TCP.WritesPerSecond
	}
	return r.SendPPS
}

// Carried is what came out per second: packets, or data segments for TCP.
func (r Row) Carried() Stat {
	if r.TCP != nil && r.Connections == nil {
		return r.TCP.SegmentsPerSecond
	}
	return r.ReceivePPS
}

func share(all []Row) {
	best := map[string]float64{}
	figure := func(r Row) Stat {
		if r.TCP != nil && r.Connections == nil {
			return r.GoodputBPS
		}
		return r.ReceivePPS
	}
	for _, r := range all {
		if r.State != model.Valid {
			continue
		}
		best[r.kind()] = max(best[r.kind()], figure(r).Median)
	}
	for i, r := range all {
		all[i].Share = math.NaN()
		if b := best[r.kind()]; b > 0 && figure(r).N > 0 && r.State == model.Valid {
			all[i].Share = figure(r).Median / b
		}
	}
}

func troubles(doc model.Document, all []Row) []Trouble {
	var out []Trouble
	first := map[string]int{}
	for i, x := range all {
		key := x.Cell.Key()
		if _, known := first[key]; !known {
			first[key] = i
		}
	}
	for i, r := range doc.Results {
		if r.State == model.Valid {
			continue
		}
		row, known := first[r.Cell.Key()]
		if !known {
			row = -1
		}
		out = append(out, Trouble{Result: i, Row: row})
	}
	return out
}
