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

// Every layer has words of its own for causes nobody foresaw.
func TestEveryLayerHasAPhrase(t *testing.T) {
	seen := map[string]string{}
	for _, layer := range model.Layers() {
		got := phrase(layer, "BRAND_NEW", "x")
		if strings.HasPrefix(got, layer) || seen[got] != "" && layer != model.LayerReceiverRing {
			t.Errorf("layer %s: %q, as layer %s", layer, got, seen[got])
		}
		seen[got] = layer
	}
}
