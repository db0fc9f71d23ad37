package finding

import (
	"fmt"
	"slices"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
)

// transfer is what one control does under one loss.
type transfer struct {
	control string
	loss    float64
	mbps    float64
	queue   float64 // s
}

// race is a run that compares congestion controls.
type race struct {
	of      []transfer
	repeats int
	bytes   float64 // of each transfer; 0: as much as fits
	most    float64 // s, after which a transfer is cut; 0: never
	noise   func(i int) float64
	invalid int // trials, the first ones
	change  func(*model.Document)
}

func (c race) doc() *model.Document {
	d := sample.Base("192.0.2.7", []int{1448}, c.repeats, 10)
	d.ID, d.Host, d.Plan.Command, d.Plan.Timing.WarmupSeconds = "abc", nil, "cc", 0
	d.Plan.Flows[0].Protocol, d.Plan.Flows[0].Bytes = model.TCP, uint64(c.bytes)
	if c.noise == nil {
		c.noise = func(i int) float64 { return []float64{1, 1.02, 0.98, 1.01, 0.99}[i%5] }
	}
	for repeat := range c.repeats {
		for i, x := range c.of {
			bps := x.mbps * 1e6 * c.noise(repeat+i)
			f := model.FlowResult{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, Streams: 1,
				GoodputBPS: bps, DurationS: 10, TCP: &model.TCPFacts{Control: x.control, Writes: 1, SegmentsOut: 1000,
					Retransmits: 10, SegmentSizeBytes: 1448, BusyS: 10}}
			const trip = 0.04e9
			f.RoundTrip = &model.Percentiles{Count: 9, Min: trip, P50: trip, P90: trip, P95: trip + x.queue*1e9}
			if c.bytes > 0 {
				took := c.bytes * 8 / bps
				cut := c.most > 0 && took > c.most
				if cut {
					took = c.most
				}
				f.DurationS = took
				f.TCP.ReceivedBytes = uint64(bps * took / 8)
				f.TCP.Completion = &model.Completion{Bytes: uint64(c.bytes), Done: !cut, Seconds: took}
			}
			r := model.Result{Cell: model.Cell{"control": model.Word(x.control),
				"link.loss_ratio": model.Number(x.loss)},
				Repeat: repeat, State: model.Valid, Flows: []model.FlowResult{f},
				Links: []model.LinkResult{{From: model.Sender, To: model.Receiver, AskedRatio: x.loss}}}
			if len(d.Results) < c.invalid {
				r.State = model.Invalid
			}
			d.Results = append(d.Results, r)
		}
	}
	d.Plan.Factors = factorsOf(d.Results, "link.loss_ratio", "control")
	if c.change != nil {
		c.change(&d)
	}
	return &d
}

// factorsOf are the levels that trials have of knobs.
func factorsOf(results []model.Result, knobs ...string) (all []model.Factor) {
	for _, knob := range knobs {
		f := model.Factor{Knob: knob}
		for _, r := range results {
			if v := r.Cell[knob]; !slices.Contains(f.Levels, v) {
				f.Levels = append(f.Levels, v)
			}
		}
		all = append(all, f)
	}
	return all
}

var (
	apart = []transfer{{"cubic", 0, 90, 0.06}, {"bbr", 0, 90, 0.02}, {"cubic", 0.01, 30, 0}, {"bbr", 0.01, 75, 0.01}}
	duel  = []transfer{{"cubic", 0, 3, 0.06}, {"bbr", 0, 90, 0.02}}
)

func remembering(d *model.Document) {
	d.Host = []model.Host{{Node: model.Sender, TCPSettings: map[string]string{"no_metrics_save": "0"}}}
}

