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
