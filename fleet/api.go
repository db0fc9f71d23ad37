package fleet

import (
	"net/netip"
	"time"

	"pelt/engine"
	"pelt/model"
)

// protocolVersion is what two peers must share to understand each other.
const protocolVersion = 28

// DefaultPort is the control port of pelt serve; data flows use the port above it.
const DefaultPort = 7358

// Limits are what an agent lets a controller ask. Zero means no limit, except of memory.
type Limits struct {
	MaxSessions    int     `json:"max_sessions"`
	MaxRatePPS     float64 `json:"max_rate_pps"` // of all flows of an order
	MaxRateBPS     float64 `json:"max_rate_bps"` // payload bits per second
	MaxTimeSeconds float64 `json:"max_time_s"`   // warm-up and measured part of one trial
	// OwnFree lifts the rates for a trial whose client and ends are all in own networks: private addresses, and the
	// subnets of the host's interfaces. A client in one is told the rates for others.
	OwnFree   bool    `json:"own_free,omitempty"`
	OthersPPS float64 `json:"others_pps,omitempty"`
	OthersBPS float64 `json:"others_bps,omitempty"`
	// MemoryBytes is how much all sessions may take, 0 for 512 MiB. Clients are not told.
	MemoryBytes float64 `json:"-"`
	// MaxStreams is how many streams all sessions may have. Clients are not told.
	MaxStreams int `json:"-"`
}

// ServeConfig is what pelt serve needs.
type ServeConfig struct {
	HubConfig // of the hub; its Events are told what the agent does, too
	Agent     AgentConfig
	Once      bool // end once the first client that had a trial here is gone
	// Ready, if set, is called once when clients may come, with the address listened on.
	Ready func(netip.AddrPort)
}

// AgentInfo is how an agent introduces itself.
type AgentInfo struct {
	ID       string     `json:"id"`   // unique on its hub
	Node     string     `json:"node"` // name on the path
	Version  string     `json:"version"`
	Protocol int        `json:"protocol"`
	Engines  []string   `json:"engines"`
	Host     model.Host `json:"host"`
	Limits   Limits     `json:"limits"`
	Observer bool       `json:"observer,omitempty"` // it is no end of any flow
	// Address is where the hosts of a fleet call it: what its owner said, else its own in the hub's network.
	Address netip.Addr `json:"address,omitzero"`
	// Seen is where the hub sees it come from: another address than its own behind a NAT. Not set where its
	// owner said the address.
	Seen netip.Addr `json:"seen,omitzero"`
	// Joined is when it joined, by its own clock, its hub of many hosts. Of two of one name the later leaves.
	Joined time.Time `json:"joined,omitzero"`
	// Reached is the address at which this host reached its hub; of a pelt serve only.
	Reached netip.Addr `json:"-"`
}

// BehindNAT reports whether no host outside of the agent's own network can call it.
func (i AgentInfo) BehindNAT() bool { return i.Seen.IsValid() && i.Seen != i.Address }

// Calls returns the address at which an agent of a fleet calls another one; invalid if it cannot.
func (i AgentInfo) Calls(other AgentInfo) netip.Addr {
	if other.BehindNAT() && other.Seen != i.Seen || // not of one network
		other.Address.IsLoopback() && !i.Address.IsLoopback() {
		return netip.Addr{}
	}
	return other.Address
}

// Choice names an engine for one end of a flow.
type Choice struct {
	Engine   string
	Fallback bool // see engine.Order
	Sockets  bool // see engine.Order
}

// PlacedFlow is a flow whose two ends are agents.
type PlacedFlow struct {
	Flow    model.Flow
	Send    Choice     // the sender's engine
	Receive Choice     // the receiver's; the two must understand each other
	From    string     // agent ID of the sender
	To      string     // agent ID of the receiver
	Dialer  string     // From or To: the end that opens the 5-tuples; the other listens
	Listen  netip.Addr // address of the listening host, as the dialer reaches it
	CPU     int        // first core for the sender's threads, -1 free; the receiver's follow
	// Breaker cuts the trial when too much of a UDP flow is lost for long, unless it goes to an own network: nobody
	// asked for the losses.
	Breaker bool
	// Record has the receiver take down every packet; nil for none.
	Record *model.RecordID
}

