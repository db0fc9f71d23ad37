package table

import (
	"math"
	"slices"
	"testing"
	"time"

	"pelt/model"
)

// figureOf is a metric of a row, NaN if the row has none.
func figureOf(name string, r Row) float64 {
	if v, ok := MetricOf(name).Value(r); ok {
		return v
	}
	return math.NaN()
}

func same(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || near(a, b) }

// TestRouterWork: the work of a router is that of its processors; in a lab, whose
// processors all nodes share, that of its own threads.
func TestRouterWork(t *testing.T) {
	cores := []model.CPUSplit{{Core: 0, Idle: 0.2, IOWait: 0.1}, {Core: 1, Idle: 0.9}}
	busy := model.RouterWatch{Node: "router", CPU: &model.CPUSplit{Core: -1, Idle: 0.55, IOWait: 0.05}, Cores: cores}
	idle := model.RouterWatch{Node: "router", CPU: &model.CPUSplit{Core: -1, Idle: 0.995}, Cores: cores}
	blind, little := model.RouterWatch{Node: "router"}, 0.01
	inLab := model.RouterWatch{Node: "router", CPU: busy.CPU, Cores: cores, ThreadRatio: &little}
	threads := []model.Series{{Metric: "cpu_thread_ratio", At: "router", StepSeconds: 1, Values: []float64{0.4,
		math.NaN(), 0.6}}}
	flows := []model.FlowResult{
		{Name: "up", Protocol: model.UDP, Attempted: 1, ReceivePPS: 60e3, GoodputBPS: 30e6},
		{Name: "down", Protocol: model.UDP, Attempted: 1, ReceivePPS: 40e3, GoodputBPS: 10e6},
	}
	nan := math.NaN()
	for _, c := range []struct {
		name                        string
		lab                         *model.LabFacts
		watch                       *model.RouterWatch
		series                      []model.Series
		cores, perCore, packet, top float64
	}{
		{"a router", nil, &busy, nil, 0.8, 40e6 / 0.8, 0.8 / 100e3 * 1e9, 0.7},
		{"an idle router", nil, &idle, nil, 0.01, nan, nan, 0.7}, // its clock ticks are too coarse
		{"nobody looked", nil, &blind, nil, nan, nan, nan, nan},
		{"not watched", nil, nil, nil, nan, nan, nan, nan},
		{"a lab's", &model.LabFacts{}, &busy, threads, 0.5, 80e6, 5e3, nan},
		{"a lab's whose cores poll while they are idle", &model.LabFacts{KeptAwake: true}, &inLab, nil, 0.01, nan, nan, 0.01},
		{"a lab's without threads", &model.LabFacts{}, &busy, nil, nan, nan, nan, nan},
	} {
		d := &model.Document{Lab: c.lab, Results: []model.Result{{State: model.Valid, Router: c.watch,
			Series: c.series, Flows: flows}}}
		for _, r := range Rows(d) {
			got := []float64{figureOf("router_work_cores", r), figureOf("goodput_per_core_bps", r),
				figureOf("router_packet_ns", r), figureOf("router_busiest_core_ratio", r)}
			for i, want := range []float64{c.cores, c.perCore, c.packet, c.top} {
				if !same(got[i], want) {
					t.Errorf("%s, %s: %v; want %v", c.name, r.Flow.Name, got, []float64{c.cores, c.perCore,
						c.packet, c.top})
					break
				}
			}
		}
		if s := By(Rows(d))[0].Stat(MetricOf("router_packet_ns")); s.N > 1 {
			t.Errorf("%s: a figure of one trial counts %d times", c.name, s.N)
		}
	}
}

