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
	"time"

	"pelt/engine"
	"pelt/finding"
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
	maxWatched   = 600 // flows of an order to a watcher, on both its sides
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
		return engine.WrongField("session")
	}
	return nil
}

// makeOrder opens a session, and makes the parts of a trial there: its ends, of which those that listen are open then,
// and what watches the host. A session of one that only watches has no ends; it is there for a whole run, with one
// trial after the other.
type makeOrder struct {
	sessionOrder
	Ends  []endOrder     `json:"ends,omitempty"`
	Trial uint16         `json:"trial,omitempty"` // as Trial.Number; 0 of one that only watches, before its first trial
	Drops model.DropMode `json:"drops,omitempty"` // how closely to watch the kernel; "" for not at all
	// somebody watches: tell how busy cores are, and what the kernel drops
	Live   bool                 `json:"live,omitempty"`
	Timing model.Timing         `json:"timing,omitzero"` // of one that only watches, as its flows; ends have their own
	Flows  []engine.WatchedFlow `json:"flows,omitempty"`
}

// watches reports whether the order begins a trial at one that only watches.
func (p makeOrder) watches() bool { return len(p.Ends) == 0 && p.Trial > 0 }

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
func (p makeOrder) check() error {
	if err := p.sessionOrder.check(); err != nil {
		return err
	}
	if len(p.Ends) > maxEnds {
		return engine.WrongField("ends", "value", len(p.Ends), "most", maxEnds)
	}
	if !slices.Contains([]model.DropMode{"", model.DropsOff, model.DropsCount, model.DropsSeq}, p.Drops) {
		return engine.WrongField("drops", "value", model.Clip(string(p.Drops)))
	}
	if len(p.Ends) > 0 && p.Trial == 0 || p.Trial >= engine.WarmupBit {
		return engine.WrongField("trial", "value", p.Trial, "least", 1, "most", engine.WarmupBit-1)
	}
	if err := p.Timing.Check(); err != nil && p.watches() {
		return engine.InField("timing", err)
	}
	if err := checkFlows(p.Flows); err != nil {
		return err
	}
	seen := map[int]bool{}
	for i, e := range p.Ends {
		switch {
		case e.End < 0 || e.End > maxEndNumber || seen[e.End]:
			return engine.WrongField(fmt.Sprintf("ends[%d].end", i), "value", e.End)
		case !model.IsHostName(e.Peer) || e.Peer == controllerName:
			return engine.WrongField(fmt.Sprintf("ends[%d].peer", i))
		case e.Order.Timing != p.Ends[0].Order.Timing:
			return engine.WrongField(fmt.Sprintf("ends[%d].order.timing", i))
		}
		if err := e.Order.Check(); err != nil {
			return engine.InField(fmt.Sprintf("ends[%d]", i), err)
		}
		seen[e.End] = true
	}
	return nil
}

// doOrder has the parts of a session carry out a step. An end without a living stream takes no part any more.
type doOrder struct {
	sessionOrder
	Step         engine.Step          `json:"step"`
	engine.Known                      // what all parts are told
	Ends         map[int]engine.Known `json:"ends,omitempty"` // what ends are told, by number
}

func (o doOrder) check() error {
	if err := o.sessionOrder.check(); err != nil {
		return err
	}
	if !slices.Contains(engine.Steps, o.Step) || o.Step == engine.Open && len(o.Ends) == 0 {
		return engine.WrongField("step", "value", model.Clip(string(o.Step)))
	}
	if len(o.Ends) > maxEnds {
		return engine.WrongField("ends", "value", len(o.Ends), "most", maxEnds)
	}
	for n, e := range o.Ends {
		if err := checkKnown(e); err != nil {
			return engine.InField(fmt.Sprintf("ends[%d]", n), err)
		}
		if len(e.Flows) > 0 {
			return engine.WrongField(fmt.Sprintf("ends[%d].flows", n))
		}
	}
	return checkKnown(o.Known)
}

// checkKnown checks what all parts are told, or an end is.
func checkKnown(k engine.Known) error {
	if k.Gate < 0 || k.Gate > maxGateWait {
		return engine.WrongField("gate_ns", "value", k.Gate, "least", 0, "most", maxGateWait)
	}
	if k.Window < 0 || k.Window > maxIdle {
		return engine.WrongField("window_ns", "value", k.Window, "least", 0, "most", maxIdle)
	}
	if most := max(len(k.Ports), len(k.Living), len(k.Sent.Streams)); most > model.MaxStreams {
		return engine.WrongField("streams", "value", most, "most", model.MaxStreams)
	}
	return checkFlows(k.Flows)
}

// doAnswer is what make and do answer.
type doAnswer struct {
	Ends map[int]endLearned `json:"ends,omitempty"`
	// HeldNanos is what of the time until the answer is no round trip.
	HeldNanos int64 `json:"held_ns,omitempty"`
}

// endLearned is what an end answers to a step: see engine.Learned.
type endLearned struct {
	Ports    []uint16       `json:"ports,omitempty"`
	Met      *meetingAnswer `json:"met,omitempty"`
	Sent     engine.Sent    `json:"sent,omitzero"`
	Received uint64         `json:"received,omitempty"`
}

