package finding

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWordsPage: docs/words.md lists the code of each finding, and no other. Families of
// other pages' sentences are named there as a whole.
func TestWordsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/words.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "## Findings")
	named := regexp.MustCompile("`([a-z0-9.*+-]+)`").FindAllStringSubmatch(list, -1)
	has := func(name string) bool {
		return slices.ContainsFunc(named, func(m []string) bool { return m[1] == name })
	}
	for code := range sentences {
		family, _, _ := strings.Cut(code, ".")
		if !has(code) && !has(family+".*") {
			t.Errorf("docs/words.md does not list %q", code)
		}
	}
	for _, m := range named {
		_, ok := sentences[m[1]]
		if !ok && strings.Contains(m[1], ".") && !strings.HasSuffix(m[1], ".*") {
			t.Errorf("docs/words.md lists %q, which no finding has", m[1])
		}
	}
}
