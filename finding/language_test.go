package finding

import (
	"maps"
	"slices"
	"testing"

	"pelt/test/golden"
	"pelt/words"
)

// TestChinese: every sentence is there in Chinese, too.
func TestChinese(t *testing.T) {
	for _, code := range slices.Sorted(maps.Keys(sentences)) {
		said := words.Chinese.Of(code, "")
		if said == "" {
			t.Errorf("%s has no Chinese words", code)
			continue
		}
		golden.Sentence(t, code, Finding{Code: code}.sentence(), said)
	}
	for _, code := range words.Chinese.Codes() {
		if sentences[code] == "" {
			t.Errorf("%s has Chinese words and no English ones", code)
		}
	}
}
