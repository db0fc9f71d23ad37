package view_test

import (
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/record"
	"pelt/record/stats"
	"pelt/render"
	"pelt/view"
)

// TestRecord: what a record does not hold is said, and what was not lost has no row.
func TestRecord(t *testing.T) {
	flow := record.Flow{Name: "up", Streams: 1, PayloadBytes: 64}
	for name, c := range map[string]struct {
		of    stats.Figures
		void  string
		whole bool
		want  []string
	}{
		"cut": {stats.Figures{Lost: 2, Losses: []stats.Run{{From: 1, Count: 2}}, Runs: []stats.Length{{UpTo: 4, Runs: 1}}},
			"", false, []string{"not kept: cut at byte 9", "cut\n", "2 (at least)", "two     missing: it was cut", "3 to 4               1"}},
		"not kept": {stats.Figures{AttemptedKnown: true, Own: &record.ClosedFlow{}}, "again", true,
			[]string{"not kept: whole, 9 B", "not kept\n", "the same"}},
		"more losses than are listed": {stats.Figures{LossRuns: 3, Unlisted: 70, Own: &record.ClosedFlow{}, Differs: []string{"late"}},
			"", true, []string{"3 (and others, of 70 packets)", "differ in late"}},
		"gaps that are none": {stats.Figures{ReceiveGap: &model.Percentiles{Count: 2, Out: 1}}, "", true,
			[]string{"receive gap", "Below 0 or above 60 s"}},
	} {
		d := stats.Document{Whole: c.whole, Bytes: 9, Trials: []stats.Trial{{Void: c.void, Of: []stats.Figures{c.of}}}}
		d.Trials[0].Flows = []record.Flow{flow}
		if !c.whole {
			d.Cut = "cut at byte 9: its end is missing"
		}
		var b strings.Builder
		for _, figures := range []bool{false, true} {
			if err := render.Text(&b, view.Record(d, figures), render.Terminal{Width: 200, All: true}); err != nil {
				t.Fatal(err)
			}
		}
		if i := slices.IndexFunc(c.want, func(w string) bool { return !strings.Contains(b.String(), w) }); i >= 0 {
			t.Errorf("%s: no %q in:\n%s", name, c.want[i], b.String())
		}
	}
}
