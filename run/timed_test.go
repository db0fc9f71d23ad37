package run

import (
	"testing"

	"pelt/model"
)

// TestFailedChangeIsTold: a change that failed is told of a trial in any state, beside what else went wrong.
func TestFailedChangeIsTold(t *testing.T) {
	made := []model.MadeChange{{Words: "rate=1mbit", AtS: 1}, {Words: "rate=2mbit", AtS: 2, Failure: model.Reasons{{Code: model.HostFault, Text: "no such link"}}}}
	for state, want := range map[model.State]model.State{model.Valid: model.Invalid, model.Invalid: model.Invalid,
		model.Aborted: model.Aborted} {
		r := model.Result{State: state}
		if state != model.Valid {
			r.Why = model.Reasons{{Code: model.HostBusy}}
		}
		others := len(r.Why)
		setMade(&r, made)
		if r.State != want || len(r.Why) != others+1 || !r.Why.Has(model.ChangeFailed) || len(r.Made) != 2 {
			t.Errorf("a %s trial became %s: %v", state, r.State, r.Why)
		}
	}
}
