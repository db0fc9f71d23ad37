package run

import (
	"testing"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
	"pelt/unit"
)

// A far host that is gone takes its report with it: what it had told stands for it.
func TestCutWithoutReport(t *testing.T) {
	flow := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 512, Rate: unit.PacketRate(1000), Streams: 1}
	p := twoEnds()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	trial := model.Trial{Flows: []model.Flow{flow}, Timing: model.Timing{MeasureSeconds: 600, PatienceSeconds: 60}}
	placed := fleet.Trial{Flows: []fleet.PlacedFlow{{Flow: flow}}}
	s := newSoFar(trial, placed, &watch{site: p}, began)
	perStep := []uint64{}
	for i := 1; i <= 160; i++ {
		now, n := began.Add(time.Duration(i)*time.Second), uint64(i)*1000
		s.take(fleet.Progress{Flow: "up", Role: engine.Send, Agent: "s", Packets: n}, now)
		perStep = append(perStep, 1000)
		if i <= 100 { // then its power failed
			s.take(fleet.Progress{Flow: "up", Role: engine.Receive, Agent: "r", Packets: n - 10, Reach: n}, now)
		}
	}
	sender := &engine.Report{Role: engine.Send, Send: &engine.SendReport{Planned: 160_000, Attempted: 160_000, Accepted: 160_000, Streams: []uint64{160_000}, DurationNanos: 160e9, PerStep: perStep}}
	out := fleet.Outcome{Cut: "receiver has not answered for 1m0s", Flows: []fleet.FlowOutcome{{Send: sender}}}
	known, ok := s.untilCut(out)
	if !ok {
		t.Fatal("nothing is known")
	}
	r := account(trial, placed, out, nil, noRate)
	if r.State != model.Aborted || r.Flows[0].Lost != 160_000 {
		t.Fatalf("%s, %d lost: the account of the receiver is not missing here", r.State, r.Flows[0].Lost)
	}
	useCheckpoint(&r, out, known)
	if f := r.Flows[0]; f.Attempted != 100_000 || f.Received != 99_990 || f.Lost != 10 || f.Ledger.Unattributed != 10 || f.DurationS != 100 {
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
	if _, ok := s.untilCut(fleet.Outcome{}); ok {
		t.Error("a trial that was not cut has accounts of its own")
	}
}
