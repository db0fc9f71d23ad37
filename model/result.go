package model

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"time"

	"pelt/words"
)

// TimeLayout is how files have times: RFC 3339 with as many digits as there are.
const TimeLayout = time.RFC3339Nano

// Document is a whole run: what --json writes and what a run file is read back into.
type Document struct {
	Format  string    `json:"format"`
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	Tool    Tool      `json:"tool"`
	// Arguments are what was typed behind "pelt", without codes; none in runs of before.
	Arguments []string     `json:"arguments,omitempty"`
	Plan      Plan         `json:"plan"`
	Host      []Host       `json:"host"`
	Lab       *LabFacts    `json:"lab,omitempty"`
	Router    *RouterFacts `json:"router,omitempty"`   // of a run that watches one
	PathMTU   []PathMTU    `json:"path_mtu,omitempty"` // of each flow, found before the first trial
	Complete  bool         `json:"complete"`           // the design had no further trial, or nothing came through
	Results   []Result     `json:"results"`
	Findings  []Finding    `json:"findings"`
	Warnings  Doubts       `json:"warnings"`
	// Language is what a report of the run is to be written in. It is the reader's, and in no file.
	Language words.Language `json:"-"`
}

// Tool is the program that measured the run.
type Tool struct {
	Name    string `json:"name,omitempty"` // of another one, whose file was read: iperf3, flent; "" is pelt
	Version string `json:"version"`
}

// LabFacts says how an emulated path was made.
type LabFacts struct {
	Topology string    `json:"topology"`
	Nodes    []string  `json:"nodes"`            // in travel order
	Links    []LabLink `json:"links,omitempty"`  // directions that do anything to packets
	Varied   []string  `json:"varied,omitempty"` // knobs of links that are set for each trial
	// KeptAwake: this machine's processors were kept from sleep, so that nodes and links are on time.
	KeptAwake bool `json:"kept_awake,omitempty"`
}

// LabLink is what one direction of a lab's link does.
type LabLink struct {
	From     string `json:"from"`
	To       string `json:"to"`
	More     int    `json:"more,omitempty"` // receivers of a star whose links do the same
	Backend  string `json:"backend"`        // user, or tbf
	At       string `json:"at,omitempty"`   // node that shapes it; "": one for the purpose
	Settings Link   `json:"settings"`
}

// Host is the environment of one end. An empty string or nil means unknown here.
type Host struct {
	Node          string `json:"node"` // name on the path: sender, receiver, router, ...
	Name          string `json:"name"` // host name
	OS            string `json:"os"`   // GOOS/GOARCH
	Kernel        string `json:"kernel,omitempty"`
	CPU           string `json:"cpu,omitempty"`
	Cores         int    `json:"cores"`
	MemoryBytes   uint64 `json:"memory_bytes,omitempty"`
	Version       string `json:"version"`        // of pelt there
	Boot          string `json:"boot,omitempty"` // the same for hosts that read one monotonic clock
	ClockSource   string `json:"clock_source,omitempty"`
	Governor      string `json:"governor,omitempty"`
	Interface     string `json:"interface,omitempty"` // that carries the test
	Driver        string `json:"driver,omitempty"`
	LinkSpeedBits uint64 `json:"link_speed_bps,omitempty"`
	MTUBytes      int    `json:"mtu_bytes,omitempty"`
	Address       string `json:"address,omitempty"`
	// that the target's name had, too; Address was reached first
	OtherAddresses []string `json:"other_addresses,omitempty"`
	ReceiveBufferB int      `json:"receive_buffer_max_bytes,omitempty"` // net.core.rmem_max
	SendBufferB    int      `json:"send_buffer_max_bytes,omitempty"`    // net.core.wmem_max
	Privileged     bool     `json:"privileged"`                         // may administer its network
	Virtual        bool     `json:"virtual,omitempty"`                  // it runs under a hypervisor
	// TCPSettings are all of net.ipv4.tcp_*, by the words after tcp_; in runs of TCP.
	TCPSettings map[string]string `json:"tcp_settings,omitempty"`
}

// State tells whether a result may be believed.
type State string

const (
	Valid   State = "valid"   // ran as ordered
	Invalid State = "invalid" // the generator or emulator fell short: says nothing about the path
	Aborted State = "aborted" // was cut
)

