package run

import (
	"testing"

	"pelt/fleet"
	"pelt/model"
)

// TestUnwatchedHosts: of a trial that was cut, each host says why its drops were not watched.
func TestUnwatchedHosts(t *testing.T) {
	w := twoEnds().watch(&fleet.Trial{Number: 1, Drops: model.DropsOff})
	seen := w.collect(fleet.Outcome{Cut: model.Reason{Code: model.ControlGone}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var r model.Result
	addObserved(&r, seen.nodes)
	if len(r.Observed) != 2 {
		t.Errorf("%+v; want 2 hosts", r.Observed)
	}
	for _, o := range r.Observed {
		if len(o.Why) != 1 || o.Why[0].Code != model.TrialCut || o.Why[0].Of[0].Code != model.ControlGone {
			t.Errorf("%s is not observed, because %v", o.Node, o.Why)
		}
	}
}
