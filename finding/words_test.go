package finding

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/table"
	"pelt/test/golden"
)

func metricList() string {
	percentile := regexp.MustCompile(`_(min|p\d+|max)_ns$`)
	var names []string
	for _, m := range table.Metrics() {
		name := m.Name
		if family := percentile.ReplaceAllString(name, "_*_ns"); family != name && name != "queueing_p95_ns" {
			name = family
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "`" + strings.Join(names, "` `") + "`\n"
}

// TestWordsPage: docs/words.md lists each metric.
func TestWordsPage(t *testing.T) {
	golden.Part(t, "../docs/words.md", "metrics", metricList())
}

// TestCapital: also a Chinese name begins a sentence.
func TestCapital(t *testing.T) {
	for name, want := range map[string]string{"": "", "up": "Up", "64 B": "64 B", "上行": "上行", "élan": "Élan"} {
		if got := capital(name); got != want {
			t.Errorf("%q begins as %q, want %q", name, got, want)
		}
	}
}
