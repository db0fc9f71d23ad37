package measure

import (
	"testing"

	"pelt/model"
)

// What a sequence leaps over holds nothing, so that the next leap has nothing to look
// through: whoever sends or writes such sequences shall not keep the meter busy.
func TestALeapLeavesNothingBehind(t *testing.T) {
	const chunks = 16
	w := newWindow(chunks, 0, model.MaxMarksBytes)
	at := int64(0)
	for range chunks {
		w.see(at)
		at += 1 << chunkBits
	}
	at += chunks << chunkBits
	if w.see(at) != fresh || w.see(at) != again || w.see(0) != behind {
		t.Error("a leap was not told from what was seen")
	}
	kept := 0
	for _, c := range w.ring {
		if c != nil {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d chunks are kept after a leap over all of them, want that of the packet alone", kept)
	}
	if m := w.missing(uint64(at) + 1); m.Packets != uint64(at)-chunks {
		t.Errorf("%d packets are missing of %d, of which %d came", m.Packets, at+1, chunks+1)
	}
}
