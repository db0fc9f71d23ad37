package model

import (
	"math"
	"net/netip"
	"time"

	"pelt/unit"
)

// PairSeparator stands between the hosts of a pair: fra-1..ams-2. "up" goes from the first to the second.
const PairSeparator = ".."

// Protocol is a transport protocol: UDP or TCP.
type Protocol string

const (
	UDP Protocol = "udp"
	TCP Protocol = "tcp"
)

// Names of the two ends of a path. In the lab they are nodes; between real
// hosts the sender is where the command was typed, or the plan's near host.
const (
	Sender   = "sender"
	Receiver = "receiver"
)

// AnotherNamespace begins the name of a place on a node's machine, outside of all namespaces that are known as nodes.
const AnotherNamespace = "another namespace"

// Plan is everything needed to run an experiment, and to run it again.
type Plan struct {
	Format  string `json:"format"`
	Command string `json:"command"`         // preset that made it: "curve", ...
	Target  string `json:"target"`          // HOST[:PORT], lab:NAME or fleet:NAME
	Links   []Link `json:"links,omitempty"` // lab targets only
	// Receivers are how many a lab:star has: each flow to the receiver goes to each
	// of them, with the rate that it says. 0 is a path with one.
	Receivers int      `json:"receivers,omitempty"`
	Flows     []Flow   `json:"flows"`
	Factors   []Factor `json:"factors,omitempty"`
	Design    Design   `json:"design"`
	Timing    Timing   `json:"timing"`
	Engine    string   `json:"engine"` // auto, udp, xdp, or xdp:udp and the like: the sender's and the receiver's
	// MaxLossRatio is what a combination may lose: else a run ends with exit code 3. nil: any share.
	MaxLossRatio *float64 `json:"max_loss_ratio,omitempty"`
	Drops        DropMode `json:"drops,omitempty"` // how closely drops are watched; "" means as closely as the hosts can
	// DUT is a router under test that is watched: from this host, which asks it over
	// ssh, ssh://[USER@]HOST[:PORT], or "lab" for a lab's own.
	DUT string `json:"dut,omitempty"`
	// Near is where the sender's agent is served, HOST[:PORT]; "" is this host.
	Near string `json:"near,omitempty"`
	// Device is the interface of this host, or its VRF, over which it calls the target; "": its routes choose.
	Device   string    `json:"device,omitempty"`
	Variants []Variant `json:"variants,omitempty"` // levels of the knob variant
	// Timed are changes of a lab during each trial, in the order of their times.
	Timed []TimedChange `json:"timed,omitempty"`
	// Hosts are those of a fleet that take part: of one sender and many receivers the sender first.
	Hosts []string `json:"hosts,omitempty"`
	// AtOnce has all pairs of a mesh measured beside each other; else no two of them share a host.
	AtOnce bool `json:"at_once,omitempty"`
}

// Flow is one direction between two ends with one traffic profile.
type Flow struct {
	Name         string    `json:"name"` // "up" is sender to receiver, "down" the reverse
	Protocol     Protocol  `json:"protocol"`
	From         string    `json:"from"`
	To           string    `json:"to"`
	PayloadBytes int       `json:"payload_bytes"`           // UDP: datagram 16..65507; TCP: bytes per write 1..1 MiB
	Rate         unit.Rate `json:"rate"`                    // of the whole flow, shared evenly by its streams
	Burst        int       `json:"burst,omitempty"`         // due packets that may leave back to back; 0: none
	Profile      *Profile  `json:"profile,omitempty"`       // UDP: how packets are spread over time; nil: evenly
	Streams      int       `json:"streams"`                 // 1..128
	Packets      uint64    `json:"packets,omitempty"`       // UDP: of all streams, then it ends; 0: as many as fit
	Family       int       `json:"family,omitempty"`        // 4 or 6; 0 means whichever the target has
	DSCP         int       `json:"dscp,omitempty"`          // 0..63
	DontFragment bool      `json:"dont_fragment,omitempty"` // UDP: set DF
	// first of Streams consecutive local ports; 0 means ephemeral
	SourcePort int `json:"source_port,omitempty"`
	// SourceAddresses are local addresses of the end that calls, which its streams
	// take in turn; none leaves the choice to the system.
	SourceAddresses []netip.Addr `json:"source_addresses,omitempty"`
	Connections     string       `json:"connections,omitempty"` // TCP: many; rate or keep
	// TCP: large writes with Nagle; else TCP_NODELAY
	Bulk           bool    `json:"bulk,omitempty"`
	Control        string  `json:"control,omitempty"`              // TCP: name, or several joined by +
	Bytes          uint64  `json:"bytes,omitempty"`                // TCP in bulk: of all streams; 0: no end
	InfoSeconds    float64 `json:"info_s,omitempty"`               // TCP in bulk: between readings
	HTTP           bool    `json:"http,omitempty"`                 // TCP: the bytes are an HTTP answer
	StaggerSeconds float64 `json:"stagger_s,omitempty"`            // TCP: from one stream's begin to the next
	Segments       int     `json:"segments,omitempty"`             // UDP: packets of one buffer
	MSS            int     `json:"mss_bytes,omitempty"`            // TCP: most of a segment; 0: what the path has
	Window         int     `json:"window_bytes,omitempty"`         // TCP: SO_SNDBUF and SO_RCVBUF; 0: they grow
	SendBuffer     int     `json:"send_buffer_bytes,omitempty"`    // UDP: SO_SNDBUF; 0: chosen
	ReceiveBuffer  int     `json:"receive_buffer_bytes,omitempty"` // UDP: SO_RCVBUF; 0: chosen
	Joined         bool    `json:"joined,omitempty"`               // UDP: UDP_GRO at the receiver
	// Address is where To listens, if a run knows. It is no part of a plan.
	Address netip.Addr `json:"-"`
}

