package run

import (
	"encoding/json"
	"math"
	"strings"
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

// madeReports are those of a trial's ends.
type madeReports struct {
	out  *fleet.Outcome
	sent *engine.SendReport
	in   *engine.ReceiveReport
}

func TestHostileReports(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*madeReports)
		want   string // of why; "" is valid
	}{
		{"honest", func(*madeReports) {}, ""},
		{"no receiver", func(o *madeReports) { o.out.Flows[0].Receive = nil }, "account of one end is missing"},
		{"another role's", func(o *madeReports) { o.out.Flows[0].Receive.Receive = nil }, "is missing"},
		{"negative time", func(o *madeReports) { o.sent.DurationNanos = -1 }, "(sender duration)"},
		{"endless time", func(o *madeReports) { o.sent.DurationNanos = math.MaxInt64 }, "(sender duration)"},
		{"accepted more", func(o *madeReports) { o.sent.Accepted = 1001 }, "(sender sum)"},
		{"streams overflow", func(o *madeReports) { o.sent.Streams = []uint64{math.MaxUint64, 1001} }, "(sender sum)"},
		{"received more", func(o *madeReports) { o.in.Tally.Received, o.in.Tally.Bytes = 1001, 1001*64 },
			"(receiver sum)"},
		{"bytes of others", func(o *madeReports) { o.in.Tally.Bytes = math.MaxUint64 }, "(receiver sum)"},
		{"gave up more than was planned", func(o *madeReports) { o.sent.Late, o.sent.Held = 600, 600 },
			"(sender schedule)"},
		{"left more than was planned", func(o *madeReports) { o.sent.SlotsSilent = 1001 }, "(sender schedule)"},
		{"from end to begin", func(o *madeReports) {
			o.in.Tally.FirstNanos, o.in.Tally.LastNanos = math.MaxInt64,
				math.MinInt64
		}, "(receiver duration)"},
		{"negative delay", func(o *madeReports) { o.in.Tally.Delay = &model.Percentiles{Min: -5} },
			"(order of percentiles)"},
		{"negative jitter", func(o *madeReports) { o.in.Tally.JitterNanos = -1 }, "(order of percentiles)"},
		{"a frame past the program", func(o *madeReports) { o.in.Strays = 1 }, "past its XDP program"},
	} {
		trial, placed, out := honest()
		c.change(&madeReports{&out, out.Flows[0].Send.Send, out.Flows[0].Receive.Receive})
		r := account(trial, placed, out, path{})
		if (r.State == model.Valid) != (c.want == "") || !strings.Contains(r.Why.String(), c.want) {
			t.Errorf("%s: %s, %q, want %q", c.name, r.State, r.Why, c.want)
		}
	}
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
		s.Planned, s.Attempted, s.Accepted, s.Streams, s.DurationNanos = number(t), number(t), number(t), []uint64{number(t)}, nanos(t)
		s.Errors, s.TCP = map[string]uint64{"EPERM": number(t)}, &model.TCPFacts{Retransmits: number(t),
			SentBytes: number(t)}
		in.Received, in.Bytes, in.Late, in.WrongLength, in.FirstNanos, in.LastNanos = number(t), number(t), number(t), number(t), nanos(t), nanos(t)
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

// A path that carried a burst and then stalled is not as fast as the burst.
func TestStalledTCPIsSlow(t *testing.T) {
	trial, placed, out := honest()
	placed.Flows[0].Flow.Protocol = model.TCP
	out.Flows[0].Receive.Receive.Tally = model.Tally{Received: 100, Bytes: 125_000, FirstNanos: 5e9,
		LastNanos: 5e9 + 1e8}
	if f := account(trial, placed, out, path{}).Flows[0]; f.GoodputBPS != 1e6 || f.ReceivePPS != 100 {
		t.Errorf("%v bit/s, %v pps; want 1e6, 100", f.GoodputBPS, f.ReceivePPS)
	}
}

// Frames of which none arrives may be the path's fault or XDP's: the flag that tells is named.
func TestNoFrameArrived(t *testing.T) {
	for name, change := range map[string]func(*fleet.FlowOutcome){
		"none":                 func(*fleet.FlowOutcome) {},
		"in the warm-up":       func(o *fleet.FlowOutcome) { o.Receive.Receive.WarmupReceived = 1 },
		"of sockets none":      func(o *fleet.FlowOutcome) { o.Send.Engine = "udp" },
		"the sender sent none": func(o *fleet.FlowOutcome) { o.Send.Send.Accepted = 0 },
	} {
		_, placed, out := honest()
		o := &out.Flows[0]
		o.Send.Engine, o.Receive.Receive.Tally = "xdp", model.Tally{}
		change(o)
		list := strings.Join(endWarnings(placed, out), "\n")
		if told := strings.Contains(list,
			"up: no XDP frame arrived at the b; the path may still carry what sockets send: try --engine udp"); told != (name == "none") {
			t.Errorf("%s: %q", name, list)
		}
	}
}
