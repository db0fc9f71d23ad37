package draw

import (
	"regexp"
	"slices"
	"testing"
)

// TestFitName: a name that is cut keeps its end, and words their beginning.
func TestFitName(t *testing.T) {
	for _, c := range []struct {
		text  string
		width float64
		want  string
	}{
		{"fra-1", 40, "fra-1"},
		{"frankfurt-rack-01", 70, "fran…k-01"},
		{"frankfurt-rack-01", 20, "f…"},
		{"every 2 ms, 64 B", 70, "every 2…"},
	} {
		if got := fitName(c.text, 12, c.width); got != c.want {
			t.Errorf("%s in %v px: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestFit: words that are cut keep whole figures only.
func TestFit(t *testing.T) {
	const text = "queue of 16384 packets, 212\u00a0992 B"
	figure := regexp.MustCompile(`\d[\d ]*\d|\d`)
	for width := textWidth("queue…", 10); width < textWidth(text, 10); width++ {
		got := fit(text, 10, width)
		for _, f := range figure.FindAllString(got, -1) {
			if !slices.Contains([]string{"16384", "212 992"}, f) {
				t.Errorf("%v wide: %q", width, got)
			}
		}
	}
}
