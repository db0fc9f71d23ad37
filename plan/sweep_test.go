package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/unit"
)

func TestSweep(t *testing.T) {
	o := SweepOptions{
		CurveOptions: CurveOptions{Target: "lab:star", Payloads: []int{256, 1472}}, Intervals: []time.Duration{0, 5 * time.Millisecond},
		StreamCounts: []int{1, 4}, ReceiveBuffers: []int{65536}, Receivers: []int{100},
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
	if err != nil || quick.Flows[0].Packets != 100 || quick.Design.Repeats != 2 {
		t.Errorf("quick: %+v, %v", quick, err)
	}
}

func TestSweepOfATime(t *testing.T) {
	p, err := Sweep(SweepOptions{CurveOptions: CurveOptions{Target: "nas", Payloads: []int{64}, Time: 2 * time.Second}, Rates: []unit.Rate{unit.PacketRate(1000), {}}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Flows[0].Packets != 0 || p.Timing.MeasureSeconds != 2 || p.Factors[1].Knob != "rate_pps" || p.Factors[1].Levels[1] != model.Word("max") {
		t.Errorf("got %+v", p)
	}
}

func TestBadSweeps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*SweepOptions)
		want   string
	}{
		"two paces":        {func(o *SweepOptions) { o.Rates, o.Intervals = []unit.Rate{{}}, []time.Duration{1} }, "--interval: stands beside --rate"},
		"no sizes":         {func(o *SweepOptions) { o.Payloads = nil }, "--payload: say which sizes"},
		"TCP":              {func(o *SweepOptions) { o.Protocol = model.TCP }, "--proto: a sweep is of UDP"},
		"receivers abroad": {func(o *SweepOptions) { o.Target, o.Receivers = "nas", []int{5} }, "--receivers: want 1 to 256, in a lab:star"},
		"many receivers":   {func(o *SweepOptions) { o.Receivers = []int{257} }, "--receivers: want 1 to 256"},
		"rate of bits":     {func(o *SweepOptions) { r, _ := unit.ParseRate("95mbit"); o.Rates = []unit.Rate{{}, r} }, "--rate: a list holds whole packets"},
		"few packets":      {func(o *SweepOptions) { o.Packets, o.StreamCounts = 3, []int{4} }, "--count: 4 streams want a packet each"},
		"level twice":      {func(o *SweepOptions) { o.StreamCounts = []int{1, 1} }, "--streams"},
	} {
		o := SweepOptions{CurveOptions: CurveOptions{Target: "lab:star", Payloads: []int{256}}}
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
		{0, 100, 0, 0}, {5000, 500, 0, 0}, {200, 100, 0, 0}, {50, 50, 0, 0},
		{0, 0, 2 * time.Second, 200 * time.Millisecond}, {0, 0, 500 * time.Millisecond, 100 * time.Millisecond}, {0, 0, 50 * time.Millisecond, 50 * time.Millisecond},
	} {
		o := SweepOptions{Packets: c.packets}
		o.Time = c.time
		if q := o.Quick(); q.Packets != c.wantPackets || q.Time != c.wantTime || q.Repeats != 2 {
			t.Errorf("%d packets, %v: quick %d packets, %v, %d repeats", c.packets, c.time, q.Packets, q.Time, q.Repeats)
		}
	}
}

// A link may take longer for one datagram than its delay: a drain waits for the first.
func TestQuietOfASlowLink(t *testing.T) {
	o := SweepOptions{CurveOptions: CurveOptions{Target: "lab:direct", Payloads: []int{1472, 10240}, Links: []model.Link{{Rate: 256_000, DelaySeconds: 0.01}}}}
	p, err := Sweep(o)
	if took := 8 * 10486 / 256e3; err != nil || p.Timing.QuietSeconds < 2*took || p.Timing.QuietSeconds > 5*took {
		t.Errorf("quiet for %v s, %v, where a datagram takes %.3f s", p.Timing.QuietSeconds, err, took)
	}
}
