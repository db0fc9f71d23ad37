package test

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The names below are what scripts of users rely on, typed here by hand and
// not taken from package model: a renamed field must fail this test.
type document struct {
	Format  string
	ID      string
	Started time.Time
	Tool    struct{ Version string }
	Plan    map[string]any
	Host    []map[string]any
	Results []struct {
		Cell         map[string]any
		Repeat       int
		State        string
		Why          []reason
		Engine       string
		EngineReason string `json:"engine_reason"`
		Flows        []flow
		Series       []struct {
			Metric, Flow, At string
			StartS           float64 `json:"start_s"`
			StepS            float64 `json:"step_s"`
			Values           []float64
		}
		Observed []struct{ Node, Mode, Why string }
		Counters []struct {
			Host, Name, Scope, Unit string
			Before, After, Whole    uint64
		}
	}
	Findings []struct {
		Kind, Text string
		Values     map[string]float64
	}
	Warnings []string
}

// reason is one cause for a trial that is not valid.
type reason struct {
	Code, Flow, Node, Link, Name, Text string
	Numbers                            map[string]float64
}

func (r reason) String() string {
	return fmt.Sprintf("%s %s%s %s %v", r.Code, r.Flow, r.Link, r.Text, r.Numbers)
}

type flow struct {
	Name, Protocol, From, To string
	PayloadBytes             int `json:"payload_bytes"`
	FrameBytes               int `json:"frame_bytes"`
	Streams                  int
	DurationS                float64            `json:"duration_s"`
	PlannedPackets           *uint64            `json:"planned_packets"`
	AttemptedPackets         *uint64            `json:"attempted_packets"`
	AcceptedPackets          *uint64            `json:"accepted_packets"`
	ReceivedPackets          *uint64            `json:"received_packets"`
	DuplicatePackets         *uint64            `json:"duplicate_packets"`
	ReorderedPackets         *uint64            `json:"reordered_packets"`
	LatePackets              *uint64            `json:"late_packets"`
	LostPackets              *uint64            `json:"lost_packets"`
	LossRatio                *float64           `json:"loss_ratio"`
	SendPPS                  float64            `json:"send_pps"`
	ReceivePPS               float64            `json:"receive_pps"`
	GoodputBPS               float64            `json:"goodput_bps"`
	DelayNS                  map[string]float64 `json:"delay_ns"`
	RoundTripNS              map[string]float64 `json:"round_trip_ns"`
	JitterNS                 *float64           `json:"jitter_ns"`
	SendGapNS                map[string]float64 `json:"send_gap_ns"`
	Connections              *struct {
		Mode        string
		Established uint64
		OpenMax     uint64 `json:"open_max"`
		Failed      map[string]uint64
		Ended       string
	}
	Ledger struct {
		Lost, Unattributed uint64
		Lines              []ledgerLine
		Pacing             []pacingLine
		Checks             []struct {
			Name, Text string
			Held       bool
		}
	}
}

type pacingLine struct {
	Cause, Host string
	Packets     uint64
	HeldS       float64 `json:"held_s"`
	Queue       *struct {
		Interface, Kind string
		RateBPS         float64 `json:"rate_bps"`
	}
	SendBufferBytes int `json:"send_buffer_bytes"`
}

type ledgerLine struct {
	Layer, Host, Cause, Confidence string
	Packets                        uint64
	Evidence                       []struct {
		Counter, Host, Scope, Unit, Role string
		Before, After, Delta, Excess     uint64
	}
	Advice []struct{ Knob, Host, Present, Value, Why, Command, Undo string }
}

// contract FILE [one-clock|two-clocks] checks a --json document against the
// published format and its own arithmetic.
func scriptContract(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: contract FILE [one-clock|two-clocks]")
	}
	clock := ""
	if len(args) > 1 {
		clock = args[1]
	}
	_, err := readDocument(ts.MkAbs(args[0]), clock)
	ts.Check(err)
}

func readDocument(path, clock string) (document, error) {
	var d document
	b, err := os.ReadFile(path)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.check(clock); err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

func (d document) check(clock string) error {
	if d.Format != "pelt/run/1" || d.Started.IsZero() || d.Tool.Version == "" || len(d.Plan) == 0 || len(d.Host) < 2 {
		return fmt.Errorf("head is not whole: format %q, started %v, version %q, %d plan fields, %d hosts", d.Format, d.Started, d.Tool.Version, len(d.Plan), len(d.Host))
	}
	if len(d.Results) == 0 || len(d.Findings) == 0 {
		return fmt.Errorf("%d results and %d findings, want some", len(d.Results), len(d.Findings))
	}
	for i, r := range d.Results {
		if (r.State == "valid") != (len(r.Why) == 0) {
			return fmt.Errorf("results[%d]: state %q with the reasons %v", i, r.State, r.Why)
		}
		if len(r.Flows) == 0 || r.Engine == "" {
			return fmt.Errorf("results[%d]: %d flows by engine %q", i, len(r.Flows), r.Engine)
		}
		for _, f := range r.Flows {
			if err := f.check(clock); err != nil {
				return fmt.Errorf("results[%d] flow %s: %w", i, f.Name, err)
			}
		}
	}
	return nil
}

func (f flow) check(clock string) error {
	for name, p := range map[string]*uint64{
		"planned": f.PlannedPackets, "attempted": f.AttemptedPackets, "accepted": f.AcceptedPackets, "received": f.ReceivedPackets,
		"duplicate": f.DuplicatePackets, "reordered": f.ReorderedPackets, "late": f.LatePackets, "lost": f.LostPackets,
	} {
		if p == nil {
			return fmt.Errorf("%s_packets is missing", name)
		}
	}
	attempted, received, lost := *f.AttemptedPackets, *f.ReceivedPackets, *f.LostPackets
	if attempted != received+lost {
		return fmt.Errorf("attempted %d is not received %d + lost %d", attempted, received, lost)
	}
	sum := f.Ledger.Unattributed
	for _, l := range f.Ledger.Lines {
		if l.Layer == "" || l.Cause == "" || l.Confidence == "" || l.Host == "" {
			return fmt.Errorf("ledger line %+v is not whole", l)
		}
		sum += l.Packets
	}
	if f.Ledger.Lost != lost || sum != lost {
		return fmt.Errorf("ledger: lost %d, lines and rest %d; the flow lost %d", f.Ledger.Lost, sum, lost)
	}
	if f.Protocol != "udp" {
		return nil
	}
	if *f.AcceptedPackets > attempted || attempted > *f.PlannedPackets {
		return fmt.Errorf("planned %d, attempted %d, accepted %d do not fall", *f.PlannedPackets, attempted, *f.AcceptedPackets)
	}
	if f.LossRatio == nil || f.JitterNS == nil || len(f.SendGapNS) == 0 {
		return fmt.Errorf("no jitter or send gap")
	}
	if clock == "one-clock" && received > 0 && len(f.DelayNS) == 0 {
		return fmt.Errorf("delay is missing though both ends share a clock")
	}
	if clock == "two-clocks" && len(f.DelayNS) > 0 {
		return fmt.Errorf("delay is given though the clocks are two")
	}
	return nil
}
