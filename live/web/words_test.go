package web

import (
	"io/fs"
	"net/url"
	"testing"

	"pelt/finding"
	"pelt/internal/testenv"
	"pelt/words"
)

// TestScriptsInChinese: each text of a script has Chinese words.
func TestScriptsInChinese(t *testing.T) {
	names, err := fs.Glob(assets, "assets/*.js")
	testenv.Must(t, err)
	found := 0
	for _, name := range names {
		text, err := assets.ReadFile(name)
		testenv.Must(t, err)
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

// TestFormInChinese: each field of the form of each kind of test has a Chinese label and help.
func TestFormInChinese(t *testing.T) {
	said := 0
	for _, k := range finding.Kinds() {
		common, more := (&Server{}).fields(Offer{Preset: k.Preset}, url.Values{})
		for _, f := range append(common, more...) {
			for _, text := range []string{f.Label, f.Help} {
				if said++; text != "" && words.Chinese.Say(text) == text {
					t.Errorf("%s: no Chinese words for %q", k.Command, text)
				}
			}
		}
	}
	if said < 100 {
		t.Errorf("only %d texts were found", said)
	}
}
