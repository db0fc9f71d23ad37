package model

import (
	"strings"
	"testing"
)

func TestLinkChange(t *testing.T) {
	was, err := ParseLink("", "rate=10mbit,queue=20,delay=20ms,loss=ge:1%/10%/70%/0.1%,mode=exact,seed=7")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"loss=5%":                        "rate=10mbit,queue=20,delay=20ms,loss=0.05,mode=exact,seed=7",
		"loss=0":                         "rate=10mbit,queue=20,delay=20ms,mode=exact,seed=7",
		"loss=none,delay=0ms":            "rate=10mbit,queue=20,mode=exact,seed=7",
		"queue=64KiB":                    "rate=10mbit,queue=65536B,delay=20ms,loss=ge:0.01/0.1/0.7/0.001,mode=exact,seed=7",
		"queue=0,rate=1gbit,seed=0":      "rate=1gbit,delay=20ms,loss=ge:0.01/0.1/0.7/0.001,mode=exact",
		"mode=none,jitter=1ms,gap=none":  "rate=10mbit,queue=20,delay=20ms,jitter=1ms,loss=ge:0.01/0.1/0.7/0.001,seed=7",
		"distribution=normal,toward=far": "rate=10mbit,queue=20,delay=20ms,distribution=normal,loss=ge:0.01/0.1/0.7/0.001,mode=exact,seed=7",
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
		"loss=200%": "between 0 and 100", "mtu=1000": "mtu cannot change", "colour=red": "unknown key", "mode=0": "exact or netem", "queue=-1": "size",
		"delay=5": "lacks a unit", "rate=1bit": "at least 1kbit", "toward=a,toward=b,loss=1%": "toward stands twice",
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
		"corrupt=0.001,corrupt-correlation=0.5,mode=netem,seed=18446744073709551615"
	l, err := ParseLink("x", text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseLink("x", l.Words())
	if err != nil || again != l {
		t.Errorf("%s reads as %+v, %v; want %+v", l.Words(), again, err, l)
	}
	l, err = ParseLink("", "delay=1ms,loss=0%,reorder=0,jitter=0ms")
	if err != nil || l.Zero != "loss,reorder,jitter" || l.Words() != "delay=1ms,loss=0,reorder=0,jitter=0" {
		t.Errorf("zeros: %+v, %v; said again %s", l, err, l.Words())
	}
	if again, err = ParseLink("", l.Words()); err != nil || again != l {
		t.Errorf("%s reads as %+v, %v; want %+v", l.Words(), again, err, l)
	}
	before := Link{LossModel: GilbertElliott, LossStates: [5]float64{0.1, 0.2, 1, 0}, DelaySeconds: 1, JitterSeconds: 0.1}
	if got := l.TakeBack(before); got != (Link{DelaySeconds: 1}) {
		t.Errorf("taken back: %+v", got)
	}
	if err := (Link{Zero: "loss,mtu"}).check("link"); err == nil {
		t.Error("an mtu of 0 is taken")
	}
}

func TestLinkKnobs(t *testing.T) {
	p := Plan{
		Format: PlanFormat, Command: "sweep", Target: "lab:star", Receivers: 5, Engine: "auto",
		Flows:  []Flow{{Name: "up", Protocol: UDP, From: Sender, To: Receiver, PayloadBytes: 64, Streams: 1}},
		Design: Design{Kind: "grid", Repeats: 1}, Timing: Timing{MeasureSeconds: 1},
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
	if last := trial.Links[2]; last.Node != "receiver-3" || last.Settings[0] != (LinkSetting{"delay", "0.0125s"}) {
		t.Errorf("the last change is %+v", last)
	}
	for name, c := range map[string]struct {
		knob  string
		level Value
		want  string
	}{
		"unknown setting": {"link.colour", Number(1), "unknown knob"},
		"no node":         {"link-.loss_ratio", Number(1), "unknown knob"},
		"not a share":     {"link.loss_ratio", Number(1.5), "between 0 and 100"},
		"negative":        {"link.delay_s", Number(-1), "negative"},
		"a word":          {"link.delay_s", Word("long"), "want a number"},
		"no word":         {"link.distribution", Number(1), "is a word"},
		"half a packet":   {"link.queue_packets", Number(1.5), "want whole"},
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

func TestLinkKnobWords(t *testing.T) {
	for knob, want := range map[string]string{
		"link.delay_s": "link delay 20 ms", "link-receiver-3.loss_ratio": "link-receiver-3 loss 2 %", "link.rate_bps": "link rate 0.02 bit/s",
	} {
		if what, value, ok := LinkKnobWords(knob, Number(0.02)); !ok || what+" "+value != want {
			t.Errorf("%s: %s %s, want %s", knob, what, value, want)
		}
	}
	for knob, want := range map[string]string{"link.delay_s": "0 ms", "link.queue_packets": "usual", "link.rate_bps": "without limit", "link.loss_ratio": "0 %"} {
		if _, value, _ := LinkKnobWords(knob, Number(0)); value != want {
			t.Errorf("%s of nothing: %s, want %s", knob, value, want)
		}
	}
	if _, value, _ := LinkKnobWords("link.loss_ratio", Word("ge:1%/10%/70%/0.1%")); value != "ge:1%/10%/70%/0.1%" {
		t.Errorf("a model of loss: %s", value)
	}
	if _, _, ok := LinkKnobWords("loss_ratio", Number(1)); ok {
		t.Error("loss_ratio sets no link")
	}
}
