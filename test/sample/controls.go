package sample

import (
	"math"
	"time"

	"pelt/model"
)

// ran is a made-up congestion control under one loss: its median time for the
// bytes, its trials' spread, and the thin flow's delay.
type ran struct {
	control  string
	loss     float64
	seconds  float64
	spread   float64
	resent   float64
	queue    float64 // s, 95th percentile above the path's shortest
	unfitted int     // trials that are not valid
}

const (
	ccRepeats = 10
	ccLimit   = 60.0 // s of a trial
	ccRTT     = 0.0402
)

// Controls is cubic, bbr and reno with 80 MB over a path of 100 Mbit/s and 40 ms,
// at three losses. Some of cubic's trials at 10 % were cut, and most of reno's.
func Controls() model.Document {
	d := ccBase("cubic", "bbr", "reno")
	d.Plan.Flows[0].Bytes = 80e6
	for _, r := range []ran{
		{"cubic", 0, 6.92, 0.012, 0.0008, 0.061, 0}, {"bbr", 0, 6.97, 0.02, 0.0011, 0.019, 0}, {"reno", 0, 6.95,
			0.015, 0.0007, 0.055, 0},
		{"cubic", 0.01, 17.4, 0.11, 0.0101, 0.0011, 1}, {"bbr", 0.01, 7.21, 0.03, 0.0103, 0.017, 0}, {"reno", 0.01,
			21.9, 0.12, 0.0102, 0.0009, 0},
		{"cubic", 0.1, 57.5, 0.16, 0.101, 0.0007, 0}, {"bbr", 0.1, 8.9, 0.07, 0.102, 0.016, 2}, {"reno", 0.1, 71, 0.2,
			0.1, 0.0007, 0},
	} {
		ccCell(&d, r)
	}
	return d
}

// ControlMix is cubic and bbr alone and beside each other, without an end.
func ControlMix() model.Document {
	d := ccBase("cubic", "bbr", "cubic+bbr")
	d.Plan.Flows[0].Streams = 2
	d.Plan.Factors, d.Plan.Timing.MeasureSeconds = d.Plan.Factors[:1], 20
	for _, r := range []ran{{"cubic", 0, 6.92, 0.012, 0.0008, 0.061, 0}, {"bbr", 0, 6.97, 0.02, 0.0011, 0.019, 0},
		{"cubic+bbr", 0, 6.99, 0.02, 0.002, 0.048, 0}} {
		ccCell(&d, r)
	}
	for i := range d.Results {
		delete(d.Results[i].Cell, "link.loss_ratio")
	}
	return d
}

// ControlHostile is a comparison that no analysis would make.
func ControlHostile() model.Document {
	const evil = "</script><svg onload=alert(1)>\"'`{{.}}\x1b[31m\x00\u202e\xff=1+1"
	d := Controls()
	d.Results = d.Results[:25]
	nan := math.NaN()
	other := 700
	for i := range d.Results {
		r := &d.Results[i]
		r.Why = model.Reasons{{Code: evil, Text: evil}}
		if i%5 == 0 {
			r.State = model.Invalid
		}
		if f := &r.Flows[0]; i%3 == 0 {
			f.TCP.PerStream = []model.TCPStream{{Control: evil, GoodputBPS: nan}}
			f.TCP.Control = evil
		}
		if i%7 == 0 {
			r.Flows[0].TCP = nil
		}
		for j := range r.Series {
			switch (i + j) % 6 {
			case 0:
				r.Series[j].StepSeconds = nan
			case 1:
				r.Series[j].Stream = &other
			case 2:
				r.Series[j].Values = []float64{nan, 5, nan, 2, math.Inf(1)}
			}
		}
	}
	return d
}

func ccBase(names ...string) model.Document {
	d := Base("lab:direct", []int{65536}, ccRepeats, ccLimit)
	d.Plan.Command = "cc"
	d.Plan.Flows[0].Protocol, d.Plan.Flows[0].Bulk, d.Plan.Flows[0].Control = model.TCP, true, names[0]
	d.Plan.Timing.WarmupSeconds = 0
	d.Plan.Links = []model.Link{{Rate: 100e6, DelaySeconds: 0.02, QueuePackets: 500}}
	var levels []model.Value
	for _, n := range names {
		levels = append(levels, model.Word(n))
	}
	d.Plan.Factors = []model.Factor{{Knob: "control", Levels: levels},
		{Knob: "link.loss_ratio", Levels: []model.Value{model.Number(0), model.Number(0.01), model.Number(0.1)}}}
	d.Lab = &model.LabFacts{Topology: "direct", Nodes: []string{"sender", "receiver"}, Links: []model.LabLink{
		{From: "sender", To: "receiver", Backend: model.BackendUser, Settings: model.Link{Rate: 1e8, DelaySeconds: 0.02,
			QueuePackets: 500, Seed: 7}}}, Varied: []string{"link.loss"}}
	d.PathMTU = []model.PathMTU{{Flow: "up", Bytes: 1500, PayloadBytes: 1472}}
	return d
}

