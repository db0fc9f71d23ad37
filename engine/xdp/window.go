package xdp

import (
	"math/bits"
	"sync/atomic"

	"pelt/model"
)

// window settles one stream's sequences. Its bits are shared with the program,
// which sets those from the floor on; below the floor they are this side's. The
// floor is published one round before what lies below it is read, so that no
// program is still at work there.
type window struct {
	words   []uint64 // a power of two
	floor   uint64   // published: below it nothing is set any more
	settled uint64   // all below is in received and gone, and its bits are clear
	// Of what is settled:
	received uint64
	gone     model.MarksWriter
}

func (w *window) span() uint64 { return uint64(len(w.words)) * 64 }

// round settles what is below the floor, and returns the new one, half a window
// behind the highest sequence that came, and up to where there is room now.
func (w *window) round(highest uint64) (floor, top uint64) {
	w.settle(w.floor)
	if half := w.span() / 2; highest > half {
		w.floor = max(w.floor, (highest-half)&^63)
	}
	return w.floor, w.top()
}

// top is the first sequence whose bit another may still hold.
func (w *window) top() uint64 { return w.settled + w.span() }

// settle takes the account of all below a sequence and clears its bits. Whole
// words are cleared, so that only the last call may end inside of one.
func (w *window) settle(to uint64) {
	mask := uint64(len(w.words) - 1)
	if jump := w.settled + w.span(); to > jump {
		// The stream leapt further than the window: none of that could be marked.
		w.settle(jump)
		w.gone.Add(w.settled, to-w.settled, 0)
		w.settled = to
	}
	for w.settled < to {
		word := &w.words[w.settled>>6&mask]
		n := min(to-w.settled, 64)
		here := atomic.LoadUint64(word)
		if n < 64 {
			here &= 1<<n - 1
		}
		w.received += uint64(bits.OnesCount64(here))
		for absent := uint64(0); absent < n; {
			zeros := min(uint64(bits.TrailingZeros64(here>>absent)), n-absent)
			w.gone.Add(w.settled+absent, zeros, 0)
			absent += zeros
			absent += uint64(bits.TrailingZeros64(^(here >> absent)))
		}
		if n == 64 {
			atomic.StoreUint64(word, 0)
		}
		w.settled += n
	}
}

// finish settles up to what the program has seen or the sender attempted,
// whichever is more, and returns the distinct packets. The program must no
// longer be at work.
func (w *window) finish(expected uint64) uint64 {
	w.settle(expected)
	return w.received
}
