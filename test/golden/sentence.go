package golden

import (
	"regexp"
	"strings"
	"testing"
)

var placeholder = regexp.MustCompile(`\{([^ }]+)( [^}]*)?\}`)

// placeholdersOf are the names of the figures and words in a text. may are also those that only ask whether something
// is there, or choose between one and many.
func placeholdersOf(text string) (must, may map[string]bool) {
	must, may = map[string]bool{}, map[string]bool{}
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		form := strings.TrimSpace(m[2])
		may[m[1]] = true
		if end, is := strings.CutPrefix(form, "to "); is { // of a range
			must[end], may[end] = true, true
		}
		if form != "?" && (!strings.Contains(form, "/") || strings.Contains(form, "#")) {
			must[m[1]] = true
		}
	}
	return must, may
}

// Sentence checks that a sentence in another language has the placeholders of the English one, and no other.
func Sentence(t testing.TB, code, english, said string) {
	t.Helper()
	must, may := placeholdersOf(english)
	has, uses := placeholdersOf(said)
	for name := range must {
		if !uses[name] && name != "one" {
			t.Errorf("%s lacks {%s}: %s", code, name, said)
		}
	}
	for name := range has {
		if !may[name] {
			t.Errorf("%s has {%s}, which the English one lacks: %s", code, name, said)
		}
	}
	if strings.Count(said, "[") != strings.Count(said, "]") {
		t.Errorf("%s has brackets without ends: %s", code, said)
	}
	if english, chinese := strings.Count(english, "¶"), strings.Count(said, "¶"); chinese > english {
		t.Errorf("%s has %d sentences more in Chinese", code, chinese-english)
	}
}
