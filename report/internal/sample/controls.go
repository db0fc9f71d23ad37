package sample

import (
	"fmt"
	"math"
	"slices"
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
	d.Control.Metric = "completion_s"
	for _, r := range []ran{
		{"cubic", 0, 6.92, 0.012, 0.0008, 0.061, 0}, {"bbr", 0, 6.97, 0.02, 0.0011, 0.019, 0}, {"reno", 0, 6.95, 0.015, 0.0007, 0.055, 0},
		{"cubic", 0.01, 17.4, 0.11, 0.0101, 0.0011, 1}, {"bbr", 0.01, 7.21, 0.03, 0.0103, 0.017, 0}, {"reno", 0.01, 21.9, 0.12, 0.0102, 0.0009, 0},
		{"cubic", 0.1, 57.5, 0.16, 0.101, 0.0007, 0}, {"bbr", 0.1, 8.9, 0.07, 0.102, 0.016, 2}, {"reno", 0.1, 71, 0.2, 0.1, 0.0007, 0},
	} {
		ccCell(&d, r)
	}
	ccContrasts(d.Control)
	for i := range d.Control.Conditions {
		c := &d.Control.Conditions[i]
		c.Verdict = []string{"Without loss, no control is separable from cubic.",
			"Under 1 % loss, bbr is 2.4 times as fast as cubic, and reno takes a quarter longer.",
			"Under 10 % loss, bbr is at least 6 times as fast as cubic; reno did not finish in 60 s in most trials."}[i]
	}
	d.Findings = []model.Finding{
		{Kind: "verdict", Text: "Under 1 % loss bbr moves 80 MB in 7.2 s where cubic takes 17.4 s, and under 10 % in 8.9 s where cubic takes nearly a minute; without loss they are alike.", Values: map[string]float64{}},
		{Kind: "price", Text: "BBR keeps a queue of 17 ms on the path under loss, where cubic keeps none.", Values: map[string]float64{}},
	}
	d.Control.Notes = []string{"Segments left one by one: the lab's links have no segmentation offload, so each loss takes one segment of 1448 B.",
		"Reno at 1 % loss carries 0.93 of what the model of Mathis et al. predicts."}
	return d
}

// ControlMix is cubic and bbr alone and beside each other, without an end.
func ControlMix() model.Document {
	d := ccBase("cubic", "bbr", "cubic+bbr")
	d.Plan.Flows[0].Streams = 2
	d.Control.Metric = "goodput_bps"
	d.Plan.Factors, d.Plan.Timing.MeasureSeconds = d.Plan.Factors[:1], 20
	d.Control.Conditions = d.Control.Conditions[:0]
	for _, r := range []ran{{"cubic", 0, 6.92, 0.012, 0.0008, 0.061, 0}, {"bbr", 0, 6.97, 0.02, 0.0011, 0.019, 0}, {"cubic+bbr", 0, 6.99, 0.02, 0.002, 0.048, 0}} {
		ccCell(&d, r)
	}
	c := &d.Control.Cells[2]
	c.Jain, c.Converged = estimate([]float64{0.71, 0.74, 0.69, 0.77, 0.72, 0.7, 0.73, 0.75, 0.71, 0.72}), estimate([]float64{4.1, 3.8, 5.5, 4.4, 4, 6.1, 4.2, 3.9, 4.6, 4.3})
	c.Shares = map[string]*model.Estimate{"cubic": estimate([]float64{0.21, 0.24, 0.19, 0.26, 0.22, 0.2, 0.23, 0.25, 0.21, 0.22}), "bbr": estimate([]float64{0.79, 0.76, 0.81, 0.74, 0.78, 0.8, 0.77, 0.75, 0.79, 0.78})}
	ccContrasts(d.Control)
	d.Control.Conditions[0].Text, d.Control.Conditions[0].Cell, d.Control.Conditions[0].Verdict = "", model.Cell{}, ""
	for i := range d.Results {
		delete(d.Results[i].Cell, "link.loss_ratio")
	}
	d.Findings = []model.Finding{{Kind: "verdict", Text: "Beside each other, bbr takes 78 % of the path and leaves 22 % to cubic.", Values: map[string]float64{}}}
	return d
}

