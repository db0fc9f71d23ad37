// Package advice says which setting would address a line of a ledger.
//
// A line with its evidence and the host's present settings come in; what to
// change, to which value, why, with which command, and how to undo it, goes
// out. It changes nothing itself, and advises nothing without a counter or
// verdict that moved, never to lower a setting, and never what is not the limit.
// Settings come from other hosts: what is not a plain number or name is not used.
package advice

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pelt/ledger"
	"pelt/model"
)

// Context is what is known of the flow and of the host that lost the packets.
type Context struct {
	Knobs         []model.HostSetting // of that host
	RatePPS       float64             // of the whole flow
	Streams       int                 // each has a socket of its own; 0 means 1
	PayloadBytes  int                 //
	BufferBytes   int                 // granted to each receiving socket, as the kernel accounts it; 0 unknown
	TruesizeBytes int                 // of one queued datagram, measured; 0 not measured
	BurstPackets  int                 // the most that were sent in one go; 0 unknown
}

// ContextOf is what the result of a flow tells of its losses.
func ContextOf(f *model.FlowResult) Context {
	return Context{RatePPS: f.SendPPS, Streams: f.Streams, PayloadBytes: f.PayloadBytes,
		BufferBytes: f.ReceiveBufferBytes, TruesizeBytes: f.TruesizeBytes, BurstPackets: f.BurstMax}
}

// stallS is how long a receiving thread may be kept from running: a few
// turns of the scheduler. No measurement stands behind it, so the text names it.
const stallS = 0.010

// For lists the settings that would address a line, the likeliest first. If there is none, it says of at
// most one setting why that is not the limit.
func For(line model.Line, c Context) []model.Advice {
	q := question{line: line, Context: c}
	if line.Packets == 0 || !q.moved("") {
		return nil
	}
	q.Streams, q.BufferBytes = max(q.Streams, 1), max(q.BufferBytes, 0)
	if !(q.RatePPS > 0 && q.RatePPS <= 1e12) {
		q.RatePPS = 0
	}
	var list, without []model.Advice
	cause := ledger.Of(line.Layer, line.Cause).Name
	for _, r := range rows {
		if !slices.Contains(strings.Fields(r.causes), cause) || r.when != nil && !r.when(&q) {
			continue
		}
		a, ok := r.advise(&q)
		a.Host, a.Why = line.Host, append(model.Doubts{q.because()}, a.Why...)
		switch {
		case !ok:
		case a.Proposes():
			a.Command, a.Undo = q.command(a.Knob, a.Value), q.command(a.Knob, a.Present)
			list = append(list, a)
		default:
			without = append(without, a)
		}
	}
	if len(list) == 0 && len(without) > 0 { // once is enough
		list = without[:1]
	}
	return list
}

// question is one line with its context.
type question struct {
	line model.Line
	Context
}

// moved reports whether a counter with the text in its name moved for this line.
func (q *question) moved(text string) bool {
	return slices.ContainsFunc(q.line.Evidence, func(e model.Evidence) bool {
		return e.Delta > e.Excess && e.Role != "contradicts" && strings.Contains(e.Counter, text)
	})
}

// because begins the reason of every piece of advice: the counter that moved.
func (q *question) because() model.Reason {
	for _, e := range q.line.Evidence {
		if e.Delta > e.Excess && e.Role != "contradicts" {
			return model.Reason{Code: model.CounterMoved, Name: e.Counter,
				Numbers: figures{"packets": float64(e.Delta - e.Excess)}}
		}
	}
	return model.Reason{Code: model.PacketsLost, Numbers: figures{"packets": float64(q.line.Packets)}}
}

// knob reads a setting as its host wrote it.
func (q *question) knob(name string) string {
	if name == bufferKnob && q.BufferBytes > 0 {
		return text(uint64(q.BufferBytes))
	}
	for _, k := range q.Knobs {
		if k.Name == name {
			return k.Value
		}
	}
	return ""
}

// number reads a setting that is one whole number.
func (q *question) number(name string) (n uint64, ok bool) {
	return parse(q.knob(name))
}

// of reads such a setting of the line's interface DEV, or of the host; 0 if it is not known.
func (q *question) of(knob string) uint64 {
	name, _ := q.named(knob)
	n, _ := q.number(name)
	return n
}

// named puts the interface of the line into a setting's name; ok is false if it cannot be used.
func (q *question) named(knob string) (name string, ok bool) {
	if !strings.Contains(knob, "DEV") {
		return knob, true
	}
	dev := q.device()
	if strings.HasPrefix(knob, "net.") { // as sysctl(8) writes it
		return strings.Replace(knob, "DEV", strings.ReplaceAll(dev, ".", "/"), 1), dev != ""
	}
	return strings.Replace(knob, "DEV", dev, 1), dev != ""
}

func parse(text string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(text, 10, 53)
	return n, err == nil
}

// parseAll reads a setting of one or more numbers.
func parseAll(text string) (list []uint64, ok bool) {
	for _, word := range strings.Fields(text) {
		n, ok := parse(word)
		if !ok {
			return nil, false
		}
		list = append(list, n)
	}
	return list, len(list) > 0
}

func join(numbers []uint64) string { return strings.Trim(fmt.Sprint(numbers), "[]") }

// plainName is what an interface's name may hold to stand in a command.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,14}$`)

// device is the interface of the line, or of a line of none the only one whose settings
// are known; "" if it cannot be used.
func (q *question) device() string {
	name := q.line.Interface
	if name != "" && !q.hasDevice(name) {
		return "" // another's settings would not address it
	}
	if name == "" {
		for _, k := range q.Knobs {
			if dev, ok := strings.CutSuffix(k.Name, ".txqueuelen"); ok {
				if name != "" && name != dev {
					return ""
				}
				name = dev
			}
		}
	}
	if !plainName.MatchString(name) || strings.Contains(name, "..") {
		return ""
	}
	return name
}

func (q *question) hasDevice(name string) bool { return q.knob(name+".txqueuelen") != "" }

// truesize returns the memory that one queued datagram takes: measured, or by a table of Linux 6.18 over veth.
func (q *question) truesize() (bytes int, measured bool) {
	if q.TruesizeBytes > 0 {
		return q.TruesizeBytes, true
	}
	switch {
	case q.PayloadBytes < 0 || q.PayloadBytes > model.MaxUDPPayload:
		return 2304, false // no datagram
	case q.PayloadBytes <= 64:
		return 832, false
	case q.PayloadBytes <= 512:
		return 1280, false
	}
	return 2304 * (1 + max(q.PayloadBytes-1, 0)/1472), false
}

// buffer is what each receiving socket needs to survive the stall, in bytes.
func (q *question) buffer() uint64 {
	size, _ := q.truesize()
	packets, _ := q.waiting(uint64(q.Streams))
	return ceil(packets * float64(size))
}

func ceil(f float64) uint64 {
	switch {
	case !(f > 0):
		return 0
	case f > 1<<50:
		return 1 << 50
	}
	return uint64(math.Ceil(f))
}

// roundUp rounds up to a multiple.
func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// powerOfTwo rounds up to a power of two.
func powerOfTwo(n uint64) uint64 {
	p := uint64(1)
	for p < n && p < 1<<50 {
		p *= 2
	}
	return p
}

func text(n uint64) string { return strconv.FormatUint(n, 10) }
