package model

const (
	ConnectionRate = "rate"
	ConnectionKeep = "keep"
)

const (
	MaxConnections         = 1_000_000 // kept open at a time
	ConnectionMessageBytes = 56        // what either end says on each
)

func (f Flow) checkConnections() error {
	const at = "connections"
	switch {
	case f.Connections == "":
		return nil
	case f.From != Sender:
		return wrong(at, "are opened by the sender; want a flow from there, not from the %s", clip(f.From))
	case f.Bulk || f.SourcePort != 0:
		return wrong(at,
			"carry one small message each, from ports of the system's choice; want neither bulk nor source_port")
	}
	return nil
}

// ConnectionFacts are the figures of a flow of connections. Its packets are connections: attempted are those that
// the sender began in the measured part, received those that the receiver's program answered.
type ConnectionFacts struct {
	Mode        string `json:"mode"` // rate or keep
	Established uint64 `json:"established"`
	// PerSecond is how many were established, each second; the last may be cut short.
	PerSecond []uint64 `json:"established_per_second"`
	// Failed are attempts by errno name; ETIMEDOUT got no SYN/ACK within 2 s, "no answer" got one but no answer of
	// the receiver's program, "closed" were ended before it, "under way" were cut with the trial.
	Failed    map[string]uint64 `json:"failed,omitempty"`
	OpenMax   uint64            `json:"open_max"`             // most that were established at one time
	Broken    uint64            `json:"broken,omitempty"`     // of keep: ended by others while they were kept
	SetUp     *Percentiles      `json:"set_up_ns,omitempty"`  // from the SYN to its SYN/ACK
	Ended     string            `json:"ended,omitempty"`      // of keep: why no more were opened
	HostLimit bool              `json:"host_limit,omitempty"` // that was the sender's host, not the path
}