// Trial is one trial placed on agents.
type Trial struct {
	// 1..0x7fff, of the first flow's packets; the others, and the probe flow, count on by engine.NumberAfter. No flow
	// of the trial before has one of them.
	Number   uint16
	Flows    []PlacedFlow
	Timing   model.Timing
	OneClock bool // all agents read one monotonic clock
	Probe    bool // add the probe: a slow round-trip flow between dialer and listener of the first flow
	// Survey makes each flow, whose engine must be udp, a search of the path MTU
	// between its ends in both directions, in place of traffic. The prober's report is FlowOutcome's
	// Send. The timing's measured part bounds it.
	Survey bool

	// Unheard: the ends sought each other in vain just before, so that they give up after so long; 0 of any other
	// trial.
	Unheard time.Duration

	Live  bool           // somebody watches, and is told how busy cores are
	Drops model.DropMode // how closely agents watch their kernels; "" for not at all, their counters neither
	Idle  time.Duration  // window before the trial in which the path is idle, for the rate of foreign traffic
	// Along are parts at no agent: what watches nodes between the ends, links, and changes of the path. They are led
	// through the trial's steps, and told the ports of the flows as both ends see them if agents watch their kernels;
	// whoever gave them asks for their accounts and closes them.
	Along []engine.Part
	// Record takes blocks of the record as a receiver on another host made them, of one
	// agent in their order, of several at once. An error ends that agent's record.
	// May be nil if no receiver that records is on another host.
	Record func(agent string, blocks []byte) error
}

// Progress is one per-second sample of a running trial: of a flow's end, or of what a
// host's kernel has dropped so far.
type Progress struct {
	// Counts are of the agent's host, in place of what follows but Agent; only of a trial
	// that is watched live or has a reconnect window.
	Counts *model.Observation
	// Cores is the busy share of each core of the agent's host in the last second, in place of
	// what follows but Agent and AtS; only of a trial that is watched live, and once for hosts that are one.
	Cores map[int]float64
	// Cut is why the trial was stopped, in place of all else: its hosts are waited for, for as long as its reconnect
	// window allows.
	Cut model.Reason

	Flow    string // name of the flow
	Role    engine.Role
	Agent   string
	Packets uint64  // cumulative, measured part
	Bytes   uint64  // payload
	Reach   uint64  // of a receiver that knows: packets that were sent, by what came; 0 unknown
	AtS     float64 // since the measured part began, by the end's clock; below 0 in the warm-up
	Silent  int     // of a sender: streams that it ended, as the receiver had not answered for engine.ConsentLasts
}

// FlowOutcome is both ends' account of one flow. An end that was lost left nil, and so do both if all streams are dead.
type FlowOutcome struct {
	Send    *engine.Report
	Receive *engine.Report
	Meeting Meeting
}

// Outcome is what a trial's agents reported.
type Outcome struct {
	Flows []FlowOutcome // in the order of Trial.Flows
	// Unmet: no flow has a stream left, so that nothing was sent.
	Unmet   bool
	Slowest time.Duration // of the hosts' answers to the last orders before their ends sought each other
	Probe   *engine.ProbeReport
	Load    map[string]engine.Load // of hosts, by agent ID
	Cut     model.Reason           // why the trial was cut short; without a code it ran to its end
	Final   bool                   // it was cut for its losses on other people's networks: another try may not follow
	Begun   time.Time              // when the measured part began
	// Observed is what agents saw of their hosts, by agent ID. One that is
	// missing was lost, or observed nothing.
	Observed map[string]model.Observation
	// Gaps are when nothing came over a control connection of a trial with a reconnect window.
	Gaps []Gap
	// Warnings tell what the control plane itself dropped: beats or samples.
	Warnings model.Reasons
}
