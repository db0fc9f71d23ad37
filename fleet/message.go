package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"pelt/engine"
	"pelt/model"
)

const helloSubject = "pelt.hello"

// orderSubject is where a client gives an agent an order. The server checks that the client is the one that it is.
func orderSubject(agent, verb, client string) string {
	return "pelt.agent." + agent + "." + verb + "." + client
}

// Bounds that hold whatever a host's limits say; they bound memory and sockets.
const (
	maxEnds      = 300 // of a session at one agent: flows to 256 receivers, and their order fits a message
	maxEndNumber = 1 << 16
	maxWatched   = 300 // flows that a watcher tells apart, on both its sides
	maxGateWait  = 10 * time.Second
	maxIdle      = 2 * time.Second
)

var sessionName = regexp.MustCompile(`^[0-9a-f]{32}\.[0-9a-f]{32}$`)

// sessionOrder is part of each order about a session. It is all of release.
type sessionOrder struct {
	Session string `json:"session"` // CLIENT.SESSION
}

func (o sessionOrder) name() string { return o.Session }

func (o sessionOrder) check() error {
	if !sessionName.MatchString(o.Session) {
		return errors.New("session: want two names of 32 hex digits")
	}
	return nil
}

// prepareOrder opens ends, and the session if it is its first. A watcher takes no ends.
type prepareOrder struct {
	sessionOrder
	Ends  []endOrder     `json:"ends,omitempty"`
	Drops model.DropMode `json:"drops,omitempty"` // how closely to watch the kernel; "" for not at all
	Live  bool           `json:"live,omitempty"`  // somebody watches: tell how busy cores are, and what the kernel drops
}

// endOrder is one end of a flow.
type endOrder struct {
	End    int    `json:"end"` // number of the end within the session
	Engine string `json:"engine"`
	Peer   string `json:"peer"` // agent of the other end
	// Counts: packets from the peer show that the controller lives. Never set in both directions.
	Counts bool         `json:"counts,omitempty"`
	Order  engine.Order `json:"order"`
}

// check finds the first thing that is wrong with the order itself, whoever obeys it.
func (p prepareOrder) check() error {
	if err := p.sessionOrder.check(); err != nil {
		return err
	}
	if len(p.Ends) > maxEnds {
		return fmt.Errorf("ends: want at most %d, not %d", maxEnds, len(p.Ends))
	}
	if err := checkDrops(p.Drops); err != nil {
		return err
	}
	seen := map[int]bool{}
	for i, e := range p.Ends {
		switch {
		case e.End < 0 || e.End > maxEndNumber || seen[e.End]:
			return fmt.Errorf("ends[%d].end: %d is out of range or stands twice", i, e.End)
		case !model.IsHostName(e.Peer) || e.Peer == controllerName:
			return fmt.Errorf("ends[%d].peer: want the name of another agent", i)
		case e.Order.Timing != p.Ends[0].Order.Timing || e.Order.Trial != p.Ends[0].Order.Trial:
			return fmt.Errorf("ends[%d]: all ends of a trial have one number and one timing", i)
		}
		if err := e.Order.Check(); err != nil {
			return fmt.Errorf("ends[%d].%w", i, err)
		}
		seen[e.End] = true
	}
	return nil
}

func checkDrops(mode model.DropMode) error {
	if !slices.Contains([]model.DropMode{"", model.DropsOff, model.DropsCount, model.DropsSeq}, mode) {
		return errors.New("drops: want seq, count or off")
	}
	return nil
}

// What prepare, connect and drain answer, by end.
type (
	portsAnswer    map[int][]uint16
	meetingsAnswer map[int]meetingAnswer
	receivedAnswer map[int]uint64 // distinct packets that a receiver has
)

// connectOrder has the ends that call seek their peers, or those that listen wait for them.
type connectOrder struct {
	sessionOrder
	Listen bool `json:"listen,omitempty"`
	// Over ends the wait: all that call have given up, or met.
	Over bool `json:"over,omitempty"`
}

// armOrder has the ends make themselves ready. Dead lists the streams of each end that carry nothing; an end of which
// that are all takes no part any more.
type armOrder struct {
	sessionOrder
	Dead map[int][]int `json:"dead,omitempty"`
}

func (o armOrder) check() error {
	for n, dead := range o.Dead {
		if len(dead) > model.MaxStreams {
			return fmt.Errorf("arm: end %d: %d streams", n, len(dead))
		}
	}
	return o.sessionOrder.check()
}

// armAnswer says what part of the time that receivers took to read is no round trip.
type armAnswer struct {
	HeldNanos int64 `json:"held_ns,omitempty"`
}

// startOrder lets senders and probers go after a wait.
type startOrder struct {
	sessionOrder
	WaitNanos int64 `json:"wait_ns"`
}

