package sample

import (
	"fmt"
	"math"

	"pelt/model"
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
	cut.State, cut.Why, cut.Flows, cut.Repeat = model.Aborted, model.Reasons{{Code: model.TrialCut,
		Text: "interrupted"}}, []model.FlowResult{}, 1
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
			f.Receivers[j].Received, f.Receivers[j].GoodputBPS = f.Receivers[j].Attempted, f.Receivers[j].GoodputBPS*faster
		}
		r.Flows = []model.FlowResult{f}
		clean = append(clean, r)
	}
	d.Results = append(clean, d.Results...)
	return d
}

func sweep(sizes []int, intervals, receivers, repeats int) model.Document {
	d := base("lab:star", sizes, repeats, 10)
	var levels []model.Value
	for i := range intervals {
		levels = append(levels, model.Number(float64(i)*1e6))
	}
	d.Plan.Command, d.Plan.Receivers = "sweep", receivers
	d.Plan.Flows[0].Packets, d.Plan.Flows[0].To = 1000, "receivers"
	d.Plan.Factors = append(d.Plan.Factors, model.Factor{Knob: "interval_ns", Levels: levels})
	d.Plan.Links = []model.Link{{Node: "receiver", Rate: 1e6, DelaySeconds: 0.04, JitterSeconds: 0.01,
		Correlation: 0.25, Distribution: "normal", LossRatio: 0.05}}
	d.Lab = &model.LabFacts{Topology: "star", Nodes: []string{"sender", "hub", "receivers"},
		Links: []model.LabLink{{From: "hub", To: "receiver-1", More: receivers - 1, Backend: model.BackendUser,
			Settings: d.Plan.Links[0]}}}
	d.Host[1].Node, d.Host[1].Name = "receivers", "lab"
	for repeat := range repeats {
		for _, p := range sizes {
			for i := range intervals {
				r := result(p, repeat, toMany(p, i, receivers, p*131+i*17+repeat))
				r.Cell["interval_ns"] = model.Number(float64(i) * 1e6)
				r.Series = []model.Series{}
				d.Results = append(d.Results, r)
			}
		}
	}
	return d
}

// toMany is a flow to many receivers: their links carry 1 Mbit/s each, headers
// of 42 B a packet included, and lose 5 % of the fragments.
func toMany(payload, intervalMillis, receivers, seed int) model.FlowResult {
	const link, loss, packets = 1e6, 0.05, 1000
	fragments := float64(max(1, model.Fragments(4, payload, 1500)))
	// packets a second that the sender manages
	each := min(3739, 3.8e9/8/float64(receivers)/(float64(payload)+42*fragments))
	if intervalMillis > 0 {
		each = min(each, 1000/float64(intervalMillis))
	}
	arrive := math.Pow(1-loss, fragments)
	// datagrams a second that the link lets through whole
	most := link / 8 / (float64(payload) + 42*fragments) / (1 - loss) * arrive
	f := udp("up", payload, each*float64(receivers), each*float64(receivers)*arrive, packets/each, 0)
	f.To, f.FrameBytes = "receivers", model.FrameBytes(model.UDP, 4, payload)
	f.Planned, f.Attempted, f.Accepted, f.Received = 0, 0, 0, 0
	f.ReceivePPS, f.GoodputBPS = 0, 0
	for i := range receivers {
		got := uint64(math.Round(packets * (arrive + 0.012*noise(seed*7+i))))
		pps := min(each*arrive, most) * (1 - 0.012*math.Abs(noise(seed+i*3)))
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
	line(&f, model.LayerNetwork, "links to receivers", cause, 1, "exact-seq")
	return f
}
