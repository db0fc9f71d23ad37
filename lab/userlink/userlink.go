package userlink

import (
	"math/bits"
	"time"
)

// End is where a cable comes out.
type End struct {
	Do   func(func() error) error // runs a function in the network namespace
	Name string                   // of the interface
}

// Counts are what one direction of a cable did since it was made. Frames are
// those of a wire: segments count singly.
type Counts struct {
	Frames     uint64 // that came
	Passed     uint64 // of the frames, those of which a copy left or will leave
	Lost       uint64 // drawn
	QueueFull  uint64
	Duplicated uint64
	Corrupted  uint64
	Refused    uint64 // copies that the interface at the end did not take, or for which there was no memory
	Late       uint64 // copies and buffers that left too far behind their time: see LateLimit
	LatestNS   int64  // the latest of them
	lateness   [bins]uint64
}

// Lateness is kept in bins of an eighth of an octave: bit length of the ns, and
// the three bits behind the first.
const bins = 64 * 8

func binOf(nanos int64) int {
	n := bits.Len64(uint64(nanos))
	if n <= 3 {
		return int(nanos)
	}
	return n*8 + int(nanos>>(n-4))&7
}

// binTop is one above the largest that falls into a bin.
func binTop(bin int) int64 {
	if bin < 8 {
		return int64(bin) + 1
	}
	return int64(9+bin&7) << (bin/8 - 4)
}

// Lateness is that of what left since an earlier reading of the same direction: how many
// copies and buffers these are, and percentiles of how far behind their time they left, in ns,
// to an eighth above.
func (c Counts) Lateness(before Counts) (left uint64, p50, p99 int64) {
	for i := range c.lateness {
		c.lateness[i] -= before.lateness[i]
		left += c.lateness[i]
	}
	for q, to := range map[float64]*int64{0.5: &p50, 0.99: &p99} {
		rest := uint64(q * float64(left))
		for i, n := range c.lateness {
			if n > rest {
				*to = binTop(i)
				break
			}
			rest -= n
		}
	}
	return left, p50, p99
}

// A frame may leave so far behind its time without being counted as late: this
// long, or a tenth of the time that it was to spend on the link. What a frame on a
// slow or long link does is then as asked, within a tenth.
const (
	LateLimit = 500 * time.Microsecond
	lateShare = 10
)

// Identify reads what stands first in a UDP payload: the number of a trial and
// the packet's sequence in its stream. ok is false for what is none of ours. A watch with nil lists nothing.
type Identify func(payload []byte) (trial uint16, sequence uint64, warmup, ok bool)

// Verdict is what a link did to one packet of a trial.
type Verdict struct {
	From, To uint16 // ports, as the link saw them
	Sequence uint64 // of a segment of TCP when it was lost, by Now: the same data may be lost again
	Cause    Cause
	Warmup   bool // of UDP
	TCP      bool // a segment with data
}

// Cause is what was done to a packet.
type Cause uint8

// The causes.
const (
	Lost     Cause = iota // drawn
	Fragment              // ... for one of its fragments
	QueueFull
	Damaged // it left, with a bit turned
)
