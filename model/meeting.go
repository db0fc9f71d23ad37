package model

// Meeting accounts for the packets by which the ends of a flow find each other before its first test packet: each
// stream asks the end that listens, over its own 5-tuple, and is answered twice. The ends exchange four packets a
// stream where nothing is lost.
type Meeting struct {
	From    string  `json:"from"` // node that asks
	To      string  `json:"to"`   // node that answers
	Asks    Passage `json:"asks"`
	Answers Passage `json:"answers"`
}

// Passage is one way of a meeting, all streams together.
type Passage struct {
	Attempted  uint64            `json:"attempted_packets"`
	Received   uint64            `json:"received_packets"`
	SendErrors map[string]uint64 `json:"send_errors,omitempty"` // errno name -> packets; they are attempted
	ICMP       []ICMPErrors      `json:"icmp_errors,omitempty"` // that came back to the host which sent the packets
	// likewise; from the peer, or from a firewall in its name
	Resets uint64 `json:"tcp_resets,omitempty"`
	Ledger Ledger `json:"ledger"` // where the others ended: attempted = received + lost
}

// ICMPErrors are ICMP errors of one kind from one address.
type ICMPErrors struct {
	From    string `json:"from"` // address; whoever knows the ports can forge it
	What    string `json:"what"` // "port unreachable", by type and code
	Packets uint64 `json:"packets"`
	Of      []Span `json:"of,omitempty"` // measured packets that the errors quote, each of one, in no order
}

// DeadStream is a stream of a flow that found no way through, and so carried nothing.
type DeadStream struct {
	Stream       int    `json:"stream"`
	FromPort     uint16 `json:"from_port"` // of the end that asks, as its host sees it
	ToPort       uint16 `json:"to_port"`
	Asked        uint64 `json:"asked_packets"`
	AsksHeard    uint64 `json:"asks_heard_packets"`
	Answered     uint64 `json:"answered_packets"`
	AnswersHeard uint64 `json:"answers_heard_packets"`
}

// Ways of a meeting, as FlowDrops has them. "" are a flow's test packets.
const (
	WayAsks    = "asks"
	WayAnswers = "answers"
)
