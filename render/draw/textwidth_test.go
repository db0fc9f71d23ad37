package draw

import (
	"regexp"
	"slices"
	"testing"
)

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
