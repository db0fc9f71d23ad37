package bench

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// Command is the preset whose runs are told as a router bench.
const Command = "router"

// Is reports whether a run is told as a router bench.
func Is(doc model.Document) bool { return doc.Plan.Command == Command }

// Figure is the mean and the spread of one figure over repeats.
type Figure struct {
	Mean, Min, Max float64
	N              int // 0 means nobody measured it: the other fields are NaN
}

// Spread reports whether the repeats differ.
func (f Figure) Spread() bool { return f.N > 1 && f.Max > f.Min }

// Row is one setting in one direction, or in both together.
type Row struct {
	Cell    model.Cell
	Variant string // how the router was set up; "" where the run has no variants
	Flow    string // "" for the sum of flows that ran at once
	Share   bool   // one of flows that ran at once: their sum has the router's figures
	Way     string // in words: LAN→WAN, WAN→LAN, both
	Traffic string // in words: 64 B, TCP
	Light   bool   // a set rate: its delay is that of an idle path, and its rate says nothing
	TCP     bool
	Trials  []int // indices into Document.Results that the figures are of
	State   model.State
	Why     string // of the first of them, unless valid

	PPS, BPS           Figure // received packets (TCP: segments, or connections), payload bits per second
	Open               Figure // connections at a time, at most; of a row that keeps them
	Attempted, Lost    uint64 // of all trials of the row; TCP: segments, and those sent again
	Delay50, Delay99   Figure // one way, ns
	RTT50, RTT99       Figure // round trip, ns
	Load               *Load  // nil for a share, and where no trial of the row saw the router
	Watched, Unwatched int    // trials of the row that saw the router, and that did not; 0 for a share
}

// LossRatio is the share lost of all that was attempted; NaN when nothing was.
func (r Row) LossRatio() float64 {
	if r.Attempted == 0 {
		return math.NaN()
	}
	return float64(r.Lost) / float64(r.Attempted)
}

// Name tells a row from all others, in words: "LAN→WAN, 64 B, log".
func (r Row) Name() string {
	way := r.Way
	if r.Share {
		way += " of both"
	}
	return strings.TrimSuffix(strings.Join([]string{way, r.Traffic, r.Variant}, ", "), ", ")
}

// Table is the whole bench.
type Table struct {
	Rows     []Row    // by variant, then in the order of the plan; a sum before its shares
	Variants []string // that the rows have, in the order of the plan; none without variants
}

// Fold makes the table.
func Fold(doc model.Document) Table {
	var t Table
	var cells []model.Cell
	members := map[string][]int{}
	for i, r := range doc.Results {
		if len(r.Flows) == 0 {
			continue
		}
		key := r.Cell.Key()
		if members[key] == nil {
			cells = append(cells, r.Cell)
		}
		members[key] = append(members[key], i)
	}
	order := newOrder(doc.Plan)
	slices.SortStableFunc(cells, func(a, b model.Cell) int {
		return cmp.Or(cmp.Compare(order.variant(a), order.variant(b)), cmp.Compare(order.cell(a), order.cell(b)))
	})
	for _, c := range cells {
		t.Rows = append(t.Rows, cellRows(doc, believable(doc, members[c.Key()]))...)
	}
	for _, r := range t.Rows {
		if r.Variant != "" && !slices.Contains(t.Variants, r.Variant) {
			t.Variants = append(t.Variants, r.Variant)
		}
	}
	return t
}

// InOrder puts the rows of each flow in the order of the plan, by variant.
func InOrder(doc model.Document, of []rows.Row) []rows.Row {
	out := slices.Clone(of)
	order := newOrder(doc.Plan)
	slices.SortStableFunc(out, func(a, b rows.Row) int {
		return cmp.Or(cmp.Compare(order.variant(a.Cell), order.variant(b.Cell)), cmp.Compare(order.cell(a.Cell), order.cell(b.Cell)))
	})
	return out
}

// order is that of the plan; what the plan does not have comes last.
type order struct{ variants, cells map[string]int }

func newOrder(p model.Plan) order {
	o := order{map[string]int{}, map[string]int{}}
	for i, v := range p.Variants {
		o.variants[v.Name] = i
	}
	for i, c := range p.Design.Cells {
		o.cells[c.Key()] = i
	}
	return o
}

func (o order) variant(c model.Cell) int { return place(o.variants, c["variant"].Text) }
func (o order) cell(c model.Cell) int    { return place(o.cells, c.Key()) }

func place(in map[string]int, key string) int {
	if i, ok := in[key]; ok {
		return i
	}
	return math.MaxInt
}

// believable keeps the valid trials, or all when there is none.
func believable(doc model.Document, all []int) []int {
	valid := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return doc.Results[i].State != model.Valid })
	if len(valid) > 0 {
		return valid
	}
	return all
}

