package table

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// figures are all figures that rows have.
func figures(rows []Row) string {
	var out strings.Builder
	for _, r := range rows {
		out.WriteString("\t")
		if r.Flow != nil {
			out.WriteString(cmp.Or(r.Flow.Name, string(r.Flow.Protocol)) + ":")
		}
		for _, m := range Metrics() {
			if v, ok := m.Value(r); ok {
				fmt.Fprintf(&out, " %s %.4g", m.Name, v)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestFigures: each figure of made rows stands in a golden file.
func TestFigures(t *testing.T) {
	var out strings.Builder
	add := func(name string, rows []Row) { fmt.Fprintf(&out, "%s:\n%s", name, figures(rows)) }
	nan := math.NaN()

	// The work of a router is that of its processors; in a lab, whose processors all nodes share, that of its own
	// threads.
	cores := []model.CPUSplit{{Core: 0, Idle: 0.2, IOWait: 0.1}, {Core: 1, Idle: 0.9}}
	busy := model.RouterWatch{Node: "router", CPU: &model.CPUSplit{Core: -1, Idle: 0.55, IOWait: 0.05}, Cores: cores}
	// its clock ticks are too coarse
	idle := model.RouterWatch{Node: "router", CPU: &model.CPUSplit{Core: -1, Idle: 0.995}, Cores: cores}
	little := 0.01
	inLab := model.RouterWatch{Node: "router", CPU: busy.CPU, Cores: cores, ThreadRatio: &little}
	threads := []model.Series{{Metric: "cpu_thread_ratio", At: "router", StepSeconds: 1,
		Values: []float64{0.4, nan, 0.6}}}
	both := []model.FlowResult{
		{Name: "up", Protocol: model.UDP, Attempted: 1, ReceivePPS: 60e3, GoodputBPS: 30e6},
		{Name: "down", Protocol: model.UDP, Attempted: 1, ReceivePPS: 40e3, GoodputBPS: 10e6},
	}
	for _, c := range []struct {
		name   string
		lab    *model.LabFacts
		watch  *model.RouterWatch
		series []model.Series
	}{
		{"a router", nil, &busy, nil},
		{"an idle router", nil, &idle, nil},
		{"a router that nobody looked at", nil, &model.RouterWatch{Node: "router"}, nil},
		{"a router that is not watched", nil, nil, nil},
		{"a lab's router", &model.LabFacts{}, &busy, threads},
		{"a lab's router whose cores poll while they are idle", &model.LabFacts{KeptAwake: true}, &inLab, nil},
		{"a lab's router without threads", &model.LabFacts{}, &busy, nil},
	} {
		d := &model.Document{Lab: c.lab, Results: []model.Result{{State: model.Valid, Router: c.watch,
			Series: c.series, Flows: both}}}
		add(c.name, Rows(d))
		if s := By(Rows(d))[0].Stat(MetricOf("router_packet_ns")); s.N > 1 {
			t.Errorf("%s: a figure of one trial counts %d times", c.name, s.N)
		}
	}
	add("a router's cores are those of its own account",
		Cores(Rows(&model.Document{Results: []model.Result{{State: model.Valid,
			Flows: make([]model.FlowResult, 2), Router: &model.RouterWatch{Node: "router",
				Cores: []model.CPUSplit{{Core: 0, Idle: 0.25, Softirq: 0.75}}}}}})))

	transfer := func(c *model.Completion) model.FlowResult {
		return model.FlowResult{Protocol: model.TCP, DurationS: 10, GoodputBPS: 7, LossRatio: 0.5, ReceivePPS: 9,
			Attempted: 100,
			TCP: &model.TCPFacts{Writes: 20, ReceivedBytes: 500, SegmentsOut: 100, Retransmits: 2, BusyS: 4,
				RwndLimitedS: 1, SndbufLimitedS: 1, Completion: c}}
	}
	add("transfers: none, one that was done over its own time, one that was cut and took at least its time",
		Rows(&model.Document{
			Results: []model.Result{{State: model.Valid,
				Flows: []model.FlowResult{transfer(nil), transfer(&model.Completion{Bytes: 1000, Done: true, Seconds: 2}),
					transfer(&model.Completion{Bytes: 1000, Seconds: 8})}}}}))

	// Queueing is above the shortest round trip on the same path, whichever control met it.
	trip := func(control string, delay float64, state model.State, least, p95 float64) model.Result {
		return model.Result{State: state, Cell: model.Cell{"control": model.Word(control),
			"link.delay_s": model.Number(delay)},
			Flows: []model.FlowResult{{Name: control, Protocol: model.TCP, TCP: &model.TCPFacts{Writes: 1},
				RoundTrip: &model.Percentiles{Count: 9, Min: least, P95: p95}}}}
	}
	add("queueing beside others, on another path, and an invalid trial", Rows(&model.Document{Results: []model.Result{
		trip("cubic", 0.01, model.Valid, 30e6, 90e6), trip("bbr", 0.01, model.Valid, 20e6, 25e6),
		trip("bbr", 0.001, model.Valid, 2e6, 3e6), trip("reno", 0.01, model.Invalid, 1e6, 1e6)}}))

	// A soak that is cut where its loss began: the first half loses nothing, the second half half of the packets.
	series := func(metric string, values ...float64) model.Series {
		return model.Series{Metric: metric, Flow: "up", StepSeconds: 1, Values: values}
	}
	cause := series("lost_pps", 0, 0, 0, 50)
	cause.Layer = "network"
	soak := &model.Document{Results: []model.Result{{State: model.Valid,
		Made: []model.MadeChange{{AtS: 2}, {AtS: 1, Failure: model.Reasons{{Text: "no"}}}},
		Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP, Attempted: 400, PayloadBytes: 100,
			SenderCPU: model.CPU{ThreadRatio: 1}}},
		Series: []model.Series{series("send_pps", 100, 100, 100, 100), series("receive_pps", 100, 100, nan, 50),
			series("lost_pps", 0, 0, 50, 50), cause}}}}
	windows := Windows(Rows(soak)[0], ChangeCuts(&soak.Results[0]))
	for _, g := range By(windows, KeyOf("window_s")) {
		add("a soak's window "+g.Name(), g.Rows)
	}

	// The sender is no pelt, and tells its sum only.
	untold := *soak
	untold.Results = []model.Result{{State: model.Valid, Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP,
		Attempted: 200, Received: 200, PayloadBytes: 100}}, Series: []model.Series{series("receive_pps", 100, 100)}}}
	for _, g := range By(Windows(Rows(&untold)[0], []float64{1}), KeyOf("window_s")) {
		add("a window of a soak whose sender tells its sum only, "+g.Name(), g.Rows)
	}

	star := model.FlowResult{Name: "up", Protocol: model.UDP, PayloadBytes: 100, DurationS: 1, Attempted: 300,
		Received: 250, Lost: 50,
		SendPPS: 300, ReceivePPS: 250, GoodputBPS: 200e3, Receivers: []model.ReceiverShare{{Node: "receiver-1",
			Attempted: 100, Received: 100, GoodputBPS: 80e3},
			{Node: "receiver-2", Attempted: 100, Received: 50, GoodputBPS: 40e3}, {Node: "receiver-10",
				Attempted: 100, Received: 100, GoodputBPS: 80e3}}}
	stars := Rows(&model.Document{Results: []model.Result{{State: model.Valid, Flows: []model.FlowResult{star}}}})
	add("a star", stars)
	for _, g := range By(Receivers(stars), KeyOf("receiver")) {
		add("a star's "+g.Name(), g.Rows)
	}

	mix := &model.FlowResult{Name: "up", Protocol: model.TCP, Streams: 2, GoodputBPS: 100, DurationS: 1,
		TCP: &model.TCPFacts{Writes: 1, PerStream: []model.TCPStream{{Control: "cubic", GoodputBPS: 22},
			{Control: "bbr", GoodputBPS: 70}, {Control: "bbr", GoodputBPS: 8}}}}
	mixed := Row{Doc: &model.Document{}, Trial: &model.Result{State: model.Valid}, Flow: mix}
	for _, g := range By(Mixes([]Row{mixed}), KeyOf("control_part")) {
		add("a mix's "+g.Name(), g.Rows)
	}
	mix.TCP.PerStream = mix.TCP.PerStream[1:]
	add("streams of one control are no mix", Mixes([]Row{mixed}))

	times := &model.Percentiles{Count: 3, P50: 50e6, Mean: 60e6}
	for i, probe := range []*model.ProbeFacts{
		{Sent: 4, Answered: 3, IdleNS: 20e6, Up: &model.Percentiles{Count: 3, P50: 30e6}},
		{Sent: 3, Answered: 3}, {Sent: 3, Answered: 3, IdleNS: 51e6}, {Sent: 3, IdleNS: 20e6}, nil,
	} {
		f := model.FlowResult{Name: "up", Protocol: model.UDP, Attempted: 1, RoundTrip: times, Probe: probe}
		if i == 3 {
			f.RoundTrip = nil
		}
		add(fmt.Sprintf("thin flow %d", i+1),
			[]Row{{Doc: &model.Document{}, Trial: &model.Result{State: model.Valid}, Flow: &f}})
	}
	golden.File(t, "testdata/figures.txt", out.String())
}

