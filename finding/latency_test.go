package finding

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
	"pelt/unit"
)

func TestLatency(t *testing.T) {
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
	for name, c := range map[string]struct {
		edit  func(d *model.Document)
		words []string // of the answers
	}{
		"the mean of both directions": {nil, []string{"Grade C (DSLReports scale, by the mean of up and down): a load of 150 % of the loss-free rate adds",
			"adds 200 ms up and 32.0 ms down to the round trip of 18.4 ms", "from 100 % of the loss-free rate on (1.64 kpps, up): 22.0 ms more"}},
		"a load that a sender could not send": {func(d *model.Document) {
			for i := range d.Results {
				if of("up", 1.5)(&d.Results[i]) {
					d.Results[i].State = model.Invalid
				}
			}
		}, []string{"Grade A (", "a load adds 22.0 ms up and 32.0 ms down"}},
		"one direction": {func(d *model.Document) {
			without(d, func(r *model.Result) bool { return r.Cell["direction"].Text != "down" })
		}, []string{"Grade B (DSLReports scale): a load down of 150 %", "32.0 ms to the round trip of 18.4 ms. Delay rises from 150 %"}},
		"both ways only": {func(d *model.Document) {
			without(d, func(r *model.Result) bool { return r.Cell["direction"].Text != "both" })
		}, []string{"Grade D (DSLReports scale): a load both ways", "to the round trip of 18.4 ms. Delay", "(1.64 kpps, both ways)"}},
		"nothing added": {func(d *model.Document) {
			for _, way := range []string{"up", "down", "both"} {
				add(d, way, 1, 1)
				add(d, way, 1.5, 4.9)
			}
		}, []string{"Grade A+ (", "No load makes the delay rise."}},
		"no whole load": {func(d *model.Document) {
			without(d, func(r *model.Result) bool { return r.Cell["load_ratio"].Number >= 1 })
		}, []string{"No grade, because no load of the whole loss-free rate ran as ordered: a load of 90 % of the loss-free rate adds 0 s up and 0 s down to the round trip of 18.4 ms."}},
		"the limits of a grade": {func(d *model.Document) { add(d, "up", 1.5, 468); add(d, "down", 1.5, 332) },
			[]string{"Grade F (", "adds 468 ms up and 332 ms down"}},
		"no idle trials": {func(d *model.Document) {
			without(d, func(r *model.Result) bool { return r.Cell["load_ratio"].Number == 0 })
		}, []string{"down to the round trip. Delay"}},
		"no load": {func(d *model.Document) {
			for i := range d.Results {
				delete(d.Results[i].Cell, "load_ratio")
			}
		}, []string{"No rate without loss was found"}},
		"no probe": {func(d *model.Document) {
			for i := range d.Results {
				for j := range d.Results[i].Flows {
					d.Results[i].Flows[j].Probe, d.Results[i].Flows[j].RoundTrip = nil, nil
				}
			}
		}, []string{"The thin flow was not timed"}},
	} {
		d := sample.Latency()
		if c.edit != nil {
			c.edit(&d)
		}
		var answers []string
		for _, f := range Of(All(table.Rows(&d), Latency), Answer) {
			answers = append(answers, f.Text())
		}
		text := strings.Join(answers, " ")
		for _, w := range c.words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q lacks %q", name, text, w)
			}
		}
	}
}

// A round trip that was long before the load began hides what the load adds.
func TestBusyBeforeTheLoad(t *testing.T) {
	d := sample.Latency()
	said := func() (all []string) {
		for _, f := range Of(Latency(table.Rows(&d)), Doubt) {
			all = append(all, f.Text())
		}
		return all
	}
	const want = "Before the load of 150 % down the round trip was already 60.0 ms, not 18.4 ms: "
	if all := said(); strings.Contains(strings.Join(all, " "), "already") {
		t.Errorf("without a cause: %q", all)
	}
	for i := range d.Results {
		if c := d.Results[i].Cell; c["direction"].Text == "down" && c["load_ratio"].Number == 1.5 {
			probe := *d.Results[i].Flows[0].Probe
			probe.IdleNS = 60e6
			d.Results[i].Flows[0].Probe = &probe
		}
	}
	if all := said(); !strings.Contains(strings.Join(all, " "), want) {
		t.Errorf("%q lacks %q", all, want)
	}
}

// Where the sender, or the plan, has no load above the rate that was found, no queue need be full.
func TestHighestLoadNotSent(t *testing.T) {
	for want, change := range map[string]func(d *model.Document, r *model.Result){
		"": func(*model.Document, *model.Result) {},
		"The sender does not keep 150 % of the loss-free rate, so it cannot fill a queue on this path.": func(_ *model.Document, r *model.Result) {
			r.State, r.Why = model.Invalid, model.Reasons{{Code: model.SenderCoreFull}}
		},
		"150 % of the loss-free rate is more than --rate allows, so no queue on the path need have been full.": func(d *model.Document, r *model.Result) {
			r.State, d.Plan.Flows[0].Rate = model.Aborted, unit.PacketRate(9000)
		},
	} {
		d := sample.Latency()
		for i := range d.Results {
			if r := &d.Results[i]; r.Cell["load_ratio"].Number > 1 && r.Cell["direction"].Text != "both" {
				change(&d, r)
			}
		}
		said := ""
		for _, f := range Of(All(table.Rows(&d), Latency, LeftOut), Doubt) {
			if f.Code == "latency.unkept" || f.Code == "latency.asked" || strings.HasPrefix(want, "The") && f.Code == "trials.left" {
				said += f.Text()
			}
		}
		if said != want {
			t.Errorf("said %q, want %q", said, want)
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
	c, err := Compare(Question{Docs: []*model.Document{&a, &b}, Metrics: []*table.Metric{table.MetricOf("round_trip_p50_ns")}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Places); n != 4*8 || len(c.Effects) != n || c.Effects[0].Verdict != table.WorseThan { // both has two flows
		t.Errorf("%d places, %d effects: want each flow at each load", n, len(c.Effects))
	}
}