// cellRows are the rows of one setting.
func cellRows(doc model.Document, trials []int) []Row {
	first := doc.Results[trials[0]]
	row := func(flow string, share bool) Row {
		r := Row{Cell: first.Cell, Flow: flow, Share: share, Trials: trials, State: first.State, Variant: words.Name(first.Cell["variant"].Text)}
		r.Traffic, r.Light = traffic(first)
		r.Way = Way(doc, flow)
		if r.State != model.Valid {
			r.Why = first.Why
		}
		r.fill(doc)
		if !share {
			r.Load, r.Watched = newLoad(doc, r)
			r.Unwatched = len(trials) - r.Watched
		}
		return r
	}
	if len(first.Flows) == 1 {
		return []Row{row(first.Flows[0].Name, false)}
	}
	out := []Row{row("", false)}
	for _, f := range first.Flows {
		out = append(out, row(f.Name, true))
	}
	return out
}

// Pairs are the rows with a rate that is a finding, the variants of one setting
// one after the other: sums without their shares, and none of a set rate.
func (t Table) Pairs() []Row {
	var out []Row
	first := map[string]int{}
	key := func(r Row) string { return r.Way + "\x00" + r.Traffic }
	for i, r := range t.Rows {
		if r.Share || r.Light {
			continue
		}
		if _, known := first[key(r)]; !known {
			first[key(r)] = i
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Row) int { return cmp.Compare(first[key(a)], first[key(b)]) })
	return out
}

// Way names a flow by the router's sides; "" is all flows at once. A switch has no
// such sides.
func Way(doc model.Document, flow string) string {
	switch {
	case flow == "":
		return "both"
	case doc.Lab != nil && doc.Lab.Topology == "switch":
	case flow == "up":
		return "LAN→WAN"
	case flow == "down":
		return "WAN→LAN"
	}
	return words.Name(flow)
}

// traffic says what was sent; light is a rate that was set.
func traffic(r model.Result) (text string, light bool) {
	f := r.Flows[0]
	if text = unit.FormatSize(f.FrameBytes); f.Protocol == model.TCP {
		text = "TCP"
	}
	rate, paced := r.Cell["rate_pps"]
	rest := model.Cell{}
	for k, v := range r.Cell {
		if !slices.Contains([]string{"protocol", "direction", "variant", "frame_bytes", "payload_bytes"}, k) {
			rest[k] = v
		}
	}
	if len(rest) > 0 {
		text += ", " + words.Shorten(words.Cell(rest), 24)
	}
	return text, paced && rate.Text == ""
}

func (r *Row) fill(doc model.Document) {
	var open, pps, bps, d50, d99, t50, t99 []float64
	for _, i := range r.Trials {
		var p, b float64
		measured := false
		for _, f := range doc.Results[i].Flows {
			if r.Flow != "" && f.Name != r.Flow || !rows.Measured(f) {
				continue
			}
			measured, r.TCP = true, f.TCP != nil
			p, b = p+packets(f), b+f.GoodputBPS
			if c := f.Connections; c != nil && c.Mode == model.ConnectionKeep {
				open = append(open, float64(c.OpenMax))
			}
			r.Attempted += f.Attempted
			r.Lost += f.Lost
			if r.Flow == "" {
				continue // two delays have no sum
			}
			if q := f.Delay; q != nil && q.Count > 0 {
				d50, d99 = append(d50, q.P50), append(d99, q.P99)
			}
			if q := f.RoundTrip; q != nil && q.Count > 0 {
				t50, t99 = append(t50, q.P50), append(t99, q.P99)
			}
		}
		if measured {
			pps, bps = append(pps, p), append(bps, b)
		}
	}
	r.PPS, r.BPS, r.Open = figure(pps), figure(bps), figure(open)
	r.Delay50, r.Delay99, r.RTT50, r.RTT99 = figure(d50), figure(d99), figure(t50), figure(t99)
}

// packets are those received per second: of TCP, data segments.
func packets(f model.FlowResult) float64 {
	if f.TCP == nil || f.Connections != nil {
		return f.ReceivePPS
	}
	n := cmp.Or(f.TCP.SegmentsIn, f.TCP.SegmentsOut) // the sender's where the receiver cannot tell
	if !(f.DurationS > 0) {
		return math.NaN()
	}
	return float64(n) / f.DurationS
}

// figure ignores what is not a number: it was not measured.
func figure(values []float64) Figure {
	f := Figure{Mean: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	sum := 0.0
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if f.N == 0 || v < f.Min {
			f.Min = v
		}
		if f.N == 0 || v > f.Max {
			f.Max = v
		}
		f.N++
		sum += v
	}
	if f.N > 0 {
		f.Mean = sum / float64(f.N)
	}
	return f
}
