package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
)

// Reason is why a trial is not valid, or a doubt about a trial or a run: its code, what it concerns, and the numbers
// that decided it. Package finding has its words.
type Reason struct {
	Code    string             `json:"code"`
	Flow    string             `json:"flow,omitempty"`
	Node    string             `json:"node,omitempty"`
	Link    string             `json:"link,omitempty"`    // "sender to router"
	Name    string             `json:"name,omitempty"`    // errno, command, timed change, or broken rule of an account
	Text    string             `json:"text,omitempty"`    // error or output of another program
	Numbers map[string]float64 `json:"numbers,omitempty"` // a name ends in its unit
	Names   map[string]string  `json:"names,omitempty"`   // addresses, interfaces, flags and the like, by what each is
	Of      []Reason           `json:"of,omitempty"`      // what it follows from
}

const (
	SenderStarved    = "sender-starved"    // ready to run, but without a core
	SenderStolen     = "sender-stolen"     // the hypervisor ran something else
	SenderCoreFull   = "sender-core-full"  // on its core all the time
	SenderTimerLate  = "sender-timer-late" // asleep past the time it had set
	SenderLate       = "sender-late"       // the system does not tell where the time went
	SenderStalled    = "sender-stalled"
	InterfaceRefused = "interface-refused"
	NothingSent      = "nothing-sent"
	NothingThrough   = "nothing-through" // no stream of any flow found a way: see Meeting
	ReceiverSilent   = "receiver-silent" // on every stream
	PacketTooBig     = "packet-too-big"
	SendRefused      = "send-refused"
	RefusedSince     = "refused-since" // it took packets before
	FramesAstray     = "frames-astray"
	AccountMissing   = "account-missing"
	AccountWrong     = "account-wrong"
	LinkBehind       = "link-behind"
	LinkUnread       = "link-unread"
	TCPWindow        = "tcp-window"
	HostBusy         = "host-busy"
	HostSlept        = "host-slept"
	InterfaceGone    = "interface-gone"
	InterfaceMTU     = "interface-mtu"
	ChangeFailed     = "change-failed"
	PairUnmeasured   = "pair-unmeasured" // of a mesh: a host is gone, busy, or not reached by the other
	TrialCut         = "cut"
	Interrupted      = "interrupted"
	NoPath           = "no-path" // of the rest of a trial that was cut
	StillOpen        = "unfinished"
	ToolStopped      = "tool-stopped" // another tool, Name, ended the test with an error
	FileCut          = "file-cut"     // its file ends before the test did

	// Doubts of an end, with its Node.
	DrainShort        = "drain-short"
	ProbesSilent      = "probes-silent"
	ThreadPlain       = "thread-plain" // without a stream number: the thread of many
	SendBufferCut     = "send-buffer-cut"
	ReceiveBufferCut  = "receive-buffer-cut"
	ICMPCame          = "icmp-came"
	ICMPMore          = "icmp-more"
	FramesPass        = "frames-pass"
	DelaysUnread      = "delays-unread"
	QueueChanged      = "queue-changed"
	ThreadsUnpinned   = "threads-unpinned"
	TurnedAway        = "turned-away"
	EndedEarly        = "ended-early"
	SegmentsUncounted = "segments-uncounted"
	ReadLate          = "read-late"
	WritesHeld        = "writes-held"
	WritesLate        = "writes-late"
	ConnectionsUnmade = "connections-unmade"
	StrangersRefused  = "strangers-refused"
	FilesSpent        = "files-spent"
	StrangeSequences  = "strange-sequences"
	CoresLeftOut      = "cores-left-out"
	MoreDoubts        = "more-doubts"

	// What a watch could not read.
	Unread        = "unread" // Names: interface, of its driver's statistics
	NotUnderstood = "not-understood"
	KeptChanging  = "kept-changing"
	RulesCut      = "rules-cut"
	NotObserved   = "not-observed"
	WarmupCounted = "warmup-counted"
	NoCounters    = "no-counters"

	// Why a kernel's drops are not watched, or are not known by their sequences.
	NotAsked         = "not-asked"
	DropsUnwatched   = "drops-unwatched"
	DropsElsewhere   = "drops-elsewhere" // Name: the system and its processor
	NoBTF            = "no-btf"
	KernelOld        = "kernel-old" // Name: the kernel's release
	NoRights         = "no-rights"
	NoBPF            = "no-bpf"
	ProgramRefused   = "program-refused" // by the verifier of the kernel Name
	WatchFailed      = "watch-failed"
	TracksFull       = "tracks-full"
	PortsShared      = "ports-shared" // with the Flow
	NamesHidden      = "names-hidden"
	NamesUnread      = "names-unread"
	ReasonsUntold    = "reasons-untold"
	PayloadFar       = "payload-far"
	PortsUnfollowed  = "ports-unfollowed"
	PiecesUnfollowed = "pieces-unfollowed"
	NoRoom           = "no-room"
	WarmupDrops      = "warmup-drops"
	ByCounters       = "by-counters" // a router under test

	// Why an engine carries the flows, and how, with the Node of an end.
	SocketsBecause  = "sockets-because" // Of: why no frames do
	SocketsFit      = "sockets-fit"
	SocketsPlanned  = "sockets-planned"
	SocketsAsked    = "sockets-asked" // as the cause of SocketsBecause
	FlowsTCP        = "flows-tcp"
	FramesOut       = "frames-out" // of the interface Name
	FramesIn        = "frames-in"  // by a program on the interface Name
	EngineMissing   = "engine-missing"
	FramesUnoffered = "frames-unoffered"

	// Why XDP frames cannot carry a flow, or a kernel or an interface has no program for them.
	FramesRights    = "frames-rights"
	FramesElsewhere = "frames-elsewhere"
	FramesOldKernel = "frames-old-kernel"
	FramesRole      = "frames-role"
	FramesSegments  = "frames-segments"
	FramesProfile   = "frames-profile"
	FramesCounted   = "frames-counted"
	FramesBuffer    = "frames-buffer"
	FramesJoined    = "frames-joined"
	FramesRecorded  = "frames-recorded"
	FramesLong      = "frames-long"
	FramesLoopback  = "frames-loopback"
	FramesUserLinks = "frames-user-links"
	FramesStar      = "frames-star"
	FramesDevice    = "frames-device"
	FramesIperf     = "frames-iperf"
	FramesUnready   = "frames-unready" // Of: why an interface of a lab's node takes none
	FramesNoPeer    = "frames-no-peer"
	FramesApart     = "frames-apart"
	FramesRealCard  = "frames-real-card"
	FramesQueue     = "frames-queue"
	FramesUnsent    = "frames-unsent" // by the driver
	FramesFull      = "frames-full"
	FramesUncleared = "frames-uncleared"
	NoEthernet      = "no-ethernet"
	NeedsFragments  = "needs-fragments"
	TypesHidden     = "types-hidden"
	VerifierRefuses = "verifier-refuses"
	ProgramRights   = "program-rights"
	ProgramUnfit    = "program-unfit"
	ProgramThere    = "program-there"
	AttachRights    = "attach-rights"
	NoProgramTaken  = "no-program-taken"

	// Why a path MTU is not known, or is a bound.
	MTUFault       = "mtu-fault"
	MTUMayFragment = "mtu-may-fragment" // a system cannot forbid fragments: at the far host without a text
	MTURouteUntold = "mtu-route-untold"
	MTUUnmet       = "mtu-unmet"
	MTUUnanswered  = "mtu-unanswered"
	MTUNothing     = "mtu-nothing"
	MTUUnfinished  = "mtu-unfinished"
	MTUCut         = "mtu-cut"

	// Why a node was not watched, or did not tell.
	NoPelt      = "no-pelt" // it runs iperf3
	Untold      = "untold"
	UntoldFault = "untold-fault"
	ToldLater   = "told-later"
	LinkUntold  = "link-untold"

	// Why a setting would help, or is not the limit, and what else it touches.
	CounterMoved      = "counter-moved"
	PacketsLost       = "packets-lost"
	NeedBuffer        = "need-buffer"
	NeedHalf          = "need-half"
	NeedPages         = "need-pages"
	NeedBurst         = "need-burst"
	NeedBurstBytes    = "need-burst-bytes"
	NeedRing          = "need-ring"
	NeedQueues        = "need-queues"
	NeedSendBuffer    = "need-send-buffer"
	NeedBudget        = "need-budget"
	NeedLooseFilter   = "need-loose-filter"
	NeedDatagrams     = "need-datagrams"
	NeedKernels       = "need-kernels"
	NeedTwice         = "need-twice"
	NeedConnections   = "need-connections"
	NeedSoftirq       = "need-softirq"
	NeedAwake         = "need-awake"
	HoldsAlready      = "holds-already"
	CardMost          = "card-most"
	LinkSlower        = "link-slower"
	LooseAlready      = "loose-already"
	NoteCores         = "note-cores"
	NoteQueues        = "note-queues"
	NoteAnyProgram    = "note-any-program"
	NoteBursts        = "note-bursts"
	NoteChannels      = "note-channels"
	NoteWaiting       = "note-waiting"
	NoteKeptMemory    = "note-kept-memory"
	NoteNoNeighbour   = "note-no-neighbour"
	NoteProgramHalf   = "note-program-half"
	NoteBufferDelays  = "note-buffer-delays"
	NoteKernelSockets = "note-kernel-sockets"
	NoteGroupMemory   = "note-group-memory"
	NoteWholeHost     = "note-whole-host"
	NoteFewerRules    = "note-fewer-rules"
	NoteRing          = "note-ring"
	NoteBudget        = "note-budget"
	NoteSendLess      = "note-send-less"
	NoteWayOut        = "note-way-out"
	NoteForged        = "note-forged"
	NoteNoRoute       = "note-no-route"
	NoteTracked       = "note-tracked"
	NotePower         = "note-power"
	NoteNamespace     = "note-namespace"
	NoteOldRate       = "note-old-rate"

	// Other doubts about a trial.
	NoFrames       = "no-frames"
	SamplesDropped = "samples-dropped"
	BeatsStuck     = "beats-stuck"
	BeatsDropped   = "beats-dropped"
	ControlLost    = "control-lost"
	RecordCut      = "record-cut"
	RecordMisses   = "record-misses"
	RecordFailed   = "record-failed"
	GaveUp         = "gave-up"
	Paused         = "paused"
	GapsDiffer     = "gaps-differ"
	ToldInPart     = "told-in-part"
	LeftOut        = "left-out"
	LogMissed      = "log-missed"
	TriedAgain     = "tried-again"

	// Doubts about a run.
	Unreached     = "unreached"
	OtherHosts    = "other-hosts"
	PathGone      = "path-gone"
	NotStored     = "not-stored"
	NotStoredFrom = "not-stored-from" // a trial on
	NotStoredNow  = "not-stored-now"  // while a trial runs
	EndNotStored  = "end-not-stored"
	NotClosed     = "not-closed"
	NotRemoved    = "not-removed"
	NotRestored   = "not-restored"
	WatchOpen     = "watch-open"
	PayloadTwice  = "payload-twice"
	PayloadLeast  = "payload-least"
	PayloadGuess  = "payload-guess"
	LinesDamaged  = "lines-damaged"
	BytesCut      = "bytes-cut"
)

