package model

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pelt/unit"
)

func TestParseProfile(t *testing.T) {
	for _, c := range []struct {
		text string
		want Profile
		rate string // that it says itself
	}{
		{"poisson", Profile{Kind: Poisson}, "max"},
		{"Poisson", Profile{Kind: Poisson}, "max"},
		{"burst=64", Profile{Kind: Burst, BurstPackets: 64}, "max"},
		{"on=10ms,off=90ms", Profile{Kind: OnOff, OnSeconds: 0.01, OffSeconds: 0.09}, "max"},
		{"on=1s, off=500us ,random", Profile{Kind: OnOff, OnSeconds: 1, OffSeconds: 0.0005, Random: true}, "max"},
		{"on=10ms,random,off=90ms", Profile{Kind: OnOff, OnSeconds: 0.01, OffSeconds: 0.09, Random: true}, "max"},
		{"ramp=10kpps..100kpps", Profile{Kind: Ramp, From: unit.PacketRate(10_000)}, "100kpps"},
		{"ramp=95mbit..1mbit", Profile{Kind: Ramp, From: mustRate("95mbit")}, "1mbit"},
	} {
		got, rate, err := ParseProfile(c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) || rate.String() != c.rate {
			t.Errorf("ParseProfile(%q) = %+v, %v, %v; want %+v, %s", c.text, got, rate, err, c.want, c.rate)
		}
		again, _, err := ParseProfile(got.Words(rate))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%q says itself %q, which is %+v, %v", c.text, got.Words(rate), again, err)
		}
	}
	for _, text := range []string{
		"", "even", "poisson,poisson", "poisson=3", "burst", "burst=", "burst=x", "burst=1,2", "on=10ms", "off=10ms", "on=10ms,off=0s", "on=10ms,off=1s,on=2s", "on=10,off=10",
		"on=10ms,off=90ms,random,random", "on=10ms,off=90ms,idle=3s", "ramp=", "ramp=10kpps", "ramp=10kpps..", "ramp=max..10kpps", "ramp=1kpps..2kpps,random", "trace=x", strings.Repeat("x", 5000),
	} {
		p, _, err := ParseProfile(text)
		var wrong *unit.SyntaxError
		if !errors.As(err, &wrong) || strings.ContainsRune(err.Error(), '\n') || len(err.Error()) > 700 {
			t.Errorf("ParseProfile(%.40q) = %+v, %v; want one line of what is wrong", text, p, err)
		}
	}
}

func mustRate(text string) unit.Rate {
	r, err := unit.ParseRate(text)
	if err != nil {
		panic(err)
	}
	return r
}

func FuzzParseProfile(f *testing.F) {
	for _, text := range []string{"poisson", "burst=64", "on=10ms,off=90ms,random", "ramp=10kpps..100kpps", "on=,off=", "ramp=1/3mbit..9pps"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, rate, err := ParseProfile(text)
		if err != nil {
			return
		}
		again, other, err := ParseProfile(p.Words(rate))
		if err != nil || !reflect.DeepEqual(again, p) || other != rate {
			t.Errorf("%q is %+v at %v, and says itself %q: %+v at %v, %v", text, p, rate, p.Words(rate), again, other, err)
		}
	})
}

func udpFlow(rate string, p *Profile) Flow {
	return Flow{Name: "up", Protocol: UDP, From: Sender, To: Receiver, PayloadBytes: 64, Rate: mustRate(rate), Streams: 1, Profile: p}
}