func controlExamples(*testing.T) []example {
	edit := func(change func(*model.FlowResult)) func(*model.Document) {
		return func(d *model.Document) { edited(d, change) }
	}
	change := func(c func(*model.Document)) race { return race{of: duel, repeats: 3, change: c} }
	streams := func(of []transfer, streams ...model.TCPStream) race {
		return race{of: of, repeats: 3, change: edit(func(f *model.FlowResult) {
			f.Streams, f.TCP.PerStream = 2, streams
		})}
	}
	lossy := func(loss float64, cubic, bbr float64) []transfer {
		return []transfer{{"cubic", 0, 90, 0}, {"bbr", 0, 90, 0}, {"cubic", loss, cubic, 0}, {"bbr", loss, bbr, 0}}
	}
	runs := map[string]race{
		"goodput under two losses": {of: apart, repeats: 5},
		"faster with losses, slower without": {of: []transfer{{"cubic", 0, 90, 0}, {"bbr", 0, 45, 0},
			{"cubic", 0.01, 11, 0}, {"bbr", 0.01, 70, 0}}, repeats: 5},
		"completion":  {of: duel, repeats: 3, bytes: 9e6},
		"two repeats": {of: duel, repeats: 2},
		"noise": {of: duel, repeats: 3,
			noise: func(i int) float64 { return []float64{1, 60, 0.2, 0.5}[i%4] }},
		"one of them alone":        {of: []transfer{{"bbr", 0, 90, 0}, {"bbr", 0.01, 70, 0}}, repeats: 3},
		"tied, where both ran":     {of: lossy(0.01, 90, 0)[:3], repeats: 12},
		"tied everywhere":          {of: lossy(0.01, 80, 80), repeats: 15},
		"too few of the first one": change(func(d *model.Document) { d.Results[0].State = model.Invalid }),
		"nothing":                  {of: []transfer{{"cubic", 0, 0, 0}, {"bbr", 0, 45, 0}}, repeats: 4},
		"no valid trial":           {of: duel, repeats: 2, invalid: 4},
		"cut":                      {of: duel, repeats: 3, bytes: 9e6, most: 10},
		"both cut": {of: []transfer{{"cubic", 0, 1, 0}, {"bbr", 0, 2, 0}}, repeats: 4, bytes: 9e6,
			most: 10},
		"receive buffers": change(edit(func(f *model.FlowResult) { f.TCP.RwndLimitedS = 4 })),
		"link":            change(func(d *model.Document) { d.Plan.Links = []model.Link{{Rate: 95e6}} }),
		"another control in a mix": race{of: []transfer{{"cubic+bbr", 0, 90, 0}}, repeats: 3,
			change: edit(func(f *model.FlowResult) { f.TCP.Control = "cubic+reno" })},
		"remembered":        change(remembering),
		"not kept in a lab": change(func(d *model.Document) { remembering(d); d.Lab = &model.LabFacts{} }),
		"shares": streams([]transfer{{"cubic+bbr", 0, 90, 0}}, model.TCPStream{Control: "cubic", GoodputBPS: 2},
			model.TCPStream{Control: "bbr", GoodputBPS: 8}),
		"unfair": streams(duel[:1], model.TCPStream{Control: "cubic", GoodputBPS: 2},
			model.TCPStream{Control: "cubic", GoodputBPS: 8}),
	}
	docs := map[string]*model.Document{}
	for name, run := range runs {
		docs[name] = run.doc()
	}
	out := examplesOf(docs, append([]Rule{controlRule, controlStreams, controlDoubts}, generalRules()...)...)

	// A segment that TCP sent again, and of which no drop is known, is not said to be lost.
	for _, n := range [][2]uint64{{0, 0}, {100, 0}, {100, 2}} {
		d := race{of: []transfer{{"cubic", 0, 90, 0}}, repeats: 1}.doc()
		f := &d.Results[0].Flows[0]
		f.TCP.Retransmits, f.Lost, f.Attempted, f.Received = n[0], n[0], 1000, 1000-n[0]
		if f.Lost > 0 {
			f.Ledger = model.Ledger{Lost: n[0], Unattributed: n[0] - n[1], Lines: []model.Line{{Host: "router",
				Layer: model.LayerNetwork, Cause: "ring-full", Packets: n[1], Confidence: "exact-count"}}}
		}
		out = append(out, example{fmt.Sprintf("%d sent again, %d dropped", n[0], n[1]),
			append(Explain(d, Ask{All: true}), unexplainedRule(table.Rows(d))...)})
	}
	return out
}
