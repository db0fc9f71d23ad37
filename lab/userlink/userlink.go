package userlink

import (
	"time"

	"pelt/lab/impair"
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
	Bytes      uint64 // of them, from the Ethernet header on; headers of segments that came as one buffer once
	Passed     uint64 // of the frames, those of which a copy left or will leave
	Lost       uint64 // drawn
	QueueFull  uint64
	Duplicated uint64
	Corrupted  uint64
	Refused    uint64   // copies that the interface at the end did not take
	Broken     uint64   // reads that were no frame
	Left       uint64   // copies and buffers written
	Late       uint64   // of them, more than LateLimit behind their time
	LatestNS   int64    // the latest of them
	LateNS     [3]int64 // p50, p99, p99.9 of lateness, to an eighth above
}

// LateLimit is how far behind its time a frame may leave without being counted as late.
const LateLimit = 500 * time.Microsecond

// Identify reads what stands first in a UDP payload: the number of a trial and
// the packet's sequence in its stream. ok is false for what is none of ours.
type Identify func(payload []byte) (trial uint16, sequence uint64, warmup, ok bool)

// Verdict is what a link did to one packet of a trial.
type Verdict struct {
	From, To uint16 // UDP ports, as the link saw them
	Sequence uint64
	Cause    impair.Cause
	Warmup   bool
	Fragment bool // it was a fragment of the packet that was lost
}
