package run

import (
	"slices"
	"strings"
	"testing"

	"pelt/engine"
	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

// transferPlan is one of pelt cc over a lab's links.
func transferPlan(t *testing.T, settings ...string) model.Plan {
	t.Helper()
	p, err := plan.Control.Of("lab:direct", settings...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTransfersGoToOneReceiver(t *testing.T) {
	p := transferPlan(t)
	if err := oneReceiver(p, 0); err != nil {
		t.Error(err)
	}
	if err := oneReceiver(p, 10); err == nil || !strings.HasPrefix(err.Error(), "target: a star has many receivers") {
		t.Error(err)
	}
	for _, c := range []struct {
		settings []string
		wrong    string
	}{{nil, ""}, {[]string{"proto=tcp"}, "TCP is measured to one"}, {[]string{"loss-free=true"},
		"a search is of a path to one"}} {
		curve, err := plan.Curve.Of("lab:star", c.settings...)
		if err != nil {
			t.Fatal(err)
		}
		if err := oneReceiver(curve, 10); (err != nil) != (c.wrong != "") || err != nil &&
			!strings.Contains(err.Error(), c.wrong) {
			t.Errorf("curve %v over a star: %v", c.settings, err)
		}
	}
}

func TestCompletion(t *testing.T) {
	sent := func(c *model.Completion) engine.SendReport {
		return engine.SendReport{BeginNanos: 1e9, TCP: &model.TCPFacts{Completion: c}}
	}
	acknowledged := &model.Completion{Bytes: 1000, Done: true, Seconds: 2, By: model.ByAcknowledged}
	read := engine.ReceiveReport{Tally: model.Tally{Bytes: 1000, LastNanos: 2.5e9}}
	answered := func(c model.Completion) engine.ReceiveReport {
		return engine.ReceiveReport{TCP: &model.TCPFacts{Completion: &c}}
	}
	for name, c := range map[string]struct {
		http, oneClock bool
		sent           *model.Completion
		in             engine.ReceiveReport
		want           *model.Completion
	}{
		"one clock": {false, true, acknowledged, read,
			&model.Completion{Bytes: 1000, Done: true, Seconds: 1.5, By: model.ByRead}},
		"two clocks": {false, false, acknowledged, read, acknowledged},
		"not all read": {false, true, acknowledged,
			engine.ReceiveReport{Tally: model.Tally{Bytes: 999, LastNanos: 2.5e9}}, acknowledged},
		"an answer": {true, false, acknowledged,
			answered(model.Completion{Bytes: 1000, Done: true, Seconds: 1, By: model.ByAnswer}),
			&model.Completion{Bytes: 1000, Done: true, Seconds: 1, By: model.ByAnswer}},
		"an answer of a liar": {true, false, acknowledged,
			answered(model.Completion{Bytes: 7, Done: true, Seconds: 1, By: "\x1b[2J"}),
			&model.Completion{Bytes: 1000, Done: true, Seconds: 1, By: model.ByAnswer}},
		"an answer cut": {true, false, acknowledged, answered(model.Completion{}), acknowledged},
		"a sender that lies": {false, false, &model.Completion{Bytes: 7, Done: true, Seconds: 2, By: "\x1b[2J"},
			read, acknowledged},
		"a sender that is not": {false, false, nil, read, nil},
	} {
		got := completion(model.Flow{Bytes: 1000, HTTP: c.http}, c.oneClock, sent(c.sent), c.in)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestReceiverOfMoreThanATransfer(t *testing.T) {
	_, placed, out := honest()
	f := placed.Flows[0].Flow
	f.Protocol, f.Bytes = model.TCP, 990*64
	if why := impossible(f, placed.Timing, out.Flows[0]); why != nil {
		t.Error(why)
	}
	f.Bytes--
	if why := impossible(f, placed.Timing, out.Flows[0]); len(why) != 1 || why[0].Name != "receiver bytes" ||
		why[0].Numbers["received_bytes"] != 63360 {
		t.Error(why)
	}
}

// A sender's series begin with the measured part, and have names that pelt gives.
func TestSeriesOfSenders(t *testing.T) {
	values := []float64{0, 1, 2, 3, 4, 5}
	one, many := 0, model.MaxStreams
	timing := model.Timing{WarmupSeconds: 0.15, MeasureSeconds: 1}
	sent := engine.SendReport{Series: []model.Series{
		{Metric: model.SeriesAcked, StepSeconds: 0.1, Values: values, StartSeconds: 0.9, At: "\x1b", Stream: &one},
		{Metric: model.SeriesAcked, StepSeconds: 0.1, Values: values, Stream: &many},
		{Metric: "tcp_\x1b[2J", StepSeconds: 0.1, Values: values},
		{Metric: model.SeriesRTT, StepSeconds: 1e-9, Values: values},
		{Metric: model.SeriesRTT, StepSeconds: 0.1, Values: values[:1]},
	}}
	(&engine.Report{Send: &sent}).Clamp(timing)
	got := tcpSeries(model.Flow{Name: "up", From: model.Sender, Streams: 2}, timing, sent)
	if len(got) != 1 || !slices.Equal(got[0].Values, values[2:]) || got[0].StartSeconds < 0.049 ||
		got[0].StartSeconds > 0.051 || got[0].At != model.Sender {
		t.Errorf("%+v", got)
	}
}

// Answers may come by a slower way than data go.
func TestSlowestWay(t *testing.T) {
	way := func(from, to string, rate unit.BitRate) lab.LinkWay {
		return lab.LinkWay{From: from, To: to, Settings: model.Link{Rate: rate}}
	}
	ways := []lab.LinkWay{way("sender", "router", 50e6), way("router", "sender", 1e6),
		way("router", "receiver", 20e6), way("receiver", "router", 0)}
	nodes := []string{"sender", "router", "receiver"}
	if least := slowestWays(ways, nodes); least != [2]float64{20e6, 1e6} {
		t.Errorf("%v bit/s up and down, want 20e6 and 1e6", least)
	}
}

func TestSettingsOfHosts(t *testing.T) {
	for info, want := range map[float64]int{0.05: 1, 0: 0} {
		hosts := []model.Host{{TCPSettings: map[string]string{"sack": "1"}}}
		got := hostsOf(model.Plan{Flows: []model.Flow{{InfoSeconds: info}}}, hosts)
		if len(got[0].TCPSettings) != want {
			t.Errorf("TCP_INFO each %v s: %v, want %d settings", info, got[0].TCPSettings, want)
		}
	}
}
