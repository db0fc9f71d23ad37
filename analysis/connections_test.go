package analysis

import (
	"strings"
	"testing"

	"pelt/model"
)

// TestConnections: what stopped a flow of connections decides what may be said of the path.
func TestConnections(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts model.ConnectionFacts
		want  []string // in the findings
	}{
		{"rate", model.ConnectionFacts{Mode: model.ConnectionRate, Established: 20000, OpenMax: 3},
			[]string{"sets up 10.0 k/s new connections.", "10.0 k/s new connections were established; none failed."}},
		{"rate with failures", model.ConnectionFacts{Mode: model.ConnectionRate, Established: 20000, Failed: map[string]uint64{"ETIMEDOUT": 40, "ECONNREFUSED": 2}, SetUp: &model.Percentiles{Count: 20000, P50: 150e3}},
			[]string{"set up in 150 µs in the middle; of 20 042 attempts failed 2 with ECONNREFUSED, 40 with ETIMEDOUT."}},
		{"the path's limit", model.ConnectionFacts{Mode: model.ConnectionKeep, Established: 4096, OpenMax: 4096, Failed: map[string]uint64{"ETIMEDOUT": 1}, Ended: "no answer to a SYN within 2s (ETIMEDOUT)"},
			[]string{"holds 4 096 connections at a time.", "what stopped the next one: no answer to a SYN within 2s (ETIMEDOUT)."}},
		{"this host's limit", model.ConnectionFacts{Mode: model.ConnectionKeep, Established: 500, OpenMax: 500, Ended: "this host may open 1024 files", HostLimit: true},
			[]string{"holds 500 connections at a time or more: the sender could open no more."}},
		{"the time's", model.ConnectionFacts{Mode: model.ConnectionKeep, Established: 500, OpenMax: 500},
			[]string{"holds 500 connections at a time or more: the time was over before one failed."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := model.FlowResult{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, PayloadBytes: model.ConnectionMessageBytes, Streams: 1, DurationS: 2,
				Attempted: c.facts.Established, Received: c.facts.Established, ReceivePPS: float64(c.facts.Established) / 2, GoodputBPS: 1e6, TCP: &model.TCPFacts{}, Connections: &c.facts}
			for _, n := range c.facts.Failed {
				f.Attempted += n
			}
			doc := model.Document{Plan: model.Plan{Target: "10.0.0.1", Flows: []model.Flow{{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, Connections: c.facts.Mode}},
				Design: model.Design{Kind: "grid", Repeats: 1}}, Results: []model.Result{{State: model.Valid, Cell: model.Cell{}, Engine: "tcp", Flows: []model.FlowResult{f}}}}
			var all []string
			for _, x := range Analyze(doc) {
				all = append(all, x.Kind+": "+x.Text)
			}
			text := strings.Join(all, "\n")
			for _, want := range c.want {
				if !strings.Contains(strings.ReplaceAll(text, "\u202f", " "), want) {
					t.Errorf("want %q in:\n%s", want, text)
				}
			}
		})
	}
}
