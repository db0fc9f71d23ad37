package view_test

import (
	"slices"
	"testing"

	"pelt/model"
	"pelt/test/sample"
	"pelt/view"
)

// TestRouterPage: the short form fits, the tiles show what the table shows, and a bench that
// was cut down to anything still has a page.
func TestRouterPage(t *testing.T) {
	cut := func(keep func(r model.Result) bool) model.Document {
		d := sample.Bench()
		d.Results = slices.DeleteFunc(d.Results, func(r model.Result) bool { return !keep(r) })
		return d
	}
	for name, d := range map[string]model.Document{
		"TCP only":  cut(func(r model.Result) bool { return r.Cell["protocol"].Text == "tcp" }),
		"both only": cut(func(r model.Result) bool { return r.Cell["direction"].Text == "both" }),
		"idle only": cut(func(r model.Result) bool { return r.Cell["rate_pps"].Number > 0 }),
		"one size": cut(func(r model.Result) bool {
			return r.Cell["frame_bytes"].Number == 512 && r.Cell["variant"].Text == "plain"
		}),
		"first variant down only": cut(func(r model.Result) bool {
			return r.Cell["variant"].Text == "log" || r.Cell["direction"].Text == "down"
		}),
	} {
		t.Run(name, func(t *testing.T) {
			page := view.Run(&d)
			checkSentences(t, page)
			checkFigures(t, page)
			checkBrief(t, page)
			for _, s := range page.Sections {
				if table, ok := s.(view.Table); ok && len(table.Rows) == 0 {
					t.Errorf("%s is empty", table.Title)
				}
			}
		})
	}
}
