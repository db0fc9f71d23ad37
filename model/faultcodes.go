package model

// Codes of reasons why a host refuses an order, or why an end of a flow failed.
const (
	AtHost    = "at-host" // Of: what happened at the Node, Name its address or name
	OfFlow    = "of-flow" // Of: what happened to an end of the Flow
	HostFault = "host-fault"
	Several   = "several" // Of: all that happened

	EngineCarriesNot = "engine-carries-not"
	EngineRole       = "engine-role"
	CallerOpens      = "caller-opens"
	LinuxConnections = "linux-connections"
	LinuxDSCP        = "linux-dscp"
	LinuxMSS         = "linux-mss"
	LinuxControl     = "linux-control"
	LinuxArrival     = "linux-arrival"
	LinuxOnePort     = "linux-one-port"
	SystemDSCP       = "system-dscp"
	SystemJoins      = "system-joins"
	SystemCuts       = "system-cuts"
	KernelJoins      = "kernel-joins"
	KernelCuts       = "kernel-cuts"
	ControlRoot      = "control-root"
	ControlMissing   = "control-missing"
	NotOwnAddress    = "not-own-address"

	IperfProbes  = "iperf-probes"
	IperfStreams = "iperf-streams"
	IperfWarmup  = "iperf-warmup"
	IperfPackets = "iperf-packets"
	IperfUnasked = "iperf-unasked"

	OnlyObserves   = "only-observes"
	EngineNotThere = "engine-not-there"
	RecordsNothing = "records-nothing"
	CallsNoOwn     = "calls-no-own"
	CallsNobody    = "calls-nobody"
	CallsOthers    = "calls-others"
	CalledInVain   = "called-in-vain"
	WatchersFull   = "watchers-full"
	SessionsFull   = "sessions-full" // as its limits say
	SessionsMost   = "sessions-most"
	MemoryFull     = "memory-full"
	StreamsFull    = "streams-full"
	ProbesFast     = "probes-fast"
	TrialLong      = "trial-long"
	RateMaxRefused = "rate-max-refused"
	RateRefused    = "rate-refused"
	HostNotThere   = "host-not-there"

	// Why a trial was cut, or a host does not take part any more.
	HostSilent       = "host-silent"
	ControllerSilent = "controller-silent"
	ConnectionLost   = "connection-lost"
	HubLost          = "hub-lost"
	HubClosed        = "hub-closed"
	PeltStopped      = "pelt-stopped" // Name: pelt serve or pelt join
	OutOfTime        = "out-of-time"
	SenderUntold     = "sender-untold"
	StreamsUntold    = "streams-untold"
	CircuitBroken    = "circuit-broken"
	AnswerLong       = "answer-long"
	RestMissing      = "rest-missing"
	RecordLong       = "record-long"
	RecordFull       = "record-full"
	AgentBusy        = "agent-busy"
	NobodyThere      = "nobody-there"
	ControlGone      = "control-gone"
	AnswerLate       = "answer-late"
	HostTaken        = "host-taken"
	HubLate          = "hub-late"
	MessageLong      = "message-long"
	HubForbids       = "hub-forbids"
	NoSession        = "no-session"

	// Why sockets failed.
	SendHopeless       = "send-hopeless" // every packet is refused
	SendOver           = "send-over"     // no packet is taken any more
	CutsWhole          = "cuts-whole"
	CutsUnsummed       = "cuts-unsummed"
	FragmentsForbidden = "fragments-forbidden"
	HostForbids        = "host-forbids"
	RouteProhibits     = "route-prohibits"
	RouteBlackholes    = "route-blackholes"
	RouteRefusesUDP    = "route-refuses-udp"
	OpenFailed         = "open-failed"
	PortTaken          = "port-taken"
	ListenFailed       = "listen-failed"
	LocalPortTaken     = "local-port-taken"
	ClosedBefore       = "closed-before"
	StrangerAnswers    = "stranger-answers"
	ConnectFailed      = "connect-failed"
	StreamsEnded       = "streams-ended"
)