func (o startOrder) check() error {
	if wait := time.Duration(o.WaitNanos); wait < 0 || wait > maxGateWait {
		return fmt.Errorf("start: a wait of %v; want 0 to %v", wait, maxGateWait)
	}
	return o.sessionOrder.check()
}

// drainOrder tells receivers what their senders attempted.
type drainOrder struct {
	sessionOrder
	Attempted map[int][]uint64 `json:"attempted"`        // by end, of each stream
	Unsent    map[int]uint64   `json:"unsent,omitempty"` // by end: of all those, what never left the sender
}

// observeOrder has the host's counters read: at the start, with an idle window before, or
// at the end, once they stand still.
type observeOrder struct {
	sessionOrder
	Moment    model.Moment `json:"moment,omitempty"`
	IdleNanos int64        `json:"idle_ns,omitempty"`
	Lost      bool         `json:"lost,omitempty"` // packets are missing
	// For a watcher: each trial has an observation of its own; 0 ends the last one.
	Trial uint16         `json:"trial,omitempty"`
	Drops model.DropMode `json:"drops,omitempty"`
	// MeasuredNanos is the longest that the measured part takes.
	MeasuredNanos int64         `json:"measured_ns,omitempty"`
	Flows         []watchedFlow `json:"flows,omitempty"` // that begin to be watched
}

// watchedFlow names the ports of a flow's streams on one side of a router, or without them the tag of the packets by
// which its ends find each other.
type watchedFlow struct {
	Flow         string        `json:"flow"`
	Packets      uint64        `json:"packets,omitempty"` // of the whole flow, 0 if unknown
	PayloadBytes int           `json:"payload_bytes"`
	Tuples       []model.Tuple `json:"tuples,omitempty"`
	Alone        bool          `json:"alone,omitempty"` // as that of an engine.Order
	Tag          uint16        `json:"tag,omitempty"`
}

func (o observeOrder) check() error {
	moments := []model.Moment{"", model.MomentIdle, model.MomentStart, model.MomentMeasure, model.MomentEnd}
	switch {
	case !slices.Contains(moments, o.Moment):
		return errors.New("moment: want idle, start, measure or end")
	case o.IdleNanos < 0 || o.IdleNanos > maxIdle.Nanoseconds():
		return fmt.Errorf("idle_ns: want 0 to %v", maxIdle)
	case o.MeasuredNanos < 0:
		return errors.New("measured_ns: want 0 or more")
	case o.Trial >= engine.WarmupBit:
		return fmt.Errorf("trial: want 0 to %d, not %d", engine.WarmupBit-1, o.Trial)
	case len(o.Flows) > maxWatched:
		return fmt.Errorf("flows: want at most %d, not %d", maxWatched, len(o.Flows))
	}
	for i, f := range o.Flows {
		switch {
		case f.Flow == "" || model.Clip(f.Flow) != f.Flow:
			return fmt.Errorf("flows[%d]: want a short name", i)
		case len(f.Tuples) > model.MaxStreams:
			return fmt.Errorf("flows[%d]: want the ports of at most %d streams, not %d", i, model.MaxStreams, len(f.Tuples))
		case f.PayloadBytes < 0 || f.PayloadBytes > 1<<16:
			return fmt.Errorf("flows[%d]: no payload of %d B", i, f.PayloadBytes)
		}
	}
	if err := checkDrops(o.Drops); err != nil {
		return err
	}
	return o.sessionOrder.check()
}

type stopOrder struct {
	sessionOrder
	Why string `json:"why"`
	// Senders ends the senders alone, and is answered when they have ended: the receivers are drained then.
	Senders bool `json:"senders,omitempty"`
}

// reportOrder asks for one part of the report, or of what the watched router is. Final ends
// whatever still runs; a router is asked what it is after the last trial.
type reportOrder struct {
	sessionOrder
	Final bool `json:"final"`
	Part  int  `json:"part"`
}

// partAnswer is one part of a JSON object that may be too long for one message.
type partAnswer struct {
	Parts int    `json:"parts"`
	Data  []byte `json:"data"`
}

// recordOrder fetches blocks of a session's record. What lies before From was
// received. Final says that its receivers have ended.
type recordOrder struct {
	sessionOrder
	From  uint64 `json:"from"` // byte
	Final bool   `json:"final,omitempty"`
}

type recordAnswer struct {
	Data []byte `json:"data,omitempty"` // whole blocks
	Done bool   `json:"done"`           // no more will come
}

// sessionReport is what an agent has to say of a session; ends that have not
// ended are missing.
type sessionReport struct {
	Ends     map[int]engine.Report `json:"ends,omitempty"`
	Watch    *Watched              `json:"watch,omitempty"`
	Observed *model.Observation    `json:"observed,omitempty"`
}

