package report

import (
	"strings"
	"testing"

	"pelt/model"
)

func TestAdviceText(t *testing.T) {
	l := model.AdviceList{Run: "r1", Advice: []model.Advised{
		{Advice: model.Advice{Knob: "net.core.netdev_max_backlog", Host: "receiver", Present: "1000", Value: "2000", Why: "softnet.dropped +100: because", Command: "sysctl -w net.core.netdev_max_backlog=2000", Undo: "sysctl -w net.core.netdev_max_backlog=1000", Note: "of the host"},
			Role: "receiver", Here: true, Apply: true, Layer: "receiver-backlog", Cause: "CPU_BACKLOG", Packets: 100, Attempted: 900},
		{Advice: model.Advice{Knob: "eth0.rx_ring\x1b[31m", Host: "router", Present: "256", Value: "256", Why: "rx_missed +1", Note: "more cores"}, Role: "router", Layer: "network", Cause: "rx-missed", Packets: 1, Attempted: 900, Limit: true},
		{Advice: model.Advice{Knob: "net.core.wmem_max", Host: "sender", Present: "1", Value: "2", Command: "sysctl -w net.core.wmem_max=2"}, Role: "sender", Layer: "send-call", Cause: "EAGAIN", Packets: 1, Attempted: 900},
	}}
	var b strings.Builder
	if err := AdviceText(&b, model.Document{ID: "r1"}, l, 200, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"receiver (this host): 100 of 900 packets were lost at receiver-backlog, CPU_BACKLOG\n  net.core.netdev_max_backlog: 1000 -> 2000\n    why   softnet.dropped +100: because\n    run   sysctl -w net.core.netdev_max_backlog=2000\n",
		"is 256: not the limit", "pelt tune apply r1", "pelt changes no other host",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("an escape code of the document's is in the text: %q", b.String())
	}
	b.Reset()
	if err := AdviceText(&b, model.Document{}, model.AdviceList{}, 80, false); err != nil || !strings.Contains(b.String(), "Nothing is advised") || strings.Contains(b.String(), "apply") {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestTuneTrialText(t *testing.T) {
	out := model.TuneTrial{Target: "lab:direct", Verdict: "Loss fell from 30 % to none with 1 setting.", First: model.TuneLoss{Run: "a", Trials: 5, Attempted: 900, Lost: 270, Ratio: 0.3},
		Steps: []model.TuneStep{
			{Advised: model.Advised{Advice: model.Advice{Knob: "k", Host: "receiver", Present: "1", Value: "2", Why: "moved"}}, Kept: true, Text: "kept: less loss", With: model.TuneLoss{Trials: 5}, Without: model.TuneLoss{Trials: 5, Lost: 30, Attempted: 100, Ratio: 0.3}},
			{Advised: model.Advised{Advice: model.Advice{Knob: "l", Host: "receiver", Present: "1", Value: "2"}}, Text: "could not be set"},
		},
		Limits: []string{"30 at receiver-buffer"}, Undo: "pelt tune revert"}
	var b strings.Builder
	if err := TuneTrialText(&b, out, 200, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Loss fell from 30 % to none", "At first: 270 of 900 packets lost (30 %) in 5 trials, run a", "+ k of the receiver: 1 -> 2", "    kept: less loss",
		"- l of the receiver: 1 -> 2\n    could not be set", "What still loses packets", "take it back with: pelt tune revert"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
}