// TestParts: a trial is cut into parts of a round length.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		most    int
		first   float64
		parts   int
	}{{10, 12, 1, 10}, {100, 12, 10, 10}, {86400, 12, 7200, 12}, {86401, 12, 10800, 9}} {
		d := &model.Document{Results: []model.Result{{State: model.Valid,
			Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP}},
			Series: []model.Series{{Metric: "send_pps", Flow: "up", StepSeconds: c.seconds / 2,
				Values: []float64{1, 1}}}}}}
		if cuts := Parts(Rows(d)[0], c.most); cuts[0] != c.first || len(cuts)+1 != c.parts {
			t.Errorf("%g s in at most %d parts: cuts %v", c.seconds, c.most, cuts)
		}
	}
}

// TestWords: each line of the file is a limit, or a key with a level. Below stands the metrics of the limit or how the
// level is said, or what is wrong.
func TestWords(t *testing.T) {
	golden.Table(t, "testdata/words.txt", func(question string) string {
		if key, text, ok := strings.Cut(question, " = "); ok {
			v := model.Word(text)
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				v = model.Number(n)
			}
			return KeyOf(key).Format(Level{v, true})
		}
		l, err := ParseBound(question)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: an error of several lines: %v", question, err)
			}
			return err.Error()
		}
		var names []string
		for _, m := range l.Metrics {
			names = append(names, m.Name)
		}
		return strings.Join(names, " ")
	})
}
