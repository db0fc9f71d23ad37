package plan

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/unit"
)

func TestReadTrace(t *testing.T) {
	for _, c := range []struct {
		name, text string
		gaps       bool
		want       []int64
		rate       string
	}{
		{"times", "0\n0.001\n0.004\n", false, []int64{1e6, 3e6, 2e6}, "500pps"},
		{"times since 1970", "1700000000.000000001\n1700000000.000000003\n", false, []int64{2, 2}, "500Mpps"},
		{"gaps", "0.001\n0.003\n", true, []int64{1e6, 3e6}, "500pps"},
		{"gaps of nothing", "0\n0\n0.002\n", true, []int64{0, 0, 2e6}, "1.5kpps"},
		{"comments and blanks", "\ufeff# a trace\r\n\r\n0\r\n 1e-3 \r\n", false, []int64{1e6, 1e6}, "1kpps"},
		{"one column with a name", "gap_us\n1000\n3000\n", false, []int64{1e6, 3e6}, "500pps"},
		{"CSV", "stream,sequence,send_ns,bytes\n0,0,100,64\n1,0,50,64\n0,1,150,64\n", false, []int64{50, 50, 50}, "20Mpps"},
		{"a column that is empty", "trial,send_ns,receive_ns,delay_ns\n1,100,7,\n1,150,9,\n", false, []int64{50, 50}, "20Mpps"},
		{"empty columns anywhere", "\ttime_s\t\tsize\t\n\t0\t\t\t\n7\t0.001\t\t64\n", false, []int64{1e6, 1e6}, "1kpps"},
		{"a comma behind each time", "0,\n0.001,\n", false, []int64{1e6, 1e6}, "1kpps"},
		{"a gap before a time", `"time_s";"gap_ms"` + "\n0;1\n1;3\n", false, []int64{1e6, 3e6}, "500pps"},
	} {
		p, rate, err := ReadTrace(strings.NewReader(c.text), "t.csv", c.gaps)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := model.ReadTraceText(p.Trace)
		if err != nil || !slices.Equal(got, c.want) || rate.String() != c.rate || p.File != "t.csv" || p.Gaps != c.gaps {
			t.Errorf("%s: gaps %v at %v, %+v, %v; want %v at %s", c.name, got, rate, p, err, c.want, c.rate)
		}
	}
}

func TestReadTraceRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		gaps       bool
		want       string
	}{
		{"nothing", "", false, "t.csv: has 0 times"},
		{"one time", "1\n", false, "two at least"},
		{"no gaps", "#\n", true, "t.csv: has no gaps"},
		{"equal gaps taken for times", "0.001\n0.001\n", false, "say gaps=FILE"},
		{"gaps taken for times", "1\n2\n0.5\n", false, "t.csv:3: 0.5 is before the time above it"},
		{"sizes", "0 64\n", false, "t.csv:1: \"0 64\""},
		{"a column of sizes", "0,64\n", false, "--payload says"},
		{"words", "0\nsoon\n", false, `t.csv:2: "soon" is not a time`},
		{"another header", "when,what\n1,2\n", false, "t.csv:1: no column"},
		{"no gaps in a header", "time_s\n1\n", true, "no column"},
		{"a short line", "a,time_s\n1,2\n3\n", false, "t.csv:3: has 1 columns, the header 2"},
		{"separators alone", ",\n", false, "t.csv:1: has 0 columns"},
		{"before all time", "-1e3\n", true, "less than no time"},
		{"a huge number", "0\n1e999999999\n", false, "is not a time"},
		{"a record of two trials", "trial,flow,send_ns\n1,up,5\n1,up,6\n2,up,7\n", false, "t.csv:4: is of another trial or flow"},
		{"a record of two flows", "trial,flow,send_ns\n1,up,5\n1,down,6\n", false, "t.csv:3: is of another trial or flow"},
		{"far apart", "0\n1e9\n", false, "gap 1 is"},
		{"a long line", strings.Repeat("1", 100_000), false, "t.csv:1:"},
	} {
		_, _, err := ReadTrace(strings.NewReader(c.text), "t.csv", c.gaps)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("0\n0.001\n0.004\n", false)
	f.Add("gap_us\n1000\n3000\n", false)
	f.Add("stream,send_ns\n0,100\n1,50\n", true)
	f.Add("1e-3\n;\n,,,\n", true)
	f.Add(";\n", false)
	f.Add("time_s,x\n,\n0.1,\n0.2,3", false)
	f.Fuzz(func(t *testing.T, text string, gaps bool) {
		p, rate, err := ReadTrace(strings.NewReader(text), "t.csv", gaps)
		if err != nil {
			return
		}
		flow := model.Flow{Name: "up", Protocol: model.UDP, From: "a", To: "b", PayloadBytes: 64, Rate: rate, Streams: 1, Profile: &p}
		if _, err := (model.Plan{Flows: []model.Flow{flow}, Timing: model.Timing{MeasureSeconds: 1}}).Trial(nil, 0); err != nil {
			t.Errorf("%q makes %v of %q, which cannot be run: %v", text, rate, p.Trace, err)
		}
	})
}

