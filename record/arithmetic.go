package record

import "math/bits"

// Numbers are written as the count of their bits, by arithmetic coding with a
// probability that follows what came before, and the bits below the highest as they
// are: noise in these cannot be had for less. The coder is the range coder of G. N. N.
// Martin (1979) for two symbols, with the carry held back as in Subbotin's.

// chance is the probability of a zero, and how often it was asked.
type chance struct {
	zero uint16 // of 2^16
	seen uint16
}

const (
	// floor keeps a chance from being none, or all: of 2^16.
	floor = 48
	// surest is how often a chance is asked until it moves as slowly as it will.
	surest = 30
)

// parts is by which part of the way a chance moves, of 2^16, by how often it was asked.
var parts = func() (list [surest + 1]uint16) {
	for i := range list {
		list[i] = uint16(1 << 16 / (float64(i) + 1.6))
	}
	return list
}()

func (c *chance) learn(bit uint32) {
	at := int32(c.zero)
	to := int32(1<<16-floor) &^ -int32(bit) // the other end is 0
	at += (to - at) * int32(parts[c.seen]) >> 16
	c.seen = min(c.seen+1, surest)
	c.zero = uint16(max(at, floor))
}

// rangeWriter writes symbols of 0 and 1.
type rangeWriter struct {
	out    []byte
	low    uint64 // 33 bits: the highest is a carry
	span   uint32
	held   byte // that a carry may still change
	nines  int  // bytes of 0xff behind it
	opened bool // held is one
}

func (w *rangeWriter) put(c *chance, bit uint32) {
	bound := w.span >> 16 * uint32(c.zero)
	if bit == 0 {
		w.span = bound
	} else {
		w.low += uint64(bound)
		w.span -= bound
	}
	c.learn(bit)
	for w.span < 1<<24 {
		w.span <<= 8
		w.shift()
	}
}

func (w *rangeWriter) shift() {
	if w.low < 0xff000000 || w.low > 0xffffffff {
		carry := byte(w.low >> 32)
		if w.opened {
			w.out = append(w.out, w.held+carry)
		}
		for ; w.nines > 0; w.nines-- {
			w.out = append(w.out, 0xff+carry)
		}
		w.held, w.opened = byte(w.low>>24), true
	} else {
		w.nines++
	}
	w.low = w.low << 8 & 0xffffffff
}

func (w *rangeWriter) close() []byte {
	for range 5 {
		w.shift()
	}
	return w.out
}

// rangeReader reads them. Beyond the end come zeros.
type rangeReader struct {
	in   []byte
	code uint32
	span uint32
	over int // bytes asked for beyond the end
}

func newRangeReader(in []byte) rangeReader {
	r := rangeReader{in: in, span: 1<<32 - 1}
	for range 4 {
		r.code = r.code<<8 | uint32(r.next())
	}
	return r
}

func (r *rangeReader) next() byte {
	if len(r.in) == 0 {
		r.over++
		return 0
	}
	b := r.in[0]
	r.in = r.in[1:]
	return b
}

func (r *rangeReader) get(c *chance) uint32 {
	bound := r.span >> 16 * uint32(c.zero)
	bit := uint32(0)
	if r.code < bound {
		r.span = bound
	} else {
		r.code -= bound
		r.span -= bound
		bit = 1
	}
	c.learn(bit)
	for r.span < 1<<24 {
		r.span <<= 8
		r.code = r.code<<8 | uint32(r.next())
	}
	return bit
}

// lengths are the chances of how many bits a number has, by how many the one before
// had: what disturbs a path comes in stretches.
type lengths struct {
	tree   [maxLength + 1][1 << lengthBits]chance
	before int
}

const (
	lengthBits = 6
	maxLength  = 1<<lengthBits - 1 // one more bit than that is told apart by the bits below
)

func (l *lengths) reset() {
	for i := range l.tree {
		for k := range l.tree[i] {
			l.tree[i][k] = chance{zero: 1 << 15}
		}
	}
	l.before = 0
}

// numbers writes and reads one column of signed numbers.
type numbers struct{ lengths lengths }

func (n *numbers) put(w *rangeWriter, low *bitWriter, v int64) {
	u := zigzag(v)
	length := bits.Len64(u)
	class := min(length, maxLength)
	tree := &n.lengths.tree[n.lengths.before]
	at := uint32(1)
	for i := lengthBits - 1; i >= 0; i-- {
		bit := uint32(class) >> i & 1
		w.put(&tree[at], bit)
		at = at<<1 | bit
	}
	n.lengths.before = class
	switch {
	case class == maxLength:
		low.put(u, 64)
	case class > 1:
		low.put(u&(1<<(class-1)-1), uint(class-1))
	}
}

func (n *numbers) get(r *rangeReader, low *bitReader) int64 {
	tree := &n.lengths.tree[n.lengths.before]
	at := uint32(1)
	for range lengthBits {
		at = at<<1 | r.get(&tree[at])
	}
	class := int(at & maxLength)
	n.lengths.before = class
	switch {
	case class == maxLength:
		return unzigzag(low.get(64))
	case class == 0:
		return 0
	}
	return unzigzag(1<<(class-1) | low.get(uint(class-1)))
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