// ccCell adds a control's trials under one condition.
func ccCell(d *model.Document, r ran) {
	for n := range ccRepeats + r.unfitted {
		seed := int(r.seconds*1000) + n*7
		want := r.seconds * (1 + r.spread*noise(seed))
		took := min(want, ccLimit)
		f := ccFlow(d, r, want, took, seed)
		trial := model.Result{
			Cell:   model.Cell{"control": model.Word(r.control), "link.loss_ratio": model.Number(r.loss)},
			Repeat: n % ccRepeats, Started: start().Add(time.Duration(len(d.Results)) * time.Minute),
			State: model.Valid, Engine: "tcp", Flows: []model.FlowResult{f}}
		lost := uint64(float64(f.Attempted) * r.loss * 0.996)
		trial.Links = []model.LinkResult{{From: model.Sender, To: model.Receiver, Frames: f.Attempted, Lost: &lost,
			AskedRatio: r.loss}}
		trial.Series = ccSeries(f, r, took, seed)
		if n >= ccRepeats {
			trial.State, trial.Why = model.Invalid, model.Reasons{{Code: model.LinkBehind, Link: "sender to receiver",
				Numbers: map[string]float64{"late_ratio": 0.018, "overrun_frames": 0, "refused_frames": 0}}}
			d.Results = append(d.Results, trial)
			continue
		}
		d.Results = append(d.Results, trial)
	}
}

func ccFlow(d *model.Document, r ran, want, took float64, seed int) model.FlowResult {
	plan := d.Plan.Flows[0]
	bits := 80e6 * 8 / want
	bytes := uint64(bits * took / 8)
	f := UDP("up", plan.PayloadBytes, bits/8/1448, bits/8/1448, took, 0)
	f.Protocol, f.SendGap, f.GoodputBPS, f.SendGoodputBPS, f.Streams = model.TCP, nil, bits, bits, plan.Streams
	f.Lost = uint64(float64(f.Attempted) * r.resent)
	f.Received, f.LossRatio = f.Attempted-f.Lost, r.resent
	f.Ledger = model.Ledger{Lost: f.Lost, Unattributed: f.Lost}
	rtt := func(queues float64) float64 { return (ccRTT + r.queue*queues) * 1e9 }
	f.RoundTrip = &model.Percentiles{Count: 900, Min: ccRTT * 1e9, P50: rtt(0.6), P90: rtt(0.9), P95: rtt(1),
		P99: rtt(1.2), P999: rtt(1.4), Max: rtt(1.5)}
	f.TCP = &model.TCPFacts{Writes: bytes / 65536, SentBytes: bytes, ReceivedBytes: bytes, SegmentsOut: f.Attempted,
		SegmentsIn: f.Received, Retransmits: f.Lost, SegmentSizeBytes: 1448, Control: r.control,
		RTTNanos: (ccRTT + r.queue*0.8) * 1e9, BusyS: took, RwndLimitedS: 0.01, SamplesMissed: uint64(seed % 2)}
	if plan.Bytes > 0 {
		f.TCP.Completion = &model.Completion{Bytes: plan.Bytes, Done: want <= ccLimit, Seconds: took, By: model.ByRead}
	}
	if controls := (model.Flow{Control: r.control, Streams: plan.Streams}); plan.Streams > 1 {
		for n := range plan.Streams {
			share := 0.5
			if r.control == "cubic+bbr" {
				share = []float64{0.22, 0.78}[n%2]
			}
			own := uint64(float64(bytes) * share)
			f.TCP.PerStream = append(f.TCP.PerStream, model.TCPStream{Control: controls.StreamControl(n),
				SentBytes: own, ReceivedBytes: own, Retransmits: f.Lost / 2, GoodputBPS: bits * share})
		}
	}
	return f
}

// ccSeries are readings of TCP_INFO; a sawtooth for those that back off at a loss.
func ccSeries(f model.FlowResult, r ran, took float64, seed int) []model.Series {
	const step = 0.25
	var out []model.Series
	streams := max(1, len(f.TCP.PerStream))
	for n := range streams {
		bits := f.GoodputBPS
		if streams > 1 {
			bits = f.TCP.PerStream[n].GoodputBPS
		}
		var stream *int
		if streams > 1 {
			stream = &n
		}
		var acked, rtt, window []float64
		sum := 0.0
		for i := range int(min(took, 20)/step) + 1 {
			saw := 1 + 0.3*(math.Mod(float64(i)/11+0.2*float64(seed%5), 1)*2-1)
			if r.control == "bbr" {
				saw = 1 + 0.04*noise(seed+i)
			}
			acked, sum = append(acked, sum), sum+bits*saw*step/8*min(1, 0.2+float64(i)/6)
			rtt, window = append(rtt, (ccRTT+r.queue*(saw-0.3))*1e9), append(window, bits*saw*ccRTT/8/1448)
		}
		for _, s := range []model.Series{{Metric: "tcp_acked_bytes", Values: acked},
			{Metric: "tcp_rtt_ns", Values: rtt}, {Metric: "tcp_cwnd_segments", Values: window}} {
			s.Flow, s.At, s.StepSeconds, s.Stream = f.Name, model.Sender, step, stream
			out = append(out, s)
		}
	}
	return out
}
