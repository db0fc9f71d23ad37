package finding

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/words"
)

var placeholder = regexp.MustCompile(`\{([^ }]+)( [^}]*)?\}`)

// placeholdersOf are the names of the figures and words in a text. may are also those that only ask whether something
// is there, or choose between one and many.
func placeholdersOf(text string) (must, may map[string]bool) {
	must, may = map[string]bool{}, map[string]bool{}
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		form := strings.TrimSpace(m[2])
		may[m[1]] = true
		if form != "?" && (!strings.Contains(form, "/") || strings.Contains(form, "#")) {
			must[m[1]] = true
		}
	}
	return must, may
}

// TestChinese: every sentence is there in Chinese with the same placeholders, and no other.
func TestChinese(t *testing.T) {
	for _, code := range slices.Sorted(maps.Keys(sentences)) {
		said := words.Chinese.Of(code, "")
		if said == "" {
			t.Errorf("%s has no Chinese words", code)
			continue
		}
		must, may := placeholdersOf(sentences[code])
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
		if english, chinese := strings.Count(sentences[code], "¶"), strings.Count(said, "¶"); chinese > english {
			t.Errorf("%s has %d sentences more in Chinese", code, chinese-english)
		}
	}
	for code := range words.Chinese.Codes() {
		if _, ok := sentences[code]; !ok {
			t.Errorf("%s has Chinese words and no English ones", code)
		}
	}
}
