package sample

import (
	"fmt"
	"math"

	"pelt/model"
	"pelt/unit"
)

// sweepSizes are those of the field report on one sender and many receivers,
// and 1472 B, the largest that is not fragmented.
func sweepSizes() []int {
	sizes := []int{1472}
	for p := 256; p <= 10240; p += 256 {
		sizes = append(sizes, p)
	}
	return sizes
}

// Sweep is one sender and 100 receivers behind links of 1 Mbit/s that lose 5 %
// of their packets: 41 sizes by 10 intervals, 1000 packets to each, three times.
func Sweep() model.Document { return sweep(sweepSizes(), 10, 100, 3) }

// SmallSweep is a sweep of 3 sizes by 3 intervals by 2 receive buffers, which was
// cut: some cells are not valid, and some have no trial.
func SmallSweep() model.Document {
	d := sweep([]int{512, 1472, 4096}, 3, 4, 2)
	d.Plan.Factors = append(d.Plan.Factors, model.Factor{Knob: "receive_buffer_bytes",
		Levels: []model.Value{model.Number(16384), model.Number(212992)}})
	var results []model.Result
	for i, r := range d.Results {
		for j, buffer := range []float64{16384, 212992} {
			if i == len(d.Results)-1-j || i == len(d.Results)/2-1 && j == 0 {
				continue
			}
			again := r
			again.Cell = model.Cell{"receive_buffer_bytes": model.Number(buffer)}
			for k, v := range r.Cell {
				again.Cell[k] = v
			}
			again.Flows = []model.FlowResult{r.Flows[0]}
			if r.Cell["interval_ns"].Number == 1e6 && r.Cell["payload_bytes"].Number == 1472 {
				f := &again.Flows[0]
				f.Planned = f.Attempted * 5 / 4
				again.State, again.Why = model.Invalid, lateSender("up", model.SenderCoreFull, 3.2e3, 4e3)
			}
			results = append(results, again)
		}
	}
	cut := results[len(results)-1]
	cut.Cell = model.Cell{"payload_bytes": model.Number(512), "interval_ns": model.Number(2e6),
		"receive_buffer_bytes": model.Number(16384)}
	cut.State, cut.Why = model.Aborted, model.Reasons{{Code: model.Interrupted}}
	cut.Flows, cut.Repeat = []model.FlowResult{}, 1
	d.Results = append(results, cut)
	d.Complete = false
	return d
}

// ConditionSweep is a sweep of sizes and intervals over links that lose nothing, and over
// links that lose 5 %.
func ConditionSweep() model.Document {
	d := sweep([]int{512, 1472, 4096}, 3, 4, 3)
	const knob = "link-receiver.loss_ratio"
	d.Plan.Factors = append(d.Plan.Factors, model.Factor{Knob: knob,
		Levels: []model.Value{model.Number(0), model.Number(0.05)}})
	var clean []model.Result
	for i, r := range d.Results {
		d.Results[i].Cell[knob] = model.Number(0.05)
		r.Cell = model.Cell{knob: model.Number(0), "payload_bytes": r.Cell["payload_bytes"],
			"interval_ns": r.Cell["interval_ns"]}
		f := r.Flows[0]
		f.Received, f.Lost, f.LossRatio, f.Receivers = f.Attempted, 0, 0, append([]model.ReceiverShare{},
			f.Receivers...)
		f.Ledger.Lost, f.Ledger.Unattributed, f.Ledger.Lines = 0, 0, nil
		faster := math.Pow(0.95, float64(-max(1, f.Fragments)+1))
		f.GoodputBPS, f.ReceivePPS = f.GoodputBPS*faster, f.ReceivePPS*faster
		for j := range f.Receivers {
			one := &f.Receivers[j]
			one.Received, one.GoodputBPS = one.Attempted, one.GoodputBPS*faster
		}
		r.Flows = []model.FlowResult{f}
		clean = append(clean, r)
	}
	d.Results = append(clean, d.Results...)
	return d
}

// Star is one sender and receivers behind links that lose each IP packet with the same chance, and carry the rest.
type Star struct {
	Sizes      []int
	IntervalMS []float64 // between packets to one receiver; 0 sends as fast as the sender can
	Receivers  int
	Repeats    int
	Rate       unit.BitRate // of each link
	Loss       float64
	Spread     float64 // of the figures of receivers and trials
}

func sweep(sizes []int, intervals, receivers, repeats int) model.Document {
	s := Star{Sizes: sizes, Receivers: receivers, Repeats: repeats, Rate: 1e6, Loss: 0.05, Spread: 0.012}
	for i := range intervals {
		s.IntervalMS = append(s.IntervalMS, float64(i))
	}
	return s.Sweep()
}

