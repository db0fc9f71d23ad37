package run

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
)

// honest is what both ends report of a second at 1000 pps on a path that lost 10.
func honest() (model.Trial, fleet.Trial, fleet.Outcome) {
	f := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64,
		Streams: 1}
	t := model.Trial{Flows: []model.Flow{f}, Timing: model.Timing{WarmupSeconds: 0.5, MeasureSeconds: 1,
		DrainSeconds: 1}}
	placed := fleet.Trial{Timing: t.Timing, Flows: []fleet.PlacedFlow{{Flow: f, Send: fleet.Choice{Engine: "udp"},
		Receive: fleet.Choice{Engine: "udp"}, From: "a", To: "b"}}}
	out := fleet.Outcome{Load: map[string]engine.Load{"b": {CPU: model.CPU{HostRatio: 0.5},
		Series: []model.Series{{Metric: "cpu_idle_ratio", StepSeconds: 1, Values: []float64{0.5}}}}},
		Flows: []fleet.FlowOutcome{{
			Send: &engine.Report{Send: &engine.SendReport{Planned: 1000, Attempted: 1000, Accepted: 1000,
				Streams: []uint64{1000}, DurationNanos: 1e9, PerStep: []uint64{1000}, Gap: &model.Percentiles{Min: 1,
					P50: 2, P90: 3, P99: 4, P999: 5, Max: 6}}},
			Receive: &engine.Report{Receive: &engine.ReceiveReport{SocketKnown: true,
				Tally: model.Tally{Received: 990, Bytes: 990 * 64,
					FirstNanos: 5e9, LastNanos: 6e9, PerStep: []uint64{990}, StepBytes: []uint64{990 * 64}}}},
		}}}
	return t, placed, out
}

// Whatever numbers the other end reports, the result is finite and balances.
func TestAnyReportGivesAResult(t *testing.T) {
	number := func(t *rapid.T) uint64 {
		return rapid.SampledFrom([]uint64{0, 1, 990, 1000, 1001, 990 * 64, 1 << 32, math.MaxInt64,
			math.MaxUint64}).Draw(t, "n")
	}
	nanos := func(t *rapid.T) int64 {
		return rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, 1e9, 5e9, 6e9, math.MaxInt64}).Draw(t, "ns")
	}
	rapid.Check(t, func(t *rapid.T) {
		trial, placed, out := honest()
		if rapid.Bool().Draw(t, "tcp") {
			placed.Flows[0].Flow.Protocol = model.TCP
		}
		s, in := out.Flows[0].Send.Send, &out.Flows[0].Receive.Receive.Tally
		s.Planned, s.Attempted, s.Accepted = number(t), number(t), number(t)
		s.Streams, s.DurationNanos = []uint64{number(t)}, nanos(t)
		s.Errors, s.TCP = map[string]uint64{"EPERM": number(t)}, &model.TCPFacts{Retransmits: number(t),
			SentBytes: number(t)}
		in.Received, in.Bytes, in.Late, in.WrongLength = number(t), number(t), number(t), number(t)
		in.FirstNanos, in.LastNanos = nanos(t), nanos(t)
		in.PerStep, in.StepBytes = []uint64{number(t), number(t)}, nil
		r := account(trial, placed, out, path{})
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		f := r.Flows[0]
		lines := uint64(0)
		for _, l := range f.Ledger.Lines {
			lines += l.Packets
		}
		if f.Received+f.Lost != f.Attempted || f.Ledger.Lost != lines+f.Ledger.Unattributed || f.Lost > f.Attempted ||
			f.LossRatio < 0 || f.LossRatio > 1 {
			t.Fatalf("%+v", f)
		}
	})
}
