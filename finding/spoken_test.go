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
