package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"pelt/engine"
	"pelt/model"
)

// The verbs of pelt.agent.AGENT.VERB.
const (
	verbPrepare  = "prepare"
	verbConnect  = "connect"
	verbSnapshot = "snapshot"
	verbRun      = "run"
	verbFinish   = "finish"
	verbStop     = "stop"
	verbReport   = "report"
	verbRecord   = "record"
	verbRelease  = "release"
)

const helloSubject = "pelt.hello"

// Bounds of orders in bytes. A real one of few ends with 128 ports each, or of
// maxEnds with one, stays far below the first; prepare holds all traces that
// [model.Plan] lets through, too, beside some 600 B an end, and fits a message.
const (
	maxOrder   = 128 << 10
	maxPrepare = 1000 << 10
)

func longestOrder(verb string) int {
	if verb == verbPrepare {
		return maxPrepare
	}
	return maxOrder
}

// hello asks an agent to introduce itself, and says who asks.
type hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
}

// prepareOrder opens ends, and the session if it is its first.
type prepareOrder struct {
	Protocol int            `json:"protocol"`
	Version  string         `json:"version"`
	Session  string         `json:"session"` // CLIENT.SESSION
	Ends     []endOrder     `json:"ends"`
	Drops    model.DropMode `json:"drops,omitempty"` // how closely to watch the kernel; "" for not at all
}

type endOrder struct {
	End    int          `json:"end"` // number of the end within the session
	Engine string       `json:"engine"`
	Peer   string       `json:"peer"`            // agent of the other end
	Home   bool         `json:"home,omitempty"`  // the peer is in the controller's own process, and falls silent with it
	Vouch  bool         `json:"vouch,omitempty"` // the peer is on a hub of its own, and what comes from it stands for the controller when nothing else comes
	Order  engine.Order `json:"order"`
}

type prepareAnswer struct {
	Ports map[int][]uint16 `json:"ports"`
}

// connectAnswer names the ports of the streams of ends that carry a flow, as their
// host sees them.
type connectAnswer struct {
	Tuples map[int][]model.Tuple `json:"tuples,omitempty"` // by end
}

// sessionOrder is connect and release.
type sessionOrder struct {
	Session string `json:"session"`
}

// runOrder starts receivers and echoes, or, with Gate, senders and probers
// after a wait.
type runOrder struct {
	Session   string `json:"session"`
	Gate      bool   `json:"gate"`
	WaitNanos int64  `json:"wait_ns"`
}

// runAnswer says what part of the time that receivers took to read is no round trip.
type runAnswer struct {
	HeldNanos int64 `json:"held_ns,omitempty"`
}

type finishOrder struct {
	Session   string           `json:"session"`
	Attempted map[int][]uint64 `json:"attempted"`        // by end, of each stream
	Unsent    map[int]uint64   `json:"unsent,omitempty"` // by end: of all those, what never left the sender
}

// finishAnswer says how many distinct packets each receiver has.
type finishAnswer struct {
	Received map[int]uint64 `json:"received"` // by end
}

// snapshotOrder reads the host's counters: at the start, with an idle window
// before, or at the end, once they stand still.
type snapshotOrder struct {
	Session   string       `json:"session"`
	Moment    model.Moment `json:"moment"` // start or end
	IdleNanos int64        `json:"idle_ns,omitempty"`
	Lost      bool         `json:"lost,omitempty"` // packets are missing
}

type stopOrder struct {
	Session string `json:"session"`
	Why     string `json:"why"`
}

// reportOrder asks for one part of the report. Final ends whatever still runs.
type reportOrder struct {
	Session string `json:"session"`
	Final   bool   `json:"final"`
	Part    int    `json:"part"`
}

// reportAnswer is one part of a sessionReport's JSON.
type reportAnswer struct {
	Parts int    `json:"parts"`
	Data  []byte `json:"data"`
}

// recordOrder fetches blocks of a session's record. What lies before From was
// received. Final says that its receivers have ended.
type recordOrder struct {
	Session string `json:"session"`
	From    uint64 `json:"from"` // byte
	Final   bool   `json:"final,omitempty"`
}

type recordAnswer struct {
	Data []byte `json:"data,omitempty"` // whole blocks
	Done bool   `json:"done"`           // no more will come
}

// sessionReport is what an agent has to say of a session; ends that have not
// ended are missing.
type sessionReport struct {
	Ends     map[int]engine.Report `json:"ends"`
	Watch    *Watched              `json:"watch,omitempty"`
	Observed *model.Observation    `json:"observed,omitempty"`
	Cut      string                `json:"cut,omitempty"`
}

// beat is a sign of life of the controller or of an agent.
type beat struct {
	Number  uint64            `json:"number"`            // the highest controller's number known to the sender
	Heard   map[string]uint64 `json:"heard,omitempty"`   // ... and how far each peer is known to have come
	Ended   []int             `json:"ended,omitempty"`   // ends whose run is over
	Alive   []string          `json:"alive,omitempty"`   // peers that something came from since the last beat, other than a beat
	Cut     string            `json:"cut,omitempty"`     // why the session was cut short
	Samples []sample          `json:"samples,omitempty"` // once a second
	// Counts are what the host's kernel dropped so far, once a second if it moved and
	// the trial's account is to be had at any moment.
	Counts *model.Observation `json:"counts,omitempty"`
}

type sample struct {
	End     int    `json:"end"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Reach   uint64 `json:"reach,omitempty"` // of a receiver: what is known to have been sent, by what came
}

// reply wraps every answer.
type reply struct {
	Fault *fault          `json:"fault,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// fault is an error on its way.
type fault struct {
	Kind     string `json:"kind"` // refusal, version or ""
	Text     string `json:"text"`
	Version  string `json:"version,omitempty"`  // of the agent, with kind version
	Protocol int    `json:"protocol,omitempty"` // likewise
}

func faultOf(err error) *fault {
	var refusal *engine.Refusal
	var version *VersionError
	switch {
	case errors.As(err, &refusal):
		return &fault{Kind: "refusal", Text: err.Error()}
	case errors.As(err, &version):
		return &fault{Kind: "version", Text: err.Error(), Version: version.Here, Protocol: version.HereProtocol}
	}
	return &fault{Text: err.Error()}
}

// encodeReply never fails: what cannot be encoded becomes a fault.
func encodeReply(body any, err error) []byte {
	var r reply
	if err == nil {
		r.Body, err = json.Marshal(body)
	}
	if err != nil {
		r = reply{Fault: faultOf(err)}
	}
	data, _ := json.Marshal(r) // strings and a valid RawMessage always marshal
	return data
}

// decode reads exactly one JSON object with known fields of the right types.
// Everything that comes from another process passes through it.
func decode[T any](data []byte) (T, error) {
	var v, zero T
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return zero, errors.New("message: not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return zero, fmt.Errorf("message: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return zero, errors.New("message: more than one JSON object")
	}
	return v, nil
}

// checkProtocol looks only at who speaks, before the rest is decoded strictly,
// so that another version is told apart from rubbish.
func checkProtocol(data []byte, here, where string) error {
	var h hello
	if json.Unmarshal(data, &h) == nil && h.Protocol > 0 && h.Protocol != ProtocolVersion {
		return &VersionError{Host: where, Here: here, There: h.Version, HereProtocol: ProtocolVersion, ThereProtocol: h.Protocol}
	}
	return nil
}
