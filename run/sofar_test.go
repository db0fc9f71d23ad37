package run

import (
	"math"
	"slices"
	"testing"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
	"pelt/unit"
)

// watchedFlow is a flow of a long trial, and its account before the first sample.
func watchedFlow() (model.Trial, fleet.Trial, *liveAccount) {
	flow := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 512,
		Rate: unit.PacketRate(1000), Streams: 1}
	trial := model.Trial{Flows: []model.Flow{flow}, Timing: model.Timing{MeasureSeconds: 600, PatienceSeconds: 60}}
	placed := fleet.Trial{Flows: []fleet.PlacedFlow{{Flow: flow}}}
	return trial, placed, newLiveAccount(trial, placed, &watch{site: twoEnds()}, time.Now())
}

func (s *liveAccount) sender(at float64, n uint64) bool {
	return s.take(fleet.Progress{Flow: "up", Role: engine.Send, Agent: "s", Packets: n, AtS: at})
}

func (s *liveAccount) receiver(at float64, n, reach uint64) bool {
	return s.take(fleet.Progress{Flow: "up", Role: engine.Receive, Agent: "r", Packets: n, Reach: reach, AtS: at})
}

// Cores are told of a host, or of the machine that all hosts are on.
func TestHostOf(t *testing.T) {
	for agent, want := range map[string]string{"s": model.Sender, "r": model.Receiver, "x": Machine} {
		if got := twoEnds().hostOf(agent); got != want {
			t.Errorf("%s is on %s, want %s", agent, got, want)
		}
	}
	one := twoEnds()
	if one.oneClock = true; one.hostOf("r") != Machine {
		t.Error("one machine has two names")
	}
}

func alike(a, b float64) bool { return math.Abs(a-b) < 1e-6 || math.IsNaN(a) && math.IsNaN(b) }

func TestSoFar(t *testing.T) {
	_, _, s := watchedFlow()
	if s.sender(-0.5, 0) || s.receiver(-0.4, 0, 0) || s.sender(0.1, 100) || !s.sender(1.1, 1100) ||
		s.receiver(1.05, 1040, 1050) || !s.sender(2.1, 2100) {
		t.Error("not told once a second from the first on")
	}
	s.receiver(2.05, 2035, 2050)
	if _, _, early := watchedFlow(); !early.sender(1.1, 1100) || early.checkpoint(1.1, 0).Flows[0].Attempted != 0 {
		t.Error("packets count before their receiver said anything")
	}
	s.receiver(5.05, 5020, 5050) // nothing was heard for two seconds
	s.sender(5.1, 5100)
	s.take(fleet.Progress{Agent: "r", Counts: &model.Observation{Boot: "x", Namespace: 7, Mode: model.DropsSeq,
		Drops: &model.Drops{
			Sites: []model.Site{{Reason: "SOCKET_RCVBUFF", Function: "udp_queue_rcv_one_skb", Namespace: 7,
				Received: true}},
			Flows: []model.FlowDrops{{Flow: "up", Counts: []model.SiteCount{{Site: 0, Packets: 20}}}},
		}}})
	c := s.checkpoint(s.latest, 1)
	f := c.Flows[0]
	if c.ElapsedS != 5.1 || f.Attempted != 5050 || f.Received != 5020 || f.Lost() != 30 || len(f.Lines) != 1 ||
		f.Lines[0].Packets != 20 ||
		f.Lines[0].Layer != model.LayerReceiverBuffer {
		t.Errorf("%+v", c)
	}
	nan := math.NaN()
	if got := c.Series[1]; got.Metric != "receive_pps" || got.StartSeconds != 1 ||
		!slices.EqualFunc(got.Values, []float64{995, nan, nan, 995}, alike) {
		t.Errorf("%+v", got)
	}
	// A path that lets nothing through any more.
	s.sender(6.1, 6100)
	s.sender(7.1, 7100)
	s.receiver(7.05, 5020, 5050)
	if f := s.checkpoint(7.1, 0).Flows[0]; f.Attempted != 6100 || f.Received != 5020 {
		t.Errorf("%+v", f)
	}
	// A receiver that is not heard for a while: nobody knows what it got meanwhile.
	for second := 8.1; second < 20; second++ {
		s.sender(second, uint64(second*1000))
	}
	if f := s.checkpoint(20, 0).Flows[0]; f.Attempted != 6100 || f.Received != 5020 {
		t.Errorf("%+v", f)
	}
}

