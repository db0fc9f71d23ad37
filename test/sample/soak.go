package sample

import (
	"math"

	"pelt/model"
	"pelt/unit"
)

// Soaking is a soak of so many seconds without loss, at 40 kpps of 512 B.
func Soaking(seconds float64) (model.Document, *model.Result) {
	d := Base("lab:router", []int{512}, 1, seconds)
	d.Plan.Command, d.Plan.Engine, d.Plan.DUT = "soak", "udp", "lab"
	d.Plan.Flows[0].Rate = unit.PacketRate(40e3)
	d.Plan.Timing.WarmupSeconds, d.Plan.Timing.PatienceSeconds = 1, 60
	d.Lab = &model.LabFacts{Topology: "router", Nodes: []string{"sender", "router", "receiver"}}
	f := UDP("up", 512, 40e3, 40e3, seconds, 180e3)
	d.Results = []model.Result{Result(512, 0, f)}
	r := &d.Results[0]
	r.Series = nil
	sent := make([]float64, int(seconds))
	for i := range sent {
		sent[i] = 40e3
	}
	r.Series = []model.Series{
		{Metric: "send_pps", Flow: "up", At: model.Sender, StepSeconds: 1, Values: sent},
		{Metric: "receive_pps", Flow: "up", At: model.Receiver, StepSeconds: 1, Values: append([]float64{}, sent...)},
		{Metric: "lost_pps", Flow: "up", At: model.Sender, StepSeconds: 1, Values: make([]float64, len(sent))},
	}
	idle := make([]float64, len(sent))
	for i := range idle {
		idle[i] = 0.31 + 0.02*noise(i)
	}
	r.Series = append(r.Series, model.Series{Metric: "cpu_softirq_ratio", At: "router", StepSeconds: 1, Values: idle})
	return d, r
}

// Spill takes packets of some seconds by one cause, and keeps the account balanced.
func Spill(r *model.Result, where model.Line, from, to int, pps func(i int) float64) {
	f := &r.Flows[0]
	values := make([]float64, len(r.Series[0].Values))
	var n uint64
	for i := from; i < to; i++ {
		values[i] = math.Round(pps(i))
		r.Series[1].Values[i] -= values[i]
		r.Series[2].Values[i] += values[i]
		n += uint64(values[i])
	}
	f.Received, f.Lost = f.Received-n, f.Lost+n
	f.LossRatio = float64(f.Lost) / float64(f.Attempted)
	f.ReceivePPS = float64(f.Received) / f.DurationS
	f.GoodputBPS = f.ReceivePPS * 8 * float64(f.PayloadBytes)
	f.Ledger.Lost = f.Lost
	if where.Cause == "" {
		f.Ledger.Unattributed += n
		return
	}
	where.Packets, where.Confidence, where.Evidence = n, "exact-seq", []model.Evidence{}
	f.Ledger.Lines = append(f.Ledger.Lines, where)
	r.Series = append(r.Series, model.Series{Metric: "lost_pps", Flow: "up", At: where.Host, Layer: where.Layer,
		Cause: where.Cause, StepSeconds: 1, Values: values})
}

// Soak is ten minutes in which the lab's router was slowed down after 200 s; a burst of
// loss at the receiver, a lost control connection, and seconds that nobody heard of follow.
func Soak() model.Document {
	d, r := Soaking(600)
	d.Plan.Timed = []model.TimedChange{{AtSeconds: 200, Link: &model.Link{Node: model.Receiver, Rate: 150e6}}}
	Spill(r, model.Line{Layer: "network", Host: "router", Cause: "QDISC_DROP"}, 200, 600,
		func(i int) float64 { return 7000 + 300*noise(i) })
	Spill(r, model.Line{Layer: "receiver-buffer", Host: "receiver", Cause: "SOCKET_RCVBUFF"}, 430, 432,
		func(int) float64 { return 12000 })
	Spill(r, model.Line{}, 555, 556, func(int) float64 { return 900 })
	for i := 510; i < 514; i++ {
		for _, s := range r.Series[1:3] {
			s.Values[i] = math.NaN()
		}
	}
	r.Made = []model.MadeChange{{AtS: 200.02, TookS: 0.02, Words: "link-receiver=rate=150mbit"}}
	r.Gaps = []model.ControlGap{{Nodes: []string{"receiver"}, StartS: 300.4, DurationS: 24.6}}
	r.Changes = []model.Change{
		{Kind: model.ChangeShift, Metric: "receive_pps", Flow: "up", At: "receiver", StartS: 200, StartLowS: 199,
			StartHighS: 201, EndS: 600, Before: 40e3, After: 33e3, Size: -7e3, PValue: 1e-9, Tested: 5, AlarmHours: 24,
			Causes: []model.Mover{{Metric: "lost_pps", Flow: "up", At: "router", Layer: "network",
				Cause: "QDISC_DROP", StartS: 200, After: 7e3, Fit: 0.98}}},
		{Kind: model.ChangeShift, Metric: "lost_pps", Flow: "up", At: "sender", StartS: 200, StartLowS: 199,
			StartHighS: 201, EndS: 600, After: 7e3, Size: 7e3, PValue: 1e-9, Tested: 5, AlarmHours: 24},
		{Kind: model.ChangeBurst, Metric: "lost_pps", Flow: "up", At: "sender", StartS: 430, StartLowS: 430,
			StartHighS: 430, EndS: 432, Before: 7e3, After: 19e3, Size: 12e3, Count: 1, Packets: 24e3, PValue: 1e-6,
			Tested: 5, AlarmHours: 24},
	}
	return d
}

