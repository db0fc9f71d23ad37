package model

type Arrival struct {
	Sequence     uint64 // u48, from 0 in each stream
	SendNanos    uint64 // u48, of the sender's monotonic clock
	ReceiveNanos int64  // of the receiver's monotonic clock
	Bytes        int    // payload length
}

// Tally is what a receiver counted of one flow's measured part.
type Tally struct {
	Received    uint64       `json:"received"` // distinct sequences
	Bytes       uint64       `json:"bytes"`    // payload of the distinct ones
	Duplicates  uint64       `json:"duplicates"`
	Reordered   uint64       `json:"reordered"`
	Late        uint64       `json:"late"`
	WrongLength uint64       `json:"wrong_length"` // right header, other length than ordered: not counted as received
	Strangers   uint64       `json:"strangers"`    // too far ahead of the flow to be of it: not counted as received
	FirstNanos  int64        `json:"first_ns"`     // receiver's monotonic clock; meaningless while Received is 0
	LastNanos   int64        `json:"last_ns"`
	JitterNanos float64      `json:"jitter_ns"`
	Delay       *Percentiles `json:"delay,omitempty"` // nil when the clocks are not one
	PerStep     []uint64     `json:"per_step"`        // distinct packets in each step of the series
	StepBytes   []uint64     `json:"step_bytes"`      // their payload
}

// PeerReport is what a far end that is no pelt said of a flow when a trial was over. Nobody watched it.
type PeerReport struct {
	Program string `json:"program"` // and its version, as far as it shows
	// the sum over the streams of the highest sequence that it saw, counted from 1
	Highest  uint64  `json:"highest"`
	Gaps     uint64  `json:"gaps"`      // sequences below these that it counts as lost
	Tail     uint64  `json:"tail"`      // sent after the last packet that it saw: not counted as lost
	CPURatio float64 `json:"cpu_ratio"` // of one core
}

// RecordFacts says what became of the record of a flow's packets.
type RecordFacts struct {
	File           string  `json:"file"`    // name without its directory
	Trial          uint32  `json:"trial"`   // within the file
	Packets        uint64  `json:"packets"` // in the file
	Dropped        uint64  `json:"dropped"` // came and are not in it
	Bytes          uint64  `json:"bytes"`   // of the file
	BytesPerPacket float64 `json:"bytes_per_packet"`
}

// RecordID tells the packets of a flow from others in a record.
type RecordID struct {
	Trial uint32 `json:"trial"` // within the record, from 1
	Flow  uint16 `json:"flow"`  // within the trial
}
