package model

import "net/netip"

// Tuple names the two UDP ports of one stream as one host sees them; NAT on the path may change them.
type Tuple struct {
	From uint16 `json:"from"` // the flow's sender
	To   uint16 `json:"to"`   // the flow's receiver
	// Peer is the other end's address as an end's own host sees it; it is not sent.
	Peer netip.Addr `json:"-"`
}

// DropMode says how a host watches the packets its kernel drops.
type DropMode string

const (
	DropsSeq   DropMode = "seq"   // a verdict for every sequence
	DropsCount DropMode = "count" // packets by site
	DropsOff   DropMode = "off"   // counters only
)

// Moment is when a host's counters are read.
type Moment string

// The moments of a trial, in order. Before Start the path is idle but for foreign traffic.
const (
	MomentIdle    Moment = "idle"    // begin of the idle window
	MomentStart   Moment = "start"   // before the warm-up
	MomentMeasure Moment = "measure" // warm-up over; packets are in flight
	MomentEnd     Moment = "end"     // drained, and the counters stand still
)

// Observation is what one host's kernel told about one trial. It covers the
// host's own namespace; the drops cover every namespace of its kernel.
type Observation struct {
	Boot      string        `json:"boot,omitempty"` // the same for hosts that share a kernel
	Namespace uint64        `json:"namespace"`      // inode of the host's network namespace; 0 unknown
	Mode      DropMode      `json:"mode"`           // how drops were watched, off if they were not
	Why       Reasons       `json:"why,omitempty"`  // of a mode below the asked one, or what it does not tell
	Drops     *Drops        `json:"drops,omitempty"`
	Counters  []Counter     `json:"counters,omitempty"` // all that moved, and those that a check needs
	Knobs     []HostSetting `json:"knobs,omitempty"`
	Interface string        `json:"interface,omitempty"` // that carries the test; "" unknown
	Queues    []Queue       `json:"queues,omitempty"`    // at the outputs of the namespace's interfaces
	Routes    []Route       `json:"routes,omitempty"`    // of flows, when the trial was over
	IdleS     float64       `json:"idle_s"`              // length of the idle window; 0 without one
	Unread    Reasons       `json:"unread,omitempty"`    // what could not be read
	Unsettled bool          `json:"unsettled,omitempty"` // the counters still moved when the wait for them was over
	Router    *RouterWatch  `json:"router,omitempty"`    // of the router under test
	Series    []Series      `json:"series,omitempty"`    // of its processors
}

// Site is a place in a kernel where packets were dropped.
type Site struct {
	Reason    string `json:"reason,omitempty"`    // without SKB_DROP_REASON_; "" if the kernel gives none
	Function  string `json:"function,omitempty"`  // kernel function that let go of the packet; "" unknown
	Offset    uint64 `json:"offset,omitempty"`    // within it
	Namespace uint64 `json:"namespace,omitempty"` // inode of the network namespace; 0 unknown
	Interface string `json:"interface,omitempty"` // the packet was at; "" unknown
	Received  bool   `json:"received,omitempty"`  // it had come in through an interface of that namespace
	Address   string `json:"address,omitempty"`   // of that namespace, as the packet met it; "" unknown
}

// Drops are the verdicts of one kernel about the packets of a trial.
type Drops struct {
	Sites []Site      `json:"sites,omitempty"`
	Flows []FlowDrops `json:"flows,omitempty"`
	// What the watch itself could not account for.
	// of the trial, but with no sequence in reach, or of a stream that is not known
	Unreadable  uint64 `json:"unreadable,omitempty"`
	Overwritten uint64 `json:"overwritten,omitempty"` // verdicts lost, because the list's window had moved on
	SitesLost   uint64 `json:"sites_lost,omitempty"`  // packets whose site found no room in the table
	Missed      uint64 `json:"missed,omitempty"`      // drops while the program ran there already: it does not nest
}

// FlowDrops are the verdicts about one flow. A verdict counts only if its
// sequence is missing at the receiver: copies are dropped, too.
type FlowDrops struct {
	Flow string `json:"flow"`
	// Way is "" for test packets. Of a meeting's packets it is WayAsks or WayAnswers; there are counts only.
	Way     string      `json:"way,omitempty"`
	Streams []Marks     `json:"streams,omitempty"` // by stream; a mark is an index of Drops.Sites
	Counts  []SiteCount `json:"counts,omitempty"`
}

// SiteCount is how many packets of a flow one site dropped.
type SiteCount struct {
	Site       int    `json:"site"`                 // index of Drops.Sites
	Packets    uint64 `json:"packets"`              // datagrams of the measured part, segments counted singly
	Unreadable uint64 `json:"unreadable,omitempty"` // of them, as Drops.Unreadable
	Warmup     uint64 `json:"warmup,omitempty"`     // datagrams of the warm-up, not in Packets
	Fragments  uint64 `json:"fragments,omitempty"`  // fragments without a UDP header, not in Packets
}

