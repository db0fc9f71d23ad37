package live

import (
	"strings"
	"testing"

	"pelt/model"
)

func TestLossesByNow(t *testing.T) {
	line := model.Line{Layer: model.LayerReceiverBuffer, Host: "receiver", Cause: "SOCKET_RCVBUFF", Packets: 300}
	for want, f := range map[string]model.FlowSoFar{
		"1 000 sent, none lost": {Attempted: 1000, Received: 1000},
		"1 000 sent, lost: 300 receiver socket buffer full, 100 not yet read": {Attempted: 1000, Received: 600,
			Lines: []model.Line{line}},
		"1 000 sent, lost: 200 receiver socket buffer full": {Attempted: 1000, Received: 800,
			Lines: []model.Line{line}},
	} {
		f.Name, f.Protocol, f.From, f.To = "up", model.UDP, "sender", "receiver"
		n := &Now{Started: Started{Nodes: []string{"sender", "receiver"}},
			Account: &Account{Flows: []model.FlowSoFar{f}}}
		if got := n.Losses(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNews: lines tell what began at some moment of a run, each thing once, and nothing else of the findings.
func TestNews(t *testing.T) {
	var out strings.Builder
	p := Plain{W: &out}
	loses := model.Finding{Code: "change", Text: "Since noon a loses 2 %.", Words: map[string]string{"since": "noon"}}
	gone := model.Finding{Code: "gone", Text: "b is gone.",
		Words: map[string]string{"since": "noon", "why": "no answer"}}
	still := model.Finding{Code: "gone", Text: "b is still gone.",
		Words: map[string]string{"since": "noon", "why": "no route"}}
	more := loses
	more.Text = "Since noon a loses 3 %."
	for i, found := range [][]model.Finding{{{Text: "an answer"}}, {loses}, {more, gone}, {more, still}} {
		p.Take(Event{ID: uint64(i + 1), Findings: &found})
	}
	if want := loses.Text + "\n" + gone.Text + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
