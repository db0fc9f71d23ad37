package finding

import (
	"maps"
	"slices"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
	"pelt/unit"
)

func latencyExamples(*testing.T) []example {
	of := func(way string, share float64) func(r *model.Result) bool {
		return func(r *model.Result) bool {
			return r.Cell["direction"].Text == way && r.Cell["load_ratio"].Number == share
		}
	}
	without := func(d *model.Document, gone func(r *model.Result) bool) {
		d.Results = only(d.Results, func(r model.Result) bool { return !gone(&r) })
	}
	add := func(d *model.Document, way string, share, ms float64) {
		for i := range d.Results {
			if r := &d.Results[i]; of(way, share)(r) {
				trip := *r.Flows[0].RoundTrip
				trip.P50 = r.Flows[0].Probe.IdleNS + ms*1e6
				r.Flows[0].RoundTrip = &trip
			}
		}
	}
	docs := map[string]*model.Document{}
	for name, edit := range map[string]func(d *model.Document){
		"the worse of both directions": func(*model.Document) {},
		"a load that a sender could not send": func(d *model.Document) {
			for i := range d.Results {
				if of("up", 1.5)(&d.Results[i]) {
					d.Results[i].State = model.Invalid
				}
			}
		},
		"loads that no sender kept": highest(func(_ *model.Document, r *model.Result) {
			r.State, r.Why = model.Invalid, model.Reasons{{Code: model.SenderCoreFull}}
		}),
		"loads above the asked rate": highest(func(d *model.Document, r *model.Result) {
			r.State, d.Plan.Flows[0].Rate = model.Aborted, unit.PacketRate(2000)
		}),
		"one direction": func(d *model.Document) {
			without(d, func(r *model.Result) bool { return r.Cell["direction"].Text != "down" })
		},
		"both ways only": func(d *model.Document) {
			without(d, func(r *model.Result) bool { return r.Cell["direction"].Text != "both" })
		},
		"nothing added": func(d *model.Document) {
			for _, way := range []string{"up", "down", "both"} {
				add(d, way, 1, 1)
				add(d, way, 1.5, 4.9)
			}
		},
		"no load filled a queue": func(d *model.Document) {
			for i := range d.Results {
				for j := range d.Results[i].Flows {
					d.Results[i].Flows[j].Lost, d.Results[i].Flows[j].LossRatio = 0, 0
				}
			}
			for _, way := range []string{"up", "down", "both"} {
				for _, share := range []float64{0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.5} {
					add(d, way, share, 0.9)
				}
			}
		},
		"no whole load": func(d *model.Document) {
			without(d, func(r *model.Result) bool { return r.Cell["load_ratio"].Number >= 1 })
		},
		"the limits of a grade": func(d *model.Document) { add(d, "up", 1.5, 468); add(d, "down", 1.5, 332) },
		"no idle trials": func(d *model.Document) {
			without(d, func(r *model.Result) bool { return r.Cell["load_ratio"].Number == 0 })
		},
		"no load": func(d *model.Document) {
			for i := range d.Results {
				delete(d.Results[i].Cell, "load_ratio")
			}
		},
		"no probe": func(d *model.Document) {
			for i := range d.Results {
				for j := range d.Results[i].Flows {
					d.Results[i].Flows[j].Probe, d.Results[i].Flows[j].RoundTrip = nil, nil
				}
			}
		},
		"busy before the load": func(d *model.Document) { // so that it hides what the load adds
			for i := range d.Results {
				if of("down", 1.5)(&d.Results[i]) {
					probe := *d.Results[i].Flows[0].Probe
					probe.IdleNS = 60e6
					d.Results[i].Flows[0].Probe = &probe
				}
			}
		},
	} {
		d := sample.Latency()
		edit(&d)
		docs[name] = &d
	}
	return examplesOf(docs, Latency, LeftOut)
}

// highest changes the trials of the highest load of one direction.
func highest(change func(d *model.Document, r *model.Result)) func(*model.Document) {
	return func(d *model.Document) {
		for i := range d.Results {
			if r := &d.Results[i]; r.Cell["load_ratio"].Number > 1 && r.Cell["direction"].Text != "both" {
				change(d, r)
			}
		}
	}
}

// Loads of two runs are compared by their shares of the rates that the runs found.
func TestCompareLoads(t *testing.T) {
	a, b := sample.Latency(), sample.Latency()
	b.ID = "b"
	for i, d := range []*model.Document{&a, &b} {
		for _, r := range slices.Clone(d.Results) {
			for repeat := range 3 {
				again := r
				again.Cell, again.Repeat, again.Flows = maps.Clone(r.Cell), repeat, slices.Clone(r.Flows)
				again.Cell["rate_pps"] = model.Number(r.Cell["rate_pps"].Number * (1 + float64(i)))
				for j := range again.Flows {
					trip := *again.Flows[j].RoundTrip
					trip.P50 *= (1 + float64(i)) * (1 + 0.001*float64(repeat))
					again.Flows[j].RoundTrip = &trip
				}
				d.Results = append(d.Results, again)
			}
		}
		d.Results = d.Results[len(d.Results)/4:]
	}
	c, err := Compare(Question{Docs: []*model.Document{&a, &b},
		Metrics: []*table.Metric{table.MetricOf("round_trip_p50_ns")}})
	if err != nil {
		t.Fatal(err)
	}
	// both has two flows
	if n := len(c.Conditions); n != 4*8 || len(c.Effects) != n || c.Effects[0].Verdict != table.WorseThan {
		t.Errorf("%d places, %d effects: want each flow at each load", n, len(c.Effects))
	}
}
