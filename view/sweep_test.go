package view_test

import (
	"slices"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/test/sample"
	"pelt/view"
)

// settings are the first figures of the rows of a page's table of settings.
func settings(t *testing.T, p view.Page, column string) (out []float64) {
	t.Helper()
	for _, s := range p.Sections {
		if table, ok := s.(view.Table); ok && table.Lead > 0 {
			at := slices.IndexFunc(table.Columns, func(c view.Column) bool { return c.Name == column })
			for _, r := range table.Rows {
				out = append(out, r[at].Value)
			}
		}
	}
	return out
}

func TestSorted(t *testing.T) {
	d := sample.SmallSweep()
	for _, c := range []struct{ by, column string }{{"loss", "loss_ratio"}, {"goodput", "goodput_bps"},
		{"send_bps", "send_bps"}, {"payload_bytes", "payload_bytes"}, {"delay", "delay_p50_ns"}} {
		p, err := view.Sorted(&d, c.by)
		testenv.Must(t, err)
		got := settings(t, p, c.column)
		want := slices.Sorted(slices.Values(got))
		slices.Reverse(want)
		if !slices.Equal(got, want) || len(got) != 15 {
			t.Errorf("by %s: %v", c.by, got)
		}
	}
	curve := sample.Router()
	p, err := view.Sorted(&curve, "goodput")
	testenv.Must(t, err)
	for _, s := range p.Sections {
		if table, ok := s.(view.Table); ok && strings.HasPrefix(table.Title, "By payload") {
			at := slices.IndexFunc(table.Columns, func(c view.Column) bool { return c.Name == "goodput_bps" })
			if len(table.Rows) < 2 || table.Rows[0][at].Value < table.Rows[len(table.Rows)-1][at].Value {
				t.Errorf("%s: %v", table.Title, table.Rows)
			}
		}
	}
	one := sample.SmallSweep()
	one.Results = one.Results[:1]
	if _, err := view.Sorted(&one, "goodput"); err != nil {
		t.Errorf("of one trial: %v", err)
	}
	if _, err := view.Sorted(&d, "colour"); err == nil || !strings.Contains(err.Error(), `"colour"`) {
		t.Error(err)
	}
}