func checkFlows(flows []engine.WatchedFlow) error {
	if len(flows) > maxWatched {
		return engine.WrongField("flows", "value", len(flows), "most", maxWatched)
	}
	for i, f := range flows {
		field := fmt.Sprintf("flows[%d].", i)
		switch {
		case f.Name == "" || model.Clip(f.Name) != f.Name:
			return engine.WrongField(field+"name", "value", model.Clip(f.Name))
		case len(f.Tuples) > model.MaxStreams:
			return engine.WrongField(field+"tuples", "value", len(f.Tuples), "most", model.MaxStreams)
		case f.PayloadBytes < 0 || f.PayloadBytes > model.MaxTCPWrite:
			return engine.WrongField(field+"payload_bytes", "value", f.PayloadBytes, "least", 0,
				"most", model.MaxTCPWrite)
		case f.Number == 0 || f.Number >= engine.WarmupBit:
			return engine.WrongField(field+"number", "value", f.Number, "least", 1, "most", engine.WarmupBit-1)
		case f.Protocol != model.UDP && f.Protocol != model.TCP:
			return engine.WrongField(field+"protocol", "value", model.Clip(string(f.Protocol)))
		}
	}
	return nil
}

type stopOrder struct {
	sessionOrder
	Why model.Reason `json:"why"`
}

// What an accountOrder asks for.
const (
	ofTrial  = "trial"  // the account of its parts
	ofRouter = "router" // what the watched router is
	ofRecord = "record" // blocks of the record
)

// accountOrder asks for a part of an account. That of a trial ends whatever still runs. Final: a router is asked what
// it is after the last trial, and the receivers of a record have ended.
type accountOrder struct {
	sessionOrder
	Of    string `json:"of"`
	Final bool   `json:"final,omitempty"`
	From  uint64 `json:"from,omitempty"` // the byte before which all was received; 0 makes the account
}

// accountAnswer is a part of a JSON object that may be too long for one message, or whole blocks of a record.
type accountAnswer struct {
	Data []byte `json:"data,omitempty"`
	Done bool   `json:"done,omitempty"` // no more will come
}

// sessionReport is what an agent has to say of a session; ends that have not
// ended are missing.
type sessionReport struct {
	Ends     map[int]engine.Report `json:"ends,omitempty"`
	Load     *engine.Load          `json:"load,omitempty"`
	Observed *model.Observation    `json:"observed,omitempty"`
}

// clamp limits what was reported to what a trial of these flows can hold.
func (r *sessionReport) clamp(flows []model.Flow, t model.Timing) {
	for n, report := range r.Ends {
		report.Clamp(t)
		r.Ends[n] = report
	}
	if r.Load != nil {
		model.Clamp(r.Load)
		r.Load.Series = model.ClampSeries(r.Load.Series, t.MeasureSeconds+engine.OvertimeSeconds)
	}
	if r.Observed != nil {
		r.Observed.Clamp(flows)
		r.Observed.Series = model.ClampSeries(r.Observed.Series, t.MeasureSeconds+engine.OvertimeSeconds)
	}
}

// beat is the heartbeat of the controller or of an agent.
type beat struct {
	Number  uint64       `json:"number,omitempty"`  // the controller counts its own
	Ended   []int        `json:"ended,omitempty"`   // ends whose run is over
	Alive   []string     `json:"alive,omitempty"`   // peers whose packets came since the last beat
	Cut     model.Reason `json:"cut,omitzero"`      // why the session was cut short
	Samples []sample     `json:"samples,omitempty"` // once a second
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
	Fault   *model.Reason   `json:"fault,omitempty"`
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
		why := finding.ReasonOf(err)
		r = reply{Fault: &why, Refusal: errors.As(err, &refusal), Taken: errors.Is(err, ErrTaken)}
	}
	data, _ := json.Marshal(r) // texts, numbers and a valid RawMessage always marshal
	return data
}

// open takes a reply out of its envelope, or the error that is in it.
func open(data []byte) (json.RawMessage, error) {
	r, err := decode[reply](data)
	if err != nil || r.Fault == nil {
		return r.Body, err
	}
	fault := &finding.Fault{Reason: clipReason(*r.Fault)}
	fault.Code = cmp.Or(fault.Code, model.HostFault) // without a code it would be no reason
	switch {
	case r.Refusal:
		return nil, fault.From(&engine.Refusal{Why: fault.Reason})
	case r.Taken:
		return nil, errTaken
	}
	return nil, fault
}

// clipReason cuts what another host gives as a reason.
func clipReason(r model.Reason) model.Reason {
	model.Clamp(&r)
	list := model.Reasons{r}
	list.Clip()
	return list[0]
}

// decode reads exactly one JSON object with known fields of the right types. Everything
// that comes from another process passes through it, and then through its type's check
// or clamp; nothing after that checks again. Texts lose what cannot be printed.
func decode[T any](data []byte) (T, error) { return decodeLines[T](data, false) }

// decodeLines is decode; texts keep their line breaks if lines is true.
func decodeLines[T any](data []byte, lines bool) (T, error) {
	var v, zero T
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return zero, finding.NewFault(model.MessageNoObject)
	}
	if err := weigh(data, reflect.TypeFor[T]()); err != nil {
		return zero, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return zero, finding.NewFault(model.MessageUnread, "text", model.PrintableText(err.Error()))
	}
	if _, err := d.Token(); err != io.EOF {
		return zero, finding.NewFault(model.MessageSeveral)
	}
	model.Printable(&v, lines)
	return v, nil
}