// LongSoak is two hours and a half with one second of loss in them.
func LongSoak() model.Document {
	d, r := Soaking(9000)
	Spill(r, model.Line{Layer: "receiver-buffer", Host: "receiver", Cause: "SOCKET_RCVBUFF"}, 4321, 4322,
		func(int) float64 { return 31000 })
	return d
}

// CutSoak is what the checkpoints of a soak tell that was killed: no loss by second.
func CutSoak() model.Document {
	d, _ := Soaking(3600)
	d.Complete = false
	one := make([]float64, 250)
	for i := range one {
		one[i] = 40e3 + 40*noise(i)
	}
	got := append([]float64{}, one...)
	for i := 90; i < 110; i++ {
		got[i] = math.NaN()
	}
	d.Results = []model.Result{model.Unfinished([]model.Checkpoint{{
		Cell: model.Cell{"payload_bytes": model.Number(512)}, Started: start(), ElapsedS: 250,
		Flows: []model.FlowSoFar{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver,
			PayloadBytes: 512, FrameBytes: 558, Streams: 1,
			Attempted: 10e6, Received: 10e6 - 312, Lines: []model.Line{{Layer: "receiver-buffer", Host: "receiver",
				Cause: "SOCKET_RCVBUFF", Packets: 300, Confidence: "bounded"}}}},
		Series: []model.Series{{Metric: "send_pps", Flow: "up", At: model.Sender, StepSeconds: 1, Values: one},
			{Metric: "receive_pps", Flow: "up", At: model.Receiver, StepSeconds: 1, Values: got}},
	}})}
	return d
}

// SoakHostile has words, times and figures that no soak has.
func SoakHostile() model.Document {
	const evil = "</script><b>x\x1b[31m\u202e=1+1"
	d, r := Soaking(600)
	Spill(r, model.Line{Layer: evil, Host: evil, Cause: evil}, 10, 20, func(int) float64 { return 1 })
	nan, inf := math.NaN(), math.Inf(1)
	for i := range 40 {
		r.Made = append(r.Made, model.MadeChange{AtS: float64(i), Words: evil})
		r.Changes = append(r.Changes, model.Change{Kind: evil, Metric: evil, At: evil, StartS: float64(15 * i)})
	}
	r.Made = append(r.Made, model.MadeChange{AtS: nan}, model.MadeChange{AtS: inf},
		model.MadeChange{AtS: -5, Failure: model.Reasons{{Text: evil}}})
	r.Changes = append(r.Changes, model.Change{Kind: model.ChangeShift, StartS: nan, Before: inf, After: nan},
		model.Change{Kind: model.ChangeBurst, Metric: "x_ratio", Packets: inf, StartS: 3, Count: -1})
	r.Gaps = []model.ControlGap{{StartS: nan, DurationS: nan}, {StartS: -inf, DurationS: inf},
		{StartS: 599, DurationS: inf, Nodes: []string{evil}}}
	r.Series[0].Values[3], r.Series[1].Values[4], r.Series[2].Values[5] = inf, -inf, -1e300
	r.Series = append(r.Series, model.Series{Metric: "lost_pps", Flow: "up", StepSeconds: inf, Values: []float64{1}},
		model.Series{Metric: "lost_pps", Flow: "up", StartSeconds: nan, StepSeconds: 1, Values: []float64{1}},
		model.Series{Metric: "lost_pps", Flow: "up", Layer: "x", StepSeconds: 1e-300, Values: []float64{1e308, 1e308}},
		model.Series{Metric: "idle_ratio", At: "router", StepSeconds: 1, Values: []float64{1}}) // of no core
	return d
}
