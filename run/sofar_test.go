package run

import (
	"math"
	"testing"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
	"pelt/unit"
)

func TestSoFar(t *testing.T) {
	flow := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 512, Rate: unit.PacketRate(1000), Streams: 1}
	p := twoEnds()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	trial := model.Trial{Flows: []model.Flow{flow}, Timing: model.Timing{MeasureSeconds: 60, PatienceSeconds: 60}}
	s := newSoFar(trial, fleet.Trial{Flows: []fleet.PlacedFlow{{Flow: flow}}}, &watch{site: p}, began)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	send := func(ms int, n uint64) bool {
		return s.take(fleet.Progress{Flow: "up", Role: engine.Send, Agent: "s", Packets: n}, at(ms))
	}
	receive := func(ms int, n, reach uint64) bool {
		return s.take(fleet.Progress{Flow: "up", Role: engine.Receive, Agent: "r", Packets: n, Reach: reach}, at(ms))
	}
	if send(0, 0) || receive(10, 0, 0) || send(600, 500) || receive(700, 595, 600) { // begun at 100
		t.Error("told before a second was over")
	}
	if !send(1600, 1500) || receive(1700, 1590, 1600) || !send(2600, 2500) {
		t.Error("not told once a second")
	}
	receive(2700, 2585, 2600)
	receive(5700, 5570, 5600) // nothing was heard for two seconds
	send(5610, 5510)
	counts := model.Observation{Boot: "x", Namespace: 7, Mode: model.DropsSeq, Drops: &model.Drops{
		Sites: []model.Site{{Reason: "SOCKET_RCVBUFF", Function: "udp_queue_rcv_one_skb", Namespace: 7, Received: true}},
		Flows: []model.FlowDrops{{Flow: "up", Counts: []model.SiteCount{{Site: 0, Packets: 20}}}},
	}}
	s.take(fleet.Progress{Agent: "r", Counts: &counts}, at(5710))
	c := s.checkpoint(at(5800), 1)
	if len(c.Flows) != 1 || math.Abs(c.ElapsedS-5.7) > 1e-9 {
		t.Fatalf("%+v", c)
	}
	f := c.Flows[0]
	if f.Attempted != 5600 || f.Received != 5570 || f.Lost() != 30 || len(f.Lines) != 1 || f.Lines[0].Packets != 20 || f.Lines[0].Layer != model.LayerReceiverBuffer {
		t.Errorf("%+v", f)
	}
	if len(c.Series) != 2 || c.Series[1].Metric != "receive_pps" || c.Series[1].StartSeconds != 1 {
		t.Fatalf("%+v", c.Series)
	}
	got := c.Series[1].Values // from second 1 on
	want := []float64{995, 995, math.NaN(), math.NaN(), 995}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i, v := range got {
		if math.IsNaN(v) != math.IsNaN(want[i]) || math.Abs(v-want[i]) > 1e-6 {
			t.Errorf("second %d: %v, want %v", i+1, v, want[i])
		}
	}
	// A path that lets nothing through any more.
	send(6610, 6510)
	send(7610, 7510)
	receive(7700, 5570, 5600)
	if f := s.checkpoint(at(7800), 0).Flows[0]; f.Attempted != 6510 || f.Received != 5570 {
		t.Errorf("%+v", f)
	}
	// A receiver that is not heard for a while: nobody knows what it got meanwhile.
	for ms, n := 8610, uint64(8510); ms < 20_000; ms, n = ms+1000, n+1000 {
		send(ms, n)
	}
	if f := s.checkpoint(at(20_000), 0).Flows[0]; f.Attempted != 6510 || f.Received != 5570 {
		t.Errorf("%+v", f)
	}
}

// A trial that lasts is told of, whether or not it goes on without its control connection.
func TestLasting(t *testing.T) {
	for _, c := range []struct {
		measure, patience float64
		want              bool
	}{{600, 60, true}, {600, 0, true}, {2, 0, false}, {2, 5, true}} {
		if got := lasting(model.Plan{Timing: model.Timing{MeasureSeconds: c.measure, PatienceSeconds: c.patience}}); got != c.want {
			t.Errorf("%v s with patience %v s: %t", c.measure, c.patience, got)
		}
	}
}

