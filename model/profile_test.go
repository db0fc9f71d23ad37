package model

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pelt/unit"
)

func mustRate(text string) unit.Rate {
	r, err := unit.ParseRate(text)
	if err != nil {
		panic(err)
	}
	return r
}

func FuzzParseProfile(f *testing.F) {
	for _, text := range []string{"poisson", "burst=64", "on=10ms,off=90ms,random", "ramp=10kpps..100kpps",
		"on=,off=", "ramp=1/3mbit..9pps"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, rate, err := ParseProfile(text)
		if err != nil {
			return
		}
		again, other, err := ParseProfile(p.Words(rate))
		if err != nil || !reflect.DeepEqual(again, p) || other != rate {
			t.Errorf("%q is %+v at %v, and says itself %q: %+v at %v, %v", text, p, rate, p.Words(rate), again, other,
				err)
		}
	})
}

func udpFlow(rate string, p *Profile) Flow {
	return Flow{Name: "up", Protocol: UDP, From: Sender, To: Receiver, PayloadBytes: 64, Rate: mustRate(rate),
		Streams: 1, Profile: p}
}

// What is random has a seed in every trial: the same for all cells of a repeat,
// another for each repeat and flow, and the plan's own if it says one.
func TestTrialsHaveSeeds(t *testing.T) {
	p := Plan{Flows: []Flow{udpFlow("40kpps", &Profile{Kind: Poisson}), udpFlow("40kpps", &Profile{Kind: Poisson})},
		Timing: Timing{MeasureSeconds: 1}, Design: Design{Seed: 9}}
	p.Flows[1].Name = "down"
	seeds := map[uint64]string{}
	for repeat := range 3 {
		for _, payload := range []float64{64, 512} {
			trial, err := p.Trial(Cell{"payload_bytes": Number(payload)}, repeat)
			if err != nil || trial.Repeat != repeat || trial.Timing != p.Timing {
				t.Fatalf("%+v, %v", trial, err)
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

func TestTraceText(t *testing.T) {
	var long []int64
	for i := range int64(300_000) {
		long = append(long, (i*i*7919)%1_000_003)
	}
	for name, gaps := range map[string][]int64{"one": {5}, "some": {0, 1, 127, 128, 25_000, 1 << 40},
		"even ones": slices.Repeat([]int64{25_000}, MaxTracePackets)} {
		text, err := TraceText(gaps)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := ReadTraceText(text)
		if err != nil || !slices.Equal(back, gaps) {
			t.Errorf("%s: %d gaps read back of %d, %v", name, len(back), len(gaps), err)
		}
	}
	for name, gaps := range map[string][]int64{"none": {}, "no time": {0, 0}, "backwards": {5, -1},
		"long pause": {1 << 47}, "too many": slices.Repeat([]int64{1}, MaxTracePackets+1), "too different": long} {
		if text, err := TraceText(gaps); err == nil {
			t.Errorf("%s: %d strings", name, len(text))
		}
	}
}

func TestTraceToManyReceivers(t *testing.T) {
	f := udpFlow("1kpps", &Profile{Kind: TraceProfile, Trace: []string{strings.Repeat("A", 50_000)}})
	for receivers, right := range map[int]bool{0: true, 16: true, 17: false} {
		if err := (Plan{Target: "lab:other", Receivers: receivers,
			Flows: []Flow{f}}).checkTraces(); (err == nil) != right {
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
		if _, s := flow.Schedules(Timing{MeasureSeconds: 1}); s(0, 1)() >= 1e9 {
			t.Error("no packet in a second of 40 kpps")
		}
	})
}