// EngineAuto takes sockets for what they carry, and frames beyond.
const EngineAuto = "auto"

// Engines are what a plan may ask for. TCP flows are carried by the engine tcp.
var Engines = []string{EngineAuto, "udp", "xdp", "udp:xdp", "xdp:udp", "xdp:xdp"}

// socketsCarryPPS is the highest rate of a stream that auto leaves to sockets. They carry more, so that
// a busy machine has room: one sending thread of a lab with two busy cores 160 kpps and more,
// one receiving thread with pelt's buffer 300 kpps and more.
const socketsCarryPPS = 100e3

// SocketsCarry reports whether each stream's asked rate is one that sockets carry.
func (f Flow) SocketsCarry() bool {
	pps, paced := f.Rate.PPS(f.PayloadBytes)
	return paced && pps/float64(max(f.Streams, 1)) <= socketsCarryPPS
}

// Factor is one knob and the levels it takes.
type Factor struct {
	Knob   string  `json:"knob"`
	Levels []Value `json:"levels"`
}

// Design says how trials are chosen.
type Design struct {
	Repeats int    `json:"repeats"` // trials of each cell, 1..1000
	Seed    uint64 `json:"seed"`    // order of cells within each repeat
	Ordered bool   `json:"ordered"` // keep the cells in the order given instead of shuffling them within each repeat
	// Paired trials of one repeat meet the same draws of the emulated links, which differ from repeat to repeat.
	Paired bool `json:"paired,omitempty"`
	// Redo is how often a trial may be run again in place of one that is invalid.
	Redo int `json:"redo,omitempty"`
	// Cells are all there are, in place of every combination of factors.
	Cells []Cell `json:"cells,omitempty"`
	// Search looks for the highest rates that meet goals; nil: no rate is searched.
	Search *Search `json:"search,omitempty"`
}

// Timing is the clock of every trial, in seconds.
type Timing struct {
	// before it all: only the probe is sent; 0: no probe where none is needed
	LeadSeconds    float64 `json:"lead_s,omitempty"`
	WarmupSeconds  float64 `json:"warmup_s"`          // sent, not counted
	MeasureSeconds float64 `json:"measure_s"`         // counted
	DrainSeconds   float64 `json:"drain_s"`           // longest wait for packets still on their way
	QuietSeconds   float64 `json:"quiet_s,omitempty"` // silence that ends it; 0: a quarter, at most 1 s
	// PatienceSeconds is how long a trial goes on while its hosts do not hear each
	// other; 0 is the usual time, below 3 s.
	PatienceSeconds float64 `json:"patience_s,omitempty"`
}

// Lead, Warmup, Measure and Drain give the timing as durations.
func (t Timing) Lead() time.Duration    { return seconds(t.LeadSeconds) }
func (t Timing) Warmup() time.Duration  { return seconds(t.WarmupSeconds) }
func (t Timing) Measure() time.Duration { return seconds(t.MeasureSeconds) }
func (t Timing) Drain() time.Duration   { return seconds(t.DrainSeconds) }

// Patience is how long hosts that do not hear each other go on, 0 for the usual time.
func (t Timing) Patience() time.Duration { return seconds(t.PatienceSeconds) }

// Quiet is the silence that ends a drain, 0 for the usual one.
func (t Timing) Quiet() time.Duration { return seconds(t.QuietSeconds) }

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// Source is the local address of a stream of the end that calls; the zero address leaves it to the system.
func (f Flow) Source(stream int) netip.Addr {
	if len(f.SourceAddresses) == 0 {
		return netip.Addr{}
	}
	return f.SourceAddresses[stream%len(f.SourceAddresses)]
}
