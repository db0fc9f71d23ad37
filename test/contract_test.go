package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pelt/internal/testenv"
	"pelt/model"
)

// The names below are what scripts of users rely on. They are typed here by hand and not taken from package model: a
// renamed field must fail a test.
const (
	namesOfRuns = `format id started tool.version plan host.node results.cell results.repeat results.state results.why results.engine
		results.engine_reason? results.series.metric results.series.at results.series.start_s results.series.step_s
		results.series.values findings.code findings.level? findings.numbers findings.text warnings`
	// All flows have the first ones.
	namesOfFlows = `name protocol from to payload_bytes frame_bytes streams duration_s planned_packets attempted_packets
		accepted_packets received_packets duplicate_packets reordered_packets late_packets lost_packets loss_ratio send_pps receive_pps
		goodput_bps jitter_ns ledger.lost ledger.unattributed ledger.checks.name ledger.checks.held ledger.checks.text ledger.lines.layer
		ledger.lines.host ledger.lines.cause ledger.lines.packets ledger.lines.confidence ledger.lines.evidence.counter
		ledger.lines.evidence.scope ledger.lines.evidence.unit ledger.lines.evidence.delta ledger.pacing?.cause ledger.pacing?.host
		ledger.pacing?.packets`
	namesOfUDP = `send_gap_ns.p50 send_gap_ns.p99 send_gap_ns.max`
	oneClock   = `delay_ns.min delay_ns.p50 delay_ns.p90 delay_ns.p99 delay_ns.p999 delay_ns.max`
)

// lacks returns the first of the names that a JSON value does not have in each of its lists' elements, "" if it has
// all. A name with ? may be missing.
func lacks(v any, names string) string {
	for _, name := range strings.Fields(names) {
		if !hasName(v, strings.Split(name, ".")) {
			return name
		}
	}
	return ""
}

func hasName(v any, path []string) bool {
	if v == nil { // no list
		return true
	}
	if list, ok := v.([]any); ok {
		for _, x := range list {
			if !hasName(x, path) {
				return false
			}
		}
		return true
	}
	if len(path) == 0 {
		return true
	}
	name, optional := strings.CutSuffix(path[0], "?")
	part, ok := v.(map[string]any)[name]
	return ok && hasName(part, path[1:]) || !ok && optional
}

// contract FILE [one-clock|two-clocks] checks a --json document against the published format and its own arithmetic.
func scriptContract(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: contract FILE [one-clock|two-clocks]")
	}
	_, err := readDocument(ts.MkAbs(args[0]), append(args, "")[1])
	ts.Check(err)
}

// document reads a run document that keeps the contract.
func document(t *testing.T, path, clock string) model.Document {
	t.Helper()
	d, err := readDocument(path, clock)
	testenv.Must(t, err)
	return d
}

// decoded reads a run document of any kind: one of ends that never met has no figures.
func decoded(t testing.TB, path string) model.Document {
	t.Helper()
	text, err := os.ReadFile(path)
	testenv.Must(t, err)
	d, err := model.DecodeDocument(text, path)
	testenv.Must(t, err)
	return d
}

func readDocument(path, clock string) (d model.Document, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	var raw struct {
		Results []struct {
			Flows []map[string]any
		}
	}
	var all any
	if err := json.Unmarshal(b, &all); err != nil {
		return d, err
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return d, err
	}
	if name := lacks(all, namesOfRuns); name != "" {
		return d, fmt.Errorf("%s has no %s", path, name)
	}
	if d.Format != "pelt/run/1" || d.Started.IsZero() || d.Tool.Version == "" || len(d.Host) < 2 ||
		len(d.Results) == 0 || len(d.Findings) == 0 {
		return d, fmt.Errorf("%s: head is not whole: format %q, started %v, version %q, %d hosts, %d results, %d findings", path,
			d.Format, d.Started, d.Tool.Version, len(d.Host), len(d.Results), len(d.Findings))
	}
	for i, r := range d.Results {
		going := r.Why.Has(model.StillOpen) // stored while it ran: not all is known yet
		if (r.State == "valid") != (len(r.Why) == 0) || len(r.Flows) == 0 || r.Engine == "" && !going {
			return d, fmt.Errorf("results[%d]: state %q with the reasons %v, %d flows by engine %q", i, r.State,
				r.Why, len(r.Flows), r.Engine)
		}
		for k, f := range r.Flows {
			if err := checkFlow(f, raw.Results[i].Flows[k], clock, going); err != nil {
				return d, fmt.Errorf("%s: results[%d] flow %s: %w", path, i, f.Name, err)
			}
		}
	}
	return d, nil
}

func checkFlow(f model.FlowResult, raw map[string]any, clock string, going bool) error {
	names := namesOfFlows
	if f.Protocol == model.UDP && f.Attempted > 1 && !going {
		names += " " + namesOfUDP
	}
	if f.Protocol == model.UDP && clock == "one-clock" && f.Received > 0 {
		names += " " + oneClock
	}
	if name := lacks(raw, names); name != "" {
		return fmt.Errorf("there is no %s", name)
	}
	sum := f.Ledger.Unattributed
	for _, l := range f.Ledger.Lines {
		if l.Layer == "" || l.Cause == "" || l.Confidence == "" || l.Host == "" {
			return fmt.Errorf("ledger line %+v is not whole", l)
		}
		sum += l.Packets
	}
	switch {
	case f.Attempted != f.Received+f.Lost:
		return fmt.Errorf("attempted %d is not received %d + lost %d", f.Attempted, f.Received, f.Lost)
	case f.Ledger.Lost != f.Lost || sum != f.Lost:
		return fmt.Errorf("ledger: lost %d, lines and rest %d; the flow lost %d", f.Ledger.Lost, sum, f.Lost)
	case f.Protocol == model.UDP && (f.Accepted > f.Attempted || f.Attempted > f.Planned):
		return fmt.Errorf("planned %d, attempted %d, accepted %d do not fall", f.Planned, f.Attempted, f.Accepted)
	case f.Protocol == model.UDP && clock == "two-clocks" && f.Delay != nil:
		return fmt.Errorf("delay is given though the clocks are two")
	}
	return nil
}
