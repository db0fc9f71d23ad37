package view_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/test/sample"
	"pelt/view"
)

// TestControlPage: whatever part of a run there is, its tiles have the figures of its
// tables, its short form is short, and no slot of a sentence is empty.
func TestControlPage(t *testing.T) {
	docs := []model.Document{sample.Controls(), sample.ControlMix(), sample.ControlHostile()}
	rapid.Check(t, func(r *rapid.T) {
		d := docs[rapid.IntRange(0, len(docs)-1).Draw(r, "doc")]
		repeats := rapid.IntRange(1, 6).Draw(r, "repeats")
		loss := rapid.SampledFrom([]float64{0, 0.01, 0.1}).Draw(r, "loss")
		invalid, one := rapid.IntRange(0, 20).Draw(r, "invalid"), rapid.Bool().Draw(r, "one control")
		d.Results = slices.DeleteFunc(slices.Clone(d.Results), func(x model.Result) bool {
			return x.Repeat >= repeats || x.Cell["link.loss_ratio"].Number > loss || one && x.Cell["control"].Text != "bbr"
		})
		for i := range d.Results {
			if i < invalid {
				d.Results[i].State = model.Invalid
			}
		}
		page := view.Run(&d)
		short, whole := text(t, page, false), text(t, page, true)
		if n := strings.Count(short, "\n"); n > 12 {
			r.Fatalf("%d lines:\n%s", n, short)
		}
		for _, bad := range []string{"<no ", "NaN", "Inf", "()", " ,"} {
			if strings.Contains(whole, bad) {
				r.Fatalf("%q in\n%s", bad, whole)
			}
		}
		if page.Verdict == "" || len(page.Next) == 0 {
			r.Fatalf("no verdict, or nothing to do next:\n%s", whole)
		}
		for _, s := range page.Sections {
			tiles, ok := s.(view.Tiles)
			if !ok {
				continue
			}
			for i, tile := range tiles[:3] {
				if shown := strings.Count(whole, tile.Value); tile.Value != "" && shown < 2 {
					r.Fatalf("tile %d: %q is in no table:\n%s", i, tile.Value, whole)
				}
			}
		}
	})
}