type Result struct {
	Cell         Cell         `json:"cell"`
	Repeat       int          `json:"repeat"`
	Started      time.Time    `json:"started"`
	State        State        `json:"state"`
	Why          Reasons      `json:"why"` // of a state other than valid
	Engine       string       `json:"engine"`
	EngineReason Doubts       `json:"engine_reason,omitempty"`
	Flows        []FlowResult `json:"flows"`
	Series       []Series     `json:"series"`
	Changes      []Change     `json:"changes,omitempty"`  // of the series
	Observed     []Observed   `json:"observed,omitempty"` // each node, in travel order
	// of all nodes: those that moved, and those that a check needs
	Counters []Counter    `json:"counters,omitempty"`
	Links    []LinkResult `json:"links,omitempty"`  // of a lab's emulated links
	Router   *RouterWatch `json:"router,omitempty"` // of a run that watches one
	Gaps     []ControlGap `json:"control_gaps,omitempty"`
	Made     []MadeChange `json:"timed_changes,omitempty"` // of the plan's, those that came to pass
	// the one before this trial, which measures the rest of the one before
	Outages  []Outage `json:"outages,omitempty"`
	Warnings Doubts   `json:"warnings,omitempty"`
}

// ControlGap is a time in which a trial went on without a word from some of its hosts.
// What they measured meanwhile is in the result.
type ControlGap struct {
	Nodes     []string `json:"nodes"`   // not heard
	StartS    float64  `json:"start_s"` // after the start of the measured part
	DurationS float64  `json:"duration_s"`
}

// Outage is a time in which no packet of a trial came, nor could the trial begin anew. Seconds count from the start of
// the measured part of the first trial.
type Outage struct {
	From      time.Time `json:"from"`
	StartS    float64   `json:"start_s"`
	DurationS float64   `json:"duration_s"` // until the hosts met again, or until the time of the test was over
	BeginS    float64   `json:"begin_s"`    // when the measured part of this trial began
}

// LinkResult is what one direction of an emulated link did in a trial, the warm-up and foreign packets included.
// Frames are those of a wire. What its backend does not tell is nil.
type LinkResult struct {
	From       string   `json:"from"` // nodes
	To         string   `json:"to"`
	Backend    string   `json:"backend,omitempty"`    // user, or tbf in lab link show
	Seed       uint64   `json:"seed,omitempty"`       // 0: its draws cannot be had again
	Frames     uint64   `json:"frames"`               // that came to the link
	Passed     *uint64  `json:"passed,omitempty"`     // of them; nil is unknown, here and below
	Lost       *uint64  `json:"lost,omitempty"`       // as asked
	QueueFull  *uint64  `json:"queue_full,omitempty"` // found no room in the queue before its rate
	Duplicated *uint64  `json:"duplicated,omitempty"`
	Corrupted  *uint64  `json:"corrupted,omitempty"`
	LossRatio  *float64 `json:"loss_ratio,omitempty"` // Lost of Frames; nil too if none came
	AskedRatio float64  `json:"loss_ratio_asked"`     // what the settings come to
	Overrun    uint64   `json:"overrun,omitempty"`    // frames that the emulation was too slow to take
	Refused    uint64   `json:"refused,omitempty"`    // not taken by the node behind, or without memory
	LateRatio  float64  `json:"late_ratio,omitempty"` // by more than 0.5 ms and a tenth of their time
	LateNS     struct {
		P50 int64 `json:"p50"`
		P99 int64 `json:"p99"`
		Max int64 `json:"max"`
	} `json:"lateness_ns,omitzero"` // of departures; Max since the lab was made
}

// Observed says how a node was watched during a trial, and what that watch missed.
type Observed struct {
	Node        string   `json:"node"`
	Mode        DropMode `json:"mode,omitempty"` // "": not observed, which is not zero
	Why         Doubts   `json:"why,omitempty"`  // of a mode below seq, or what it does not tell
	IdleS       float64  `json:"idle_s,omitempty"`
	Unread      Doubts   `json:"unread,omitempty"` // what could not be read
	Unsettled   bool     `json:"unsettled,omitempty"`
	Unreadable  uint64   `json:"unreadable,omitempty"`  // see Drops
	Overwritten uint64   `json:"overwritten,omitempty"` // see Drops
	SitesLost   uint64   `json:"sites_lost,omitempty"`  // see Drops
	Missed      uint64   `json:"missed,omitempty"`      // see Drops
}

