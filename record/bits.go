package record

import "encoding/binary"

// bitWriter appends bits to a slice, the lowest first.
type bitWriter struct {
	out []byte
	acc uint64
	n   uint // bits in acc, below 32 between calls
}

// put appends the lowest n bits of v, which has no others.
func (w *bitWriter) put(v uint64, n uint) {
	if n > 32 {
		w.put(v&(1<<32-1), 32)
		v, n = v>>32, n-32
	}
	w.acc |= v << w.n
	w.n += n
	if w.n >= 32 {
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(w.acc))
		w.acc >>= 32
		w.n -= 32
	}
}

// close returns all that was put, filled up to a whole byte.
func (w *bitWriter) close() []byte {
	for ; w.n > 0; w.n -= min(w.n, 8) {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
	}
	return w.out
}

// bitReader reads what bitWriter wrote. Beyond the end come zeros, and short is set.
type bitReader struct {
	in    []byte
	acc   uint64
	n     uint // bits in acc
	short bool
}

// fill makes at least 32 bits ready.
func (r *bitReader) fill() {
	if len(r.in) >= 4 {
		r.acc |= uint64(binary.LittleEndian.Uint32(r.in)) << r.n
		r.in, r.n = r.in[4:], r.n+32
		return
	}
	for len(r.in) > 0 && r.n < 32 {
		r.acc |= uint64(r.in[0]) << r.n
		r.in, r.n = r.in[1:], r.n+8
	}
}

func (r *bitReader) get(n uint) uint64 {
	if n > 32 {
		low := r.get(32)
		return low | r.get(n-32)<<32
	}
	if r.n < n {
		r.fill()
		if r.n < n {
			r.short, r.n = true, 32
		}
	}
	v := r.acc & (1<<n - 1)
	r.acc >>= n
	r.n -= n
	return v
}
