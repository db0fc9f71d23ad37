package view

import (
	"slices"
	"testing"

	"pelt/model"
	"pelt/test/sample"
)

// TestLinesOfASearch: the line of a trial says what the search knew of its rate by then.
func TestLinesOfASearch(t *testing.T) {
	d := sample.Search()
	all := d.Results
	var lines []string
	for i := range all {
		d.Results = all[:i+1]
		lines = append(lines, TrialLine(&d, &all[i]))
	}
	for _, want := range []string{
		"18 B: sent 1.10 Mpps, received 340 kpps, goodput 49.0 Mbit/s, lost 69.1 %",
		"18 B, 342 kpps: fails so far, lost 17.2 % in 250 ms",
		"18 B, 248 kpps: holds, lost 0 % in 1 s",
		"18 B, 250 kpps: fails without loss, holds with 0.5 % loss, lost 0.044 % in 1 s",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%q", want, lines)
		}
	}
	one := all[len(all)-1]
	one.State, one.Why = model.Invalid, model.Reasons{{Code: model.SenderLate}}
	d.Results = append(slices.Clone(all[:len(all)-1]), one)
	if got := TrialLine(&d,
		&one); got[:len("1472 B, 82.1 kpps: nothing learnt (invalid")] != "1472 B, 82.1 kpps: nothing learnt (invalid" {
		t.Errorf("an invalid trial: %q", got)
	}
}

// A name may stand for several addresses: the one that was used is said.
func TestTargetOf(t *testing.T) {
	for target, want := range map[string]string{"nas": "nas (fd00::7)", "nas:7400": "nas:7400 (fd00::7)",
		"fd00::7": "fd00::7", "[fd00::7]:80": "[fd00::7]:80",
		"10.0.0.1:80": "10.0.0.1:80", "lab:nat": "lab:nat", "fleet:": "fleet:", "fleet:a..b": "fleet:a..b"} {
		d := model.Document{Plan: model.Plan{Target: target},
			Host: []model.Host{{Node: model.Sender, Address: "fd00::1"}, {Node: model.Receiver, Address: "fd00::7"}}}
		if got := TargetOf(&d); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	d := model.Document{Plan: model.Plan{Target: "nas"},
		Host: []model.Host{{Node: model.Receiver, Address: "fd00::7", OtherAddresses: []string{"10.0.0.7"}}}}
	if got, want := TargetOf(&d), "nas (fd00::7, IPv6, reached first of its 2 addresses)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A receiver that was never heard lost nothing that anybody knows of.
func TestLineOfUnheard(t *testing.T) {
	one := model.Result{State: model.Aborted,
		Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP, PayloadBytes: 64,
			Unheard: &model.Unheard{Packets: 6000}}}}
	d := model.Document{Plan: model.Plan{Command: "soak"}, Results: []model.Result{one}}
	if got, want := TrialLine(&d, &one), "6 000 packets sent, receiver not heard (aborted)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Findings(&d)[0].Text(), "Nothing was heard of the receiver; 6 000 packets were sent meanwhile."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
