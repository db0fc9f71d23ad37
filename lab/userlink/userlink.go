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
	Left       uint64 // copies and buffers written
	Late       uint64 // of them, too far behind their time: see LateLimit
	LatestNS   int64  // the latest of them
	Bins       []Bin  // of lateness
}

// Lateness are percentiles of how far behind their time frames left, in ns, to an
// eighth above.
type Lateness struct{ P50, P99, P999 int64 }

// Lateness is that since an earlier reading of the same direction.
func (c Counts) Lateness(before Counts) (l Lateness) {
	left := c.Left - before.Left
	for _, q := range []struct {
		share float64
		to    *int64
	}{{0.5, &l.P50}, {0.99, &l.P99}, {0.999, &l.P999}} {
		rest := uint64(q.share * float64(left))
		for _, b := range c.Bins {
			n := b.Frames
			for _, old := range before.Bins {
				if old.Below == b.Below {
					n -= old.Frames
				}
			}
			if n > rest {
				*q.to = b.Below
				break
			}
			rest -= n
		}
	}
	return l
}

// Bin counts frames that left less than Below ns behind their time, and not less
// than the bin before allows.
type Bin struct {
	Below  int64
	Frames uint64
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

// A frame may leave so far behind its time without being counted as late: this
// long, or a tenth of the time that it was to spend on the link. What a frame on a
// slow or long link does is then as asked, within a tenth.
const (
	LateLimit = 500 * time.Microsecond
	lateShare = 10
)

// Identify reads what stands first in a UDP payload: the number of a trial and
// the packet's sequence in its stream. ok is false for what is none of ours.
type Identify func(payload []byte) (trial uint16, sequence uint64, warmup, ok bool)

// Verdict is what a link did to one packet of a trial.
type Verdict struct {
	From, To uint16 // UDP ports, as the link saw them
	Sequence uint64
	Cause    Cause
	Warmup   bool
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