// ReceiverShare is what one of many receivers got.
type ReceiverShare struct {
	Node       string  `json:"node"`
	Attempted  uint64  `json:"attempted_packets"`
	Received   uint64  `json:"received_packets"`
	GoodputBPS float64 `json:"goodput_bps"`
}

// Silence says that a receiver did not answer a sender for so long that the sender ended streams to it.
type Silence struct {
	Node    string  `json:"node"`
	Streams int     `json:"streams"` // that ended
	Of      int     `json:"of"`      // streams to that receiver
	AfterS  float64 `json:"after_s"` // without an answer
}

// Move says from when on a stream came to its receiver from another address: a NAT on the path gave it a new one.
type Move struct {
	Stream int            `json:"stream"`
	From   netip.AddrPort `json:"from"`
	To     netip.AddrPort `json:"to"`
	AtS    float64        `json:"at_s"` // after the first packet of the measured part
}

// FlowResult is one flow of one trial. Packets are UDP datagrams; for TCP they are data segments as the sender's
// TCP counted them, and lost ones are those it sent again.
type FlowResult struct {
	Name         string   `json:"name"`
	Protocol     Protocol `json:"protocol"`
	From         string   `json:"from"`
	To           string   `json:"to"`
	PayloadBytes int      `json:"payload_bytes"`
	FrameBytes   int      `json:"frame_bytes"`         // before fragmentation
	Fragments    int      `json:"fragments,omitempty"` // IP packets per datagram, where known and several
	Streams      int      `json:"streams"`
	DurationS    float64  `json:"duration_s"` // of the sender's measured part

	Planned uint64 `json:"planned_packets"`
	// Receivers are each receiver's share of a flow to many, whose figures are
	// sums; the ledger's hosts are then "receivers" and the links "links to receivers".
	Receivers []ReceiverShare `json:"receivers,omitempty"`
	Silent    []Silence       `json:"silent,omitempty"` // what these streams had left is planned, not attempted
	Peer      *PeerReport     `json:"peer,omitempty"`   // Received is by what it reported

	Attempted  uint64 `json:"attempted_packets"`
	Accepted   uint64 `json:"accepted_packets"` // the kernel took them
	Received   uint64 `json:"received_packets"` // distinct sequences
	Duplicates uint64 `json:"duplicate_packets"`
	Reordered  uint64 `json:"reordered_packets"` // RFC 4737 section 3: sequence below the next expected
	Late       uint64 `json:"late_packets"`      // arrived after their place in the account was closed; counted as lost
	Lost       uint64 `json:"lost_packets"`      // attempted - received

	Unheard *Unheard `json:"unheard,omitempty"`
	// Meeting is set where DeadStreams are: what became of the packets by which the ends sought each other.
	Meeting     *Meeting     `json:"meeting,omitempty"`
	DeadStreams []DeadStream `json:"dead_streams,omitempty"` // found no way through; none of their packets is planned
	Moved       []Move       `json:"moved,omitempty"`
	Uneven      *Uneven      `json:"uneven_streams,omitempty"` // UDP: some streams lost much, others nothing

	LossRatio      float64 `json:"loss_ratio"`
	SendPPS        float64 `json:"send_pps"`
	ReceivePPS     float64 `json:"receive_pps"`
	GoodputBPS     float64 `json:"goodput_bps"`
	SendGoodputBPS float64 `json:"send_bps"` // payload bits per second that left

	Delay     *Percentiles `json:"delay_ns,omitempty"`      // one way; absent when the two clocks are not one
	RoundTrip *Percentiles `json:"round_trip_ns,omitempty"` // of the thin probe flow, or TCP's own
	Probe     *ProbeFacts  `json:"probe,omitempty"`         // of a trial with a lead: the same for each of its flows
	JitterNS  float64      `json:"jitter_ns"`               // RFC 3550 section 6.4.1
	SendGap   *Percentiles `json:"send_gap_ns,omitempty"`
	GapCounts []Bucket     `json:"send_gap_counts,omitempty"`
	SendLate  *Percentiles `json:"send_late_ns,omitempty"`           // of each packet, paced UDP
	BurstMax  int          `json:"send_burst_max_packets,omitempty"` // most packets that left in one go
	Pacing    *Pacing      `json:"pacing,omitempty"`                 // of a flow with a profile

	SendErrors map[string]uint64 `json:"send_errors,omitempty"` // errno name -> packets
	TCP        *TCPFacts         `json:"tcp,omitempty"`
	// Connections are the figures of a flow of them, whose TCP is all zero.
	Connections *ConnectionFacts `json:"connections,omitempty"`

	Record             *RecordFacts `json:"record,omitempty"`               // of a flow whose packets were recorded
	ReceiveBufferBytes int          `json:"receive_buffer_bytes,omitempty"` // UDP: of each receiving socket
	TruesizeBytes      int          `json:"truesize_bytes,omitempty"`       // UDP: memory of a queued datagram

	SenderCPU   CPU `json:"sender_cpu"`
	ReceiverCPU CPU `json:"receiver_cpu"`
	// Told are the metrics that a file of another tool has of this flow: every other figure here is unknown. Of pelt's
	// own runs it is empty.
	Told []string `json:"told,omitempty"`

	Ledger Ledger `json:"ledger"`
}

