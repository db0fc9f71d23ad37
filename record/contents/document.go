package contents

import (
	"pelt/model"
	"pelt/record"
)

// Format is the version of the document.
const Format = "pelt/record-contents/1"

// Document is what a record holds, trial by trial.
type Document struct {
	Format string        `json:"format"`
	Header record.Header `json:"header"`
	Whole  bool          `json:"whole"` // the record ends as it was meant to
	Cut    string        `json:"cut,omitempty"`
	Fault  error         `json:"-"`     // of which Cut is the text
	Bytes  int64         `json:"bytes"` // of the file that could be read
	Trials []Trial       `json:"trials"`
}

// Trial is one trial of a record.
type Trial struct {
	record.Trial
	State model.State   `json:"state,omitempty"` // "" of one that was cut
	Why   model.Reasons `json:"why,omitempty"`
	// NotKept: it ran again.
	NotKept bool      `json:"not_kept,omitempty"`
	Of      []Figures `json:"figures"` // of its flows, in their order
}

// Figures are what a record tells of one flow.
type Figures struct {
	Flow    uint16 `json:"flow"`
	Name    string `json:"name"`
	Packets uint64 `json:"packets"` // recorded
	Dropped uint64 `json:"dropped"` // came and are not in the record
	Bytes   uint64 `json:"bytes"`   // of the file

	AttemptedKnown bool    `json:"attempted_known"` // else what is behind the last sequence that came is in no figure
	Attempted      uint64  `json:"attempted_packets"`
	Received       uint64  `json:"received_packets"` // distinct sequences
	Duplicates     uint64  `json:"duplicate_packets"`
	Late           uint64  `json:"late_packets"`
	Lost           uint64  `json:"lost_packets"` // among them are those that the record misses
	DurationS      float64 `json:"duration_s"`   // from the first packet to the last

	Losses   []model.Span `json:"losses"` // runs of successive lost sequences: the first of them
	LossRuns uint64       `json:"loss_run_count"`
	Unlisted uint64       `json:"losses_unlisted,omitempty"` // lost packets that are in no run, for want of room
}