// reasonStates are the states of trials by the codes of their reasons. The other codes are doubts about a valid trial.
var reasonStates = map[State][]string{
	Invalid: {SenderStarved, SenderStolen, SenderCoreFull, SenderTimerLate, SenderLate, SenderStalled,
		InterfaceRefused, NothingSent, NothingThrough, PacketTooBig, SendRefused, RefusedSince, FramesAstray,
		AccountMissing, AccountWrong, LinkBehind, LinkUnread, LinkUntold, TCPWindow, HostBusy, HostSlept, InterfaceGone,
		InterfaceMTU, ChangeFailed, PairUnmeasured},
	Aborted: {ReceiverSilent, TrialCut, Interrupted, NoPath, StillOpen},
}

// State is the state of a trial with this reason; "" for a doubt, or a code that is not known.
func (r Reason) State() State {
	for state, codes := range reasonStates {
		if slices.Contains(codes, r.Code) {
			return state
		}
	}
	return ""
}

// NewReason makes a reason with what its words need: behind each name a text, or a number as a float64. "flow", "node",
// "link", "name" and "text" are the fields of these names. An empty text takes one back.
func NewReason(code string, named ...any) Reason {
	r := Reason{Code: code}
	fields := map[string]*string{"flow": &r.Flow, "node": &r.Node, "link": &r.Link, "name": &r.Name, "text": &r.Text}
	for i := 0; i < len(named); i += 2 {
		name := named[i].(string)
		switch v := named[i+1].(type) {
		case float64:
			if r.Numbers == nil {
				r.Numbers = map[string]float64{}
			}
			r.Numbers[name] = v
		default:
			text := fmt.Sprint(v)
			if field := fields[name]; field != nil {
				*field = text
			}
			if delete(r.Names, name); text == "" || fields[name] != nil {
				continue
			}
			if r.Names == nil {
				r.Names = map[string]string{}
			}
			r.Names[name] = text
		}
	}
	return r
}