// Uneven are streams of a flow that lost much, beside others that lost next to nothing.
type Uneven struct {
	Streams   []int  `json:"streams"`
	Attempted uint64 `json:"attempted_packets"`
	Lost      uint64 `json:"lost_packets"`
}

// Unheard is what was sent after the receiver was heard last, in a trial for which it has no report. Nobody knows what
// came of it, and no other figure of the flow counts it.
type Unheard struct {
	FromS   float64 `json:"from_s"` // after the start of the measured part
	Packets uint64  `json:"packets"`
}

// Result is a flow's name and settings, without figures. The plan may leave the family open.
func (f Flow) Result(family int) FlowResult {
	return FlowResult{Name: f.Name, Protocol: f.Protocol, From: f.From, To: f.To, PayloadBytes: f.PayloadBytes,
		FrameBytes: FrameBytes(f.Protocol, family, f.PayloadBytes), Streams: f.Streams}
}

// Bare is a flow's name and settings, without figures.
func (f FlowResult) Bare() FlowResult {
	return FlowResult{Name: f.Name, Protocol: f.Protocol, From: f.From, To: f.To, PayloadBytes: f.PayloadBytes,
		FrameBytes: f.FrameBytes, Fragments: f.Fragments, Streams: f.Streams}
}

// AddCounts adds two counts, which a damaged file may have made up: a sum beyond the largest number is that number.
func AddCounts(a, b uint64) uint64 { return a + min(b, math.MaxUint64-a) }

// counts are the packets of a flow that Count adds up.
func (f *FlowResult) counts() []*uint64 {
	return []*uint64{&f.Planned, &f.Attempted, &f.Accepted, &f.Received, &f.Lost, &f.Late, &f.Duplicates, &f.Reordered}
}

// Count adds the packets of another flow.
func (f *FlowResult) Count(o FlowResult) {
	more := o.counts()
	for i, n := range f.counts() {
		*n = AddCounts(*n, *more[i])
	}
	if a, b := f.Unheard, o.Unheard; a != nil && b != nil {
		f.Unheard = &Unheard{FromS: min(a.FromS, b.FromS), Packets: AddCounts(a.Packets, b.Packets)}
	} else if b != nil {
		f.Unheard = b
	}
}

// ProbeFacts are the figures of the thin probe flow beside a trial that only it has.
type ProbeFacts struct {
	Sent     uint64 `json:"sent_packets"` // in the measured part
	Answered uint64 `json:"answered_packets"`
	// IdleNS is the median round trip of the lead, in which nothing else was sent; 0 unknown.
	IdleNS float64 `json:"idle_round_trip_ns,omitempty"`
	// By how much each direction took longer than in the median of the lead; needs no common clock.
	Up       *Percentiles `json:"up_increase_ns,omitempty"`
	Down     *Percentiles `json:"down_increase_ns,omitempty"`
	JitterNS float64      `json:"jitter_ns"` // of the round trips, RFC 3550 section 6.4.1
}

// CPU is the processor time a host spent during the measured part.
type CPU struct {
	ThreadRatio  float64 `json:"thread_ratio"`          // busiest thread of the engine, share of one core 0..1
	HostRatio    float64 `json:"host_ratio"`            // whole host busy, share of all cores 0..1
	SoftirqRatio float64 `json:"softirq_ratio"`         // whole host in softirq, share of all cores 0..1
	BusiestRatio float64 `json:"busiest_ratio"`         // busiest core 0..1
	StealRatio   float64 `json:"steal_ratio,omitempty"` // by the hypervisor, of all cores; in HostRatio
}

