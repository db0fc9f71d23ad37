package view

import (
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/sample"
)

// Runs of one kind share a chart with a series each; runs of two kinds have charts of their own, and a sentence why.
func TestOverlay(t *testing.T) {
	curves, mixed := []Page{}, []Page{}
	for _, d := range []model.Document{sample.Router(), sample.Router(), sample.Sweep()} {
		page := Run(&d)
		if mixed = append(mixed, page); len(curves) < 2 {
			curves = append(curves, page)
		}
	}
	shared := Overlay(curves, []string{"before", "after"})
	if len(shared) == 0 {
		t.Fatal("no chart")
	}
	for _, s := range shared {
		c, chart := s.(Chart)
		if !chart || len(c.Series) != 2 || c.Series[0].Name != "before" || c.Series[1].Name != "after" {
			t.Fatalf("of two runs of one kind: %+v", s)
		}
		if name := c.Series[1].Points[0].Name; !strings.HasPrefix(name, "after: ") {
			t.Errorf("a point is called %q", name)
		}
	}
	apart := Overlay(mixed, []string{"a", "b", "c"})
	if why, text := apart[0].(Text); !text || !strings.Contains(why.Text, "no axes in common") || len(apart) != 7 {
		t.Errorf("of runs of two kinds: %d sections, the first %+v", len(apart), apart[0])
	}
}
