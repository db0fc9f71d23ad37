package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/model"
)

func levels(knob string, numbers ...float64) model.Factor {
	f := model.Factor{Knob: knob}
	for _, n := range numbers {
		f.Levels = append(f.Levels, model.Number(n))
	}
	return f
}

func TestSweep(t *testing.T) {
	o := Options{
		Target: "lab:star", Payloads: []int{256, 1472}, Factors: []model.Factor{levels("interval_ns", 0, 5e6),
			levels("streams", 1, 4), levels("receive_buffer_bytes", 65536), levels("receivers", 100)},
	}
	p, err := Sweep(o)
	if err != nil {
		t.Fatal(err)
	}
	var knobs []string
	for _, f := range p.Factors {
		knobs = append(knobs, f.Knob)
	}
	if want := []string{"payload_bytes", "interval_ns", "streams"}; !slices.Equal(knobs, want) {
		t.Errorf("factors %v, want %v", knobs, want)
	}
	f := p.Flows[0]
	if p.Command != "sweep" || p.Receivers != 100 || p.Design.Repeats != 3 || f.Packets != 1000 || f.ReceiveBuffer != 65536 || p.Timing.WarmupSeconds != 0 {
		t.Errorf("got %+v", p)
	}
	for _, c := range []struct {
		interval float64
		want     float64 // seconds of the trial
	}{{0, 60}, {5e6, 5}} {
		trial, err := p.Trial(model.Cell{"payload_bytes": model.Number(256), "interval_ns": model.Number(c.interval), "streams": model.Number(4)}, 0)
		if err != nil || trial.Timing.MeasureSeconds != c.want {
			t.Errorf("every %v ns: %v s, %v; want %v s", c.interval, trial.Timing.MeasureSeconds, err, c.want)
		}
	}
	if trials, least := SweepTime(p); trials != 24 || least != 60*time.Second { // 4 cells of 5 s, three times
		t.Errorf("%d trials, at least %v", trials, least)
	}
	quick, err := Sweep(o.Quick())
	if err != nil || quick.Flows[0].Packets != 100 || quick.Design.Repeats != 3 {
		t.Errorf("quick: %+v, %v", quick, err)
	}
}

func TestSweepOfATime(t *testing.T) {
	p, err := Sweep(Options{Target: "nas", Payloads: []int{64}, Time: 2 * time.Second, Factors: []model.Factor{{Knob: "rate_pps", Levels: []model.Value{model.Number(1000), model.Word("max")}}}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Flows[0].Packets != 0 || p.Timing.MeasureSeconds != 2 || p.Factors[1].Knob != "rate_pps" || p.Factors[1].Levels[1] != model.Word("max") {
		t.Errorf("got %+v", p)
	}
}

func TestBadSweeps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"two paces":        {func(o *Options) { o.Factors = []model.Factor{levels("rate_pps", 1, 2), levels("interval_ns", 1, 2)} }, "rate_pps and interval_ns set the same thing"},
		"no sizes":         {func(o *Options) { o.Payloads = nil }, "--payload: say which sizes"},
		"TCP":              {func(o *Options) { o.Protocol = model.TCP }, "--proto: a sweep is of UDP"},
		"receivers abroad": {func(o *Options) { o.Target, o.Receivers = "nas", 5 }, "--receivers: want 1 to 256, in a lab:star"},
		"many receivers":   {func(o *Options) { o.Receivers = 257 }, "--receivers: want 1 to 256"},
		"few packets":      {func(o *Options) { o.Packets, o.Streams = 3, 4 }, "--count: 4 streams want a packet each"},
		"level twice":      {func(o *Options) { o.Factors = []model.Factor{levels("streams", 1, 1)} }, "--streams"},
	} {
		o := Options{Target: "lab:star", Payloads: []int{256}}
		c.change(&o)
		if _, err := Sweep(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestQuick(t *testing.T) {
	for _, c := range []struct {
		packets, wantPackets uint64
		time, wantTime       time.Duration
	}{
		{0, 100, 0, 0}, {5000, 5000, 0, 0}, {50, 50, 0, 0}, {0, 0, 2 * time.Second, 2 * time.Second},
	} {
		o := Options{Packets: c.packets}
		o.Time = c.time
		if q := o.Quick(); q.Packets != c.wantPackets || q.Time != c.wantTime {
			t.Errorf("%d packets, %v: quick %d packets, %v", c.packets, c.time, q.Packets, q.Time)
		}
	}
}

// A link may take longer for one datagram than its delay: a drain waits for the first.
func TestQuietOfASlowLink(t *testing.T) {
	o := Options{Target: "lab:direct", Payloads: []int{1472, 10240}, Links: []model.Link{{Rate: 256_000, DelaySeconds: 0.01}}}
	p, err := Sweep(o)
	if took := 8 * 10486 / 256e3; err != nil || p.Timing.QuietSeconds < 2*took || p.Timing.QuietSeconds > 5*took {
		t.Errorf("quiet for %v s, %v, where a datagram takes %.3f s", p.Timing.QuietSeconds, err, took)
	}
}

func TestSweepOfConditions(t *testing.T) {
	_, delay, err := model.ParseLink("receiver", "delay=0,40ms")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Target: "lab:star", Payloads: []int{64}, Factors: append([]model.Factor{levels("receivers", 1, 10, 100)}, delay...)}
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
	o.Factors = delay
	if _, err := Sweep(o); err == nil || !strings.Contains(err.Error(), "--link-receiver: delay_s: only a lab has links") {
		t.Errorf("of a host: %v", err)
	}
}