// TestTransfers: what a transfer brought is over its own time; one that was cut took
// at least its time; segments are no packets.
func TestTransfers(t *testing.T) {
	flow := func(c *model.Completion) model.FlowResult {
		return model.FlowResult{Protocol: model.TCP, DurationS: 10, GoodputBPS: 7, LossRatio: 0.5, ReceivePPS: 9,
			Attempted: 100,
			TCP: &model.TCPFacts{Writes: 20, ReceivedBytes: 500, SegmentsOut: 100, Retransmits: 2, BusyS: 4,
				RwndLimitedS: 1, SndbufLimitedS: 1, Completion: c}}
	}
	d := &model.Document{Results: []model.Result{{State: model.Valid, Flows: []model.FlowResult{
		flow(nil), flow(&model.Completion{Bytes: 1000, Done: true, Seconds: 2}), flow(&model.Completion{Bytes: 1000,
			Seconds: 8})}}}}
	nan := math.NaN()
	for i, want := range []map[string]float64{
		{"goodput_bps": 7, "completion_s": nan, "unfinished_ratio": nan, "retransmit_ratio": 0.02,
			"loss_ratio": nan, "receive_pps": nan, "tcp_held_back_ratio": 0.5},
		{"goodput_bps": 4000, "completion_s": 2, "unfinished_ratio": 0},
		{"goodput_bps": 500, "completion_s": 8, "unfinished_ratio": 1},
	} {
		for name, v := range want {
			if got := figureOf(name, Rows(d)[i]); !same(got, v) {
				t.Errorf("flow %d: %s is %g; want %g", i, name, got, v)
			}
		}
	}
}

// TestQueueing is above the shortest round trip on the same path, whichever control
// met it; other paths and invalid trials do not count.
func TestQueueing(t *testing.T) {
	result := func(control string, delay float64, state model.State, least, p95 float64) model.Result {
		return model.Result{State: state, Cell: model.Cell{"control": model.Word(control),
			"link.delay_s": model.Number(delay)},
			Flows: []model.FlowResult{{Name: "up", Protocol: model.TCP, TCP: &model.TCPFacts{Writes: 1},
				RoundTrip: &model.Percentiles{Count: 9, Min: least, P95: p95}}}}
	}
	d := &model.Document{Results: []model.Result{
		result("cubic", 0.01, model.Valid, 30e6, 90e6), result("bbr", 0.01, model.Valid, 20e6, 25e6),
		result("bbr", 0.001, model.Valid, 2e6, 3e6), result("reno", 0.01, model.Invalid, 1e6, 1e6)}}
	for i, want := range []float64{70e6, 5e6, 1e6} {
		if got := figureOf("queueing_p95_ns", Rows(d)[i]); !near(got, want) {
			t.Errorf("trial %d: queueing of %g ns; want %g", i, got, want)
		}
	}
}

// TestWindows cuts a soak where its loss began: the first half loses nothing, the
// second half half of the packets, and 25 % in the mean is in neither.
func TestWindows(t *testing.T) {
	series := func(metric string, values ...float64) model.Series {
		return model.Series{Metric: metric, Flow: "up", StepSeconds: 1, Values: values}
	}
	nan := math.NaN()
	cause := series("lost_pps", 0, 0, 0, 50)
	cause.Layer = "network"
	d := &model.Document{Results: []model.Result{{State: model.Valid, Made: []model.MadeChange{{AtS: 2}, {AtS: 1,
		Failure: "no"}},
		Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP, Attempted: 400, PayloadBytes: 100,
			SenderCPU: model.CPU{ThreadRatio: 1}}},
		Series: []model.Series{series("send_pps", 100, 100, 100, 100), series("receive_pps", 100, 100, nan, 50),
			series("lost_pps", 0, 0, 50, 50), cause}}}}
	windows := Windows(Rows(d)[0], ChangeCuts(&d.Results[0]))
	if len(windows) != 2 || *windows[1].Window != (Window{2, 4}) {
		t.Fatalf("windows %+v", windows)
	}
	for i, want := range []map[string]float64{
		{"loss_ratio": 0, "receive_pps": 100, "lost_packets": 0, "duration_s": 2, "sender_cpu_thread_ratio": nan,
			"delay_p50_ns": nan},
		{"loss_ratio": 0.5, "receive_pps": 50, "lost_packets": 100, "goodput_bps": 40e3},
	} {
		for name, v := range want {
			if got := figureOf(name, windows[i]); !same(got, v) {
				t.Errorf("window %d: %s is %g; want %g", i, name, got, v)
			}
		}
	}
	if groups := By(windows, KeyOf("window_s")); len(groups) != 2 || groups[1].Name() != "2 s to 4 s" {
		t.Errorf("groups of windows: %+v", groups)
	}
	for _, c := range []struct {
		seconds float64
		most    int
		first   float64
		parts   int
	}{{10, 12, 1, 10}, {100, 12, 10, 10}, {86400, 12, 7200, 12}, {86401, 12, 10800, 9}} {
		d.Results[0].Series = []model.Series{{Metric: "send_pps", Flow: "up", StepSeconds: c.seconds / 2,
			Values: []float64{1, 1}}}
		if cuts := Parts(Rows(d)[0], c.most); cuts[0] != c.first || len(cuts)+1 != c.parts {
			t.Errorf("%g s in at most %d parts: cuts %v", c.seconds, c.most, cuts)
		}
	}
}

