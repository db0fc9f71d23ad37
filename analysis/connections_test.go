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

// TestRouterConnections: a bench says what its connections came to, of each way to
// set the router up, and does not take them for a rate of data.
func TestRouterConnections(t *testing.T) {
	cell := func(mode, variant string) model.Cell {
		return model.Cell{"protocol": model.Word("tcp"), "connections": model.Word(mode), "direction": model.Word("up"), "variant": model.Word(variant)}
	}
	doc := model.Document{Plan: model.Plan{Command: "router", Target: "lab:nat", Design: model.Design{Kind: "list", Repeats: 1}}}
	for variant, open := range map[string]uint64{"plain": 4096, "log": 128} {
		for _, mode := range []string{model.ConnectionRate, model.ConnectionKeep} {
			c := &model.ConnectionFacts{Mode: mode, Established: open, OpenMax: open}
			if mode == model.ConnectionKeep {
				c.Ended = "no answer to a SYN within 2s (ETIMEDOUT)"
			}
			doc.Plan.Design.Cells = append(doc.Plan.Design.Cells, cell(mode, variant))
			doc.Results = append(doc.Results, model.Result{State: model.Valid, Cell: cell(mode, variant), Flows: []model.FlowResult{{Name: "up", Protocol: model.TCP,
				DurationS: 2, Attempted: open, Received: open, ReceivePPS: float64(open) / 2, GoodputBPS: 5e6, TCP: &model.TCPFacts{}, Connections: c}}})
		}
	}
	found := router(doc)
	var text []string
	values := map[string]float64{}
	for _, f := range found {
		text = append(text, f.Kind+": "+f.Text)
		for k, v := range f.Values {
			values[k] = v
		}
	}
	all := strings.ReplaceAll(strings.Join(text, "\n"), "\u202f", " ")
	for _, want := range []string{"verdict: TCP from LAN to WAN: ", "plain: 2.05 k/s new connections", "log: 128 connections at a time", "connections: plain: 4 096 connections were open at a time; what stopped the next one: no answer"} {
		if !strings.Contains(all, want) {
			t.Errorf("want %q in:\n%s", want, all)
		}
	}
	if strings.Contains(all, "bit/s") || values["plain_open_max"] != 4096 || values["log_connections_per_second"] != 64 {
		t.Errorf("values %v; want no rate of data in:\n%s", values, all)
	}
}

// Trials that the sender's host ended say less than those that the path did: all
// together they are a lower bound.
func TestConnectionsEndedUnlike(t *testing.T) {
	facts := func(open uint64, ended string, host bool) model.FlowResult {
		return model.FlowResult{ReceivePPS: 1, Connections: &model.ConnectionFacts{Mode: model.ConnectionKeep, OpenMax: open, Ended: ended, HostLimit: host}}
	}
	c := connectedOf([]model.FlowResult{facts(9851, "this host may open 20000 files", true), facts(9787, "no answer to a SYN", false)})
	if got, want := strings.ReplaceAll(c.does(), "\u202f", " "), "holds 9 819 connections at a time or more: the sender could open no more in 1 of 2 trials"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := c.finding(), "this host may open 20000 files; in another trial: no answer to a SYN"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want its end to be %q", got, want)
	}
}
