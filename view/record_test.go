package view_test

import (
	"strings"
	"testing"

	"pelt/model"
	"pelt/record"
	"pelt/record/contents"
	"pelt/render"
	"pelt/test/golden"
	"pelt/view"
	"pelt/words"
)

// TestRecord: what a record does not hold is said, and what was not lost has no row.
func TestRecord(t *testing.T) {
	var out strings.Builder
	for _, in := range []words.Language{words.English, words.Chinese} {
		for _, d := range records() {
			if err := render.Text(&out, view.Record(in, d), render.Terminal{Width: 200, All: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden.File(t, "testdata/record.txt", out.String())
}

// records are one that was cut, and a whole one.
func records() []contents.Document {
	all := []contents.Document{
		{Bytes: 9, Fault: &record.CutError{At: 9, Why: "its end is missing"}, Trials: []contents.Trial{
			{Of: []contents.Figures{{Lost: 2, Losses: []model.Span{{From: 1, Count: 2}}}}}}},
		{Bytes: 9, Whole: true,
			Trials: []contents.Trial{{NotKept: true, Of: []contents.Figures{{AttemptedKnown: true}}}}},
	}
	for _, d := range all {
		d.Trials[0].Flows = []record.Flow{{Name: "up", Streams: 1, PayloadBytes: 64}}
	}
	return all
}
