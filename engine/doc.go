// Package engine defines what it means to run one end of one flow for one
// trial, and the test packet both ends agree on.
//
// Orders come in, traffic happens, reports go out. An End holds the state; engine/udp,
// engine/tcp and engine/xdp carry its packets. The package knows no plan, no path and no other
// host than the one peer of the flow; who talks to that peer's agent is not
// its business (package fleet does).
package engine

import (
	"context"
	"net/netip"

	"pelt/model"
)

// Host is where an end lives: a machine, or a lab node's network namespace.
type Host interface {
	// Do runs f with the calling goroutine locked to a thread inside the host's
	// network namespace, and returns f's error. Sockets f opens stay there.
	Do(f func() error) error
}

// ThisHost is the machine that this program runs on, in its own network namespace.
type ThisHost struct{}

func (ThisHost) Do(f func() error) error { return f() }

// Meter counts what a receiver sees of one flow. A meter belongs to one flow
// of one trial. Observe may be called concurrently for different streams, never
// for the same one; it must not keep batch.
type Meter interface {
	Observe(stream int, batch []model.Arrival)
	// Received returns distinct packets and their payload bytes so far; it may
	// be called at any time from any goroutine.
	Received() (packets, bytes uint64)
	// Reach is how many packets are known to have been sent by what came so far: of
	// each stream one more than its highest sequence. It may be called as Received.
	Reach() uint64
	// Tally closes the account, after Missing. It must not run beside Observe.
	Tally() model.Tally
	// Missing lists the sequences below attempted that have not come. It must
	// not run beside Observe.
	Missing(stream int, attempted uint64) model.Marks
}

// Role is what an end does in a flow.
type Role string

// The roles. A prober and its echo make the thin flow that measures round-trip times.
const (
	Send    Role = "send"
	Receive Role = "receive"
	Probe   Role = "probe" // sends probes and times the answers; always the dialing end
	Echo    Role = "echo"  // answers probes; always the listening end
)

// Order is everything one end needs to know for one flow of one trial.
type Order struct {
	Flow   model.Flow   `json:"flow"`
	Timing model.Timing `json:"timing"`
	Role   Role         `json:"role"`
	Listen bool         `json:"listen"` // this end waits for the other's consent handshake; else it dials
	Peer   netip.Addr   `json:"peer"`   // dialing end: address of the listening host
	Ports  []uint16     `json:"-"`      // dialing end: the listener's port of each stream, once End.Open knows them
	// measured packets carry Trial, warm-up packets Trial^WarmupBit; never has WarmupBit set, and no other flow has it
	Trial    uint16 `json:"trial"`
	Tag      uint16 `json:"tag"` // tells this flow from others of the same trial on a shared listening port
	Key      []byte `json:"key"` // 32 B shared by the two ends of this flow only, for the consent handshake
	OneClock bool   `json:"one_clock"`
	// MostListed bounds ListBytes, 0 for no more than they are bounded anyway. Whoever obeys the order sets it, by how
	// many ends share its memory.
	MostListed int `json:"-"`
	CPU        int `json:"cpu"` // first core to pin threads to; -1 leaves them free
	// Fallback lets an engine that cannot carry out the order here give it to
	// sockets, and say why.
	Fallback bool `json:"fallback,omitempty"`
	// Sockets makes the xdp engine receive through sockets, and the interface
	// ready for a peer that sends XDP frames.
	Sockets bool `json:"sockets,omitempty"`
	// UnheardNanos has a dialing end give up sooner than it would by itself where nothing is heard; 0 for not.
	UnheardNanos int64 `json:"unheard_ns,omitempty"`
	// Survey makes a prober and its echo search the path MTU in both directions
	// in place of the round-trip time; the prober ends by itself.
	Survey bool `json:"survey,omitempty"`
	// Record asks a receiver of UDP to have every packet of the measured part taken
	// down, under this name.
	Record *model.RecordID `json:"record,omitempty"`
	// Tap is put around the meter of a receiver whose packets are recorded, by the
	// one that gives it the order; nil for none.
	Tap func(Meter) Meter `json:"-"`
}

// StepNanos is the step of every per-second series.
const StepNanos = 1_000_000_000

// Engine makes transports. Its methods may be called concurrently.
type Engine interface {
	// Name is udp, tcp or xdp.
	Name() string
	// Open opens the sockets of one end; see Prepare.
	Open(ctx context.Context, host Host, order Order) (Transport, error)
}

// Report is one end's account of a trial. Only the part of its role is set.
type Report struct {
	Send     *SendReport    `json:"send,omitempty"`
	Receive  *ReceiveReport `json:"receive,omitempty"`
	Probe    *ProbeReport   `json:"probe,omitempty"`
	CPU      model.CPU      `json:"cpu"`                // of this host during the measured part
	PathMTU  int            `json:"path_mtu,omitempty"` // bytes, as the kernel knows it for this destination; 0 unknown
	Warnings model.Reasons  `json:"warnings,omitempty"` // with Node left out
	// Disturbed says what the host did to the measurement, with Node and Flow left out.
	Disturbed model.Reasons `json:"disturbed,omitempty"`
	Engine    string        `json:"engine,omitempty"` // that carried the flow, "" for the ordered one
	Why       model.Reasons `json:"why,omitempty"`    // this engine carried it, and its mode; with Node left out
}

