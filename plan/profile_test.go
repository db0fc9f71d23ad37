package plan

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pelt/model"
)

// withFile makes a plan in a world with one file, t.csv.
func withFile(p Preset, text string, flags map[string][]string) (model.Plan, error) {
	return p.Plan(Settings{Target: "lab:direct", Flags: flags, Open: func(path string) (io.ReadCloser, error) {
		if path != "t.csv" {
			return nil, errors.New("no such file")
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}})
}

// A trace plays at its own times, or stretched to a rate; a plan that holds it needs no file.
func TestPlansOfTraces(t *testing.T) {
	const trace = "0\n0.001\n0.004\n"
	for _, name := range []string{"trace=t.csv", "t.csv"} {
		p, err := withFile(Curve, trace, map[string][]string{"profile": {name}, "payload": {"64,512"}})
		if err != nil {
			t.Fatal(err)
		}
		back := reread(t, p)
		c := back.Flows[0].Clock(back.Timing, false)
		for n, want := range []int64{0, 1e6, 4e6, 6e6, 7e6} {
			if got := c.Due(uint64(n)); got != want {
				t.Errorf("packet %d of the trace is due at %d, want %d", n, got, want)
			}
		}
	}
	p, err := withFile(Curve, trace, map[string][]string{"profile": {"trace=t.csv"}, "rate": {"1kpps"}})
	if err != nil || p.Flows[0].Rate.String() != "1kpps" {
		t.Errorf("stretched to %v, %v", p.Flows[0].Rate, err)
	}
}

func TestProfilesRefused(t *testing.T) {
	for flags, want := range map[string]string{
		"profile=poisson":                                          "--profile: needs --rate or --interval",
		"profile=poisson rate=1kpps proto=tcp":                     "--profile: only a UDP flow",
		"profile=poisson rate=1kpps gso=4":                         "--profile: packets of one buffer",
		"profile=burst=1048576 rate=1kpps":                         "--profile: profile \"burst=1048576\": a burst is 1 to 65536",
		"profile=ramp=1kpps..2kpps rate=1kpps":                     "--profile: a ramp says its rates itself",
		"profile=on=1us,off=1us,random rate=1kpps time=60s":        "--profile: more than",
		"profile=even rate=1kpps":                                  "--profile: profile \"even\": want poisson",
		"profile=trace=none.csv":                                   "--profile: no such file",
		"profile=trace=t.csv":                                      "--profile: t.csv:1:",
		"profile=poisson profile=trace=t.csv rate=1kpps payload=9": "--profile: profile \"trace=t.csv\"",
	} {
		texts := map[string][]string{}
		for _, one := range strings.Fields(flags) {
			flag, text, _ := strings.Cut(one, "=")
			texts[flag] = append(texts[flag], text)
		}
		if _, err := withFile(Curve, "soon\n", texts); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v; want %s", flags, err, want)
		}
	}
}

func TestPlansKeepProfiles(t *testing.T) {
	for _, text := range []string{"poisson", "burst=64", "on=10ms,off=90ms,random", "ramp=1000000/3bit..2mbit"} {
		settings := []string{"payload=64", "profile=" + text}
		if !strings.HasPrefix(text, "ramp") {
			settings = append(settings, "rate=2mbit")
		}
		p, err := Curve.Of("lab:direct", settings...)
		if err != nil {
			t.Fatal(err)
		}
		if f := p.Flows[0]; f.Rate.String() != "2mbit" || f.Profile.Words(f.Rate) != text {
			t.Errorf("%s became %s at %v", text, f.Profile.Words(f.Rate), f.Rate)
		}
		if back := reread(t, p); !reflect.DeepEqual(back, p) {
			t.Errorf("%+v was read back as %+v", p, back)
		}
	}
}

func TestSoakRates(t *testing.T) {
	for text, want := range map[string]string{"": "40kpps", "profile=poisson": "40kpps", "profile=ramp=1kpps..2kpps": "2kpps",
		"rate=5kpps": "5kpps", "interval=5ms": "every 5ms", "rate=max": "--rate: a soak has one"} {
		var settings []string
		if text != "" {
			settings = append(settings, text)
		}
		p, err := Soak.Of("lab:direct", settings...)
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), want):
			t.Errorf("%s: %v; want %s", text, err, want)
		case err == nil && (p.Flows[0].Rate.String() != want || (p.Flows[0].Profile == nil) == strings.Contains(text, "profile")):
			t.Errorf("%s: %+v; want %s", text, p.Flows, want)
		}
	}
	for _, target := range []string{"192.0.2.1", "fleet:a..b"} {
		p, err := Soak.Of(target)
		if err != nil || p.Flows[0].Rate.String() != "1kpps" || p.Flows[0].PayloadBytes != 200 {
			t.Errorf("%s: %+v (%v), want 1kpps of 200 B", target, p.Flows, err)
		}
	}
}

func TestSweepOfProfiles(t *testing.T) {
	p, err := Sweep.Of("lab:direct", "payload=64", "rate=1kpps,2kpps", "profile=constant", "profile=poisson", "profile=burst=16")
	if err != nil || len(p.Factors) != 3 {
		t.Fatalf("%d factors, %v", len(p.Factors), err)
	}
	cell := model.Cell{"profile": model.Word("burst=16"), "rate_pps": model.Number(2000), "payload_bytes": model.Number(64)}
	trial, err := p.Trial(cell, 0)
	if err != nil || trial.Flows[0].Profile.BurstPackets != 16 || trial.Timing.MeasureSeconds != 0.5 {
		t.Errorf("%+v for %v s, %v", trial.Flows, trial.Timing.MeasureSeconds, err)
	}
	if _, err := Sweep.Of("lab:direct", "payload=64", "profile=poisson", "rate=1kpps,max"); err == nil {
		t.Error("a sweep with a profile has full rate")
	}
}
