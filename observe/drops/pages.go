package drops

import (
	"math/bits"
)

// pagePool hands out pages of the kernel's array to streams.
type pagePool struct {
	owner []*stream // by page
}

// stream is one stream of a flow, as the kernel's maps and its reader know it.
type stream struct {
	slot  uint32
	base  uint32 // first cell
	bits  uint16 // log2 of its cells, or countOnly
	store verdictStore

	packets uint64 // sequences that it will have, 0 if unknown
	newest  uint64 // as the reader last saw it
}

func (a *pagePool) free() (n int) {
	for _, o := range a.owner {
		if o == nil {
			n++
		}
	}
	return n
}

// share returns how many pages each of n streams gets that would like to have
// room for so many sequences: at most half of what is free goes to one flow,
// so that others still find room; 0 if there is none.
func (a *pagePool) share(n int, sequences uint64) int {
	if n == 0 {
		return 0
	}
	most := max(a.free()/2, min(a.free(), 1)) / n
	if most == 0 {
		return 0
	}
	most = 1 << (bits.Len(uint(most)) - 1)
	want := most
	if sequences > 0 && sequences < uint64(most)*pageCells {
		want = 1 << bits.Len64((sequences-1)/pageCells)
	}
	return min(want, most)
}

// take gives the stream a run of pages; false if there is no such run.
func (a *pagePool) take(s *stream, pages int) bool {
	run := 0
	for i := range a.owner {
		if a.owner[i] != nil {
			run = 0
			continue
		}
		if run++; run < pages {
			continue
		}
		first := i - pages + 1
		s.base = uint32(first * pageCells)
		s.bits = uint16(bits.Len(uint(pages*pageCells)) - 1)
		for j := first; j <= i; j++ {
			a.owner[j] = s
		}
		return true
	}
	return false
}

// give takes the stream's pages back.
func (a *pagePool) give(s *stream) {
	for i, o := range a.owner {
		if o == s {
			a.owner[i] = nil
		}
	}
}

// sequence undoes the cell's shortening: near is a sequence that the right one
// lies less than 32768 windows from.
func (s *stream) sequence(cell uint32, verdict uint32, near uint64) (uint64, bool) {
	if s.packets > 0 {
		near = min(near, s.packets-1)
	}
	window := near >> s.bits
	diff := int16(uint16(verdict>>16) - uint16(window))
	if diff < 0 && uint64(-int64(diff)) > window {
		return 0, false
	}
	return (window+uint64(int64(diff)))<<s.bits | uint64(cell-s.base), true
}
