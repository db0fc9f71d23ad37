package finding

import (
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
	"pelt/words"
)

// TestPhrase: each line of the file is a layer, a cause and a host of lost packets. Below stands what they are called.
func TestPhrase(t *testing.T) {
	golden.Table(t, "testdata/phrases.txt", func(question string) string {
		of := strings.Split(question, " | ")
		return phrase(words.English, of[0], of[1], of[2])
	})
}

// At this host, words have no place, and none of the table's marks are left.
func TestPhraseHere(t *testing.T) {
	for cause, want := range map[string]string{
		"tun_chr_ioctl()": "dropped by the kernel's tun_chr_ioctl()", "QDISC_DROP": "queue full",
		"NETFILTER_DROP": "netfilter rule", "TTL_EXPIRED": "time to live used up",
	} {
		if got, known := phraseHere(words.English, model.LayerNetwork, cause); got != want || !known {
			t.Errorf("%s: got %q, %v, want %q", cause, got, known, want)
		}
	}
}

// Every layer has words of its own for causes nobody foresaw.
func TestEveryLayerHasAPhrase(t *testing.T) {
	seen := map[string]string{}
	for _, layer := range model.Layers() {
		got := phrase(words.English, layer, "BRAND_NEW", "x")
		if strings.HasPrefix(got, layer) || seen[got] != "" && layer != model.LayerReceiverRing {
			t.Errorf("layer %s: %q, as layer %s", layer, got, seen[got])
		}
		seen[got] = layer
	}
	const later = "receiver-brain" // of another version
	if en, zh := phrase(words.English, later, "x", "a"), phrase(words.Chinese, later, "x", "a"); en != later+" at a" ||
		zh != later+"（a）" {
		t.Errorf("a layer to come: %q, %q", en, zh)
	}
}