func TestCheckProfile(t *testing.T) {
	trace, err := TraceText([]int64{1000, 2000})
	if err != nil {
		t.Fatal(err)
	}
	short := Timing{MeasureSeconds: 10}
	for _, c := range []struct {
		name   string
		change func(*Flow, *Timing)
		field  string // "" if it is right
	}{
		{"poisson", func(f *Flow, _ *Timing) {}, ""},
		{"at full rate", func(f *Flow, _ *Timing) { f.Rate = unit.Rate{} }, "profile"},
		{"of TCP", func(f *Flow, _ *Timing) { f.Protocol = TCP }, "profile"},
		{"in buffers", func(f *Flow, _ *Timing) { f.Segments = 4 }, "profile"},
		{"of no kind", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: "even"} }, "profile"},
		{"of two kinds", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: Poisson, BurstPackets: 3} }, "profile"},
		{"burst of none", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: Burst} }, "profile"},
		{"burst of too many", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: Burst, BurstPackets: MaxBurst + 1} }, "profile"},
		{"never off", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: OnOff, OnSeconds: 1} }, "profile"},
		{"on for no time", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: OnOff, OnSeconds: 1e-9, OffSeconds: 1} }, "profile"},
		{"on and off", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: OnOff, OnSeconds: 1, OffSeconds: 1} }, ""},
		{"ramp from nowhere", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: Ramp} }, "profile"},
		{"trace", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: TraceProfile, File: "a.csv", Trace: trace} }, ""},
		{"trace of nothing", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: TraceProfile} }, "profile"},
		{"trace of noise", func(f *Flow, _ *Timing) { f.Profile = &Profile{Kind: TraceProfile, Trace: []string{"AAAA"}} }, "profile"},
		{"more draws than a week has", func(f *Flow, t *Timing) { f.Rate, t.MeasureSeconds = mustRate("10Mpps"), MaxMeasure.Seconds() }, "profile"},
		{"too many random periods", func(f *Flow, t *Timing) {
			f.Profile = &Profile{Kind: OnOff, OnSeconds: 1e-6, OffSeconds: 1e-6, Random: true}
			t.MeasureSeconds = 60
		}, "profile"},
		{"a number of packets with too many random periods", func(f *Flow, t *Timing) {
			f.Profile = &Profile{Kind: OnOff, OnSeconds: 1e-6, OffSeconds: 1e-6, Random: true}
			f.Rate, f.Packets = mustRate("1kpps"), 1<<20
		}, "profile"},
		{"a number of packets that takes longer than any trial", func(f *Flow, t *Timing) { f.Rate, f.Packets = mustRate("1kpps"), 1<<40 }, "measure_s"},
	} {
		f, timing := udpFlow("40kpps", &Profile{Kind: Poisson}), short
		c.change(&f, &timing)
		_, err := Plan{Flows: []Flow{f}, Timing: timing}.Trial(nil, 0)
		var wrong *FieldError
		switch errors.As(err, &wrong); {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (wrong == nil || !strings.HasSuffix("."+wrong.Field, "."+c.field)):
			t.Errorf("%s: %v; want the field %s", c.name, err, c.field)
		}
	}
}

// What is random has a seed in every trial: the same for all cells of a repeat,
// another for each repeat and flow, and the plan's own if it says one.
func TestTrialsHaveSeeds(t *testing.T) {
	p := Plan{Flows: []Flow{udpFlow("40kpps", &Profile{Kind: Poisson}), udpFlow("40kpps", &Profile{Kind: Poisson})}, Timing: Timing{MeasureSeconds: 1}, Design: Design{Seed: 9}}
	p.Flows[1].Name = "down"
	seeds := map[uint64]string{}
	for repeat := range 3 {
		for _, payload := range []float64{64, 512} {
			trial, err := p.Trial(Cell{"payload_bytes": Number(payload)}, repeat)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range trial.Flows {
				key := f.Name + string(rune('0'+repeat))
				if seen, known := seeds[f.Profile.Seed]; f.Profile.Seed == 0 || known && seen != key {
					t.Errorf("flow %s of repeat %d has the seed %d of %s", f.Name, repeat, f.Profile.Seed, seen)
				}
				seeds[f.Profile.Seed] = key
			}
		}
	}
	if len(seeds) != 6 {
		t.Errorf("%d seeds of 6 flows and repeats", len(seeds))
	}
	if p.Flows[0].Profile.Seed != 0 {
		t.Error("the plan itself was changed")
	}
	p.Flows[0].Profile = &Profile{Kind: Poisson, Seed: 5}
	if trial, _ := p.Trial(nil, 2); trial.Flows[0].Profile.Seed != 5 {
		t.Errorf("the plan's seed became %d", trial.Flows[0].Profile.Seed)
	}
	a := Profile{Kind: Poisson, Seed: 5}
	if b := a.Other(1); b.Seed == 5 || a.Other(0).Seed != 5 || a.Other(2).Seed == b.Seed {
		t.Errorf("other flows have the seeds %d and %d beside 5", b.Seed, a.Other(2).Seed)
	}
}

