package model

import (
	"fmt"
	"strings"
	"testing"
)

func TestLinkChange(t *testing.T) {
	was, _, err := ParseLink("", "rate=10mbit,queue=20,delay=20ms,loss=ge:1%/10%/70%/0.1%,seed=7")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"loss=5%":                        "rate=10mbit,queue=20,delay=20ms,loss=5%,seed=7",
		"loss=0":                         "rate=10mbit,queue=20,delay=20ms,seed=7",
		"loss=none,delay=0ms":            "rate=10mbit,queue=20,seed=7",
		"queue=64KiB":                    "rate=10mbit,queue=65536B,delay=20ms,loss=ge:0.01/0.1/0.7/0.001,seed=7",
		"queue=0,rate=1gbit,seed=0":      "rate=1gbit,delay=20ms,loss=ge:0.01/0.1/0.7/0.001",
		"jitter=1ms,gap=none":            "rate=10mbit,queue=20,delay=20ms,jitter=1ms,loss=ge:0.01/0.1/0.7/0.001,seed=7",
		"distribution=normal,toward=far": "rate=10mbit,queue=20,delay=20ms,distribution=normal,loss=ge:0.01/0.1/0.7/0.001,seed=7",
	} {
		c, err := ParseLinkChange("", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		now, err := c.Apply(was)
		if got := now.Words(); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "not key=value", "loss": "not key=value", "loss=": "not key=value", "loss=1%,loss=2%": "stands twice", "toward=x": "changes nothing",
		"loss=200%": "between 0 and 100", "mtu=1000": "mtu cannot change", "colour=red": "unknown key", "mode=exact": "unknown key", "queue=-1": "size",
		"delay=5": "lacks a unit", "rate=1bit": "want 1kbit to", "toward=a,toward=b,loss=1%": "toward stands twice",
	} {
		if c, err := ParseLinkChange("", text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want %q", text, c, err, want)
		}
	}
}

// What Words says, ParseLink reads back.
func TestLinkWords(t *testing.T) {
	text := "rate=95500kbit,queue=100,mtu=1400,overhead=24,toward=router,delay=1500ms,jitter=0.5ms,correlation=0.25,distribution=pareto," +
		"loss=4state:0.1/0.2/0.3/0.4/0.05,loss-correlation=0.1,duplicate=0.01,duplicate-correlation=0.02,reorder=0.03,reorder-correlation=0.04,gap=5," +
		"corrupt=0.001,corrupt-correlation=0.5,seed=18446744073709551615"
	l, _, err := ParseLink("x", text)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := ParseLink("x", l.Words())
	if err != nil || again != l {
		t.Errorf("%s reads as %+v, %v; want %+v", l.Words(), again, err, l)
	}
	l, _, err = ParseLink("", "delay=1ms,loss=0%,reorder=0,jitter=0ms")
	if err != nil || l.Zero != "loss,reorder,jitter" || l.Words() != "delay=1ms,loss=0,reorder=0,jitter=0" {
		t.Errorf("zeros: %+v, %v; said again %s", l, err, l.Words())
	}
	if again, _, err = ParseLink("", l.Words()); err != nil || again != l {
		t.Errorf("%s reads as %+v, %v; want %+v", l.Words(), again, err, l)
	}
	before := Link{LossModel: GilbertElliott, LossStates: [5]float64{0.1, 0.2, 1, 0}, DelaySeconds: 1, JitterSeconds: 0.1}
	l.DelaySeconds = 0.002
	if got := l.Over(before); got != (Link{DelaySeconds: 0.002}) {
		t.Errorf("zeros over %+v: %+v", before, got)
	}
	over := Link{LossRatio: 0.1, QueueBytes: 9, Distribution: "normal", MTU: 900, Node: "x"}
	before = Link{LossModel: GilbertElliott, LossStates: [5]float64{0.1}, QueuePackets: 5, Distribution: "file:x", DistributionTable: "AA==", Rate: 1000}
	if got := over.Over(before); got != (Link{LossRatio: 0.1, QueueBytes: 9, Distribution: "normal", Rate: 1000}) {
		t.Errorf("over %+v: %+v", before, got)
	}
	if err := (Link{Zero: "loss,mtu"}).check("link"); err == nil {
		t.Error("an mtu of 0 is taken")
	}
}

