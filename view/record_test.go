package view_test

import (
	"strings"
	"testing"

	"pelt/record"
	"pelt/record/contents"
	"pelt/render"
	"pelt/test/golden"
	"pelt/view"
)

// TestRecord: what a record does not hold is said, and what was not lost has no row.
func TestRecord(t *testing.T) {
	var out strings.Builder
	for _, d := range []contents.Document{
		{Bytes: 9, Cut: "cut at byte 9: its end is missing", Trials: []contents.Trial{
			{Of: []contents.Figures{{Lost: 2, Losses: []contents.Run{{From: 1, Count: 2}}}}}}},
		{Bytes: 9, Whole: true,
			Trials: []contents.Trial{{NotKept: true, Of: []contents.Figures{{AttemptedKnown: true}}}}},
	} {
		d.Trials[0].Flows = []record.Flow{{Name: "up", Streams: 1, PayloadBytes: 64}}
		if err := render.Text(&out, view.Record(d), render.Terminal{Width: 200, All: true}); err != nil {
			t.Fatal(err)
		}
	}
	golden.File(t, "testdata/record.txt", out.String())
}
