package design

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
	"pelt/unit"
)

// device is a path by what it does at a rate; a rate of 0 is a flood.
type device func(pps float64) model.FlowResult

// limited carries limit packets a second of the most that its sender can send.
func limited(limit, most float64) device {
	return func(pps float64) model.FlowResult {
		if pps == 0 {
			pps = most
		}
		return flowOf(pps, math.Min(pps, limit))
	}
}

func flowOf(sent, received float64) model.FlowResult {
	f := model.FlowResult{Name: "up", Protocol: model.UDP, DurationS: 1, Planned: uint64(sent), Attempted: uint64(sent),
		Received: uint64(received), Lost: uint64(sent) - uint64(received), SendPPS: sent, ReceivePPS: received}
	f.LossRatio = float64(f.Lost) / float64(max(f.Attempted, 1))
	return f
}

func searchPlan(searches int, payloads ...float64) model.Plan {
	p := planOf([]model.Factor{numbers("payload_bytes", payloads...),
		{Knob: "direction", Levels: []model.Value{model.Word("up")}}},
		model.Design{Repeats: 1, Seed: 3})
	quick, _ := model.NamedGoal("quick")
	p.Design.Search = &model.Search{Goals: []model.Goal{quick}, MinPPS: 1000, Searches: searches}
	return p
}

// measured runs a plan on a device from what is done to its end, or for so many trials.
func measured(t *testing.T, p model.Plan, path device, done []model.Result, trials int) []model.Result {
	t.Helper()
	d := told(t, p, done)
	for ; trials != 0; trials-- {
		cell, repeat, more := d.Next()
		if !more {
			break
		}
		if len(done) > 500 {
			t.Fatal("the search does not end")
		}
		f := path(cell["rate_pps"].Number)
		if seconds, set := cell["measure_s"]; set {
			f.DurationS = seconds.Number
		}
		state := model.Valid
		if f.Attempted == 0 {
			state = model.Invalid
		}
		done = append(done, model.Result{Cell: cell, Repeat: repeat, State: state, Flows: []model.FlowResult{f}})
		d.Add(&done[len(done)-1])
	}
	return done
}

// A run that was cut goes on with the trials that the uncut one has, whatever the order in which its results are
// stored.
func TestSearchGoesOnWhereItWasCut(t *testing.T) {
	p, path := searchPlan(2, 64), limited(250e3, 1e6)
	whole := measured(t, p, path, nil, -1)
	for cut := range whole {
		stored := measured(t, p, path, nil, cut)
		stored = append(stored, model.Result{Cell: whole[cut].Cell, Repeat: whole[cut].Repeat, State: model.Aborted})
		slices.Reverse(stored)
		got := measured(t, p, path, stored, 1)
		next := got[len(got)-1]
		if !next.Cell.Equal(whole[cut].Cell) || next.Repeat != whole[cut].Repeat {
			t.Fatalf("cut after %d: went on with %s #%d, want %s #%d", cut, next.Cell.Key(), next.Repeat,
				whole[cut].Cell.Key(), whole[cut].Repeat)
		}
	}
	if n := len(Answers(p, whole, true)); n != 2 {
		t.Errorf("%d answers of two searches", n)
	}
}

