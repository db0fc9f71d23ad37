package finding

import (
	"testing"

	"pelt/model"
	"pelt/table"
)

// Where the other host sends, "the sender" would be neither of the two.
func TestHostsOfBothWays(t *testing.T) {
	for target, want := range map[string][2]string{
		"10.9.2.2": {"this host", "10.9.2.2"}, "[fd09::2]:7358": {"this host", "fd09::2"},
		"lab:router": {model.Sender, model.Receiver},
	} {
		d := &model.Document{Plan: model.Plan{Target: target, Flows: []model.Flow{{From: model.Receiver}}}}
		if target == "lab:router" {
			d.Lab = &model.LabFacts{}
		}
		r := table.Row{Doc: d, Trial: &model.Result{}, Flow: &model.FlowResult{From: model.Receiver}}
		for i, node := range []string{model.Sender, model.Receiver} {
			if got := spoken(r, node); got != want[i] {
				t.Errorf("%s: %s is called %q, want %q", target, node, got, want[i])
			}
		}
		d.Plan.Flows[0].From, r.Flow.From = model.Sender, model.Sender
		if got := spoken(r, model.Sender); got != model.Sender {
			t.Errorf("%s: with packets of the sender only, it is called %q", target, got)
		}
	}
}

// Calls that found the queue of a listener full are told, at the host of those that found most of them full.
func TestUnaccepted(t *testing.T) {
	d := &model.Document{Plan: model.Plan{Target: "10.9.2.2"}}
	flow := &model.FlowResult{Protocol: model.TCP, From: model.Sender, To: model.Receiver}
	row := func(host string, n uint64) table.Row {
		return table.Row{Doc: d, Flow: flow, Trial: &model.Result{Counters: []model.Counter{
			{Host: host, Name: "TcpExt.ListenOverflows", Whole: n}}}}
	}
	if told := unacceptedRule([]table.Row{row(model.Sender, 9), row(model.Receiver, 0)}); len(told) > 0 {
		t.Errorf("the sender's own listeners: %q", told[0].Text())
	}
	want := "New TCP connections found their queue at the receiver full 7 times (TcpExt.ListenOverflows): the program " +
		"there takes them too slowly, or net.core.somaxconn is too small."
	told := unacceptedRule([]table.Row{row(model.Receiver, 3), row(model.Receiver, 7)})
	if len(told) != 1 || told[0].Text() != want {
		t.Errorf("told: %v, want %q", told, want)
	}
}
