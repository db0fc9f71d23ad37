package sample

import (
	"math"
	"slices"

	"pelt/design"
	"pelt/model"
	"pelt/unit"
)

// Search is a search for the rates without loss and with 0.5 % loss through a router whose ring overflows from 250 kpps
// of small packets on, and which carries 340 kpps when it is flooded. A link of 1 Gbit/s is the limit of large ones.
func Search() model.Document {
	d := base("192.168.2.5", []int{18, 466, 1472}, 1, 1)
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
	r := udp("up", f.PayloadBytes, sent, carried, seconds, 80e3)
	line(&r, model.LayerNetwork, "wire", model.CauseElimination, 1, "inferred")
	return r
}

// searched runs the plan of a document on a path that does as carry says.
func searched(d model.Document, carry func(model.Trial) model.FlowResult) model.Document {
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
		r := result(t.Flows[0].PayloadBytes, repeat, carry(t))
		r.Cell, r.Series = cell, slices.DeleteFunc(r.Series, func(model.Series) bool { return true })
		d.Results = append(d.Results, r)
		choose.Add(&r)
	}
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
		return udp("up", f.PayloadBytes, sent, math.Min(sent*0.999, 200e3), t.Timing.MeasureSeconds, 80e3)
	})
}
