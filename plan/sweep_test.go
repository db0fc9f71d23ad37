package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/model"
)

func knobsOf(p model.Plan) (knobs []string) {
	for _, f := range p.Factors {
		knobs = append(knobs, f.Knob)
	}
	return knobs
}

func TestSweep(t *testing.T) {
	all := []string{"payload=256,1472", "interval=0,5ms", "streams=1,4", "receive-buffer=65536", "receivers=100"}
	p, err := Sweep.Of("lab:star", all...)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"payload_bytes", "interval_ns", "streams"}; !slices.Equal(knobsOf(p), want) {
		t.Errorf("factors %v, want %v", knobsOf(p), want)
	}
	f := p.Flows[0]
	if p.Command != "sweep" || p.Receivers != 100 || p.Design.Repeats != 3 || f.Packets != 1000 || f.ReceiveBuffer != 65536 ||
		p.Timing.WarmupSeconds != 0 {
		t.Errorf("got %+v", p)
	}
	for _, c := range []struct {
		interval float64
		want     float64 // seconds of the trial
	}{{0, 60}, {5e6, 5}} {
		cell := model.Cell{"payload_bytes": model.Number(256), "interval_ns": model.Number(c.interval), "streams": model.Number(4)}
		trial, err := p.Trial(cell, 0)
		if err != nil || trial.Timing.MeasureSeconds != c.want {
			t.Errorf("every %v ns: %v s, %v; want %v s", c.interval, trial.Timing.MeasureSeconds, err, c.want)
		}
	}
}

func TestSweepPackets(t *testing.T) {
	for flags, want := range map[string]struct {
		packets uint64
		seconds float64
	}{
		"": {1000, 60}, "quick=true": {100, 60}, "quick=true count=5000": {5000, 60}, "quick=true count=50": {50, 60},
		"quick=true time=2s": {0, 2}, "time=2s rate=1kpps,max": {0, 2},
	} {
		p, err := Sweep.Of("nas", append(strings.Fields(flags), "payload=64")...)
		if err != nil || p.Flows[0].Packets != want.packets || p.Timing.MeasureSeconds != want.seconds {
			t.Errorf("%s: %d packets, %v s, %v; want %+v", flags, p.Flows[0].Packets, p.Timing.MeasureSeconds, err, want)
		}
	}
	p, _ := Sweep.Of("nas", "payload=64", "rate=1kpps,max")
	if want := []model.Value{model.Number(1000), model.Word("max")}; !slices.Equal(p.Factors[1].Levels, want) {
		t.Errorf("rates %v, want %v", p.Factors[1], want)
	}
}

func TestBadSweeps(t *testing.T) {
	for flags, want := range map[string]string{
		"payload=256 rate=1kpps,2kpps interval=1ms,2ms": "--interval: give --rate or --interval, not both",
		"payload=256 frame=64":                          "--frame: give --payload or --frame, not both",
		"":                                              "--payload: say which sizes",
		"payload=256 receivers=257":                     "--receivers: want 1 to 256",
		"payload=256 count=3 streams=4":                 "--count: 4 streams want a packet each",
		"payload=256 count=10 time=1s":                  "--time: give --count or --time",
		"payload=256 streams=1,1":                       "--streams: ",
		"payload=256 family=4,6":                        "--family: want one value, not 2",
		"payload=256 rate=1mbit,2mbit":                  "--rate: a list holds whole packets per second",
	} {
		if _, err := Sweep.Of("lab:star", strings.Fields(flags)...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
	for flags, want := range map[string]string{
		"payload=256 receivers=5":                         "--receivers: only a lab:star",
		"payload=256 node-link=receiver:delay=0,40ms":     "--link-receiver: delay_s: only a lab has links",
		"payload=256 node-link=receiver:delay=1ms,loss=1": "--link: only a lab has links",
	} {
		if _, err := Sweep.Of("nas", strings.Fields(flags)...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("of a host, %s: %v, want %q", flags, err, want)
		}
	}
}

// A link may take longer for one datagram than its delay: a drain waits for the first.
func TestQuietOfASlowLink(t *testing.T) {
	p, err := Sweep.Of("lab:direct", "payload=1472,10240", "link=rate=256kbit,delay=10ms")
	if took := 8 * 10486 / 256e3; err != nil || p.Timing.QuietSeconds < 2*took || p.Timing.QuietSeconds > 5*took {
		t.Errorf("quiet for %v s, %v, where a datagram takes %.3f s", p.Timing.QuietSeconds, err, took)
	}
}

func TestSweepOfConditions(t *testing.T) {
	s := Settings{Target: "lab:star", Flags: map[string][]string{"payload": {"64"}, "receivers": {"1,10,100"},
		"node-link": {"receiver:delay=0,40ms"}}}
	p, err := Sweep.Plan(s)
	if want := []string{"payload_bytes", "receivers", "link-receiver.delay_s"}; err != nil || p.Receivers != 100 || !slices.Equal(knobsOf(p), want) {
		t.Errorf("got %+v, %v", p, err)
	}
	if least := (200 + 80) * time.Millisecond; p.Timing.Quiet() < least { // there and back, and what this machine takes
		t.Errorf("a drain ends after %v of silence, want at least %v", p.Timing.Quiet(), least)
	}
	if s.Held = true; true {
		if held, err := Sweep.Plan(s); err != nil || held.Timing.Quiet() < time.Second {
			t.Errorf("in a lab of unknown links a drain ends after %v of silence, %v", held.Timing.Quiet(), err)
		}
	}
	if again := reread(t, p); !reflect.DeepEqual(again, p) {
		t.Errorf("reads back as %+v", again)
	}
}

// Rates that are whole stay numbers, however they are divided.
func TestWholeRates(t *testing.T) {
	p, err := Sweep.Of("lab:direct", "payload=64", "rate=30pps,60pps,65kpps,130kpps")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Factors {
		for i, l := range f.Levels {
			if want := []float64{30, 60, 65e3, 130e3}; f.Knob == "rate_pps" && l.Number != want[i] {
				t.Errorf("level %v, want %v", l, want[i])
			}
		}
	}
}
