package sample

import (
	"time"

	"pelt/model"
)

// Latency is a home's line of 20 Mbit/s up, with a queue of 200 ms, and of 100 Mbit/s down, with one of 30 ms.
func Latency() model.Document {
	d := Base("198.51.100.7", []int{1472}, 1, 2)
	d.Plan.Command = "latency"
	d.Plan.Flows = append(d.Plan.Flows, model.Flow{Name: "down", Protocol: model.UDP, From: model.Receiver,
		To:           model.Sender,
		PayloadBytes: 1472, Streams: 1})
	d.Plan.Factors = []model.Factor{{Knob: "direction",
		Levels: []model.Value{model.Word("up"), model.Word("down"), model.Word("both")}}}
	goal, _ := model.NamedGoal("quick")
	shares := []float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.5}
	d.Plan.Design.Search = &model.Search{Goals: []model.Goal{goal}, MinPPS: 1000, Loads: shares}
	free := map[string]float64{"up": 1640, "down": 8210}
	for i, way := range []string{"up", "down", "both"} {
		for j, share := range shares {
			pps := max(share*free[way], model.IdlePPS)
			if way == "both" {
				pps = max(share*free["up"], model.IdlePPS)
			}
			added := map[string]float64{} // ns
			if share > 1 {
				added = map[string]float64{"up": 200e6, "down": 30e6}
			} else if share == 1 {
				added = map[string]float64{"up": 22e6, "down": 3e6}
			}
			var flows []model.FlowResult
			for _, name := range []string{"up", "down"} {
				if way != "both" && way != name || way == "both" && name == "down" && share > 1 {
					added[name] *= 0.01
				}
				if way == "both" || way == name {
					f := UDP(name, 1472, pps, free[name]*1.02, 2, 0)
					if f.Lost > 0 {
						Line(&f, model.LayerNetwork, "", model.CauseElimination, 1, "inferred")
					}
					flows = append(flows, f)
				}
			}
			for k := range flows {
				flows[k].RoundTrip = quantilesFrom(18.4e6+added["up"]+added["down"], 0.4e6)
				flows[k].Probe = &model.ProbeFacts{Sent: 200, Answered: 200, IdleNS: 18.4e6, JitterNS: 0.31e6,
					Up: quantilesFrom(added["up"], 0.2e6), Down: quantilesFrom(added["down"], 0.1e6)}
				if share > 1 {
					flows[k].Probe.Answered = 137
				}
			}
			r := Result(1472, 0, flows...)
			r.Started = start().Add(time.Duration(i*len(shares)+j) * 4 * time.Second)
			r.Cell = model.Cell{"direction": model.Word(way), "payload_bytes": model.Number(1472),
				"load_ratio": model.Number(share), "rate_pps": model.Number(pps)}
			d.Results = append(d.Results, r)
		}
	}
	return d
}

// quantilesFrom is a distribution around a median, whose tail is some times as wide as spread.
func quantilesFrom(mid, spread float64) *model.Percentiles {
	return &model.Percentiles{Count: 200, Min: max(0, mid-spread), P50: mid, P90: mid + spread, P95: mid + 1.4*spread,
		P99: mid + 3*spread, P999: mid + 5*spread, Max: mid + 5*spread, Mean: mid + spread/2}
}
