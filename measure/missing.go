package measure

import (
	"math"
	"math/bits"

	"pelt/model"
)

// endOfSequences is the number of sequences that the wire can tell apart.
const endOfSequences = 1 << 48

// addMissing adds the sequences from..to-1 to a list of missing ones, without those that no sender can reach.
func addMissing(l *model.MarksWriter, from, to int64) {
	if to = min(to, endOfSequences); from < to {
		l.Add(uint64(from), uint64(to-from), 0)
	}
}

// addHoles adds to a list what is missing of chunk number n below a position.
func (w *window) addHoles(l *model.MarksWriter, n, below int64) {
	c := w.ring[n&w.mask]
	lo, hi := max(w.from, n<<chunkBits), min(below, (n+1)<<chunkBits)
	if c == nil {
		addMissing(l, lo-w.from, hi-w.from)
		return
	}
	for at := lo &^ 63; at < hi; at += 64 {
		unseen := ^c[at>>6&(chunkWords-1)]
		if unseen == 0 {
			continue
		}
		if at < lo {
			unseen &= math.MaxUint64 << (lo - at)
		}
		if hi-at < 64 {
			unseen &= 1<<(hi-at) - 1
		}
		for unseen != 0 {
			i := bits.TrailingZeros64(unseen)
			run := bits.TrailingZeros64(^(unseen >> i))
			addMissing(l, at+int64(i)-w.from, at+int64(i+run)-w.from)
			unseen &^= (1<<run - 1) << i
		}
	}
}

// oldest is the oldest chunk that the window holds.
func (w *window) oldest() int64 { return max(w.top-w.mask, w.from>>chunkBits) }

// forget lists what is missing of the chunks below a chunk: the window is about to lose them.
func (w *window) forget(below int64) {
	n := w.oldest()
	for ; n < below && n <= w.top; n++ {
		w.addHoles(&w.gone, n, math.MaxInt64)
	}
	// After a leap beyond the whole window nothing was seen of what lies between.
	addMissing(&w.gone, max(n<<chunkBits, w.from)-w.from, below<<chunkBits-w.from)
}

// missing lists the sequences below attempted that were not seen. They count
// from the first there can be.
func (w *window) missing(attempted uint64) model.Marks {
	beyond := attempted - min(attempted, endOfSequences)
	to := w.from + int64(attempted-beyond)
	l := w.gone // a copy: more may come, and the question may be asked again
	n := w.oldest()
	if to < n<<chunkBits {
		var unlisted uint64
		l, unlisted = listBelow(l, to-w.from) // less was attempted than has come
		beyond += unlisted
	}
	for ; n <= w.top && n<<chunkBits < to; n++ {
		w.addHoles(&l, n, to)
	}
	addMissing(&l, max(n<<chunkBits, w.from)-w.from, to-w.from)
	m := l.Marks()
	m.Unlisted += beyond
	return m
}

// listBelow returns the part of a list below a sequence. unlisted is how many further sequences may be missing there:
// the list ended where it was full, so only the most is known.
func listBelow(l model.MarksWriter, below int64) (out model.MarksWriter, unlisted uint64) {
	marks := l.Marks()
	out.Limit = l.Limit
	next := int64(0)
	for s := range marks.Stretches() { // a list of our own is never broken
		next = int64(s.From + s.Count)
		addMissing(&out, int64(s.From), min(next, below))
	}
	return out, min(marks.Unlisted, uint64(max(below-next, 0)))
}
