package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/test/golden"
	"pelt/test/sample"
	"pelt/unit"
)

// TestLines: the line of each trial of a search, which says what the search knew of its rate by then, stands in the
// golden file, with those of odd trials and of targets.
func TestLines(t *testing.T) {
	var out strings.Builder
	d := sample.Search()
	all := d.Results
	for i := range all {
		d.Results = all[:i+1]
		fmt.Fprintln(&out, TrialLine(&d, &all[i]))
	}
	one := all[len(all)-1]
	one.State, one.Why = model.Invalid, model.Reasons{{Code: model.SenderLate,
		Numbers: map[string]float64{"kept_pps": 82.1e3, "asked_pps": 90e3}}}
	d.Results = append(slices.Clone(all[:len(all)-1]), one)
	fmt.Fprintln(&out, "An invalid trial:", TrialLine(&d, &one))

	// A receiver that was never heard lost nothing that anybody knows of.
	one = model.Result{State: model.Aborted, Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP,
		PayloadBytes: 64, Unheard: &model.Unheard{Packets: 6000}}}}
	d = model.Document{Plan: model.Plan{Command: "soak"}, Results: []model.Result{one}}
	fmt.Fprintln(&out, "Not heard:", TrialLine(&d, &one), finding.OfRun(&d)[0].Text())

	// A name may stand for several addresses: the one that was used is said.
	receiver := model.Host{Node: model.Receiver, Address: "fd00::7"}
	d.Host = []model.Host{{Node: model.Sender, Address: "fd00::1"}, receiver}
	for _, d.Plan.Target = range []string{"nas", "nas:7400", "fd00::7", "[fd00::7]:80", "10.0.0.1:80", "lab:nat",
		"fleet:", "fleet:a..b"} {
		fmt.Fprintf(&out, "%s: %s\n", d.Plan.Target, TargetOf(&d))
	}
	receiver.OtherAddresses = []string{"10.0.0.7"}
	d.Plan.Target, d.Host = "nas", []model.Host{receiver}
	fmt.Fprintln(&out, "nas of two addresses:", TargetOf(&d))
	mesh := sample.Mesh()
	fmt.Fprintln(&out, "A pair of a mesh:", TrialLine(&mesh, &mesh.Results[0]))
	golden.File(t, "testdata/lines.txt", out.String())
}

// TestPagesAreOfKinds: a page of a kind that there is not would never be shown.
func TestPagesAreOfKinds(t *testing.T) {
	for command := range ownPages() {
		if !slices.ContainsFunc(finding.Kinds(), func(k finding.Kind) bool { return k.Command == command }) {
			t.Errorf("no kind of test is called %q, which has a page", command)
		}
	}
}

// TestGaugesHaveBaseUnits: a duration is in seconds, as its name says, all else in the unit of its metric.
func TestGaugesHaveBaseUnits(t *testing.T) {
	for _, g := range measuredGauges {
		scale := map[bool]float64{false: 1, true: 1e-9}[strings.HasSuffix(g.name, "_seconds")]
		if m := table.MetricOf(g.metric); g.scale != scale || (m.Unit == unit.Nanos) != (scale != 1) {
			t.Errorf("%s is %g times %s, in %s", g.name, g.scale, m.Name, m.Unit)
		}
	}
}