// SendReport is a sender's account of the measured part.
type SendReport struct {
	Planned       uint64             `json:"planned"`
	Attempted     uint64             `json:"attempted"`
	Accepted      uint64             `json:"accepted"`
	Streams       []uint64           `json:"streams"` // attempted by each stream
	DurationNanos int64              `json:"duration_ns"`
	Gap           *model.Percentiles `json:"gap,omitempty"` // between consecutive sends of one stream
	GapCounts     []model.Bucket     `json:"gap_counts,omitempty"`
	Asked         *AskedSends        `json:"asked,omitempty"` // of a flow with a profile
	BurstMax      int                `json:"burst_max"`
	Late          uint64             `json:"late,omitempty"` // slots given up because the sender came too late
	// slots given up while the socket or the interface took no packet
	Held uint64 `json:"held,omitempty"`
	// streams that it ended, as the receiver had not answered for ConsentLasts
	Silent      int    `json:"silent,omitempty"`
	Moved       []Move `json:"moved,omitempty"`        // streams whose receiver came to have another address
	SlotsSilent uint64 `json:"slots_silent,omitempty"` // slots that these had left
	// time a thread waited for the socket to take packets: the longest of the streams
	HeldNanos   int64 `json:"held_ns,omitempty"`
	BufferBytes int   `json:"buffer_bytes,omitempty"` // send buffer granted to each socket; 0 unknown
	// of each packet against its own due time, ns; paced flows only
	Lateness *model.Percentiles `json:"lateness,omitempty"`
	LateTime *LateTime          `json:"late_time,omitempty"` // set when Late is above 0 and the system tells
	// gave up, because this host's kernel took no packet of the order
	Hopeless bool `json:"hopeless,omitempty"`
	// for which it had taken none then, though it had before; 0: it took none at all
	HopelessNanos int64             `json:"hopeless_ns,omitempty"`
	Errors        map[string]uint64 `json:"errors,omitempty"` // errno name -> packets not accepted
	// by stream: the sequences not accepted; a mark is an index of Errnos
	Refused []model.Marks      `json:"refused,omitempty"`
	Errnos  []string           `json:"errnos,omitempty"`
	ICMP    []model.ICMPErrors `json:"icmp,omitempty"` // that came back for packets, the warm-up's included
	// packets offered again, because a batch call hid the answer to the first offer
	Retried    uint64   `json:"retried,omitempty"`
	WarmupSent uint64   `json:"warmup_sent"` // attempted in the warm-up
	PerStep    []uint64 `json:"per_step"`
	// TCP: of this host's monotonic clock: when the first stream began
	BeginNanos int64 `json:"begin_ns,omitempty"`
	// TCP: its own account over time; flow and node are left out
	Series []model.Series  `json:"series,omitempty"`
	TCP    *model.TCPFacts `json:"tcp,omitempty"`
	// Connections are set in place of TCP where they are what the flow is made of.
	Connections *model.ConnectionFacts `json:"connections,omitempty"`
	// Unsent counts packets handed to the interface past the sockets that it did
	// not take, by cause; they are attempted, not accepted.
	Unsent map[string]uint64 `json:"unsent,omitempty"`
	// Peer is set where the sender is another program, which all else is made of what it said by.
	Peer  *model.PeerReport `json:"peer,omitempty"`
	Cable bool              `json:"cable,omitempty"` // that interface is a virtual cable: its ring is at the other end
}

// LateTime says where the time of the sending threads went in the intervals that
// ended with slots given up as late: the sum over the threads, in nanoseconds.
type LateTime struct {
	Nanos     int64 `json:"ns"`
	RunNanos  int64 `json:"run_ns"`  // on a core
	WaitNanos int64 `json:"wait_ns"` // ready to run, without a core (schedstat run_delay)
}

// Plus is the sum of both times, Minus their difference.
func (t LateTime) Plus(o LateTime) LateTime {
	return LateTime{t.Nanos + o.Nanos, t.RunNanos + o.RunNanos, t.WaitNanos + o.WaitNanos}
}
func (t LateTime) Minus(o LateTime) LateTime {
	return LateTime{t.Nanos - o.Nanos, t.RunNanos - o.RunNanos, t.WaitNanos - o.WaitNanos}
}

// AskedSends is what a profile asked of a sender.
type AskedSends struct {
	Gap       *model.Percentiles `json:"gap,omitempty"` // between consecutive slots of one stream
	GapCounts []model.Bucket     `json:"gap_counts,omitempty"`
}

