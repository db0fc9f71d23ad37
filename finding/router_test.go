package finding

import (
	"slices"
	"testing"

	"pelt/model"
	"pelt/test/sample"
	"pelt/unit"
	"pelt/words"
)

// bench is a run three times over of a router with links of 1 Gbit/s.
func bench(lab bool, cells []model.Cell, fill func(c model.Cell, r *model.Result)) *model.Document {
	d := sample.Base("10.0.0.2", []int{18}, 3, 3)
	d.ID, d.Plan.Command, d.Plan.DUT = "abc", "router", "ssh://root@10.0.0.1"
	d.Plan.Factors, d.Plan.Design.Cells = nil, cells
	d.Plan.Flows = append(d.Plan.Flows, model.Flow{Name: "down"})
	if lab {
		d.Plan.Target, d.Plan.DUT, d.Lab = "lab:nat", model.LabDUT, &model.LabFacts{Topology: "nat", KeptAwake: true}
	}
	for repeat := range 3 {
		for _, c := range cells {
			r := sample.Result(0, repeat)
			r.Cell, r.Engine, r.Router = c, "", &model.RouterWatch{Node: "router", Samples: 3}
			fill(c, &r)
			d.Results = append(d.Results, r)
		}
	}
	return &d
}

// udpFlow lost a share of what was sent inside the router.
func udpFlow(c model.Cell, pps, loss float64) model.FlowResult {
	frame := int(c["frame_bytes"].Number)
	f := sample.UDP(c["direction"].Text, frame-46, pps/(1-loss), pps, 3, 0)
	f.FrameBytes, f.Planned, f.SenderCPU, f.ReceiverCPU = frame, 0, model.CPU{}, model.CPU{}
	sample.Line(&f, model.LayerNetwork, "router", "CPU_BACKLOG", 1, "exact-seq")
	return f
}

// busyCores gives a watch two cores, of which the second has a share of softirq.
func busyCores(w *model.RouterWatch, softirq float64) {
	w.Cores = []model.CPUSplit{{Core: 0, Idle: .9, System: .1}, {Core: 1, Softirq: softirq, Idle: 1 - softirq}}
	w.CPU = &model.CPUSplit{Core: -1, Softirq: softirq / 2, System: .05, Idle: 1 - softirq/2 - .05}
}

func routerExamples(*testing.T) []example {
	docs := map[string]*model.Document{}
	one := func(name string, lab bool, frame int, pps, loss float64, fill func(r *model.Result)) *model.Document {
		docs[name] = bench(lab, []model.Cell{sample.BenchCell(frame, "up", "")}, func(x model.Cell, r *model.Result) {
			r.Flows = []model.FlowResult{udpFlow(x, pps, loss)}
			fill(r)
		})
		return docs[name]
	}
	busy := func(softirq float64) func(r *model.Result) {
		return func(r *model.Result) { busyCores(r.Router, softirq) }
	}
	thread := func(ratio float64, cause string) func(r *model.Result) {
		return func(r *model.Result) { r.Router.ThreadRatio, r.Flows[0].Ledger.Lines[0].Cause = &ratio, cause }
	}
	one("a full core", false, 64, 148e3, .5, busy(1))
	one("a full link", false, 1518, 81270, .01, busy(.6))
	one("past the processor", false, 1518, 81270, 0, busy(.02))
	one("past the kernel", true, 64, 900e3, 0, func(r *model.Result) {
		r.Counters = []model.Counter{{Host: "router", Name: "Ip.ForwDatagrams", Measure: 27000}}
	})
	one("a lab's thread", true, 64, 505e3, .6, thread(.99, "CPU_BACKLOG"))
	one("a lab's thread that shares its core", true, 64, 505e3, .6, thread(.75, "ring-full"))
	one("a lab's cores are everybody's", true, 64, 100e3, .5, busy(1))
	one("the sender", false, 64, 300e3, 0, func(r *model.Result) {
		busyCores(r.Router, .5)
		r.Flows[0].SenderCPU.ThreadRatio = .99
	})
	one("the receiver", false, 64, 300e3, .2, func(r *model.Result) {
		r.Flows[0].Ledger.Lines[0] = model.Line{Layer: model.LayerReceiverBuffer, Host: model.Receiver,
			Packets: r.Flows[0].Lost}
	})
	one("not watched", false, 64, 300e3, .2, func(*model.Result) {})
	// A sender that its own queue held back does not show that the router carries the asked rate.
	one("held back", false, 64, 300e3, 0, func(r *model.Result) {
		f := &r.Flows[0]
		f.Planned = f.Attempted * 2
		f.Ledger.Pacing = []model.PacingLine{{Cause: model.PacingBackpressure, Packets: f.Attempted}}
	}).Plan.Flows[0].Rate = unit.PacketRate(600e3)

	var cells []model.Cell
	for _, v := range []string{"plain", "log"} {
		cells = append(cells, sample.BenchCell(64, "up", v), sample.BenchCell(0, "up", v), sample.LatencyCell(v))
	}
	docs["a small bench"] = bench(false, cells, func(c model.Cell, r *model.Result) {
		n := (1 + 0.002*float64(r.Repeat)) * map[string]float64{"plain": 1, "log": 0.1}[c["variant"].Text]
		f := udpFlow(c, 148e3*n, .5)
		f.RoundTrip = &model.Percentiles{Count: 9, P50: 12e6, P99: 20e6}
		switch {
		case c["rate_pps"].Number > 0:
			f = udpFlow(c, 1000, 0)
			f.RoundTrip = &model.Percentiles{Count: 9, P50: 3e5, P99: 5e5}
		case c["protocol"].Text == "tcp":
			f = model.FlowResult{Name: "up", Protocol: model.TCP, GoodputBPS: 938e6 * n, DurationS: 3,
				Attempted: 1000, TCP: &model.TCPFacts{}}
		}
		r.Flows = []model.FlowResult{f}
		busyCores(r.Router, 1)
	})
	docs["a small bench"].Plan.Variants = []model.Variant{{Name: "plain"}, {Name: "log"}}
	rate := sample.BenchCell(0, "up", "")
	rate["connections"] = model.Word(model.ConnectionRate)
	docs["connections alone"] = bench(false, []model.Cell{rate}, func(_ model.Cell, r *model.Result) {
		r.Flows = []model.FlowResult{{Name: "up", Protocol: model.TCP, ReceivePPS: 12e3, DurationS: 3, Attempted: 36e3,
			TCP: &model.TCPFacts{}, Connections: &model.ConnectionFacts{Mode: model.ConnectionRate,
				SetUp: &model.Percentiles{Count: 9, P50: 2e5}}}}
		most, now := uint64(16384), uint64(16000)
		r.Router.Connections, r.Router.ConnectionsMax = &now, &most
	})
	return examplesOf(docs, slices.Concat([]Rule{routerRule, routerWatch, repeatsRule("goodput_bps")}, generalRules())...)
}

// Why a router told nothing of itself is said in the reader's language.
func TestUntoldFacts(t *testing.T) {
	why := model.Reasons{model.NewReason(model.RouterSilent, "within_s", 30.0)}
	for want, c := range map[string]struct {
		l words.Language
		f model.RouterFact
	}{
		"not all: the router did not answer within 30.0 s": {words.English,
			model.RouterFact{Code: model.FactUntold, Of: why}},
		"不完整：路由器 30.0 s 内没有应答": {words.Chinese, model.RouterFact{Code: model.FactUntold, Of: why}},
	} {
		if got := Told(c.l, c.f).Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
