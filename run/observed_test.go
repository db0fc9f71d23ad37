package run

import (
	"testing"

	"pelt/fleet"
	"pelt/model"
)

// Nobody watches a trial of TCP: that its hosts were not observed would sound
// as if something had failed.
func TestNothingIsSaidOfHostsThatNobodyWatches(t *testing.T) {
	p := twoEnds()
	for mode, want := range map[model.DropMode]int{"": 0, model.DropsOff: 2} {
		w := p.watch(&fleet.Trial{Number: 1, Drops: mode})
		seen := w.collect(fleet.Outcome{Cut: model.Reason{Code: model.ControlGone}})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var r model.Result
		addObserved(&r, seen.nodes)
		if len(r.Observed) != want {
			t.Errorf("mode %q: %+v; want %d hosts", mode, r.Observed, want)
		}
		for _, o := range r.Observed {
			if len(o.Why) != 1 || o.Why[0].Code != model.TrialCut || o.Why[0].Of[0].Code != model.ControlGone {
				t.Errorf("mode %q: %s is not observed, because %v", mode, o.Node, o.Why)
			}
		}
	}
}
