package report

import (
	"bytes"
	"strings"
	"testing"

	"pelt/model"
)

// TestConnectionColumns: connections have a table of their own beside other TCP.
func TestConnectionColumns(t *testing.T) {
	flow := func(c *model.ConnectionFacts) model.FlowResult {
		f := model.FlowResult{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, PayloadBytes: 62, Streams: 1, DurationS: 2, Attempted: 4100, Received: 4096, Lost: 4,
			SendPPS: 2050, ReceivePPS: 2048, GoodputBPS: 1e6, TCP: &model.TCPFacts{Writes: 10}, Connections: c}
		if c != nil {
			f.TCP = &model.TCPFacts{}
		}
		return f
	}
	keep := flow(&model.ConnectionFacts{Mode: model.ConnectionKeep, Established: 4096, OpenMax: 4001, Failed: map[string]uint64{"ETIMEDOUT": 3, "closed": 1}, SetUp: &model.Percentiles{Count: 4096, P50: 150e3, P99: 2e6}})
	doc := model.Document{Plan: model.Plan{Target: "10.0.0.1", Flows: []model.Flow{{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver}}, Design: model.Design{Kind: "list", Repeats: 1}},
		Results: []model.Result{
			{State: model.Valid, Cell: model.Cell{}, Engine: "tcp", Flows: []model.FlowResult{flow(nil)}},
			{State: model.Valid, Cell: model.Cell{"connections": model.Word("keep")}, Engine: "tcp", Flows: []model.FlowResult{keep}},
		}}
	var b bytes.Buffer
	if err := Text(&b, doc, 100, false); err != nil {
		t.Fatal(err)
	}
	var head, row string
	for line := range strings.Lines(b.String()) {
		if head != "" && row == "" {
			row = line
		}
		if strings.Contains(line, "established") && head == "" {
			head = line
		}
	}
	if got := strings.Join(strings.Fields(head), " "); !strings.HasPrefix(got, "connections established open failed set up p99") {
		t.Errorf("the columns are %q in:\n%s", got, b.String())
	}
	if got := strings.Join(strings.Fields(row), " "); !strings.HasPrefix(strings.ReplaceAll(got, "\u202f", " "), "keep 2.05 k/s 4 001 4 150 µs 2 ms") {
		t.Errorf("the row is %q in:\n%s", got, b.String())
	}
	if !strings.Contains(b.String(), "writes") {
		t.Errorf("the other TCP flow has lost its table:\n%s", b.String())
	}
	if got := strings.ReplaceAll(flowLine(keep), "\u202f", " "); got != "4 001 connections open at a time, 4 failed" {
		t.Errorf("the trial's line is %q", got)
	}
}