// TestChangeCuts: a planned change is cut where its effect was found, or where its second
// begins; what was found beside it and moments are no cuts.
func TestChangeCuts(t *testing.T) {
	shift := func(start, end float64) model.Change {
		return model.Change{Kind: model.ChangeShift, StartS: start, EndS: end}
	}
	for _, c := range []struct {
		made  []model.MadeChange
		found []model.Change
		want  []float64
	}{
		{nil, nil, nil},
		{[]model.MadeChange{{AtS: 8.2, TookS: 0.1}, {AtS: 10}, {AtS: 20, Failure: "no"}}, nil, []float64{8, 10}},
		{[]model.MadeChange{{AtS: 8.2}}, []model.Change{shift(9, 100), shift(11, 100)}, []float64{9, 100}},
		{[]model.MadeChange{{AtS: 8.2}}, []model.Change{shift(50, 100)}, []float64{8, 50, 100}},
		{nil, []model.Change{{Kind: model.ChangeBurst, StartS: 5, EndS: 6}}, nil},
	} {
		if got := ChangeCuts(&model.Result{Made: c.made, Changes: c.found}); !slices.Equal(got, c.want) {
			t.Errorf("%+v and %+v are cut at %v; want %v", c.made, c.found, got, c.want)
		}
	}
}

// TestReceivers: rows of a star's receivers come to the star's figures.
func TestReceivers(t *testing.T) {
	f := model.FlowResult{Name: "up", Protocol: model.UDP, PayloadBytes: 100, DurationS: 1, Attempted: 300,
		Received: 250, Lost: 50, SendPPS: 300, ReceivePPS: 250, GoodputBPS: 200e3,
		Receivers: []model.ReceiverShare{{Node: "receiver-1", Attempted: 100, Received: 100, GoodputBPS: 80e3},
			{Node: "receiver-2", Attempted: 100, Received: 50, GoodputBPS: 40e3}, {Node: "receiver-10",
				Attempted: 100, Received: 100, GoodputBPS: 80e3}}}
	d := &model.Document{Results: []model.Result{{State: model.Valid, Flows: []model.FlowResult{f}}}}
	rows := Receivers(Rows(d))
	sums := map[string]float64{}
	for _, r := range rows {
		for _, name := range []string{"goodput_bps", "receive_pps", "send_pps", "lost_packets"} {
			sums[name] += figureOf(name, r)
		}
	}
	for name, sum := range sums {
		if !near(sum, figureOf(name, Rows(d)[0])) {
			t.Errorf("the receivers' %s come to %g; want %g", name, sum, figureOf(name, Rows(d)[0]))
		}
	}
	groups := By(rows, KeyOf("receiver"))
	if len(groups) != 3 || groups[1].Name() != "receiver-2" || groups[2].Name() != "receiver-10" {
		t.Errorf("groups %v", groups)
	}
	whole := Rows(d)[0]
	for name, want := range map[string]float64{"receiver_goodput_min_bps": 40e3,
		"receiver_goodput_median_bps": 80e3, "receiver_fairness_index": 4e10 / (3 * 1.44e10)} {
		if got := figureOf(name, whole); !near(got, want) {
			t.Errorf("%s is %g; want %g", name, got, want)
		}
	}
}

// TestCores: a router's cores are those of its own account, others those of their series.
func TestCores(t *testing.T) {
	d := &model.Document{Results: []model.Result{{State: model.Valid, Flows: make([]model.FlowResult, 2),
		Router: &model.RouterWatch{Node: "router", Cores: []model.CPUSplit{{Core: 0, Idle: 0.25, Softirq: 0.75}}},
	}}}
	groups := By(Cores(Rows(d)), KeyOf("core"))
	if len(groups) != 1 || groups[0].Name() != "core 0" {
		t.Fatalf("groups %+v", groups)
	}
	for i, want := range []map[string]float64{
		{"core_busy_ratio": 0.75, "core_softirq_ratio": 0.75, "core_user_ratio": 0},
	} {
		for name, v := range want {
			if got := figureOf(name, groups[i].Rows[0]); !same(got, v) {
				t.Errorf("%s: %s is %g; want %g", groups[i].Name(), name, got, v)
			}
		}
	}
}

