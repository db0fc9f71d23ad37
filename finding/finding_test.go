package finding

import (
	"slices"
	"testing"

	"pelt/model"
	"pelt/table"
)

// TestOneNumberOfRepeats: a page asks once for more repeats, and for the most that a rule wants.
func TestOneNumberOfRepeats(t *testing.T) {
	wants := func(repeats int) Rule { return func([]table.Row) []Finding { return []Finding{runAgain(repeats)} } }
	found := applied(nil, wants(3), wants(4), wants(2))
	if len(found) != 1 || repeatsOf(found[0]) != 4 {
		t.Errorf("%+v", found)
	}
}

func TestTrialsThatFailed(t *testing.T) {
	at := func(control string, repeat int, state model.State) model.Result {
		return model.Result{Cell: model.Cell{"control": model.Word(control)}, Repeat: repeat, State: state}
	}
	const valid, invalid = model.Valid, model.Invalid
	d := model.Document{Results: []model.Result{
		at("bbr", 0, invalid), at("bbr", 0, valid), at("bbr", 1, invalid), at("bbr", 1, invalid), at("bbr", 1, invalid),
		at("cubic", 0, valid), at("cubic", 0, invalid), at("cubic", 1, model.Aborted),
	}}
	if failed, trials := Failed(&d); failed != 1 || trials != 3 {
		t.Errorf("%d of %d failed, want 1 of 3", failed, trials)
	}
	for _, c := range []struct {
		share  float64
		why    string
		failed int
	}{{1, model.SenderCoreFull, 2}, {1.5, model.SenderCoreFull, 1}, // a sender need not keep more than the path carries
		{1.5, model.HostSlept, 2}} {
		load := d
		load.Results = append(slices.Clone(d.Results), model.Result{Cell: model.Cell{"load_ratio": model.Number(c.share)},
			State: invalid, Why: model.Reasons{{Code: c.why}}})
		if failed, _ := Failed(&load); failed != c.failed {
			t.Errorf("a load of %v, %s: %d failed, want %d", c.share, c.why, failed, c.failed)
		}
	}
}
