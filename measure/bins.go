package measure

import "math/bits"

// Bins are the bins of durations, 2^Bins to an octave, as the programs of package engine/xdp have them, too. Below
// 2^(Bins+1) ns each value has a bin of its own.
type Bins int

// Of is the number of a duration's bin.
func (b Bins) Of(nanos uint64) int {
	octave := max(bits.Len64(nanos)-1-int(b), 0)
	return octave<<b + int(nanos>>octave)
}

// Span is the least duration of a bin, and how many it has.
func (b Bins) Span(bin int) (least, size int64) {
	octave := max(bin>>b-1, 0)
	return int64(bin-octave<<b) << octave, 1 << octave
}