// TestSearches: each trial of each made search, and its answers, stand in a golden file.
func TestSearches(t *testing.T) {
	above := func(pps float64, path device, spoil func(*model.FlowResult)) device { // spoils trials above a rate
		return func(rate float64) model.FlowResult {
			f := path(rate)
			if rate > pps {
				spoil(&f)
			}
			return f
		}
	}
	held := func(cause string) func(*model.FlowResult) {
		return func(f *model.FlowResult) {
			f.Ledger.Pacing = []model.PacingLine{{Cause: cause, Packets: f.Attempted / 50}}
		}
	}
	upTo := func(rate float64, loads ...float64) func(*model.Plan) {
		return func(p *model.Plan) {
			p.Flows[0].Rate, p.Design.Search.Loads = unit.PacketRate(uint64(rate)), loads
		}
	}
	long := func(seconds float64) func(*model.Plan) { // the time of a trial is rounded, and still counts whole
		return func(p *model.Plan) {
			g := &p.Design.Search.Goals[0]
			g.InitialSeconds, g.FinalSeconds, g.SumSeconds = min(g.InitialSeconds, seconds), seconds, 4*seconds
		}
	}
	var out strings.Builder
	for _, c := range []struct {
		name   string
		path   device
		change func(*model.Plan)
	}{
		{"the path", limited(250e3, 1e6), nil},
		{"each size", limited(250e3, 1e6), func(p *model.Plan) { p.Factors[0] = numbers("payload_bytes", 64, 1472) }},
		{"twice", limited(250e3, 1e6), func(p *model.Plan) { p.Design.Search.Searches = 2 }},
		{"the sender's flood", limited(2e6, 300e3), nil},
		{"the receiver's host", func(pps float64) model.FlowResult {
			f := limited(250e3, 1e6)(pps)
			f.Ledger.Lines = []model.Line{{Layer: model.LayerReceiverBuffer, Packets: f.Lost}}
			return f
		}, nil},
		{"a sender that is too slow", above(200e3, limited(400e3, 1e6),
			func(f *model.FlowResult) { *f = model.FlowResult{} }), nil},
		{"a sender that is late", above(200e3, limited(400e3, 1e6), func(f *model.FlowResult) {
			late := f.Attempted - 200e3
			f.Attempted, f.Lost, f.Ledger.Pacing = 200e3, 0, []model.PacingLine{{Cause: model.PacingLate, Packets: late}}
		}), nil},
		{"a sender's own queue", above(200e3, limited(400e3, 1e6), held(model.PacingBackpressure)), nil},
		{"a queue that grows", func(pps float64) model.FlowResult {
			if pps > 200e3 && pps < 300e3 {
				f := flowOf(pps, pps)
				f.ReceivePPS = 200e3
				return f
			}
			return limited(200e3, 1e6)(pps)
		}, nil},
		{"nothing holds", func(pps float64) model.FlowResult { return flowOf(max(pps, 1e5), max(pps, 1e5)*0.9) }, nil},
		{"14 ms", limited(250e3, 1e6), long(0.014)},
		{"384 ms", limited(250e3, 1e6), long(0.384)},
		{"up to a rate that the path carries", limited(2e6, 300001), upTo(300e3, 0.5, 1, 1.5)},
		{"up to a rate that it does not carry", limited(150e3, 300001), upTo(300e3, 0.5, 1, 1.5)},
		{"up to a rate that the sender does not send",
			func(pps float64) model.FlowResult { return limited(1e6, 250e3)(min(pps, 250e3)) },
			upTo(300e3, 0.5, 1, 1.5)},
		{"loads", limited(250e3, 1e6), func(p *model.Plan) { p.Design.Search.Loads = []float64{0, 0.5, 1} }},
		{"loads of a slow path, idle at 1 % of it at most", limited(3000, 1e6),
			func(p *model.Plan) { p.Design.Search.Loads = []float64{0, 0.5, 1} }},
		// Only floods of UDP are searched; what a plan paces or sends by TCP has no rate to look for.
		{"beside other trials", limited(250e3, 1e6), func(p *model.Plan) {
			udp := model.Cell{"protocol": model.Word("udp"), "direction": model.Word("up"),
				"frame_bytes": model.Number(64)}
			paced := maps.Clone(udp)
			paced["rate_pps"] = model.Number(1000)
			p.Factors, p.Design.Cells = nil, []model.Cell{udp,
				{"protocol": model.Word("tcp"), "direction": model.Word("up")}, paced}
		}},
	} {
		p := searchPlan(1, 64)
		if c.change != nil {
			c.change(&p)
		}
		fmt.Fprintf(&out, "%s:\n", c.name)
		done := measured(t, p, c.path, nil, -1)
		for _, r := range done {
			f := r.Flows[0]
			fmt.Fprintf(&out, "\t%s #%d: %.4g s at %.6g pps, lost %.3g\n", r.Cell.Key(), r.Repeat, f.DurationS,
				f.SendPPS, f.LossRatio)
		}
		for _, a := range Answers(p, done, false) {
			fmt.Fprintf(&out,
				"\tanswer: %.6g pps, holds at %.6g, fails at %.6g, limit %d, regular %v, done %v, %d trials\n",
				a.Throughput, a.Lower, a.Upper, a.Limit, a.Regular, a.Done, len(a.Trials))
		}
	}
	golden.File(t, "testdata/searches.txt", out.String())
}