// ControlHostile is a comparison that no analysis would make.
func ControlHostile() model.Document {
	const evil = "</script><svg onload=alert(1)>\"'`{{.}}\x1b[31m\x00\u202e\xff=1+1"
	d := Controls()
	d.Results = d.Results[:25]
	nan := math.NaN()
	t := d.Control
	t.Controls = append(t.Controls, evil, "cubic", "")
	t.Conditions = append(t.Conditions, model.ControlSetting{Text: evil, Verdict: evil, Cell: model.Cell{evil: model.Word(evil)}})
	t.Baseline, t.Notes = evil, []string{evil}
	t.Cells = append(t.Cells, model.ControlCell{Condition: 3, Control: evil, Valid: -4, Unfinished: 7, Completion: &model.Estimate{Median: nan, Low: math.Inf(-1), High: math.Inf(1), Values: []float64{nan, -1, 0, math.Inf(1), 1e300, 1e-300}},
		Goodput: &model.Estimate{Median: -3, Low: 5, High: 1, Values: []float64{nan}}, RTT95: &model.Estimate{Median: 1e300, Values: []float64{1, 2}}, Jain: &model.Estimate{Median: nan}, Shares: map[string]*model.Estimate{"x": {Median: nan}}, Mathis: &model.Mathis{Ratio: nan, Above: evil}},
		model.ControlCell{Condition: 99, Control: "bbr"}, model.ControlCell{Condition: -1, Control: "bbr"})
	t.Contrasts = append(t.Contrasts, model.ControlContrast{Condition: 3, Control: "bbr", Ratio: math.Inf(1), Separable: true, Text: evil}, model.ControlContrast{Condition: 3, Control: "reno", Ratio: -1, Low: nan, High: nan, Separable: true})
	other := 700
	for i := range d.Results {
		r := &d.Results[i]
		r.Why = evil
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
	d := base("lab:direct", []int{65536}, ccRepeats, ccLimit)
	d.Plan.Command = "cc"
	d.Plan.Flows[0].Protocol, d.Plan.Flows[0].Bulk, d.Plan.Flows[0].Control = model.TCP, true, names[0]
	d.Plan.Timing.WarmupSeconds = 0
	d.Plan.Links = []model.Link{{Rate: 100e6, DelaySeconds: 0.02, QueuePackets: 500}}
	var levels []model.Value
	for _, n := range names {
		levels = append(levels, model.Word(n))
	}
	d.Plan.Factors = []model.Factor{{Knob: "control", Levels: levels}, {Knob: "link.loss_ratio", Levels: []model.Value{model.Number(0), model.Number(0.01), model.Number(0.1)}}}
	d.Lab = &model.LabFacts{Topology: "direct", Nodes: []string{"sender", "receiver"}, Backends: []string{"sender to receiver and back: user-space link, 100 Mbit/s, 20 ms, queue of 500 packets, losses drawn for each segment"}}
	d.PathMTU = []model.PathMTU{{Flow: "up", Bytes: 1500, PayloadBytes: 1472}}
	for i := range d.Host {
		d.Host[i].Notes = map[string]string{"congestion controls": "bbr cubic reno"}
	}
	d.Control = &model.ControlTable{Baseline: names[0], Controls: names, Tests: 6, Looks: 1, Alpha: 0.05, Contrasts: []model.ControlContrast{}, Notes: []string{}}
	for _, loss := range []float64{0, 0.01, 0.1} {
		d.Control.Conditions = append(d.Control.Conditions, model.ControlSetting{Cell: model.Cell{"link.loss_ratio": model.Number(loss)}, Text: fmt.Sprintf("%g %% loss", loss*100)})
	}
	return d
}

// ccCell adds a control's trials under one condition, and their cell.
func ccCell(d *model.Document, r ran) {
	at := slices.IndexFunc(d.Control.Conditions, func(c model.ControlSetting) bool { return c.Cell["link.loss_ratio"].Number == r.loss })
	if at < 0 {
		d.Control.Conditions = append(d.Control.Conditions, model.ControlSetting{Cell: model.Cell{"link.loss_ratio": model.Number(r.loss)}})
		at = len(d.Control.Conditions) - 1
	}
	c := model.ControlCell{Condition: at, Control: r.control, Invalid: r.unfitted}
	bytes := d.Plan.Flows[0].Bytes
	var times, goodputs, resent, p50, p95, standing []float64
	for n := range ccRepeats + r.unfitted {
		seed := int(r.seconds*1000) + n*7
		want := r.seconds * (1 + r.spread*noise(seed))
		took := min(want, ccLimit)
		f := ccFlow(d, r, want, took, seed)
		trial := model.Result{Cell: model.Cell{"control": model.Word(r.control), "link.loss_ratio": model.Number(r.loss)}, Repeat: n % ccRepeats, Started: start().Add(time.Duration(len(d.Results)) * time.Minute), State: model.Valid,
			Engine: "tcp", Flows: []model.FlowResult{f}}
		trial.Series = ccSeries(f, r, took, seed)
		if n >= ccRepeats {
			trial.State, trial.Why = model.Invalid, "the link's emulation was late for 1.8 % of its frames"
			d.Results = append(d.Results, trial)
			continue
		}
		d.Results = append(d.Results, trial)
		c.Valid++
		if want > took && bytes > 0 {
			c.Unfinished++
		}
		times, goodputs, resent = append(times, took), append(goodputs, f.GoodputBPS), append(resent, r.resent*(1+0.1*noise(seed+3)))
		queue := r.queue * (1 + 0.15*noise(seed+4))
		p50, p95, standing = append(p50, ccRTT+queue*0.6), append(p95, ccRTT+queue), append(standing, queue)
	}
	c.Goodput, c.Resent, c.RTT50, c.RTT95, c.Standing = estimate(goodputs), estimate(resent), estimate(p50), estimate(p95), estimate(standing)
	c.Limited = &model.Estimate{Median: 0, Values: make([]float64, c.Valid)}
	if bytes > 0 {
		c.Completion = estimate(times)
		c.Completion.Bound = c.Completion.Median >= ccLimit
	}
	if r.control == "reno" {
		c.Mathis = &model.Mathis{LossRatio: r.loss, RTTSeconds: ccRTT, SegmentBytes: 1448, PredictedBPS: 1.22 * 1448 * 8 / ccRTT / math.Sqrt(max(r.loss, 1e-6)), Ratio: 0.93}
		if r.loss == 0 {
			c.Mathis.Above = "the path's 100 Mbit/s are less"
		}
	}
	d.Control.Cells = append(d.Control.Cells, c)
}

func ccFlow(d *model.Document, r ran, want, took float64, seed int) model.FlowResult {
	plan := d.Plan.Flows[0]
	bits := 80e6 * 8 / want
	bytes := uint64(bits * took / 8)
	f := udp("up", plan.PayloadBytes, bits/8/1448, bits/8/1448, took, 0)
	f.Protocol, f.SendGap, f.GoodputBPS, f.SendGoodputBPS, f.Streams = model.TCP, nil, bits, bits, plan.Streams
	f.Lost = uint64(float64(f.Attempted) * r.resent)
	f.Received, f.LossRatio = f.Attempted-f.Lost, r.resent
	f.Ledger = model.Ledger{Lost: f.Lost, Unattributed: f.Lost}
	f.RoundTrip = &model.Percentiles{Count: 900, Min: ccRTT * 1e9, P50: (ccRTT + r.queue*0.6) * 1e9, P90: (ccRTT + r.queue*0.9) * 1e9, P99: (ccRTT + r.queue*1.2) * 1e9, P999: (ccRTT + r.queue*1.4) * 1e9, Max: (ccRTT + r.queue*1.5) * 1e9}
	f.TCP = &model.TCPFacts{Writes: bytes / 65536, SentBytes: bytes, ReceivedBytes: bytes, SegmentsOut: f.Attempted, SegmentsIn: f.Received, Retransmits: f.Lost, SegmentSizeBytes: 1448, Control: r.control,
		RTTNanos: (ccRTT + r.queue*0.8) * 1e9, MinRTTNanos: ccRTT * 1e9, BusyS: took, RwndLimitedS: 0.01, SamplesMissed: uint64(seed % 2)}
	if plan.Bytes > 0 {
		f.TCP.Completion = &model.Completion{Bytes: plan.Bytes, Done: want <= ccLimit, Seconds: took, By: model.ByRead}
	}
	if controls := (model.Flow{Control: r.control, Streams: plan.Streams}); plan.Streams > 1 {
		for n := range plan.Streams {
			share := 0.5
			if r.control == "cubic+bbr" {
				share = []float64{0.22, 0.78}[n%2]
			}
			f.TCP.PerStream = append(f.TCP.PerStream, model.TCPStream{Control: controls.StreamControl(n), SentBytes: uint64(float64(bytes) * share), ReceivedBytes: uint64(float64(bytes) * share), Retransmits: f.Lost / 2, GoodputBPS: bits * share})
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
		for _, s := range []model.Series{{Metric: "tcp_acked_bytes", Values: acked}, {Metric: "tcp_rtt_ns", Values: rtt}, {Metric: "tcp_cwnd_segments", Values: window}} {
			s.Flow, s.At, s.StepSeconds, s.Stream = f.Name, model.Sender, step, stream
			out = append(out, s)
		}
	}
	return out
}

// estimate is the median with about the 95 % interval of ten values: their second
// and ninth (order statistics; 97.9 %).
func estimate(values []float64) *model.Estimate {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return &model.Estimate{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[min(1, n-1)], High: sorted[max(0, n-2)], Values: values}
}

// ccContrasts compares with the baseline: separable where the intervals are apart.
func ccContrasts(t *model.ControlTable) {
	for _, c := range t.Cells {
		base := t.Cell(c.Condition, t.Baseline)
		if c.Control == t.Baseline {
			continue
		}
		a, b := c.Goodput, base.Goodput
		if c.Completion != nil {
			a, b = base.Completion, c.Completion
		}
		x := model.ControlContrast{Condition: c.Condition, Control: c.Control, Baseline: t.Baseline, Ratio: a.Median / b.Median, Low: a.Low / b.High, High: a.High / b.Low, Trials: 10, P: 0.34, FamilyP: 0.68}
		at := ""
		if text := t.Conditions[c.Condition].Text; text != "" {
			at = "At " + text + ", "
		}
		x.Text = fmt.Sprintf("%s%s cannot be told from %s: %.2f times as fast (%.2f to %.2f)", at, c.Control, t.Baseline, x.Ratio, x.Low, x.High)
		if a.Low > b.High || a.High < b.Low {
			x.Separable, x.P, x.FamilyP = true, 0.0002, 0.0011
			x.Text = fmt.Sprintf("%s%s is %.2f times as fast as %s (%.2f to %.2f), p = 0.0011 of 6 comparisons", at, c.Control, x.Ratio, t.Baseline, x.Low, x.High)
		}
		t.Contrasts = append(t.Contrasts, x)
	}
}
