package run

import (
	"testing"

	"pelt/model"
)

// TestTellBusy: that most trials run again because the machine is busy is told, once, and not of some among many.
func TestTellBusy(t *testing.T) {
	starved := model.Result{State: model.Invalid, Why: model.Reasons{{Code: model.SenderStarved}}}
	valid := model.Result{State: model.Valid}
	for what, c := range map[string]struct {
		trials []model.Result
		want   int
	}{
		"most":    {[]model.Result{starved, starved, valid}, 1},
		"a third": {[]model.Result{starved, valid, valid}, 0},
		"others":  {[]model.Result{{State: model.Invalid, Why: model.Reasons{{Code: model.PathGone}}}}, 0},
	} {
		told := 0
		r := &runner{doc: &model.Document{}, Options: Options{Events: func(e Event) {
			if e.Note != nil {
				told++
			}
		}}}
		for range 10 * manyStarved {
			for _, result := range c.trials {
				r.tellBusy(*r.keep(result))
			}
		}
		if told != c.want {
			t.Errorf("%s: told %d times, want %d", what, told, c.want)
		}
	}
}