func TestRatesOfProfiles(t *testing.T) {
	trace, err := TraceText([]int64{0, 0, 0, 3_999_999_997, 1, 1, 1, 1_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		flow       Flow
		peak, mean float64
	}{
		{"even gaps", udpFlow("40kpps", nil), 40e3, 40e3},
		{"poisson", udpFlow("40kpps", &Profile{Kind: Poisson}), 40e3, 40e3},
		{"on and off", udpFlow("40kpps", &Profile{Kind: OnOff, OnSeconds: 1, OffSeconds: 3}), 40e3, 10e3},
		{"bursts of less than a second", udpFlow("40kpps", &Profile{Kind: Burst, BurstPackets: 64}), 40e3, 40e3},
		{"a burst every minute", udpFlow("1kpps", &Profile{Kind: Burst, BurstPackets: 60_000}), 60e3, 1e3},
		{"up", udpFlow("40kpps", &Profile{Kind: Ramp, From: mustRate("20kpps")}), 40e3, 30e3},
		{"down", udpFlow("20kpps", &Profile{Kind: Ramp, From: mustRate("40kpps")}), 40e3, 30e3},
		{"trace", udpFlow("8/5pps", &Profile{Kind: TraceProfile, Trace: trace}), 4, 1.6},
		{"trace four times as fast", udpFlow("32/5pps", &Profile{Kind: TraceProfile, Trace: trace}), 8, 6.4},
	} {
		peak, _ := c.flow.PeakPPS()
		mean, _ := c.flow.MeanPPS()
		if peak != c.peak || mean != c.mean {
			t.Errorf("%s: peak %v and mean %v; want %v and %v", c.name, peak, mean, c.peak, c.mean)
		}
	}
	if _, ok := udpFlow("max", nil).PeakPPS(); ok {
		t.Error("full rate has a peak")
	}
}

// A trial of a number of packets is as long as they take.
func TestCountedProfiles(t *testing.T) {
	for _, c := range []struct {
		profile Profile
		rate    string
		seconds float64
	}{
		{Profile{Kind: Burst, BurstPackets: 64}, "1kpps", 10},
		{Profile{Kind: OnOff, OnSeconds: 0.01, OffSeconds: 0.03}, "1kpps", 40},
		{Profile{Kind: Ramp, From: mustRate("500pps")}, "1500pps", 10},
	} {
		f := udpFlow(c.rate, &c.profile)
		f.Packets = 10_000
		trial, err := Plan{Flows: []Flow{f}, Timing: Timing{MeasureSeconds: 60}}.Trial(nil, 0)
		if err != nil || trial.Timing.MeasureSeconds < c.seconds-0.001 || trial.Timing.MeasureSeconds > c.seconds+0.001 {
			t.Errorf("%s: %v s, %v; want %v s", c.profile.Kind, trial.Timing.MeasureSeconds, err, c.seconds)
		}
	}
}

func TestProfileKnob(t *testing.T) {
	p := Plan{Flows: []Flow{udpFlow("40kpps", nil)}, Timing: Timing{MeasureSeconds: 1}}
	for text, want := range map[string]string{"constant": "", "burst=16": Burst, "poisson": Poisson, "ramp=1kpps..2kpps": Ramp} {
		trial, err := p.Trial(Cell{"profile": Word(text)}, 0)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := trial.Flows[0].Profile; (got == nil) != (want == "") || got != nil && got.Kind != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if _, err := p.Trial(Cell{"profile": Number(3)}, 0); err == nil {
		t.Error("a number is no profile")
	}
}

func TestTraceText(t *testing.T) {
	var long []int64
	for i := range int64(300_000) {
		long = append(long, (i*i*7919)%1_000_003)
	}
	for name, gaps := range map[string][]int64{"one": {5}, "some": {0, 1, 127, 128, 25_000, 1 << 40}, "even ones": slices.Repeat([]int64{25_000}, MaxTracePackets)} {
		text, err := TraceText(gaps)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := ReadTraceText(text)
		if err != nil || !slices.Equal(back, gaps) {
			t.Errorf("%s: %d gaps read back of %d, %v", name, len(back), len(gaps), err)
		}
	}
	for name, gaps := range map[string][]int64{"none": {}, "no time": {0, 0}, "backwards": {5, -1}, "long pause": {1 << 47}, "too many": slices.Repeat([]int64{1}, MaxTracePackets+1), "too different": long} {
		if text, err := TraceText(gaps); err == nil {
			t.Errorf("%s: %d strings", name, len(text))
		}
	}
}

func TestTraceToManyReceivers(t *testing.T) {
	f := udpFlow("1kpps", &Profile{Kind: TraceProfile, Trace: []string{strings.Repeat("A", 50_000)}})
	for receivers, right := range map[int]bool{0: true, 16: true, 17: false} {
		if err := (Plan{Target: "lab:other", Receivers: receivers, Flows: []Flow{f}}).checkTraces(); (err == nil) != right {
			t.Errorf("%d receivers: %v", receivers, err)
		}
	}
}

func FuzzReadTraceText(f *testing.F) {
	good, _ := TraceText([]int64{1, 2, 300_000})
	f.Add(good[0])
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		gaps, err := ReadTraceText([]string{text})
		if err != nil {
			return
		}
		if len(gaps) == 0 || len(gaps) > MaxTracePackets {
			t.Errorf("%d gaps", len(gaps))
		}
		flow := udpFlow("40kpps", &Profile{Kind: TraceProfile, Trace: []string{text}})
		if peak, _ := flow.PeakPPS(); !(peak >= 40e3) {
			t.Errorf("peak %v", peak)
		}
		if c := flow.Clock(Timing{MeasureSeconds: 1}, false); c.Slots(1e9) == 0 {
			t.Error("no packet in a second of 40 kpps")
		}
	})
}
