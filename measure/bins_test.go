package measure

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBins: each duration is in one bin, which is as narrow as it is said to be; and the programs of XDP have room for
// those of theirs.
func TestBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bins(rapid.IntRange(1, 12).Draw(t, "bins"))
		v := rapid.Int64Range(0, 1<<62).Draw(t, "nanos") >> rapid.IntRange(0, 61).Draw(t, "shift")
		bin := b.Of(uint64(v))
		least, size := b.Span(bin)
		if v < least || v-least >= size || size > max(v>>b, 1) {
			t.Fatalf("%v: %d is in bin %d of %d from %d on", b, v, bin, size, least)
		}
		if next, _ := b.Span(bin + 1); next != least+size {
			t.Fatalf("%v: bin %d of %d from %d on is followed by one from %d on", b, bin, size, least, next)
		}
	})
	if n := Bins(6).Of(1<<36 - 1); n >= 2048 {
		t.Errorf("2^36 ns are in bin %d", n)
	}
}