// Sweep is a run that sends 1000 packets of each size at each interval to each receiver.
func (s Star) Sweep() model.Document {
	d := Base("lab:star", s.Sizes, s.Repeats, 10)
	var levels []model.Value
	for _, ms := range s.IntervalMS {
		levels = append(levels, model.Number(ms*1e6))
	}
	d.Plan.Command, d.Plan.Receivers = "sweep", s.Receivers
	d.Plan.Flows[0].Packets, d.Plan.Flows[0].To = 1000, "receivers"
	d.Plan.Factors = append(d.Plan.Factors, model.Factor{Knob: "interval_ns", Levels: levels})
	d.Plan.Links = []model.Link{{Node: "receiver", Rate: s.Rate, DelaySeconds: 0.04, JitterSeconds: 0.01,
		Correlation: 0.25, Distribution: "normal", LossRatio: s.Loss}}
	d.Lab = &model.LabFacts{Topology: "star", Nodes: []string{"sender", "hub", "receivers"},
		Links: []model.LabLink{{From: "hub", To: "receiver-1", More: s.Receivers - 1, Backend: model.BackendUser,
			Settings: d.Plan.Links[0]}}}
	d.Host[1].Node, d.Host[1].Name = "receivers", "lab"
	for repeat := range s.Repeats {
		for _, p := range s.Sizes {
			for i, level := range levels {
				r := Result(p, repeat, s.flow(p, s.IntervalMS[i], p*131+i*17+repeat))
				r.Cell["interval_ns"], r.Series = level, []model.Series{}
				d.Results = append(d.Results, r)
			}
		}
	}
	return d
}

// flow is one to all receivers, whose links carry headers of 42 B a packet, too.
func (s Star) flow(payload int, intervalMS float64, seed int) model.FlowResult {
	const packets = 1000
	link, receivers := float64(s.Rate), s.Receivers
	fragments := float64(max(1, model.Fragments(4, payload, 1500)))
	// packets a second that the sender manages
	each := min(3739, 3.8e9/8/float64(receivers)/(float64(payload)+42*fragments))
	if intervalMS > 0 {
		each = min(each, 1000/intervalMS)
	}
	arrive := math.Pow(1-s.Loss, fragments)
	// datagrams a second that the link lets through whole
	most := link / 8 / (float64(payload) + 42*fragments) / (1 - s.Loss) * arrive
	f := UDP("up", payload, each*float64(receivers), each*float64(receivers)*arrive, packets/each, 0)
	f.To, f.FrameBytes = "receivers", model.FrameBytes(model.UDP, 4, payload)
	f.Planned, f.Attempted, f.Accepted, f.Received = 0, 0, 0, 0
	f.ReceivePPS, f.GoodputBPS = 0, 0
	for i := range receivers {
		got := uint64(math.Round(packets * (arrive + s.Spread*noise(seed*7+i))))
		pps := min(each*arrive, most) * (1 - s.Spread*math.Abs(noise(seed+i*3)))
		share := model.ReceiverShare{Node: fmt.Sprintf("receiver%d", i+1), Attempted: packets, Received: got,
			GoodputBPS: pps * float64(payload) * 8}
		f.Receivers = append(f.Receivers, share)
		f.Attempted += share.Attempted
		f.Received += share.Received
		f.ReceivePPS += pps
		f.GoodputBPS += share.GoodputBPS
	}
	f.Planned, f.Accepted, f.Lost = f.Attempted, f.Attempted, f.Attempted-f.Received
	f.LossRatio = float64(f.Lost) / float64(f.Attempted)
	wait := 0.0 // in the queue before the link, at the median
	if each*arrive > most {
		wait = packets / 2 * (1/most - 1/each)
	}
	f.Delay = &model.Percentiles{Count: f.Received, Min: 40e6} // the queue fills evenly
	for _, q := range []struct {
		to *float64
		at float64
	}{{&f.Delay.P50, 1}, {&f.Delay.P90, 1.8}, {&f.Delay.P99, 1.98}, {&f.Delay.P999, 1.998}, {&f.Delay.Max,
		2}, {&f.Delay.Mean, 1}} {
		*q.to = (0.04+wait*q.at)*1e9 + (q.at-1)*23e6
	}
	f.JitterNS = 10e6
	f.Ledger = model.Ledger{Lost: f.Lost, Unattributed: f.Lost, Lines: []model.Line{},
		Checks: []model.Check{{Name: "balance", Held: true, Law: "balance", Counts: []uint64{f.Lost, f.Lost, 0}}}}
	cause := model.CauseLinkLoss
	if fragments > 1 {
		cause = model.CauseLinkFragment
	}
	Line(&f, model.LayerNetwork, "links to receivers", cause, 1, "exact-seq")
	return f
}
