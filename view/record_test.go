package view_test

import (
	"slices"
	"strings"
	"testing"

	"pelt/record"
	"pelt/record/contents"
	"pelt/render"
	"pelt/view"
)

// TestRecord: what a record does not hold is said, and what was not lost has no row.
func TestRecord(t *testing.T) {
	flow := record.Flow{Name: "up", Streams: 1, PayloadBytes: 64}
	for name, c := range map[string]struct {
		of    contents.Figures
		void  string
		whole bool
		want  []string
	}{
		"cut": {contents.Figures{Lost: 2, Losses: []contents.Run{{From: 1, Count: 2}}}, "", false,
			[]string{"not kept: cut at byte 9", "2 (at least)", "cut\n", "0           0  1  "}},
		"not kept": {contents.Figures{AttemptedKnown: true}, "again", true,
			[]string{"not kept: whole, 9 B", "not kept\n"}},
	} {
		d := contents.Document{Whole: c.whole, Bytes: 9,
			Trials: []contents.Trial{{Void: c.void, Of: []contents.Figures{c.of}}}}
		d.Trials[0].Flows = []record.Flow{flow}
		if !c.whole {
			d.Cut = "cut at byte 9: its end is missing"
		}
		var b strings.Builder
		if err := render.Text(&b, view.Record(d), render.Terminal{Width: 200, All: true}); err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(c.want, func(w string) bool { return !strings.Contains(b.String(), w) }); i >= 0 {
			t.Errorf("%s: no %q in:\n%s", name, c.want[i], b.String())
		}
	}
}
