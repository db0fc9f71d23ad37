package finding

import (
	"slices"
	"testing"

	"pelt/model"
	"pelt/test/sample"
	"pelt/unit"
)

// latencyExamples are runs whose trials are changed, or gone.
func latencyExamples(*testing.T) (out []example) {
	way := func(r *model.Result) string { return r.Cell["direction"].Text }
	share := func(r *model.Result) float64 { return r.Cell["load_ratio"].Number }
	add := func(r *model.Result, ms float64) {
		trip := *r.Flows[0].RoundTrip
		trip.P50 = r.Flows[0].Probe.IdleNS + ms*1e6
		r.Flows[0].RoundTrip = &trip
	}
	for _, c := range []struct {
		name string
		rate uint64 // packets a second that the plan allows at most; 0: any
		edit func(r *model.Result) (gone bool)
	}{
		{"a load that a sender could not send", 0, func(r *model.Result) bool {
			if way(r) == "up" && share(r) == 1.5 {
				r.State = model.Invalid
			}
			return false
		}},
		{"loads that no sender kept", 0, func(r *model.Result) bool {
			if way(r) != "both" && share(r) > 1 {
				r.State, r.Why = model.Invalid, model.Reasons{{Code: model.SenderCoreFull}}
			}
			return false
		}},
		{"loads above the asked rate", 2000, func(r *model.Result) bool {
			if way(r) != "both" && share(r) > 1 {
				r.State = model.Aborted
			}
			return false
		}},
		{"one direction", 0, func(r *model.Result) bool { return way(r) != "down" }},
		{"both ways only", 0, func(r *model.Result) bool { return way(r) != "both" }},
		{"nothing added", 0, func(r *model.Result) bool {
			if added := map[float64]float64{1: 1, 1.5: 4.9}[share(r)]; added > 0 {
				add(r, added)
			}
			return false
		}},
		{"no load filled a queue", 0, func(r *model.Result) bool {
			for j := range r.Flows {
				r.Flows[j].Lost, r.Flows[j].LossRatio = 0, 0
			}
			if share(r) > 0 {
				add(r, 0.9)
			}
			return false
		}},
		{"no whole load", 0, func(r *model.Result) bool { return share(r) >= 1 }},
		{"the limits of a grade", 0, func(r *model.Result) bool {
			if added := map[string]float64{"up": 468, "down": 332}[way(r)]; added > 0 && share(r) == 1.5 {
				add(r, added)
			}
			return false
		}},
		{"no idle trials", 0, func(r *model.Result) bool { return share(r) == 0 }},
		{"no load", 0, func(r *model.Result) bool { delete(r.Cell, "load_ratio"); return false }},
		{"no probe", 0, func(r *model.Result) bool {
			for j := range r.Flows {
				r.Flows[j].Probe, r.Flows[j].RoundTrip = nil, nil
			}
			return false
		}},
		{"busy before the load", 0, func(r *model.Result) bool { // so that it hides what the load adds
			if way(r) == "down" && share(r) == 1.5 {
				probe := *r.Flows[0].Probe
				probe.IdleNS, r.Flows[0].Probe = 60e6, &probe
			}
			return false
		}},
	} {
		d, kept := sample.Latency(), []model.Result(nil)
		for i := range d.Results {
			if r := &d.Results[i]; !c.edit(r) {
				kept = append(kept, *r)
			}
		}
		if d.Results = kept; c.rate > 0 {
			d.Plan.Flows[0].Rate = unit.PacketRate(c.rate)
		}
		told := slices.DeleteFunc(OfRun(&d), func(f Finding) bool { return f.Level == SetUp })
		out = append(out, example{c.name, told})
	}
	return out
}
