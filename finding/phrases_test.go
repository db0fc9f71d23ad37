package finding

import (
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// TestPhrase: each line of the file is a layer, a cause and a host of lost packets. Below stands what they are called.
func TestPhrase(t *testing.T) {
	golden.Table(t, "testdata/phrases.txt", func(question string) string {
		of := strings.Split(question, " | ")
		return phrase(of[0], of[1], of[2])
	})
}

// Every layer has words of its own for causes nobody foresaw, and every row can speak.
func TestEveryLayerHasAPhrase(t *testing.T) {
	for _, layer := range model.Layers() {
		if got := phrase(layer, "BRAND_NEW", "x"); strings.HasPrefix(got, layer) {
			t.Errorf("layer %s has no phrase but %q", layer, got)
		}
	}
	for i, w := range wordings {
		cause := strings.Replace(w.cause, "*", "anything", 1)
		if cause == "" {
			cause = "BRAND_NEW"
		}
		if got := phrase(w.layer, cause, ""); got != strings.NewReplacer("%h", "an unknown node", "%r",
			"an unknown node").Replace(w.text) {
			t.Errorf("row %d, %s %s, is hidden: %q speaks", i, w.layer, w.cause, got)
		}
	}
}
