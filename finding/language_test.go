package finding

import (
	"maps"
	"slices"
	"testing"

	"pelt/test/golden"
	"pelt/words"
)

// TestChinese: every sentence is there once, and in Chinese.
func TestChinese(t *testing.T) {
	all := 0
	for _, table := range tables {
		all += len(table)
	}
	if all != len(sentences) {
		t.Errorf("the tables have %d sentences of %d codes: a code stands in two", all, len(sentences))
	}
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