// The seconds of one end are stored though the other is not heard, unless it is only late.
func TestReadyWithoutTheOther(t *testing.T) {
	s := &soFar{flows: []model.Flow{{Name: "up", Rate: unit.PacketRate(10), PayloadBytes: 64}}, now: make([]flowNow, 1)}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for second := 1; second <= 30; second++ {
		at = at.Add(time.Second)
		s.take(fleet.Progress{Flow: "up", Role: engine.Send, Packets: uint64(second) * 10}, at)
		if second <= 13 {
			s.take(fleet.Progress{Flow: "up", Role: engine.Receive, Packets: uint64(second) * 10}, at)
		}
		if second == 10 {
			s.kept = 10
		}
		if want, looked := map[int]int{10: 0, 13: 3, 15: 3, 16: 6, 30: 20}[second]; looked && s.ready(at) != want {
			t.Errorf("after %d s %d are ready, want %d", second, s.ready(at), want)
		}
	}
}

// An end tells of a second when its own clock says so, and what the connection held back
// comes at once.
func TestSoFarSeries(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		at   []int    // ms since the beginning
		told []uint64 // packets
		want []float64
	}{
		"in the middle of ours":  {[]int{1490, 2510, 3490, 4510, 5490, 6510}, []uint64{1490, 2510, 3490, 4510, 5490, 6510}, []float64{nan, 1000, 1000, 1000, 1000, 1000}},
		"held back":              {[]int{1000, 2000, 5000, 5000, 5000, 6000}, []uint64{1000, 2000, 3000, 4000, 5000, 6000}, []float64{nan, 1000, nan, nan, 1000, 1000}},
		"held back a little":     {[]int{1000, 2000, 3700, 4000, 5000}, []uint64{1000, 2000, 3000, 4000, 5000}, []float64{nan, 1000, 1000 / 1.7, 1000 / 0.3, 1000}},
		"not heard":              {[]int{1000, 2000, 6000, 7000}, []uint64{1000, 2000, 6000, 7000}, []float64{nan, 1000, nan, nan, nan, 1000, 1000}},
		"its first ones at once": {[]int{1000, 1000, 2000}, []uint64{500, 1000, 2000}, []float64{nan, 1000}},
	} {
		var f flowNow
		begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for i, ms := range c.at {
			f.sample(0, c.told[i], begun.Add(time.Duration(ms)*time.Millisecond), begun)
		}
		got := f.series[0]
		same := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			same = same && (math.Abs(got[i]-c.want[i]) < 1e-6 || math.IsNaN(got[i]) && math.IsNaN(c.want[i]))
		}
		if !same {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestUnfinished(t *testing.T) {
	series := func(from float64, v ...float64) []model.Series {
		return []model.Series{{Metric: "send_pps", Flow: "up", StartSeconds: from, StepSeconds: 1, Values: v}}
	}
	line := model.Line{Layer: model.LayerReceiverBuffer, Cause: "SOCKET_RCVBUFF", Packets: 50}
	r := model.Unfinished([]model.Checkpoint{
		{ElapsedS: 2, Flows: []model.FlowSoFar{{Name: "up", Attempted: 10, Received: 10}}, Series: series(0, 5, 5)},
		{ElapsedS: 4, Flows: []model.FlowSoFar{{Name: "up", PayloadBytes: 100, Attempted: 100, Received: 60, Lines: []model.Line{line}}}, Series: series(2, 6, math.NaN())},
	})
	f := r.Flows[0]
	if r.State != model.Aborted || f.Lost != 40 || f.Ledger.Lines[0].Packets != 40 || f.Ledger.Unattributed != 0 || f.SendPPS != 25 || len(r.Series) != 1 || len(r.Series[0].Values) != 4 {
		t.Errorf("%+v", r)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}
