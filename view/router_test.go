package view_test

import (
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/sample"
	"pelt/unit"
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
		"bench": sample.Bench(), "lab": sample.BenchLab(), "hostile": sample.BenchHostile(),
		"variants":  sample.Variants(),
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
			if n := strings.Count(text(t, page, false), "\n"); n > 12 || page.Verdict == "" {
				t.Errorf("%d lines, verdict %q", n, page.Verdict)
			}
			tiles, ok := page.Sections[0].(view.Tiles)
			if !ok || len(tiles) != 4 {
				t.Fatalf("no four tiles: %v", page.Sections[0])
			}
			for _, one := range tiles[:2] {
				if one.Value != "" && !shows(page, one.Value) {
					t.Errorf("%s %s is in no table", one.Label, one.Value)
				}
			}
			for _, s := range page.Sections {
				if table, ok := s.(view.Table); ok && len(table.Rows) == 0 {
					t.Errorf("%s is empty", table.Title)
				}
			}
		})
	}
}

// shows reports whether a cell of a page's tables prints a value.
func shows(p view.Page, value string) bool {
	for _, s := range p.Sections {
		table, _ := s.(view.Table)
		for _, row := range table.Rows {
			for i, c := range row {
				if u := table.Columns[i].Unit; u != unit.Word && u.Format(c.Value) == value {
					return true
				}
			}
		}
	}
	return false
}