// A trial whose account is wrong is made again as it was ordered.
func TestInvalidTrialMadeAgain(t *testing.T) {
	p := searchPlan(1, 64)
	done := measured(t, p, limited(250e3, 1e6), nil, 2)
	last := &done[len(done)-1]
	last.State, last.Flows[0].DurationS = model.Invalid, 1e9
	if cell, _, more := told(t, p, done).Next(); !more || cell["measure_s"] != last.Cell["measure_s"] {
		t.Errorf("made again: %v, want %v", cell, last.Cell)
	}
}

// Delay that differs from packet to packet is no queue that grows.
func TestJitterIsNoQueue(t *testing.T) {
	f := flowOf(200e3, 200e3)
	f.ReceivePPS = 200e3 * (1 - 0.018) // the last packet came 18 ms late
	f.JitterNS = 4e6                   // of delays that are 12 ms apart at most
	r := model.Result{State: model.Valid, Cell: model.Cell{"rate_pps": model.Number(200e3)},
		Flows: []model.FlowResult{f}}
	if o := observe(&r, false); o.Loss == 0 {
		t.Error("a queue that grew for 18 ms lost nothing")
	}
	r.Flows[0].JitterNS = 6.7e6 // of delays that are 20 ms apart at most
	if o := observe(&r, false); o.Loss != 0 {
		t.Errorf("jitter counts as %v lost", o.Loss)
	}
}

// A flood offers what it sent: what it was late for, below an asked rate, is not lost.
func TestLateFlood(t *testing.T) {
	f := flowOf(200e3, 150e3)
	f.Ledger.Pacing = []model.PacingLine{{Cause: model.PacingLate, Packets: 100e3}}
	r := model.Result{State: model.Invalid, Flows: []model.FlowResult{f}}
	if o := observe(&r, true); o.Load != 200e3 || o.Loss != 0.25 {
		t.Errorf("%+v", o)
	}
}

// A document from outside has no answers if its plan cannot be.
func TestAnswersOfAWrongPlan(t *testing.T) {
	p := searchPlan(1, 64)
	done := measured(t, p, limited(250e3, 1e6), nil, -1)
	p.Design.Search.Goals = nil
	if got := Answers(p, done, true); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestLoadsOfUnequalWays: beside each other, ways with limits of their own are loaded by what each carries alone; ways
// that share a limit by what both carry.
func TestLoadsOfUnequalWays(t *testing.T) {
	for name, c := range map[string]struct {
		up, down, both   float64 // what is carried; both: of each way beside the other, at one rate
		wantUp, wantDown float64
	}{
		"a line of 20 and 50":     {20e3, 50e3, 20e3, 20e3, 50e3},
		"a line of 50 and 20":     {50e3, 20e3, 20e3, 50e3, 20e3},
		"equal ways":              {30e3, 30e3, 30e3, 30e3, 30e3},
		"unequal, one processor":  {20e3, 50e3, 12e3, 12e3, 12e3},
		"equal ways, one channel": {30e3, 30e3, 15e3, 15e3, 15e3},
	} {
		p := searchPlan(1, 64)
		p.Factors[1].Levels = []model.Value{model.Word("up"), model.Word("down"), model.Word("both")}
		p.Design.Search.Loads = []float64{0.5, 1}
		d := told(t, p, nil)
		var full *model.Trial
		for range 500 {
			cell, repeat, more := d.Next()
			if !more {
				break
			}
			limit := map[string]float64{"up": c.up, "down": c.down, "both": c.both}[cell["direction"].Text]
			if cell["direction"].Text == "both" && cell["load_ratio"].Number == 1 {
				trial, err := p.Trial(cell, repeat)
				if err != nil {
					t.Fatal(err)
				}
				full = &trial
			}
			f := limited(limit, 1e6)(cell["rate_pps"].Number)
			if seconds, set := cell["measure_s"]; set {
				f.DurationS = seconds.Number
			}
			d.Add(&model.Result{Cell: cell, Repeat: repeat, State: model.Valid, Flows: []model.FlowResult{f}})
		}
		if full == nil {
			t.Fatalf("%s: no load both ways", name)
		}
		for i, want := range []float64{c.wantUp, c.wantDown} {
			got, _ := full.Flows[i].Rate.PPS(full.Flows[i].PayloadBytes)
			if math.Abs(got-want) > 0.02*want {
				t.Errorf("%s: %s is loaded with %.0f pps; want %.0f", name, full.Flows[i].Name, got, want)
			}
		}
	}
}
