package model

import "slices"

// Causes of packets that were planned and not attempted.
const (
	PacingLate         = "late"         // the sender came too late
	PacingBackpressure = "backpressure" // its socket or interface took no packet
	PacingQuiet        = "no-answer"    // the receiver had not answered for too long
)

// PacingLine is one cause for packets that were planned and not attempted, or for a flood that had to wait: then no
// packets.
type PacingLine struct {
	Cause   string `json:"cause"`
	Host    string `json:"host"`
	Packets uint64 `json:"packets"`
	// backpressure: the sender waited so long for its socket
	HeldS       float64    `json:"held_s,omitempty"`
	Queue       *Queue     `json:"queue,omitempty"`             // backpressure: the discipline that moved
	BufferBytes int        `json:"send_buffer_bytes,omitempty"` // backpressure without one; 0: unknown
	Evidence    []Evidence `json:"evidence,omitempty"`
}

// alike reports whether two lines are of one cause, host and queue, or of one cause, host and size of the send buffer.
func (l PacingLine) alike(o PacingLine) bool {
	queue := func(l PacingLine) (q Queue) {
		if l.Queue != nil {
			q = Queue{Interface: l.Queue.Interface, Kind: l.Queue.Kind, RateBPS: l.Queue.RateBPS}
		}
		return q
	}
	return l.Cause == o.Cause && l.Host == o.Host && l.BufferBytes == o.BufferBytes && queue(l) == queue(o)
}

// JoinPacing adds up the pacing lines of several ledgers: one line for each
// cause, host and queue. Evidence is each trial's own, and is left out.
func JoinPacing(lists ...[]PacingLine) (sum []PacingLine) {
	for _, l := range slices.Concat(lists...) {
		i := slices.IndexFunc(sum, l.alike)
		if i < 0 {
			l.Evidence = nil
			sum = append(sum, l)
			continue
		}
		sum[i].Packets = AddCounts(sum[i].Packets, l.Packets)
		sum[i].HeldS += l.HeldS
	}
	return sum
}