// SystemSaid is what the system said of an error, of a file with its name; "" if the error is none of the system's. The
// rest of an error is a sentence of this program, which is not stored.
func SystemSaid(err error) string {
	var file *fs.PathError
	var system syscall.Errno
	switch {
	case errors.As(err, &file):
		return file.Error()
	case errors.As(err, &system):
		return system.Error()
	}
	return ""
}

// String is the reason without words, for an error that is not shown to users.
func (r Reason) String() string {
	parts := []string{r.Flow, r.Node, r.Link, r.Code, r.Name}
	for _, name := range slices.Sorted(maps.Keys(r.Names)) {
		parts = append(parts, r.Names[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Numbers)) {
		parts = append(parts, fmt.Sprintf("%s=%g", name, r.Numbers[name]))
	}
	for _, of := range r.Of {
		parts = append(parts, of.String())
	}
	parts = append(parts, r.Text)
	return strings.Join(slices.DeleteFunc(parts, func(text string) bool { return text == "" }), ": ")
}

// FirstReason returns the first of several reasons that is one; without a code it is none.
func FirstReason(list ...Reason) (r Reason) {
	if i := slices.IndexFunc(list, func(r Reason) bool { return r.Code != "" }); i >= 0 {
		r = list[i]
	}
	return r
}

// With returns the reason about another node.
func (r Reason) With(node string) Reason {
	r.Node = node
	return r
}

// Doubts are reasons as a document has them.
type Doubts []Reason

// UnmarshalJSON reads also what older versions stored in place of reasons: a sentence (runs of test/testdata/pages), or
// a list of sentences (store/testdata/version1). They are shown as they are.
func (l *Doubts) UnmarshalJSON(b []byte) error {
	var one string
	var many []string
	if json.Unmarshal(b, &one) == nil {
		many = slices.DeleteFunc([]string{one}, func(text string) bool { return text == "" })
	} else if json.Unmarshal(b, &many) != nil {
		return json.Unmarshal(b, (*[]Reason)(l))
	}
	*l = Doubts{}
	for _, text := range many {
		*l = append(*l, Reason{Text: text})
	}
	return nil
}

// Reasons are why a trial is not valid.
type Reasons []Reason

// Bounds of what a reason of another host follows from: how deep, how many at a place, and how many in all.
const (
	mostDeep = 4
	mostOf   = 16
	mostIn   = 64
)

// Clip cuts the texts of reasons that another host told, and what they follow from.
func (l Reasons) Clip() {
	for i := range l {
		room := mostIn
		l[i].clip(mostDeep, &room)
	}
}

func (r *Reason) clip(deep int, room *int) {
	most := min(mostOf, *room)
	if deep == 0 {
		most = 0
	}
	r.Text, r.Of = Clip(r.Text), r.Of[:min(len(r.Of), most)]
	*room -= len(r.Of)
	for i := range r.Of {
		r.Of[i].clip(deep-1, room)
	}
}

// Has reports whether one of the reasons has one of these codes.
func (l Reasons) Has(codes ...string) bool {
	return slices.ContainsFunc(l, func(r Reason) bool { return slices.Contains(codes, r.Code) })
}

// State is the state of a trial with these reasons: valid without any.
func (l Reasons) State() State {
	state := Valid
	for _, r := range l {
		if s := r.State(); s == Aborted || s == Invalid && state == Valid {
			state = s
		}
	}
	return state
}