// TestTrials: tries of one repeat are one trial, and a trial without flows counts.
func TestTrials(t *testing.T) {
	cell := model.Cell{"payload_bytes": model.Number(64)}
	planned := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, Streams: 1,
		PayloadBytes: 100}
	d := &model.Document{Plan: model.Plan{Flows: []model.Flow{planned}, Timing: model.Timing{MeasureSeconds: 1}}}
	up := []model.FlowResult{{Name: "up", Protocol: model.UDP, PayloadBytes: 64, Attempted: 1, GoodputBPS: 5}}
	for i, state := range []model.State{model.Invalid, model.Valid, model.Invalid, model.Aborted} {
		r := model.Result{Cell: cell, Repeat: max(i-1, 0), State: state, Started: time.Unix(int64(i), 0)}
		if i < 2 {
			r.Flows = up
		}
		d.Results = append(d.Results, r)
	}
	groups := By(Rows(d), KeyOf("payload_bytes"), KeyOf("flow"))
	if len(groups) != 1 {
		t.Fatalf("groups %+v", groups)
	}
	valid, invalid, aborted := groups[0].Trials()
	if s := groups[0].Stat(MetricOf("goodput_bps")); valid != 1 || invalid != 1 || aborted != 1 || s.N != 1 || s.Median != 5 {
		t.Errorf("%d valid, %d invalid, %d aborted, %+v; want 1 of each and one figure", valid, invalid, aborted, s)
	}
}

// TestLevels are levels as people say them.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		key   string
		value model.Value
		want  string
	}{
		{"payload_bytes", model.Number(1472), "1472 B"},
		{"rate_pps", model.Number(150e3), "150 kpps"},
		{"rate_pps", model.Word("max"), "max"},
		{"interval_ns", model.Number(1e6), "every 1 ms"},
		{"interval_ns", model.Number(0), "no pause"},
		{"streams", model.Number(4), "4 streams"},
		{"streams", model.Number(1), "1 stream"},
		{"control", model.Word("bbr"), "BBR"},
		{"control", model.Word("cubic+reno"), "CUBIC+Reno"},
		{"control", model.Word("mine"), "mine"},
		{"link.loss_ratio", model.Number(0.01), "1 % link loss"},
		{"link.loss_ratio", model.Number(0), "no link loss"},
		{"link-receiver.delay_s", model.Number(0.02), "20 ms link-receiver delay"},
		{"repeat", model.Number(2), "repeat 2"},
	} {
		if got := KeyOf(c.key).Format(Level{c.value, true}); got != c.want {
			t.Errorf("%s of %v is %q; want %q", c.key, c.value, got, c.want)
		}
	}
}

// TestCompareBest ranks groups and compares each with the best; one that nobody measured is last, and tells nothing.
func TestCompareBest(t *testing.T) {
	d := &model.Document{}
	for repeat := range 3 {
		for i, loss := range []float64{0.3, 0.1, 0.1, 0} {
			f := model.FlowResult{Name: "up", Protocol: model.UDP, PayloadBytes: i, Attempted: 1000,
				LossRatio: loss, GoodputBPS: float64(10*i+repeat%2) + 1000}
			r := model.Result{Repeat: repeat, State: model.Valid,
				Cell: model.Cell{"payload_bytes": model.Number(float64(i))}, Flows: []model.FlowResult{f}}
			if i == 3 {
				r.State = model.Invalid
			}
			d.Results = append(d.Results, r)
		}
	}
	m := MetricOf("loss_ratio")
	groups := Rank(m, By(Rows(d), KeyOf("payload_bytes")))
	var names []string
	var verdicts []Verdict
	for i, e := range CompareBest(m, groups) {
		names, verdicts = append(names, groups[i].Name()), append(verdicts, e.Verdict)
	}
	if want := []string{"1 B", "2 B", "", "3 B"}; !slices.Equal(names, want) {
		t.Errorf("ranked %q; want %q", names, want)
	}
	if want := []Verdict{Best, Tied, WorseThan, TooFew}; !slices.Equal(verdicts, want) {
		t.Errorf("verdicts %q; want %q", verdicts, want)
	}
	if CompareBest(m, nil) != nil {
		t.Error("effects of no groups")
	}
}