// A trace plays at its own times, or stretched to a rate; a plan that holds it needs no file.
func TestPlansOfProfiles(t *testing.T) {
	trace, own, err := ReadTrace(strings.NewReader("0\n0.001\n0.004\n"), "t.csv", false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Curve(Options{Target: "lab:direct", Payloads: []int{64, 512}, Profile: &trace, ProfileRate: own})
	if err != nil {
		t.Fatal(err)
	}
	text, err := Print(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text, "plan.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	c := back.Flows[0].Clock(back.Timing, false)
	for n, want := range []int64{0, 1e6, 4e6, 6e6, 7e6} {
		if got := c.Due(uint64(n)); got != want {
			t.Errorf("packet %d of the trace is due at %d, want %d", n, got, want)
		}
	}
	for _, o := range []Options{
		{Profile: &model.Profile{Kind: model.Poisson}},
		{Profile: &model.Profile{Kind: model.Poisson}, Rate: rateOf(t, "1kpps"), Protocol: model.TCP},
		{Profile: &model.Profile{Kind: model.Poisson}, Rate: rateOf(t, "1kpps"), Segments: 4},
		{Profile: &model.Profile{Kind: model.Burst, BurstPackets: 1 << 20}, Rate: rateOf(t, "1kpps")},
		{Profile: &model.Profile{Kind: model.Ramp, From: rateOf(t, "1kpps")}, Rate: rateOf(t, "1kpps"), ProfileRate: rateOf(t, "2kpps")},
		{Profile: &model.Profile{Kind: model.OnOff, OnSeconds: 1e-6, OffSeconds: 1e-6, Random: true}, Rate: rateOf(t, "1kpps"), Time: 60e9},
	} {
		o.Target = "lab:direct"
		_, err := Curve(o)
		var field *model.FieldError
		if !errors.As(err, &field) || field.Field != "--profile" {
			t.Errorf("%+v: %v; want an error of --profile", o.Profile, err)
		}
	}
}

func TestPlansKeepProfiles(t *testing.T) {
	for _, profile := range []model.Profile{
		{Kind: model.Poisson, Seed: 7}, {Kind: model.Burst, BurstPackets: 64}, {Kind: model.OnOff, OnSeconds: 0.01, OffSeconds: 0.09, Random: true}, {Kind: model.Ramp, From: rateOf(t, "1/3mbit")},
	} {
		p, err := Curve(Options{Target: "lab:direct", Payloads: []int{64}, Profile: &profile, ProfileRate: rateOf(t, "2mbit")})
		if err != nil {
			t.Fatal(err)
		}
		text, err := Print(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(text, "plan.yaml")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got := *back.Flows[0].Profile; !reflect.DeepEqual(got, profile) {
			t.Errorf("%+v was read back as %+v from\n%s", profile, got, text)
		}
	}
}

func TestSoakOfProfiles(t *testing.T) {
	ramp := model.Profile{Kind: model.Ramp, From: rateOf(t, "1kpps")}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Profile: &model.Profile{Kind: model.Poisson}}, "40kpps"},
		{Options{Profile: &ramp, ProfileRate: rateOf(t, "2kpps")}, "2kpps"},
	} {
		c.o.Target = "lab:direct"
		p, err := Soak(c.o)
		if err != nil || p.Flows[0].Rate.String() != c.want || p.Flows[0].Profile == nil {
			t.Errorf("%+v: %+v, %v; want %s", c.o.Profile, p.Flows, err, c.want)
		}
	}
}

func TestSweepOfProfiles(t *testing.T) {
	p, err := Sweep(Options{Target: "lab:direct", Payloads: []int{64}, Factors: []model.Factor{levels("rate_pps", 1000, 2000),
		{Knob: "profile", Levels: []model.Value{model.Word("constant"), model.Word("poisson"), model.Word("burst=16")}}}})
	if err != nil || len(p.Factors) != 3 {
		t.Fatalf("%d factors, %v", len(p.Factors), err)
	}
	trial, err := p.Trial(model.Cell{"profile": model.Word("burst=16"), "rate_pps": model.Number(2000), "payload_bytes": model.Number(64)}, 0)
	if err != nil || trial.Flows[0].Profile.BurstPackets != 16 || trial.Timing.MeasureSeconds != 0.5 {
		t.Errorf("%+v for %v s, %v", trial.Flows, trial.Timing.MeasureSeconds, err)
	}
	if _, err := Sweep(Options{Target: "lab:direct", Payloads: []int{64}, Profile: &model.Profile{Kind: model.Poisson}, Factors: []model.Factor{{Knob: "rate_pps", Levels: []model.Value{model.Number(1000), model.Word("max")}}}}); err == nil {
		t.Error("a sweep with a profile has full rate")
	}
}

func rateOf(t *testing.T, text string) unit.Rate {
	t.Helper()
	r, err := unit.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
