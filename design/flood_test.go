package design

import (
	"testing"

	"pelt/model"
)

// TestFlood: the valid flood of a search comes first, then an invalid one, for that shows what the sender offers.
func TestFlood(t *testing.T) {
	cell := model.Cell{"payload_bytes": model.Number(64)}
	flood := func(state model.State, repeat int, sent uint64) model.Result {
		return model.Result{Cell: cell, Repeat: repeat, State: state, Flows: []model.FlowResult{{Attempted: sent}}}
	}
	for name, c := range map[string]struct {
		done []model.Result
		want int // place; -1 for none
	}{
		"none":             {nil, -1},
		"cut":              {[]model.Result{flood(model.Aborted, 0, 9)}, -1},
		"nothing was sent": {[]model.Result{flood(model.Invalid, 0, 0)}, -1},
		"of another cell": {[]model.Result{{Cell: model.Cell{}, State: model.Valid,
			Flows: []model.FlowResult{{Attempted: 9}}}}, -1},
		"invalid":             {[]model.Result{flood(model.Invalid, 0, 9), flood(model.Invalid, 0, 9)}, 0},
		"valid after invalid": {[]model.Result{flood(model.Invalid, 0, 9), flood(model.Valid, 0, 9)}, 1},
		"of its own repeat": {[]model.Result{flood(model.Valid, 0, 9), flood(model.Valid, 1, 9),
			flood(model.Valid, 2, 9)}, 1},
	} {
		s := told(t, searchPlan(3, 64), c.done).(*search)
		got := floodOf(s.floods[cell.Key()], 2)
		if c.want < 0 && got != nil || c.want >= 0 && got != &c.done[c.want] {
			t.Errorf("%s: flood %+v", name, got)
		}
	}
}
