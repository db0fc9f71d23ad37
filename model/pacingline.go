package model

import (
	"fmt"
	"slices"

	"pelt/unit"
)

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

// String is the line's cause: "backpressure: tbf on eth0, 50 Mbit/s".
func (l PacingLine) String() string {
	switch {
	case l.Cause == PacingLate:
		return "late: the sender gave them up"
	case l.Cause == PacingQuiet:
		return "not sent: the receiver no longer answered"
	case l.Cause == PacingBackpressure && l.Queue != nil:
		return "backpressure: " + l.Queue.String()
	case l.Cause == PacingBackpressure && l.BufferBytes > 0:
		return fmt.Sprintf("backpressure: send buffer full, %s", unit.FormatSize(l.BufferBytes))
	case l.Cause == PacingBackpressure:
		return "backpressure: send buffer full"
	}
	return l.Cause
}

// JoinPacing adds up the pacing lines of several ledgers: one line for each
// cause, host and queue. Evidence is each trial's own, and is left out.
func JoinPacing(lists ...[]PacingLine) (sum []PacingLine) {
	for _, l := range slices.Concat(lists...) {
		i := slices.IndexFunc(sum, func(s PacingLine) bool { return s.Host == l.Host && s.String() == l.String() })
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
