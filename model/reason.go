package model

import (
	"fmt"
	"slices"
	"strings"

	"pelt/unit"
)

// Reason is one cause for which a trial is not valid: its code, what it concerns, and the numbers that decided it.
// Its sentence is made only when it is printed, and nothing reads that sentence.
type Reason struct {
	Code    string             `json:"code"`
	Flow    string             `json:"flow,omitempty"`
	Node    string             `json:"node,omitempty"`
	Link    string             `json:"link,omitempty"`    // "sender to router"
	Name    string             `json:"name,omitempty"`    // errno, command, timed change, or broken rule of an account
	Text    string             `json:"text,omitempty"`    // error or output of another program
	Numbers map[string]float64 `json:"numbers,omitempty"` // a name ends in its unit
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
)

type reasonWording struct {
	code  string
	state State  // of a trial with this reason
	text  string // {name} stands for a field or a number of the reason
}

var reasonWordings = [...]reasonWording{
	{SenderStarved, Invalid,
		"the sender was starved of CPU (its thread ran {run_ratio} of the time that it was late): " +
			"it kept {kept_pps} of {asked_pps}"},
	{SenderStolen, Invalid, "the hypervisor took the sender's CPU for {steal_ratio} of the time that it was late: " +
		"it kept {kept_pps} of {asked_pps}"},
	{SenderCoreFull, Invalid, "the sender's core was full: it kept {kept_pps} of {asked_pps}"},
	{SenderTimerLate, Invalid, "the sender's timer was late: it kept {kept_pps} of {asked_pps}"},
	{SenderLate, Invalid, "the sender was late: it kept {kept_pps} of {asked_pps}"},
	{SenderStalled, Invalid, "the sender's host stalled: it measured {duration_s} of the {ordered_s} ordered"},
	{InterfaceRefused, Invalid, "the sender's interface refused {refused_ratio} of the packets"},
	{NothingSent, Invalid, "nothing was sent"},
	{NothingThrough, Invalid, "no packet of the test came through"},
	{ReceiverSilent, Aborted, "the {node} did not answer for {silent_s}, so the test stopped sending"},
	{PacketTooBig, Invalid, "message too long: it does not fit into one packet of the path"},
	{SendRefused, Invalid, "the sender's kernel refused every packet: {text}"},
	{RefusedSince, Invalid, "the sender's kernel has taken no packet from {since_s} on ({refused_packets} of " +
		"{attempted_packets} were refused): {text}"},
	{FramesAstray, Invalid, "{packets} packets reached the {node} past its XDP program and are not counted; " +
		"use sockets there (--engine xdp:udp)"},
	{AccountMissing, Invalid, "the account of one end is missing"},
	{AccountWrong, Invalid, "the account of one end is impossible ({name})"},
	{LinkBehind, Invalid, "the emulated link {link} fell behind ({late_ratio} of its frames late, " +
		"{overrun_frames} without room, {refused_frames} not handed on)"},
	{LinkUnread, Invalid, "the account of an emulated link is incomplete: {text}"},
	{TCPWindow, Invalid, "the windows of TCP held it back for {held_ratio} of the time, not its congestion " +
		"control (receive window {receive_window_s}, send buffer {send_buffer_s})"},
	{HostBusy, Invalid, "this machine had no CPU time left: it was busy for {busy_ratio} of the time"},
	{HostSlept, Invalid, "the host of the {node} slept for {slept_s}"},
	{InterfaceGone, Invalid, "the interface {name} of the {node} went away"},
	{InterfaceMTU, Invalid, "the MTU of the {node}'s interface {name} changed from {before_bytes} to {after_bytes}"},
	{ChangeFailed, Invalid, "{name} at {at_s} was not made: {text}"},
	{PairUnmeasured, Invalid, "not measured: {text}"},
	{TrialCut, Aborted, "{text}"},
	{Interrupted, Aborted, "interrupted"},
	{NoPath, Aborted, "there was no path until the time of the test was over"},
	{StillOpen, Aborted, "the run was cut, or still goes on: these figures were stored while it ran"},
}

// State is the state of a trial with this reason; "" for a code that is not known.
func (r Reason) State() State {
	for _, w := range reasonWordings {
		if w.code == r.Code {
			return w.state
		}
	}
	return ""
}

// String is the reason as a clause, without its flow.
func (r Reason) String() string {
	template := "{text}"
	for _, w := range reasonWordings {
		if w.code == r.Code {
			template = w.text
		}
	}
	pairs := []string{"{node}", r.Node, "{link}", r.Link, "{name}", r.Name, "{text}", r.Text}
	for name, v := range r.Numbers {
		pairs = append(pairs, "{"+name+"}", reasonNumber(name, v))
	}
	text := strings.NewReplacer(pairs...).Replace(template)
	if text == "" {
		return r.Code
	}
	return text
}

// reasonNumber prints a number in the unit that its name ends in.
func reasonNumber(name string, v float64) string {
	switch name[strings.LastIndexByte(name, '_')+1:] {
	case "ratio":
		return unit.FormatRatio(v)
	case "pps":
		return unit.FormatPPS(v)
	case "s":
		return unit.FormatNanos(v * 1e9)
	case "bytes":
		return unit.FormatSize(int(v))
	case "packets", "frames":
		return unit.FormatCount(uint64(max(v, 0)))
	}
	return fmt.Sprintf("%.3g", v)
}

// Reasons are why a trial is not valid.
type Reasons []Reason

// Has reports whether one of the reasons has one of these codes.
func (l Reasons) Has(codes ...string) bool {
	return slices.ContainsFunc(l, func(r Reason) bool { return slices.Contains(codes, r.Code) })
}

// Kind is the same for reasons that differ in numbers and names only.
func (l Reasons) Kind() string {
	var kinds []string
	for _, r := range l {
		kind := r.Code
		if r.Code == TrialCut {
			kind += " " + r.Text
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, "; ")
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

// mostOfACode is how many reasons of one code are printed.
const mostOfACode = 3

// String prints the reasons as clauses. The flow of a reason is named only if the reasons are about several flows;
// of many with one code the first are printed, and the rest are counted.
func (l Reasons) String() string {
	flows := map[string]bool{}
	count := map[string]int{}
	for _, r := range l {
		if r.Flow != "" {
			flows[r.Flow] = true
		}
		count[r.Code]++
	}
	var clauses []string
	printed := map[string]int{}
	for _, r := range l {
		text := r.String()
		if r.Flow != "" && len(flows) > 1 {
			text = "flow " + r.Flow + ": " + text
		}
		if printed[r.Code]++; printed[r.Code] <= mostOfACode {
			clauses = append(clauses, text)
		}
		if more := count[r.Code] - mostOfACode; more > 0 && printed[r.Code] == count[r.Code] {
			clauses = append(clauses, fmt.Sprintf("and %d more of the kind", more))
		}
	}
	return strings.Join(clauses, "; ")
}
