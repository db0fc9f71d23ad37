package finding

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/table"
	"pelt/test/golden"
)

// families are the parts of the list of findings. All other codes belong to every run.
var families = []struct{ title, codes string }{
	{"Every run", `^`}, {"Size curves", `^curve\.`}, {"Sweeps", `^sweep\.`}, {"Congestion controls",
		`^cc\.`}, {"Routers", `^router\.`}, {"Latency", `^latency\.`},
	{"Meshes", `^mesh\.`}, {"Several runs of one plan", `^times\.`}, {"Soaks and changes", `^(soak|change|cause)\.`}, {"Comparisons", `^(compare|asked)\.`},
	{"", `^(advice|drops|explain|record|sure|made|why)\.`}, // in no run document
}

func findingList() string {
	lists := make([][]string, len(families))
	for _, code := range slices.Sorted(maps.Keys(sentences)) {
		at := 0
		for i, f := range families {
			if regexp.MustCompile(f.codes).MatchString(code) {
				at = i
			}
		}
		lists[at] = append(lists[at], code)
	}
	var text strings.Builder
	text.WriteString("| of | codes |\n| --- | --- |\n")
	for i, f := range families {
		if f.title != "" {
			fmt.Fprintf(&text, "| %s | `%s` |\n", f.title, strings.Join(lists[i], "` `"))
		}
	}
	return text.String()
}

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

// TestWordsPage: docs/words.md lists each metric and each code of a finding.
func TestWordsPage(t *testing.T) {
	const path = "../docs/words.md"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(old)
	for name, list := range map[string]string{"metrics": metricList(), "findings": findingList()} {
		part := regexp.MustCompile(`(?s)(<!-- ` + name + `, [^\n]*-->\n).*?(<!-- end -->)`)
		page = part.ReplaceAllStringFunc(page, func(s string) string {
			m := part.FindStringSubmatch(s)
			return m[1] + "\n" + list + "\n" + m[2]
		})
		if !strings.Contains(page, list) {
			t.Errorf("%s has no place for the %s", path, name)
		}
	}
	golden.File(t, path, page)
}