// TCPFacts are the figures of a TCP flow that UDP has not.
type TCPFacts struct {
	Writes           uint64  `json:"writes"`
	SentBytes        uint64  `json:"sent_bytes"`
	ReceivedBytes    uint64  `json:"received_bytes"`
	SegmentsOut      uint64  `json:"segments_out"`      // data segments, TCP_INFO tcpi_data_segs_out
	SegmentsIn       uint64  `json:"segments_in"`       // at the receiver, tcpi_data_segs_in
	Retransmits      uint64  `json:"retransmits"`       // tcpi_total_retrans
	SegmentSizeBytes int     `json:"segment_max_bytes"` // tcpi_snd_mss
	Control          string  `json:"control"`           // congestion control in use, read back
	RTTNanos         float64 `json:"rtt_ns"`            // smoothed, at the end
	// In seconds, of all streams together: had data to send, and of that were held back
	// by the peer's window, or by their own buffer (tcpi_busy_time, ...).
	BusyS          float64 `json:"busy_s,omitempty"`
	RwndLimitedS   float64 `json:"rwnd_limited_s,omitempty"`
	SndbufLimitedS float64 `json:"sndbuf_limited_s,omitempty"`
	// SamplesMissed are readings of the series that were not taken in time.
	SamplesMissed uint64      `json:"samples_missed,omitempty"`
	Completion    *Completion `json:"completion,omitempty"` // of a transfer with an end
	PerStream     []TCPStream `json:"per_stream,omitempty"` // of several streams of a transfer
}

// Percentiles summarise a distribution, in nanoseconds.
type Percentiles struct {
	Count uint64  `json:"count"`
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95,omitempty"` // none in runs of before
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
	Mean  float64 `json:"mean"`
	Out   uint64  `json:"out_of_range,omitempty"` // values the histogram could not hold
}

// Bucket is one bar of a histogram: values above the previous bucket's bound up to this one.
type Bucket struct {
	UpToNanos int64  `json:"up_to_ns"`
	Count     uint64 `json:"count"`
}

// Series is one metric over time. A metric's unit is in its name.
type Series struct {
	Metric       string    `json:"metric"` // receive_pps, send_pps, goodput_bps, cpu_softirq_ratio, ...
	Flow         string    `json:"flow,omitempty"`
	At           string    `json:"at"` // node where it was measured
	Core         *int      `json:"core,omitempty"`
	Stream       *int      `json:"stream,omitempty"` // of several
	Layer        string    `json:"layer,omitempty"`  // of packets that ended there, as in a ledger
	Cause        string    `json:"cause,omitempty"`  // of these packets
	StartSeconds float64   `json:"start_s"`          // after the start of the measured part
	StepSeconds  float64   `json:"step_s"`
	Values       []float64 `json:"values"`
}

// Ledger is where each attempted packet of one flow ended: lost = sum of lines + unattributed.
type Ledger struct {
	Lost         uint64 `json:"lost"`
	Unattributed uint64 `json:"unattributed"`
	Lines        []Line `json:"lines"`
	// Possible is where unattributed packets may have been lost: counters moved there that others move as well.
	Possible []Possible `json:"possible,omitempty"`
	Checks   []Check    `json:"checks"`
	// Pacing says why packets were planned and not attempted. They are no losses.
	Pacing []PacingLine `json:"pacing,omitempty"`
}

type Line struct {
	Layer      string     `json:"layer"` // docs/ledger.md lists them in travel order
	Host       string     `json:"host"`
	Cause      string     `json:"cause"`
	Packets    uint64     `json:"packets"`
	Most       uint64     `json:"most,omitempty"`     // where packets is the least: with those that are unattributed
	Confidence string     `json:"confidence"`         // exact-seq, exact-count, bounded, inferred
	Function   string     `json:"function,omitempty"` // kernel function that dropped most of them
	Interface  string     `json:"interface,omitempty"`
	Sequences  []Span     `json:"sequences,omitempty"` // the first of them
	Evidence   []Evidence `json:"evidence"`
	Advice     []Advice   `json:"advice,omitempty"`
}

// Possible is a place that may have lost unattributed packets.
type Possible struct {
	Layer    string     `json:"layer"`
	Host     string     `json:"host"`
	Cause    string     `json:"cause"`
	Most     uint64     `json:"most"` // so many of them
	Evidence []Evidence `json:"evidence,omitempty"`
}