func TestLinkKnobs(t *testing.T) {
	p := Plan{
		Format: PlanFormat, Command: "sweep", Target: "lab:star", Receivers: 5, Engine: "auto",
		Flows:  []Flow{{Name: "up", Protocol: UDP, From: Sender, To: Receiver, PayloadBytes: 64, Streams: 1}},
		Design: Design{Repeats: 1}, Timing: Timing{MeasureSeconds: 1},
		Factors: []Factor{
			{"link-receiver-3.delay_s", []Value{Number(0), Number(0.0125)}},
			{"link.loss_ratio", []Value{Number(0), Number(0.05), Word("ge:1%/10%/70%/0.1%")}},
			{"link.rate_bps", []Value{Number(1e6)}},
			{"receivers", []Value{Number(1), Number(5)}},
		},
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	trial, err := p.Trial(Cell{"link-receiver-3.delay_s": Number(0.0125), "link.loss_ratio": Number(0), "link.rate_bps": Number(1e6), "receivers": Number(5)}, 0)
	if err != nil || trial.Receivers != 5 || len(trial.Links) != 3 {
		t.Fatalf("got %+v, %v", trial, err)
	}
	// What is said of all comes before what is said of one.
	if last := trial.Links[2]; last != (Link{Node: "receiver-3", DelaySeconds: 0.0125}) {
		t.Errorf("the last change is %+v", last)
	}
	for name, c := range map[string]struct {
		knob  string
		level Value
		want  string
	}{
		"unknown setting": {"link.colour", Number(1), "unknown knob"},
		"no node":         {"link-.loss_ratio", Number(1), "unknown knob"},
		"not a share":     {"link.loss_ratio", Number(1.5), "want 0 % to 100 %"},
		"negative":        {"link.delay_s", Number(-1), "want 0 s to 1 min"},
		"a word":          {"link.delay_s", Word("long"), "want a number"},
		"no word":         {"link.distribution", Number(1), "want a word"},
		"half a packet":   {"link.queue_packets", Number(1.5), "want a whole number"},
		"too many":        {"receivers", Number(6), "has not 6 receivers"},
		"none":            {"receivers", Number(0), "want 1 to"},
	} {
		q := p
		q.Factors = []Factor{{c.knob, []Value{c.level}}}
		if err := q.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	p.Target, p.Receivers, p.Factors = "nas", 0, p.Factors[1:2]
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "only a lab has links") {
		t.Errorf("links of a host: %v", err)
	}
}

func TestTitles(t *testing.T) {
	for knob, want := range map[string]string{
		"link.delay_s": "Link delay", "link-receiver-3.loss_ratio": "Link-receiver-3 loss", "link.rate_bps": "Link rate",
		"link.loss_correlation_ratio": "Link loss correlation", "send_buffer_bytes": "Send buffer", "rate_pps": "Asked rate",
	} {
		if k, ok := FindKnob(knob); !ok || k.Title() != want {
			t.Errorf("%s: %s, want %s", knob, k.Title(), want)
		}
	}
}

// A key with several levels is a factor; the others are the link's.
func TestLinkFactors(t *testing.T) {
	for text, want := range map[string]string{
		"loss=0,1%,5%":                             "; loss_ratio [0 0.01 0.05]",
		"loss=0..3%/1%,ge:1%/10%/70%/0.1%":         "; loss_ratio [0 0.01 0.02 0.03 ge:1%/10%/70%/0.1%]",
		"delay=0..40ms/10ms,loss=1%":               "loss=1%; delay_s [0 0.01 0.02 0.03 0.04]",
		"rate=0,1mbit..2mbit/500kbit,delay=0,20ms": "; rate_bps [0 1000000 1500000 2000000]; delay_s [0 0.02]",
		"queue=10,100..300/100":                    "; queue_packets [10 100 200 300]",
		"queue=0,64KiB":                            "; queue_bytes [0 65536]",
		"distribution=uniform,normal":              "; distribution [uniform normal]",
		"buffers=parts, whole":                     "; buffers [parts whole]",
		"gap=1,5":                                  "; reorder_gap [1 5]",
		"duplicate-correlation=0,25%":              "; duplicate_correlation_ratio [0 0.25]",
		"loss=4state:1%/1%/1%/1%/1%,ge:1%/1%/1%/0": "; loss_ratio [4state:1%/1%/1%/1%/1% ge:1%/1%/1%/0]",
	} {
		l, factors, err := ParseLink("a", text)
		got := l.Words()
		for _, f := range factors {
			got += fmt.Sprintf("; %s %v", strings.TrimPrefix(f.Knob, "link-a."), f.Levels)
		}
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"1%,loss=1%": "not key=value", "mtu=1000,1400": "mtu has one value", "seed=1,2": "seed has one value", "toward=a,b": "toward has one value",
		"toward=a,loss=0,1%": "both directions", "queue=10,64KiB": "counts packets where others are bytes", "colour=1,2": "unknown key",
		"loss=5%..1%/1%": "range with a step", "delay=0,5": "lacks a unit", "loss=1%,1%": "twice", "rate=fast,slow": "bits per second", "loss=1%,": "not key=value",
	} {
		if l, f, err := ParseLink("", text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %+v, %v; want %q", text, l, f, err, want)
		}
	}
}
