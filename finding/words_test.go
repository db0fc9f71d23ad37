package finding

import (
	"os"
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
	const path = "../docs/words.md"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list := metricList()
	part := regexp.MustCompile(`(?s)(<!-- metrics, [^\n]*-->\n).*?(<!-- end -->)`)
	page := part.ReplaceAllString(string(old), "${1}\n"+list+"\n${2}")
	if !strings.Contains(page, list) {
		t.Errorf("%s has no place for the metrics", path)
	}
	golden.File(t, path, page)
}
