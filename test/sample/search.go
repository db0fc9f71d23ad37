package sample

import (
	"math"

	"pelt/design"
	"pelt/model"
	"pelt/unit"
)

// Search is a search for the rates without loss and with 0.5 % loss through a router whose ring overflows from 250 kpps
// of small packets on, and which carries 340 kpps when it is flooded. A link of 1 Gbit/s is the limit of large ones.
func Search() model.Document {
	d := Base("192.168.2.5", []int{18, 466, 1472}, 1, 1)
	quick, _ := model.NamedGoal("quick")
	lossy := quick
	lossy.LossRatio = 0.005
	d.Plan.Command, d.Plan.Timing.WarmupSeconds = "ndr", 0.1
	d.Plan.Design.Search = &model.Search{Goals: []model.Goal{quick, lossy}, MinPPS: 1000}
	return searched(d, throughRing)
}

func throughRing(t model.Trial) model.FlowResult {
	f := t.Flows[0]
	sent, paced := f.Rate.PPS(f.PayloadBytes)
	if !paced {
		sent = 1.1e6
	}
	link := 1e9 / 8 / float64(model.FrameBytes(model.UDP, 4, f.PayloadBytes)+20)
	ring := math.Min(sent, 250e3) + math.Max(0, math.Min(sent, 500e3)-250e3)*0.36
	carried, seconds := math.Min(ring, link), t.Timing.MeasureSeconds
	r := UDP("up", f.PayloadBytes, sent, carried, seconds, 80e3)
	Line(&r, model.LayerNetwork, "wire", model.CauseElimination, 1, "inferred")
	return r
}

func searched(d model.Document, carry func(model.Trial) model.FlowResult) model.Document {
	return Searched(d, func(t model.Trial, r *model.Result) { r.Flows = []model.FlowResult{carry(t)} })
}

// Searched runs the plan of a document on a path that does as carry says.
func Searched(d model.Document, carry func(model.Trial, *model.Result)) model.Document {
	choose, err := design.New(d.Plan)
	if err != nil {
		panic(err)
	}
	for {
		cell, repeat, more := choose.Next()
		if !more {
			return d
		}
		t, err := d.Plan.Trial(cell, repeat)
		if err != nil {
			panic(err)
		}
		r := Result(t.Flows[0].PayloadBytes, repeat)
		r.Cell = cell
		carry(t, &r)
		d.Results = append(d.Results, r)
		choose.Add(&r)
	}
}

// Drift is three searches of a rate on a path that carries more and less by turns.
func Drift() model.Document {
	trials := 0.0
	return ThreeSearches(func(int, float64) float64 {
		trials++
		return 250e3 * (1 + 0.04*math.Sin(trials/15))
	})
}

// Differ is three searches of a rate. Before the last of them the path begins to lose 1 % of all packets.
func Differ() model.Document {
	return ThreeSearches(func(search int, sent float64) float64 {
		if search == 3 {
			sent *= 0.99
		}
		return min(sent, 250e3)
	})
}

// ThreeSearches is a run of three searches of a rate, on a path that carries so many packets a second of those sent in
// a trial of that search, 0 in the flood.
func ThreeSearches(carries func(search int, sent float64) float64) model.Document {
	d := Search()
	d.Results, d.Plan.Factors = []model.Result{}, []model.Factor{{Knob: "payload_bytes",
		Levels: []model.Value{model.Number(18)}}}
	d.Plan.Design.Search.Goals, d.Plan.Design.Search.Searches = d.Plan.Design.Search.Goals[:1], 3
	return searched(d, func(t model.Trial) model.FlowResult {
		f := t.Flows[0]
		sent, paced := f.Rate.PPS(f.PayloadBytes)
		if !paced {
			sent = 1.1e6
		}
		carried := min(sent, carries(int(t.Cell["search"].Number), sent))
		r := UDP("up", f.PayloadBytes, sent, carried, t.Timing.MeasureSeconds, 80e3)
		Line(&r, model.LayerNetwork, "wire", model.CauseElimination, 1, "inferred")
		return r
	})
}

// RandomLoss is a search where 0.1 % is lost at every rate.
func RandomLoss() model.Document {
	d := Search()
	d.Results, d.Plan.Factors = []model.Result{}, []model.Factor{{Knob: "payload_bytes",
		Levels: []model.Value{model.Number(466)}}}
	d.Plan.Design.Search.Goals = d.Plan.Design.Search.Goals[:1]
	return searched(d, func(t model.Trial) model.FlowResult {
		f := t.Flows[0]
		sent, paced := f.Rate.PPS(f.PayloadBytes)
		if !paced {
			sent = unit.MaxPacketsPerSecond / 1000
		}
		return UDP("up", f.PayloadBytes, sent, math.Min(sent*0.999, 200e3), t.Timing.MeasureSeconds, 80e3)
	})
}
