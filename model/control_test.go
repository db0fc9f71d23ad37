package model

import (
	"slices"
	"strings"
	"testing"

	"pelt/unit"
)

func TestFlowsOfTransfers(t *testing.T) {
	good := Flow{Name: "up", Protocol: TCP, From: Sender, To: Receiver, PayloadBytes: 1000, Streams: 3, Bulk: true, Bytes: 8, Control: "cubic+bbr", StaggerSeconds: 2}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	var parts []uint64
	var controls []string
	for i := range good.Streams {
		parts, controls = append(parts, good.StreamBytes(i)), append(controls, good.StreamControl(i))
	}
	if !slices.Equal(parts, []uint64{3, 3, 2}) || !slices.Equal(controls, []string{"cubic", "bbr", "cubic"}) {
		t.Errorf("streams carry %v with %v", parts, controls)
	}
	for _, c := range []struct {
		change func(*Flow)
		want   string
	}{
		{func(f *Flow) { f.Control = "cubic++bbr" }, "control: \"cubic++bbr\" is not the name"},
		{func(f *Flow) { f.Control = "a_name_of_sixteen" }, "control"},
		{func(f *Flow) { f.Streams = 1; f.StaggerSeconds = 0 }, "control: 2 controls compete on as many streams at least, not on 1"},
		{func(f *Flow) { f.Control = strings.Repeat("x+", 20) + "x"; f.Streams = 100; f.Bytes = 1000 }, "a mix has at most 16, not 21"},
		{func(f *Flow) { f.Bulk = false }, "bytes: a transfer is of TCP in bulk"},
		{func(f *Flow) { f.Protocol, f.Bulk, f.Control = UDP, false, "" }, "bytes: is for TCP"},
		{func(f *Flow) { f.Bytes = 2 }, "want at least one for each of 3 streams"},
		{func(f *Flow) { f.Bytes, f.HTTP = 0, true }, "http: an HTTP answer has a length"},
		{func(f *Flow) { f.StaggerSeconds = -1 }, "stagger_s: want 0 s to 10 min, not -1"},
		{func(f *Flow) { f.Streams, f.Control = 1, "bbr" }, "stagger_s: is between streams, and there is one"},
		{func(f *Flow) { f.Rate = unit.PacketRate(10) }, "rate_pps: a transfer goes as fast as TCP lets it"},
		{func(f *Flow) { f.Commands = &Commands{Server: "x", Client: " "} }, "commands: want both"},
		{func(f *Flow) { f.Commands = &Commands{Server: "x", Client: "y\x00"} }, "without NUL"},
		{func(f *Flow) { f.Commands = &Commands{Server: "x", Client: "y"} }, "want neither http nor streams"},
	} {
		f := good
		c.change(&f)
		if err := f.check(); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v; want %q", f, err, c.want)
		}
	}
}

func TestTransfersFitTheirTime(t *testing.T) {
	p := Plan{Flows: []Flow{{Name: "up", Protocol: TCP, From: Sender, To: Receiver, PayloadBytes: 1000, Streams: 3, Bulk: true, StaggerSeconds: 2}},
		Timing: Timing{WarmupSeconds: 1, MeasureSeconds: 3.5}}
	if _, err := p.Trial(nil, 0); err != nil {
		t.Error(err)
	}
	p.Timing.MeasureSeconds = 3
	if _, err := p.Trial(nil, 0); err == nil || err.Error() != "stagger_s: the last of 3 streams would begin after 4s, and a trial is over after 4s" {
		t.Error(err)
	}
	p.Timing.MeasureSeconds, p.Flows[0].Bytes = 10, 1000
	if _, err := p.Trial(nil, 0); err == nil || !strings.HasPrefix(err.Error(), "bytes: a transfer counts from its first byte") {
		t.Error(err)
	}
}

func TestTrialsThatFailed(t *testing.T) {
	at := func(control string, repeat int, state State) Result {
		return Result{Cell: Cell{"control": Word(control)}, Repeat: repeat, State: state}
	}
	d := Document{Results: []Result{
		at("bbr", 0, Invalid), at("bbr", 0, Valid), at("bbr", 1, Invalid), at("bbr", 1, Invalid), at("bbr", 1, Invalid),
		at("cubic", 0, Valid), at("cubic", 0, Invalid), at("cubic", 1, Aborted),
	}}
	if failed, trials := d.Failed(); failed != 1 || trials != 3 {
		t.Errorf("%d of %d failed, want 1 of 3", failed, trials)
	}
	for _, c := range []struct {
		share  float64
		why    string
		failed int
	}{{1, SenderCoreFull, 2}, {1.5, SenderCoreFull, 1}, {1.5, HostSlept, 2}} { // a sender need not keep more than the path carries
		load := d
		load.Results = append(slices.Clone(d.Results), Result{Cell: Cell{"load_ratio": Number(c.share)}, State: Invalid, Why: Reasons{{Code: c.why}}})
		if failed, _ := load.Failed(); failed != c.failed {
			t.Errorf("a load of %v, %s: %d failed, want %d", c.share, c.why, failed, c.failed)
		}
	}
}

func TestLooks(t *testing.T) {
	for _, c := range []struct {
		repeats, most int
		want          []int
	}{
		{10, 0, []int{10}}, {10, 10, []int{10}}, {10, 12, []int{10, 12}}, {10, 30, []int{10, 15, 20, 25, 30}}, {1, 3, []int{1, 2, 3}}, {5, 9, []int{5, 7, 9}},
	} {
		d := Design{Repeats: c.repeats, MostRepeats: c.most}
		if got := d.Looks(); !slices.Equal(got, c.want) {
			t.Errorf("%d to %d: looks %v, want %v", c.repeats, c.most, got, c.want)
		}
		if err := samplePlan(func(p *Plan) { p.Design = d }).Check(); err != nil {
			t.Errorf("%d to %d: %v", c.repeats, c.most, err)
		}
	}
	for _, d := range []Design{{Redo: -1}, {Redo: 11}, {MostRepeats: 4}, {MostRepeats: 1001}} {
		d.Repeats = 5
		if err := samplePlan(func(p *Plan) { p.Design = d }).Check(); err == nil {
			t.Errorf("%+v is no design", d)
		}
	}
}
