package measure

import (
	"math"
	"math/bits"

	"pelt/model"
)

const (
	// allGaps bounds the stretches of missing sequences that a meter lists for
	// all its streams together, some 3 B each. Further ones are only counted.
	allGaps = 1 << 22
	// endOfSequences is the number of sequences that the wire can tell apart.
	endOfSequences = 1 << 48
)

// gaps lists the sequences that were not seen, in ascending order.
type gaps struct {
	list     model.MarksWriter
	from, to int64 // the newest stretch, not yet in the list
	room     int   // stretches that the list may still take
	unlisted uint64
}

// add appends the sequences from..to-1, which lie above all before.
func (g *gaps) add(from, to int64) {
	if from >= to {
		return
	}
	if from == g.to {
		g.to = to
		return
	}
	g.flush()
	g.from, g.to = from, to
}

func (g *gaps) flush() {
	g.from, g.to = min(g.from, endOfSequences), min(g.to, endOfSequences)
	n := uint64(g.to - g.from)
	switch {
	case n == 0:
	case g.room == 0:
		g.unlisted += n
	default:
		g.room--
		g.list.Add(uint64(g.from), n, 0)
	}
	g.from = g.to
}

// chunk adds what is missing of chunk number n below a position. Sequences
// count from origin.
func (g *gaps) chunk(c *chunk, n, origin, to int64) {
	lo, hi := max(origin, n<<chunkBits), min(to, (n+1)<<chunkBits)
	if c == nil {
		g.add(lo-origin, hi-origin)
		return
	}
	for at := lo &^ 63; at < hi; at += 64 {
		holes := ^c[at>>6&(chunkWords-1)]
		if holes == 0 {
			continue
		}
		if at < lo {
			holes &= ^uint64(0) << (lo - at)
		}
		if hi-at < 64 {
			holes &= 1<<(hi-at) - 1
		}
		for holes != 0 {
			i := bits.TrailingZeros64(holes)
			n := bits.TrailingZeros64(^(holes >> i))
			g.add(at+int64(i)-origin, at+int64(i+n)-origin)
			holes &^= (1<<n - 1) << i
		}
	}
}

// forget notes what is missing of the chunks below the given one, which the
// window is about to lose.
func (w *window) forget(below int64) {
	n := max(w.top-w.mask, w.from>>chunkBits)
	for ; n < below && n <= w.top; n++ {
		w.gone.chunk(w.ring[n&w.mask], n, w.from, math.MaxInt64)
	}
	// A leap beyond the whole window: nothing was seen of what lies between.
	w.gone.add(max(n<<chunkBits, w.from)-w.from, below<<chunkBits-w.from)
}

// missing lists the sequences below attempted that were not seen, counted from
// the first there can be.
func (w *window) missing(attempted uint64) model.Marks {
	beyond := attempted - min(attempted, endOfSequences)
	to := w.from + int64(attempted-beyond)
	g := w.gone // a copy: the account may be asked for again
	n := max(w.top-w.mask, w.from>>chunkBits)
	if bottom := n << chunkBits; to < bottom {
		g = cut(g, to-w.from) // less was attempted than has come
	}
	for ; n <= w.top && n<<chunkBits < to; n++ {
		g.chunk(w.ring[n&w.mask], n, w.from, to)
	}
	g.add(max(n<<chunkBits, w.from)-w.from, to-w.from)
	g.flush()
	m := g.list.Marks()
	m.Unlisted += g.unlisted + beyond
	return m
}

// cut keeps what lies below a sequence.
func cut(g gaps, below int64) gaps {
	g.flush()
	marks := g.list.Marks()
	out := gaps{room: allGaps}
	for s := range marks.Stretches() { // a list of our own is not broken
		out.add(int64(s.From), min(int64(s.From+s.Count), below))
	}
	// What was not listed lies above the list's end, up to where nobody knows.
	out.unlisted = min(g.unlisted+marks.Unlisted, uint64(below-out.to))
	return out
}
