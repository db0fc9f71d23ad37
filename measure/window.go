package measure

import "pelt/model"

// One chunk of a window holds a bit for each of 2^chunkBits sequences, 8 KiB.
const (
	chunkBits  = 16
	chunkWords = 1 << chunkBits / 64
)

type chunk [chunkWords]uint64

// window remembers which of the newest sequences were seen. Its memory is
// fixed; chunks are made when first needed. Positions are 64-bit, unwrapped.
type window struct {
	ring   []*chunk // chunk number n stands at n & mask
	mask   int64
	top    int64             // newest chunk number
	newest *chunk            // that one, once it is made
	from   int64             // first position there can be
	gone   model.MarksWriter // what had not come when its chunk was forgotten
}

// newWindow spans a number of chunks, a power of two, and lists what is missing
// in as many bytes.
func newWindow(chunks int, first int64, listBytes int) window {
	return window{ring: make([]*chunk, chunks), mask: int64(chunks - 1), top: first >> chunkBits, from: first,
		gone: model.MarksWriter{Limit: listBytes}}
}

type mark uint8

const (
	fresh mark = iota
	again
	behind // older than the window, so whether it was seen is forgotten; or before the first
)

// see marks a position as seen. It returns whether that was new, was seen before, or is too old to tell.
func (w *window) see(at int64) mark {
	c := w.newest
	if n := at >> chunkBits; n != w.top || c == nil {
		c = w.chunk(n)
	}
	if c == nil || at < w.from {
		return behind
	}
	word, bit := &c[at>>6&(chunkWords-1)], uint64(1)<<(at&63)
	if *word&bit != 0 {
		return again
	}
	*word |= bit
	return fresh
}

// chunk returns one, which may become the newest; nil if it is forgotten.
func (w *window) chunk(n int64) *chunk {
	if n > w.top {
		w.advance(n)
	}
	if w.top-n > w.mask {
		return nil
	}
	c := &w.ring[n&w.mask]
	if *c == nil {
		*c = new(chunk)
	}
	if n == w.top {
		w.newest = *c
	}
	return *c
}

// advance makes n the newest chunk and forgets those that fall out.
func (w *window) advance(n int64) {
	w.forget(n - w.mask)
	steps := min(n-w.top, w.mask+1)
	for i := n - steps + 1; i < n; i++ {
		w.ring[i&w.mask] = nil // leapt over: an empty one would be looked through word by word
	}
	if c := w.ring[n&w.mask]; c != nil {
		*c = chunk{}
	}
	w.top, w.newest = n, nil
}