// The seconds of one end are stored though the other is not heard, unless it is only late.
func TestReadyWithoutTheOther(t *testing.T) {
	_, _, s := watchedFlow()
	for second := 1; second <= 30; second++ {
		s.sender(float64(second), uint64(second)*10)
		if second <= 13 {
			s.receiver(float64(second), uint64(second)*10, 0)
		}
		if second == 10 {
			s.kept = 10
		}
		if want, looked := map[int]int{10: 0, 13: 3, 15: 3, 16: 6, 30: 20}[second]; looked && s.ready() != want {
			t.Errorf("after %d s %d are ready, want %d", second, s.ready(), want)
		}
	}
}

// An end tells of a second by its own clock, whenever the connection delivers it.
func TestSoFarSeries(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		at   []float64
		want []float64
	}{
		"each second":         {[]float64{1.01, 2.2, 3.05, 4.1}, []float64{1000, 1000, 1000, 1000}},
		"twice in a second":   {[]float64{1.01, 1.9, 2.2}, []float64{1000, 1000}},
		"first heard of late": {[]float64{3.1, 4.1}, []float64{nan, nan, 1000, 1000}},
		"not heard":           {[]float64{1.01, 5.1, 6.1}, []float64{1000, nan, nan, nan, 1000, 1000}},
	} {
		var e endSamples
		for _, at := range c.at {
			e.sample(fleet.Progress{Packets: uint64(math.Round(at * 1000)), AtS: at})
		}
		if !slices.EqualFunc(e.pps, c.want, alike) {
			t.Errorf("%s: %v, want %v", name, e.pps, c.want)
		}
	}
}

// A far host that is gone takes its report with it: what it had told stands for it.
func TestCutWithoutReport(t *testing.T) {
	trial, placed, s := watchedFlow()
	perStep := []uint64{}
	for i := 1; i <= 160; i++ {
		n := uint64(i) * 1000
		s.sender(float64(i), n)
		perStep = append(perStep, 1000)
		if i <= 100 { // then its power failed
			s.receiver(float64(i), n-10, n)
		}
	}
	sender := &engine.Report{Send: &engine.SendReport{Planned: 160_000, Attempted: 160_000, Accepted: 160_000,
		Streams: []uint64{160_000}, DurationNanos: 160e9, PerStep: perStep}}
	out := fleet.Outcome{Cut: model.Reason{Code: model.HostSilent}, Flows: []fleet.FlowOutcome{{Send: sender}}}
	r := account(trial, placed, out, path{told: s.untilCut(out)})
	if f := r.Flows[0]; r.State != model.Aborted || f.Attempted != 100_000 || f.Received != 99_990 || f.Lost != 10 ||
		f.Ledger.Unattributed != 10 || f.DurationS != 100 {
		t.Errorf("%+v", f)
	}
	values := map[string]int{}
	for _, x := range r.Series {
		values[x.Metric] += len(x.Values)
	}
	if values["send_pps"] != 160 || values["receive_pps"] != 100 {
		t.Errorf("%v values; want the sender's own of 160 s, and what the receiver told of 100", values)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	_, _, s = watchedFlow()
	s.receiver(0.1, 90, 100)
	s.sender(2, 2000)
	if known := s.untilCut(out); len(known.Flows) == 0 || known.Flows[0].Attempted != 0 {
		t.Errorf("a receiver that told of no second: %+v", known.Flows)
	}
	if known := s.untilCut(fleet.Outcome{}); len(known.Flows) > 0 {
		t.Error("a trial that was not cut has accounts of its own")
	}
}

// Of a receiver that is gone before it told anything nobody knows what it got: none of that is a loss.
func TestReceiverGoneAtOnce(t *testing.T) {
	trial, placed, s := watchedFlow()
	sent := &engine.Report{Send: &engine.SendReport{Attempted: 6000, Planned: 6000, DurationNanos: 6e9}}
	out := fleet.Outcome{Flows: []fleet.FlowOutcome{{Send: sent}}, Cut: model.Reason{Code: model.HostSilent}}
	r := account(trial, placed, out, path{})
	if f := r.Flows[0]; f.Attempted != 0 || f.Lost != 0 || f.Unheard == nil ||
		*f.Unheard != (model.Unheard{Packets: 6000}) {
		t.Errorf("%+v", f)
	}
	s.sender(1.1, 1100)
	if f := account(trial, placed, out, path{told: s.untilCut(out)}).Flows[0]; f.Lost != 0 || f.Unheard == nil ||
		f.Unheard.Packets != 6000 {
		t.Errorf("%+v", f)
	}
}
