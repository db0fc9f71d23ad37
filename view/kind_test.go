package view_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
	"pelt/view"
	"pelt/words"
)

// reference is what a sentence refers to.
var reference = regexp.MustCompile(`\{\*?([^} ]+)`)

// TestSentencesOfKinds: what a kind of test says itself is made by a rule of this package, is there in Chinese, and is
// read again from a file; and nothing else is there in Chinese but what findings say.
func TestSentencesOfKinds(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	said := 0
	for _, k := range view.Kinds() {
		for _, code := range slices.Sorted(maps.Keys(k.Sentences)) {
			said++
			english, chinese := k.Sentences[code], words.Chinese.Of(code, "")
			if !strings.HasPrefix(code, k.Command+".") || strings.Count(source.String(), `"`+code+`"`) < 2 {
				t.Errorf("nothing of %s makes %s", k.Command, code)
			}
			if chinese == "" {
				t.Errorf("%s has no Chinese words", code)
			}
			golden.Sentence(t, code, english, chinese)
			if got := view.FromStored(model.Finding{Code: code}); got.English != english {
				t.Errorf("a file says %q for %s", got.English, code)
			}
		}
	}
	if said == 0 {
		t.Error("no kind has sentences")
	}
	for _, code := range words.Chinese.Codes() {
		known := map[string]string{}
		for _, m := range reference.FindAllStringSubmatch(words.Chinese.Of(code, ""), -1) {
			known[m[1]] = "word"
		}
		f := view.FromStored(model.Finding{Code: code, Words: known})
		if strings.HasPrefix(f.Text(), "<no words for") {
			t.Errorf("%s has Chinese words and no English ones", code)
		}
	}
}
