package unit

import (
	"testing"
)

func FuzzParseSizes(f *testing.F) {
	for _, text := range []string{"64,1460", "256..10240/256", "1KiB", "0..1073741824/1", ",,", "1../2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sizes, err := ParseSizes(text)
		if err != nil {
			return
		}
		seen := map[int]bool{}
		for _, n := range sizes {
			if n < 0 || n > 1<<30 || seen[n] {
				t.Fatalf("ParseSizes(%q) = %v", text, sizes)
			}
			seen[n] = true
		}
		if len(sizes) == 0 || len(sizes) > MaxListLength {
			t.Fatalf("ParseSizes(%q) has %d entries", text, len(sizes))
		}
	})
}
