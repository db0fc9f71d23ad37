package ledger

import "pelt/model"

// Input is everything known about one flow of one trial, in datagrams unless said.
type Input struct {
	Sender, Receiver string // nodes of the two ends
	Flow             string // name of the flow
	Family           int    // of its packets: 4 or 6; 0 unknown
	// Way is "" for test packets. Of a meeting's packets it is model.WayAsks or WayAnswers; Sender is then who sends
	// these, and no sequence of them is known.
	Way    string
	ICMP   []model.ICMPErrors // that came back to the sender
	Resets uint64             // likewise, of TCP
	// TCP says that the packets are its segments with data: lost is what was sent again, more than what was dropped
	// if some came late or an acknowledgement was lost.
	TCP bool

	Planned    uint64
	SlotsLate  uint64  // of them, given up because the sender came too late
	SlotsHeld  uint64  // of them, given up while the sender's socket or interface took no packet
	SlotsQuiet uint64  // of them, left when the sender ended streams whose receiver did not answer
	HeldS      float64 // the sender waited so long for its socket
	SendBuffer int     // bytes of send buffer granted to each socket; 0 unknown
	Attempted  uint64
	Accepted   uint64
	SendErrors map[string]uint64 // errno name -> datagrams the kernel refused
	Streams    []uint64          // attempted by each stream
	PerStep    []uint64          // attempted in each step of the sender's series; none: when is not asked
	Refused    []model.Marks     // by stream; a mark is an index of Errnos
	Errnos     []string
	Retried    uint64 // offered a second time, the answer to the first being hidden
	// Of a sender that hands frames to the device itself:
	PastSockets bool
	Unsent      map[string]uint64 // frames that the device did not take, by cause; attempted, not accepted
	Cable       bool              // it is a virtual cable, whose ring is at its other end
	Segments    int               // datagrams per buffer given to the kernel; 0 and 1 mean one

	WarmupSent, WarmupReceived uint64
	Beside                     uint64            // packets that other flows of the trial lost meanwhile
	Peer                       *model.PeerReport // what the receiver said, if it is no pelt

	Received    uint64 // distinct sequences
	Late        uint64 // arrived after the account was closed
	WrongLength uint64 // arrived with another length than ordered
	SocketDrops uint64 // that the receiving sockets dropped; meaningless unless SocketKnown
	SocketKnown bool
	Unread      uint64 // left in the sockets at the end
	Unmoved     uint64 // came from another address than their stream had at the time
	// that the receiving end took off the device before the kernel's own path, the warm-up and whatever did not count
	// included; 0: none
	TakenOff     uint64
	Broken       uint64        // of them, with a wrong checksum
	Overrun      uint64        // of them, too far ahead to be accounted for
	Missing      []model.Marks // by stream; meaningless unless MissingKnown
	MissingKnown bool
	StillCame    bool // packets still came when the receiver's wait for them was over

	Fragments   int     // IP packets of one datagram; 0 and 1 mean one
	PacketBytes int     // of each as a queue counts it, with Ethernet's header; 0 unknown
	DurationS   float64 // of the measured part
	BufferBytes int     // of each receiving socket; 0 unknown

	// Nodes of the path in this flow's travel order, the sender first and the
	// receiver last. One that nobody watched has a nil Observation.
	Nodes []Node
}

// Node is one node of the path as the flow passes it.
type Node struct {
	Name        string
	Observation *model.Observation
	In, Out     []string // its interfaces toward the sender and the receiver, where known
}