// ReceiveReport is a receiver's account of the measured part.
type ReceiveReport struct {
	Tally model.Tally `json:"tally"`
	// SO_MEMINFO drops of the flow's sockets during the measured part
	SocketDrops uint64 `json:"socket_drops"`
	SocketKnown bool   `json:"socket_known"` // the kernel gave that figure
	BufferBytes int    `json:"buffer_bytes"` // receive buffer granted to each socket
	Unread      uint64 `json:"unread"`       // left in the sockets at the end
	// by stream: the sequences that were attempted and did not come; marks are 0
	Missing []model.Marks `json:"missing,omitempty"`
	// Missing is what it says: the end was told what was attempted
	MissingKnown   bool   `json:"missing_known"`
	StillCame      bool   `json:"still_came,omitempty"` // packets still came when the drain time was over
	WarmupReceived uint64 `json:"warmup_received"`      // distinct or not
	// Peer is set where the receiver is another program, which Tally is made of what it said by.
	Peer *model.PeerReport `json:"peer,omitempty"`
	// of one queued datagram, as the kernel accounts it; 0 not seen
	TruesizeBytes int             `json:"truesize_bytes,omitempty"`
	TCP           *model.TCPFacts `json:"tcp,omitempty"`
	Moved         []Move          `json:"moved,omitempty"`
	// came from another address than their stream had at the time
	Unmoved uint64 `json:"unmoved,omitempty"`
	// Of a receiver that takes packets off the interface:
	Taken   uint64 `json:"taken,omitempty"`   // all of the flow, the warm-up and what did not count included
	Broken  uint64 `json:"broken,omitempty"`  // with a wrong checksum
	Strays  uint64 `json:"strays,omitempty"`  // that came to the sockets instead, some other way
	Overrun uint64 `json:"overrun,omitempty"` // that came too far ahead to be accounted for
}

// Move says that the packets of a stream come from another address than before: a NAT on the path changed.
type Move struct {
	Stream int            `json:"stream"`
	From   netip.AddrPort `json:"from"`
	To     netip.AddrPort `json:"to"`
	Nanos  int64          `json:"ns"` // when it was found: of this host's monotonic clock; of a sender since it began
}

// MostMoves bounds those of a report.
const MostMoves = 256

// ProbeReport is the prober's account of the thin flow.
type ProbeReport struct {
	RoundTrip *model.Percentiles `json:"round_trip,omitempty"`
	Facts     *model.ProbeFacts  `json:"facts,omitempty"` // up is the prober's direction
	// Out and Back are what a survey found in the prober's direction and in the
	// other; without flow, nodes and payload, which are not the engine's to know.
	Out  *model.PathMTU `json:"out,omitempty"`
	Back *model.PathMTU `json:"back,omitempty"`
}

// Refusal says that an order can never run on this host, and why.
type Refusal struct{ Why model.Reason }

func (r *Refusal) Error() string { return r.Why.String() }

// Because is why, for who reads errors of all kinds.
func (r *Refusal) Because() model.Reason { return r.Why }

// Fault is why an end failed, or could not be opened.
type Fault struct {
	Why   model.Reason
	Cause error // nil: of no other error
}

func (f *Fault) Error() string { return f.Why.String() }
func (f *Fault) Unwrap() error { return f.Cause }

// Because is as that of a Refusal.
func (f *Fault) Because() model.Reason { return f.Why }

// Refuse makes a Refusal: see model.NewReason.
func Refuse(code string, named ...any) error { return &Refusal{model.NewReason(code, named...)} }

// Meeting is an end's account of the packets by which it and its peer find each other, before any test packet. Of TCP
// streams that met it counts none.
type Meeting struct {
	Streams []MetStream
	ICMP    []model.ICMPErrors // that came back for them
	Resets  uint64             // of TCP that came back for them: from the peer, or from somebody in its name
}

// MetStream is one stream's part of a meeting.
type MetStream struct {
	Stream
	Met    bool
	Sent   uint64            // packets attempted
	Heard  uint64            // packets of the peer, known by the flow's key
	Errors map[string]uint64 // errno name -> packets of Sent that the kernel did not take
}

// Tuples lists the ports of an end's streams in the direction of its flow; those of a stream that has not met are 0.
func (m Meeting) Tuples(r Role) (list []model.Tuple) {
	for _, s := range m.Streams {
		t := model.Tuple{From: s.Local.Port(), To: s.Remote.Port(), Peer: s.Remote.Addr()}
		if r == Receive || r == Echo {
			t.From, t.To = t.To, t.From
		}
		if !s.Met {
			t = model.Tuple{}
		}
		list = append(list, t)
	}
	return list
}

// Recording takes down, packet by packet, what receivers of one session see. Its
// methods may be called concurrently.
type Recording interface {
	// Tap puts the record of a receiver around its meter.
	Tap(o Order, m Meter) Meter
	// Finish hands over what is left: the receivers have ended. It does not wait.
	Finish()
	// Blocks returns whole blocks of the record from the given byte on, at most a
	// number of bytes, and forgets what lies before. It waits a moment for some, or
	// until ctx ends. done says that no more will come; a recording that needs
	// nobody to fetch its blocks says so at once.
	Blocks(ctx context.Context, from uint64, most int) (blocks []byte, done bool)
	// Close frees everything.
	Close()
}