// JoinPossible adds up what several ledgers say of places, those that hold most first.
func JoinPossible(lists ...[]Possible) (sum []Possible) {
	for _, p := range slices.Concat(lists...) {
		i := slices.IndexFunc(sum, func(o Possible) bool {
			return o.Layer == p.Layer && o.Host == p.Host && o.Cause == p.Cause
		})
		if i < 0 {
			p.Evidence = slices.Clip(p.Evidence)
			sum = append(sum, p)
			continue
		}
		sum[i].Most = AddCounts(sum[i].Most, p.Most)
		sum[i].Evidence = append(sum[i].Evidence, p.Evidence...)
	}
	slices.SortStableFunc(sum, func(x, y Possible) int { return cmp.Compare(y.Most, x.Most) })
	return sum
}

// Join adds the packets of a line about the same place.
func (l *Line) Join(o Line) {
	if max(l.Most, o.Most) > 0 {
		l.Most = AddCounts(max(l.Most, l.Packets), max(o.Most, o.Packets))
	}
	l.Packets = AddCounts(l.Packets, o.Packets)
}

type Span struct {
	Stream int    `json:"stream"`
	From   uint64 `json:"from"`
	Count  uint64 `json:"count"`
}

// Advice is one setting that would address a line of loss, or, without a value, one that would not.
type Advice struct {
	Knob    string `json:"knob"`
	Host    string `json:"host"`
	Present string `json:"present"`
	Value   string `json:"value"`   // for the rate of this flow; "": the present one is not the limit
	Why     Doubts `json:"why"`     // the counter that moved, and the formula
	Command string `json:"command"` // to run on that host
	Undo    string `json:"undo"`
	Note    Doubts `json:"note,omitempty"` // what else it touches; what to do if it is not the limit
}

// Proposes reports whether the setting is to be changed.
func (a Advice) Proposes() bool { return a.Value != "" }

// RoleFact is the role of a setting or a level that decided the cause of a line.
const RoleFact = "fact"

// Evidence is one counter that supports a line, or one fact.
type Evidence struct {
	Counter string `json:"counter"`
	Host    string `json:"host,omitempty"`
	Scope   string `json:"scope"` // packet, socket, namespace, device, host
	Unit    string `json:"unit"`  // datagram, skb, frame, fragment, event
	// Role: primary made the line; confirms or contradicts only supports it; a fact is a setting or a level, with its
	// value as After.
	Role string `json:"role,omitempty"`
	// What a fact is about: the kind of a queue, the number of the filter's, the name of a control group.
	Of        string `json:"of,omitempty"`
	Interface string `json:"interface,omitempty"` // of that queue

	Before uint64 `json:"before,omitempty"`
	After  uint64 `json:"after,omitempty"`
	Delta  uint64 `json:"delta"`
	Excess uint64 `json:"excess,omitempty"` // counted beyond our own loss: foreign traffic
}

type Check struct {
	Name   string   `json:"name"`
	Held   bool     `json:"held"`
	Law    string   `json:"law,omitempty"`    // how it was checked; package ledger has the words
	Counts []uint64 `json:"counts,omitempty"` // in the order of the law
	Words  []string `json:"words,omitempty"`  // hosts and counters, likewise
	Text   string   `json:"text,omitempty"`   // for readers of files; nothing reads it back
}

// Finding is one thing that a run shows, as files keep it. Readers of files get Text; nothing reads it back.
type Finding struct {
	Code    string            `json:"code"`            // finding/words.go has their sentences
	Level   string            `json:"level,omitempty"` // answer, fact, doubt, next, setup
	Numbers []FindingNumber   `json:"numbers"`
	Words   map[string]string `json:"words,omitempty"`
	WordsZH map[string]string `json:"words_zh,omitempty"` // Words in Chinese, in stored runs
	Why     Reasons           `json:"why,omitempty"`      // that the sentence has as {why}
	Text    string            `json:"text,omitempty"`
	Command string            `json:"command,omitempty"` // what to run next
}

// FindingNumber is a figure in base units. Role tells it from others of its metric: best, low, knee.
type FindingNumber struct {
	Metric string  `json:"metric"`
	Role   string  `json:"role,omitempty"`
	Value  float64 `json:"value"`
}
