package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pelt/model"
)

func TestLinkFactor(t *testing.T) {
	for text, want := range map[string]string{
		"link.loss=0,1%,5%":                             "link.loss_ratio [0 0.01 0.05]",
		"link.loss=0..3%/1%,ge:1%/10%/70%/0.1%":         "link.loss_ratio [0 0.01 0.02 0.03 ge:1%/10%/70%/0.1%]",
		"link-receiver-3.delay=0..40ms/10ms":            "link-receiver-3.delay_s [0 0.01 0.02 0.03 0.04]",
		"link.rate=0,1mbit..2mbit/500kbit":              "link.rate_bps [0 1000000 1500000 2000000]",
		"link-sender-router.queue=10,100..300/100":      "link-sender-router.queue_packets [10 100 200 300]",
		"link.queue=0,64KiB":                            "link.queue_bytes [0 65536]",
		"link.distribution=uniform,normal":              "link.distribution [uniform normal]",
		"link.mode=exact, netem":                        "link.mode [exact netem]",
		"link.gap=1,5":                                  "link.reorder_gap [1 5]",
		"link.duplicate-correlation=0,25%":              "link.duplicate_correlation_ratio [0 0.25]",
		"link.loss=4state:1%/1%/1%/1%/1%,ge:1%/1%/1%/0": "link.loss_ratio [4state:1%/1%/1%/1%/1% ge:1%/1%/1%/0]",
	} {
		f, err := LinkFactor(text)
		if got := fmt.Sprintf("%s %v", f.Knob, f.Levels); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"loss=1%": "want link.KEY=LEVELS", "link.loss": "want link.KEY=LEVELS", "link.loss=": "want link.KEY=LEVELS", "link-.loss=1%": "want link.KEY=LEVELS",
		"link.mtu=1000": "no setting", "link.seed=1": "no setting", "link.queue=10,64KiB": "counts packets where others are bytes",
		"link.loss=5%..1%/1%": "range with a step", "link.delay=5": "lacks a unit", "link.loss=1%,1%": "twice", "link.rate=fast": "bits per second",
	} {
		if f, err := LinkFactor(text); err == nil || !strings.HasPrefix(err.Error(), "--factor: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", text, f, err, want)
		}
	}
}

func TestSweepOfConditions(t *testing.T) {
	delay, err := LinkFactor("link-receiver.delay=0,40ms")
	if err != nil {
		t.Fatal(err)
	}
	o := SweepOptions{CurveOptions: CurveOptions{Target: "lab:star", Payloads: []int{64}}, Receivers: []int{1, 10, 100}, Links: []model.Factor{delay}}
	p, err := Sweep(o)
	if err != nil || p.Receivers != 100 || len(p.Factors) != 3 || p.Factors[1].Knob != "receivers" || p.Factors[2].Knob != "link-receiver.delay_s" {
		t.Errorf("got %+v, %v", p, err)
	}
	if least := (200 + 80) * time.Millisecond; p.Timing.Quiet() < least { // there and back, and what this machine takes
		t.Errorf("a drain ends after %v of silence, want at least %v", p.Timing.Quiet(), least)
	}
	o.Held = true
	if held, err := Sweep(o); err != nil || held.Timing.Quiet() < time.Second {
		t.Errorf("in a lab of unknown links a drain ends after %v of silence, %v", held.Timing.Quiet(), err)
	}
	text, err := Print(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse(text, "plan.yaml"); err != nil || fmt.Sprint(again) != fmt.Sprint(p) {
		t.Errorf("reads back as %+v, %v", again, err)
	}
	o.Target = "nas"
	o.Receivers = nil
	if _, err := Sweep(o); err == nil || !strings.Contains(err.Error(), "--factor: link-receiver.delay_s: only a lab has links") {
		t.Errorf("of a host: %v", err)
	}
}