// IdleSeconds is how long the first trial watches the idle path, to learn the rate of other traffic. Later trials use
// these rates.
const IdleSeconds = 0.5

// Counter is one kernel counter over a trial. Names are those of the kernel's own files: Udp.RcvbufErrors,
// TcpExt.IPReversePathFilter, softnet.dropped, dev.eth0.rx_missed_errors, qdisc.eth0.tbf.1:.drops,
// ethtool.eth0.rx_drops, nft.inet.filter.input.5.packets, conntrack.insert_failed.
type Counter struct {
	Host    string  `json:"host,omitempty"` // node; filled in by who knows it
	Name    string  `json:"name"`
	Scope   string  `json:"scope"` // socket, namespace, device, host
	Unit    string  `json:"unit"`  // datagram, skb, frame, fragment, event
	Before  uint64  `json:"before"`
	After   uint64  `json:"after"`
	Whole   uint64  `json:"whole"`             // moved by, warm-up included; wraps undone
	Measure uint64  `json:"measure"`           // ... since the measured part began
	IdleHz  float64 `json:"idle_hz,omitempty"` // per second in the idle window
	Reset   bool    `json:"reset,omitempty"`   // it went back: its device or rule was made anew, so it tells nothing
}

// Queue is a queueing discipline at the output of an interface.
type Queue struct {
	Interface string  `json:"interface"`
	Kind      string  `json:"kind"`             // tbf, fq_codel, ...
	Handle    string  `json:"handle"`           // 1:
	Inside    bool    `json:"inside,omitempty"` // of another one, which may count its drops, too; told if it dropped
	RateBPS   float64 `json:"rate_bps,omitempty"`
	// QueuedPackets were in it when the measured part began, or when it ended.
	QueuedPackets uint64 `json:"queued_packets,omitempty"`
	LimitPackets  uint64 `json:"limit_packets,omitempty"` // that it holds at most
	LimitBytes    uint64 `json:"limit_bytes,omitempty"`
	BurstBytes    uint64 `json:"burst_bytes,omitempty"` // of its bucket: no longer packet ever fits
	Dropped       uint64 `json:"dropped,omitempty"`     // packets over the trial
	// EarlyDropped of them were dropped to have their sender slow down, not for want of room.
	EarlyDropped uint64 `json:"early_dropped,omitempty"`
}

// Counter is the name of one of the queue's counters.
func (q Queue) Counter(name string) string {
	return "qdisc." + q.Interface + "." + q.Kind + "." + q.Handle + "." + name
}

// ClassfulQueues are kinds of queues that hand packets to others inside of them, as filters of tc tell, and count what
// these filters drop.
var ClassfulQueues = []string{"htb", "hfsc", "prio", "drr", "qfq", "ets"}

// Route is the route that a host has for a flow's packets. Where that leads into a tunnel, the way to the tunnel's far
// end is meant, too.
type Route struct {
	Flow      string    `json:"flow"`
	Kind      RouteKind `json:"kind"`
	Interface string    `json:"interface,omitempty"`
	Device    string    `json:"device,omitempty"`     // kind of the interface, as ip link calls it
	MTU       int       `json:"mtu_bytes,omitempty"`  // of the interface; 0 unknown
	NoCarrier bool      `json:"no_carrier,omitempty"` // of the interface, or of one below it: see At
	NoAnswer  bool      `json:"no_answer,omitempty"`  // the next hop answers no neighbour lookup
	// At is where either is so: the interface, or that which a tunnel's own packets leave by.
	At string `json:"at,omitempty"`
	// Silent is the next hop that does not answer, Gateway whether it is one: else it is where the packets go to.
	Silent  netip.Addr `json:"silent,omitzero"`
	Gateway bool       `json:"gateway,omitempty"`
}

// RouteKind says what a route does with packets.
type RouteKind string

// The kinds of routes.
const (
	RouteUsable      RouteKind = "usable"
	RouteBlackhole   RouteKind = "blackhole"
	RouteProhibit    RouteKind = "prohibit"
	RouteUnreachable RouteKind = "unreachable"
)

// Refuses reports whether packets of the route are dropped.
func (r Route) Refuses() bool { return r.Kind != "" && r.Kind != RouteUsable }

// Fails reports whether no packet gets further by the route.
func (r Route) Fails() bool { return r.Refuses() || r.NoCarrier || r.NoAnswer }

// HostSetting is a setting of a host, or a level that it showed: the highest of a trial.
type HostSetting struct {
	// net.core.rmem_max, eth0.txqueuelen, net.netfilter.nf_conntrack_count, police.1.rate_bps, ...
	Name  string `json:"name"`
	Value string `json:"value"` // as the system writes it
}
