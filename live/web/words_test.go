package web

import (
	"io/fs"
	"testing"

	"pelt/words"
)

// TestScriptsInChinese: each text of a script has Chinese words.
func TestScriptsInChinese(t *testing.T) {
	names, err := fs.Glob(assets, "assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		text, err := assets.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range scriptText.FindAllStringSubmatch(string(text), -1) {
			if found++; words.Chinese.Say(m[1]) == m[1] {
				t.Errorf("%s: no Chinese words for %q", name, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d texts were found", found)
	}
}
