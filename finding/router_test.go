package finding

import (
	"maps"
	"slices"
	"testing"

	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// bench is a made bench of a router with links of 1 Gbit/s.
type bench struct {
	cells   []model.Cell
	repeats int
	lab     bool
	fill    func(c model.Cell, r *model.Result)
}

func (b bench) doc() *model.Document {
	d := &model.Document{ID: "abc", Plan: model.Plan{Command: "router", Target: "10.0.0.2",
		DUT:    "ssh://root@10.0.0.1",
		Design: model.Design{Cells: b.cells}, Flows: []model.Flow{{Name: "up"}, {Name: "down"}}},
		Host: []model.Host{{Node: model.Sender, LinkSpeedBits: 1e9}, {Node: model.Receiver, LinkSpeedBits: 1e9}}}
	if b.lab {
		d.Plan.Target, d.Plan.DUT, d.Lab = "lab:nat", model.LabDUT, &model.LabFacts{Topology: "nat", KeptAwake: true}
	}
	for _, c := range b.cells {
		v := model.Variant{Name: c["variant"].Text}
		if v.Name != "" && !slices.ContainsFunc(d.Plan.Variants,
			func(o model.Variant) bool { return o.Name == v.Name }) {
			d.Plan.Variants = append(d.Plan.Variants, v)
		}
	}
	for repeat := range max(b.repeats, 3) {
		for _, c := range b.cells {
			r := model.Result{Cell: c, Repeat: repeat, State: model.Valid, Router: &model.RouterWatch{Node: "router",
				Samples: 3}}
			b.fill(c, &r)
			d.Results = append(d.Results, r)
		}
	}
	return d
}

func benchCell(frame int, way string, more ...string) model.Cell {
	c := model.Cell{"protocol": model.Word("udp"), "direction": model.Word(way),
		"frame_bytes": model.Number(float64(frame))}
	if frame == 0 {
		c["protocol"] = model.Word("tcp")
		delete(c, "frame_bytes")
	}
	if len(more) > 0 {
		c["variant"] = model.Word(more[0])
	}
	return c
}

// idleCell asks for the delay of the idle path.
func idleCell(c model.Cell) model.Cell {
	c = maps.Clone(c)
	c["rate_pps"] = model.Number(1000)
	return c
}

// udpFlow lost a share of what was sent inside the router.
func udpFlow(c model.Cell, pps, loss float64) model.FlowResult {
	frame := int(c["frame_bytes"].Number)
	sent := uint64(3 * pps / (1 - loss))
	f := model.FlowResult{Name: c["direction"].Text, Protocol: model.UDP, From: model.Sender, To: model.Receiver,
		FrameBytes:   frame,
		PayloadBytes: frame - 46, DurationS: 3, Attempted: sent, Received: uint64(3 * pps),
		Lost:    sent - uint64(3*pps),
		SendPPS: pps / (1 - loss), ReceivePPS: pps, GoodputBPS: pps * 8 * float64(frame-46), LossRatio: loss}
	if f.Ledger.Lost = f.Lost; f.Lost > 0 {
		f.Ledger.Lines = []model.Line{{Layer: model.LayerNetwork, Host: "router", Cause: "CPU_BACKLOG",
			Packets: f.Lost}}
	}
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
		docs[name] = bench{cells: []model.Cell{benchCell(frame, "up")}, lab: lab,
			fill: func(x model.Cell, r *model.Result) {
				r.Flows = []model.FlowResult{udpFlow(x, pps, loss)}
				fill(r)
			}}.doc()
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
		cells = append(cells, benchCell(64, "up", v), benchCell(0, "up", v), idleCell(benchCell(64, "up", v)))
	}
	docs["a small bench"] = bench{cells: cells, fill: func(c model.Cell, r *model.Result) {
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
	}}.doc()
	rate := benchCell(0, "up")
	rate["connections"] = model.Word(model.ConnectionRate)
	docs["connections alone"] = bench{cells: []model.Cell{rate}, fill: func(c model.Cell, r *model.Result) {
		r.Flows = []model.FlowResult{{Name: "up", Protocol: model.TCP, ReceivePPS: 12e3, DurationS: 3, Attempted: 36e3,
			TCP: &model.TCPFacts{}, Connections: &model.ConnectionFacts{Mode: model.ConnectionRate,
				SetUp: &model.Percentiles{Count: 9, P50: 2e5}}}}
		most, now := uint64(16384), uint64(16000)
		r.Router.Connections, r.Router.ConnectionsMax = &now, &most
	}}.doc()
	return examplesOf(docs, slices.Concat([]Rule{routerRule, routerWatch, repeatsRule("goodput_bps")}, generalRules())...)
}

// Why a router told nothing of itself is said in the reader's language, and as it is stored by older versions.
func TestUntoldFacts(t *testing.T) {
	why := model.Reasons{model.NewReason(model.RouterSilent, "within_s", 30.0)}
	for want, c := range map[string]struct {
		l words.Language
		f model.RouterFact
	}{
		"not all: the router did not answer within 30.0 s": {words.English,
			model.RouterFact{Code: model.FactUntold, Of: why}},
		"不完整：路由器 30.0 s 内没有应答": {words.Chinese, model.RouterFact{Code: model.FactUntold, Of: why}},
		"not all: it is gone": {words.English, model.RouterFact{Code: model.FactUntold,
			Words: map[string]string{"why": "it is gone"}}},
	} {
		if got := Told(c.l, c.f).Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
