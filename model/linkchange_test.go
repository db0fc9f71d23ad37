package model

import (
	"testing"
)

func TestTitles(t *testing.T) {
	for knob, want := range map[string]string{
		"link.delay_s": "Link delay", "link-receiver-3.loss_ratio": "Link-receiver-3 loss", "link.rate_bps": "Link rate",
		"link.correlation_ratio": "Link correlation", "send_buffer_bytes": "Send buffer", "rate_pps": "Asked rate",
	} {
		if k, ok := FindKnob(knob); !ok || k.Title() != want {
			t.Errorf("%s: %s, want %s", knob, k.Title(), want)
		}
	}
}

// What a link says takes the place of what was there, and a setting that excludes another takes it away.
func TestLinkOver(t *testing.T) {
	zeros, _, err := ParseLink("", "delay=1ms,loss=0%,reorder=0,jitter=0ms")
	if err != nil {
		t.Fatal(err)
	}
	zeros.DelaySeconds = 0.002
	bad := Link{LossModel: GilbertElliott, LossStates: [4]float64{0.1, 0.2, 1, 0}, DelaySeconds: 1, JitterSeconds: 0.1}
	if got := zeros.Over(bad); got != (Link{DelaySeconds: 0.002}) {
		t.Errorf("zeros over %+v: %+v", bad, got)
	}
	over := Link{LossRatio: 0.1, QueueBytes: 9, Distribution: "normal", MTU: 900, Node: "x"}
	before := Link{LossModel: GilbertElliott, LossStates: [4]float64{0.1}, QueuePackets: 5, Distribution: "pareto",
		Rate: 1000}
	if got := over.Over(before); got != (Link{LossRatio: 0.1, QueueBytes: 9, Distribution: "normal", Rate: 1000}) {
		t.Errorf("over %+v: %+v", before, got)
	}
	if err := (Link{Zero: "loss,mtu"}).check("link"); err == nil {
		t.Error("an mtu of 0 is taken")
	}
}
