package finding

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
	"pelt/test/sample"
	"pelt/unit"
)

// TestLatencyFindings: testdata has what is told of each example, a line a finding: its code, sentence and command.
func TestLatencyFindings(t *testing.T) {
	of := func(way string, share float64) func(r *model.Result) bool {
		return func(r *model.Result) bool {
			return r.Cell["direction"].Text == way && r.Cell["load_ratio"].Number == share
		}
	}
	without := func(d *model.Document, gone func(r *model.Result) bool) {
		d.Results = slices.DeleteFunc(d.Results, func(r model.Result) bool { return gone(&r) })
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
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		fmt.Fprintf(&out, "%s:\n", name)
		for _, f := range OfRun(docs[name]) {
			if f.Level != SetUp {
				fmt.Fprintf(&out, "\t%s: %s\n", f.Code, strings.TrimSpace(f.Text()+" "+f.Command()))
			}
		}
	}
	golden.File(t, "testdata/latency-findings.txt", out.String())
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
