package record

import (
	"encoding/json"
	"fmt"
	"time"

	"pelt/model"
)

// Format is the version of the files that this package writes.
const Format = "pelt/record/2"

// Block is one of *Header, *Trial, *Packets, *Stream, *Closed, *Void and *End.
type Block interface{ kind() kind }

// Header opens a file.
type Header struct {
	Format       string     `json:"format"`
	Run          string     `json:"run,omitempty"` // "" of a run that is not kept
	Started      time.Time  `json:"started"`       // of the run
	Tool         model.Tool `json:"tool"`
	Target       string     `json:"target"`
	ResolutionNS int64      `json:"resolution_ns"` // of all times: 1, none is rounded
}

// Trial opens the part of one trial; parts of trials that ran at one time are mixed.
type Trial struct {
	Trial    uint32     `json:"trial"` // within the file, from 1
	Cell     model.Cell `json:"cell"`
	Repeat   int        `json:"repeat"`
	Started  time.Time  `json:"started"`    // when its ends were prepared
	Wire     uint16     `json:"wire_trial"` // of flows without a number of their own
	WarmupS  float64    `json:"warmup_s"`   // whose packets are not recorded
	MeasureS float64    `json:"measure_s"`
	Flows    []Flow     `json:"flows"`
}

// Flow is one recorded flow of a trial.
type Flow struct {
	Flow         uint16  `json:"flow"`                 // within the trial
	Wire         uint16  `json:"wire_trial,omitempty"` // that its packets carry
	Name         string  `json:"name"`
	From         string  `json:"from"`
	To           string  `json:"to"`
	FromHost     string  `json:"from_host,omitempty"`
	ToHost       string  `json:"to_host,omitempty"`
	Family       int     `json:"family"` // 4 or 6
	PayloadBytes int     `json:"payload_bytes"`
	RatePPS      float64 `json:"rate_pps,omitempty"` // asked; 0 as fast as it goes
	Streams      int     `json:"streams"`
	OneClock     bool    `json:"one_clock"` // send and receive times are of one clock
}

// Stream ends the record of one stream.
type Stream struct {
	Trial   uint32 `json:"trial"`
	Flow    uint16 `json:"flow"`
	Stream  uint16 `json:"stream"`
	Packets uint64 `json:"packets"` // recorded
	Dropped uint64 `json:"dropped"` // had no room in the record
}

// Closed ends a trial's part, with the figures of its own account.
type Closed struct {
	Trial uint32        `json:"trial"`
	State model.State   `json:"state"`
	Why   model.Reasons `json:"why,omitempty"`
	Flows []ClosedFlow  `json:"flows"`
}

// ClosedFlow is one flow as its trial counted it.
type ClosedFlow struct {
	Flow       uint16             `json:"flow"`
	Attempted  []uint64           `json:"attempted,omitempty"` // by stream; none if the sender did not tell
	Received   uint64             `json:"received"`
	Duplicates uint64             `json:"duplicates"`
	Reordered  uint64             `json:"reordered"`
	Late       uint64             `json:"late"`
	JitterNS   float64            `json:"jitter_ns"`
	Delay      *model.Percentiles `json:"delay_ns,omitempty"`
	Recorded   uint64             `json:"recorded"`
	Dropped    uint64             `json:"dropped"`
}

// Void says that a trial whose part is written was not kept: it ran again.
type Void struct {
	Trial uint32 `json:"trial"`
}

// End stands last in a file that is whole.
type End struct {
	Packets  uint64 `json:"packets"` // recorded in the whole file
	Dropped  uint64 `json:"dropped"`
	Complete bool   `json:"complete"` // the run went to its end
}

func (*Header) kind() kind  { return kindHeader }
func (*Trial) kind() kind   { return kindTrial }
func (*Packets) kind() kind { return kindPackets }
func (*Stream) kind() kind  { return kindStream }
func (*Closed) kind() kind  { return kindClosed }
func (*Void) kind() kind    { return kindVoid }
func (*End) kind() kind     { return kindEnd }

// Append appends a block; a header is preceded by what opens the file. Packets
// cost less through an [Encoder].
func Append(dst []byte, b Block) ([]byte, error) {
	if p, ok := b.(*Packets); ok {
		return new(Encoder).Append(dst, *p), nil
	}
	body, err := json.Marshal(b)
	if err != nil {
		return dst, fmt.Errorf("record: %w", err)
	}
	if len(body) > maxBody {
		return dst, fmt.Errorf("record: a context of %d B; at most %d", len(body), maxBody)
	}
	if b.kind() == kindHeader {
		dst = append(dst, magic...)
	}
	return appendBlock(dst, b.kind(), body), nil
}

// context reads a block that is JSON, nil for a kind that is not known here.
func context(k kind, body []byte) (Block, error) {
	var b Block
	switch k {
	case kindHeader:
		b = &Header{}
	case kindTrial:
		b = &Trial{}
	case kindStream:
		b = &Stream{}
	case kindClosed:
		b = &Closed{}
	case kindVoid:
		b = &Void{}
	case kindEnd:
		b = &End{}
	default:
		return nil, nil
	}
	if err := json.Unmarshal(body, b); err != nil {
		return nil, err
	}
	model.Printable(b, false)
	t, ok := b.(*Trial)
	if !ok {
		return b, nil
	}
	if t.Cell == nil {
		t.Cell = model.Cell{}
	}
	seen := map[uint16]bool{}
	for _, f := range t.Flows {
		if f.Streams < 1 || f.Streams > model.MaxStreams || f.PayloadBytes < 0 || f.PayloadBytes > 1<<16 ||
			seen[f.Flow] {
			return nil, fmt.Errorf("flow %d of trial %d is none", f.Flow, t.Trial)
		}
		seen[f.Flow] = true
	}
	return b, nil
}