// clamp limits what was reported to what a trial of these flows can hold.
func (r *sessionReport) clamp(flows []model.Flow, t model.Timing) {
	for n, report := range r.Ends {
		report.Clamp(t)
		r.Ends[n] = report
	}
	if r.Watch != nil {
		model.Clamp(r.Watch)
		r.Watch.Series = model.ClampSeries(r.Watch.Series, t.MeasureSeconds+engine.OvertimeSeconds)
	}
	if r.Observed != nil {
		r.Observed.Clamp(flows)
		r.Observed.Series = model.ClampSeries(r.Observed.Series, t.MeasureSeconds+engine.OvertimeSeconds)
	}
}

// beat is the heartbeat of the controller or of an agent.
type beat struct {
	Number  uint64            `json:"number"`            // the highest controller's number known to the sender
	Heard   map[string]uint64 `json:"heard,omitempty"`   // ... and how far each peer is known to have come
	Ended   []int             `json:"ended,omitempty"`   // ends whose run is over
	Alive   []string          `json:"alive,omitempty"`   // peers whose packets came since the last beat
	Cut     string            `json:"cut,omitempty"`     // why the session was cut short
	Samples []sample          `json:"samples,omitempty"` // once a second
	// Counts are what the host's kernel dropped so far, once a second where
	// the trial's account is to be had at any moment.
	Counts *model.Observation `json:"counts,omitempty"`
	Cores  map[int]float64    `json:"cores,omitempty"` // busy share in the last second, for somebody who watches
	AtS    float64            `json:"at_s,omitempty"`  // of the cores, since the measured part began on that host
}

// maxCores is how many cores of a host are told live.
const maxCores = 256

// clampCores limits cores to those that can be.
func clampCores(cores map[int]float64) {
	maps.DeleteFunc(cores, func(core int, _ float64) bool { return core < 0 || core >= maxCores })
	for core, busy := range cores {
		cores[core] = min(max(busy, 0), 1)
	}
}

type sample struct {
	End     int    `json:"end"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Reach   uint64 `json:"reach,omitempty"`  // of a receiver: what is known to have been sent, by what came
	Silent  int    `json:"silent,omitempty"` // of a sender: streams that it ended, as the receiver did not answer
	// AtS is when, since the measured part began on that host; below 0 in the warm-up.
	AtS float64 `json:"at_s"`
}

// reply wraps every answer: an error, or what was asked for.
type reply struct {
	Fault   string          `json:"fault,omitempty"`
	Refusal bool            `json:"refusal,omitempty"` // the fault is an *engine.Refusal
	Taken   bool            `json:"taken,omitempty"`   // the fault is ErrTaken
	Body    json.RawMessage `json:"body,omitempty"`
}

// encodeReply never fails: what cannot be encoded becomes a fault.
func encodeReply(body any, err error) []byte {
	var r reply
	if err == nil {
		r.Body, err = json.Marshal(body)
	}
	if err != nil {
		var refusal *engine.Refusal
		r = reply{Fault: cmp.Or(err.Error(), "it failed"), Refusal: errors.As(err, &refusal), Taken: errors.Is(err, ErrTaken)}
	}
	data, _ := json.Marshal(r) // strings and a valid RawMessage always marshal
	return data
}

// open takes a reply out of its envelope, or the error that is in it.
func open(data []byte) (json.RawMessage, error) {
	r, err := decode[reply](data)
	r.Fault = clipFault(r.Fault)
	switch {
	case err == nil && r.Refusal:
		err = &engine.Refusal{Why: r.Fault}
	case err == nil && r.Taken:
		err = errTaken
	case err == nil && r.Fault != "":
		err = errors.New(r.Fault)
	}
	return r.Body, err
}

// mostFault is the longest error of another host that is told, in bytes.
const mostFault = 1000

func clipFault(text string) string { return strings.ToValidUTF8(text[:min(len(text), mostFault)], "") }

// plainText is a text of another host as it can be shown.
func plainText(s string) string { return model.PrintableText(s) }

// decode reads exactly one JSON object with known fields of the right types. Everything
// that comes from another process passes through it, and then through its type's check
// or clamp; nothing after that checks again. Texts lose what cannot be printed.
func decode[T any](data []byte) (T, error) { return decodeLines[T](data, false) }

// decodeLines is decode; texts keep their line breaks if lines is true.
func decodeLines[T any](data []byte, lines bool) (T, error) {
	var v, zero T
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return zero, errors.New("message: not a JSON object")
	}
	if err := weigh(data, reflect.TypeFor[T]()); err != nil {
		return zero, fmt.Errorf("message: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return zero, fmt.Errorf("message: %s", plainText(err.Error()))
	}
	if _, err := d.Token(); err != io.EOF {
		return zero, errors.New("message: more than one JSON object")
	}
	model.Printable(&v, lines)
	return v, nil
}
