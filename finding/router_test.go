package finding

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
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

func routerTexts(d *model.Document) string {
	return strings.Join(texts(All(table.Rows(d), slices.Concat([]Rule{Router, RouterWatch, Repeats("goodput_bps",
		3)}, Common())...)), "\n")
}

func TestRouterLimits(t *testing.T) {
	thread := func(ratio float64) *float64 { return &ratio }
	for _, c := range []struct {
		name      string
		lab       bool
		frame     int
		pps, loss float64
		fill      func(r *model.Result)
		want      string
	}{
		{"a full core", false, 64, 148e3, .5, func(r *model.Result) { busyCores(r.Router, 1) },
			"The router's processor was the limit for 64 B (100 % of its busiest core).\n" +
				"The router's busiest core at 64 B was core 1: 100 % busy, 100 % in softirq."},
		{"a full link", false, 1518, 81270, .01, func(r *model.Result) { busyCores(r.Router, .6) },
			"The link of 1 Gbit/s was the limit for 1518 B."},
		{"past the processor", false, 1518, 81270, 0, func(r *model.Result) { busyCores(r.Router, .02) },
			"The router's hardware forwarded 1518 B: its processor was at most 6 % busy."},
		{"past the kernel", true, 64, 900e3, 0, func(r *model.Result) {
			r.Counters = []model.Counter{{Host: "router", Name: "Ip.ForwDatagrams", Measure: 27000}}
		}, "The router's kernel forwarded 1 % of the packets of 64 B: the others took its fast path."},
		{"a lab's thread", true, 64, 505e3, .6, func(r *model.Result) { r.Router.ThreadRatio = thread(.99) },
			"The router's processor was the limit for 64 B (99 % of its busiest core)."},
		{"a lab's thread that shares its core", true, 64, 505e3, .6, func(r *model.Result) {
			r.Router.ThreadRatio, r.Flows[0].Ledger.Lines[0].Cause = thread(.75), "ring-full"
		}, "The router's processor was the limit for 64 B: it got 75 % of a core, and needed more."},
		{"a lab's cores are everybody's", true, 64, 100e3, .5, func(r *model.Result) { busyCores(r.Router, 1) },
			"The path was the limit for 64 B: most of the lost packets were lost on the way."},
		{"the sender", false, 64, 300e3, 0, func(r *model.Result) {
			busyCores(r.Router, .5)
			r.Flows[0].SenderCPU.ThreadRatio = .99
		}, "The router carries at least 300 kpps with 64 B frames, LAN to WAN.\n" +
			"The sender was the limit for 64 B: its thread was 99 % busy. The path may carry more."},
		{"the receiver", false, 64, 300e3, .2, func(r *model.Result) {
			r.Flows[0].Ledger.Lines[0] = model.Line{Layer: model.LayerReceiverBuffer, Host: model.Receiver,
				Packets: r.Flows[0].Lost}
		}, "The receiver was the limit for 64 B: most of the lost packets had arrived there. The path may carry more."},
		{"not watched", false, 64, 300e3, .2, func(*model.Result) {},
			"The router was not watched in 3 of 3 trials: what its processor did there is not known."},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := routerTexts(bench{cells: []model.Cell{benchCell(c.frame, "up")}, lab: c.lab,
				fill: func(x model.Cell, r *model.Result) {
					r.Flows = []model.FlowResult{udpFlow(x, c.pps, c.loss)}
					c.fill(r)
				}}.doc())
			if !strings.Contains(got, c.want) {
				t.Errorf("want\n%s\nin\n%s", c.want, got)
			}
		})
	}
}

// TestRouterHeldBack: a sender that its own queue held back does not show that the router carries the asked rate.
func TestRouterHeldBack(t *testing.T) {
	d := bench{cells: []model.Cell{benchCell(64, "up")}, fill: func(x model.Cell, r *model.Result) {
		f := udpFlow(x, 300e3, 0)
		f.Planned = f.Attempted * 2
		f.Ledger.Pacing = []model.PacingLine{{Cause: model.PacingBackpressure, Packets: f.Attempted}}
		r.Flows = []model.FlowResult{f}
	}}.doc()
	d.Plan.Flows[0].Rate = unit.PacketRate(600e3)
	if got, want := routerTexts(d), "The router carries at least 300 kpps with 64 B frames"; !strings.Contains(got, want) {
		t.Errorf("want\n%s\nin\n%s", want, got)
	}
}

// TestRouterVerdict reads all of a small bench: a flood shows where it saturates, and no more.
func TestRouterVerdict(t *testing.T) {
	var cells []model.Cell
	for _, v := range []string{"plain", "log"} {
		cells = append(cells, benchCell(64, "up", v), benchCell(0, "up", v), idleCell(benchCell(64, "up", v)))
	}
	got := routerTexts(bench{cells: cells, fill: func(c model.Cell, r *model.Result) {
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
	}}.doc())
	for _, want := range []string{
		"The router (plain) saturates at 148 kpps (148–149 kpps) with 64 B frames, LAN to WAN. TCP carries 940 Mbit/s.",
		"Goodput against plain, at 64 B: log -90 %.",
		"Everything was sent as fast as possible, so the highest rate without loss was not measured.",
		"Run it again with --rate 140kpps --frame 64 to measure below the limit.",
		"Round trip (plain): 300 µs idle, 12.0 ms at full load (64 B), 99 % within 20.0 ms.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want\n%s\nin\n%s", want, got)
		}
	}
}

// TestRouterConnections: a bench of connections alone has an answer, too.
func TestRouterConnections(t *testing.T) {
	c := benchCell(0, "up")
	c["connections"] = model.Word(model.ConnectionRate)
	got := routerTexts(bench{cells: []model.Cell{c}, fill: func(c model.Cell, r *model.Result) {
		r.Flows = []model.FlowResult{{Name: "up", Protocol: model.TCP, ReceivePPS: 12e3, DurationS: 3,
			Attempted: 36e3,
			TCP:       &model.TCPFacts{}, Connections: &model.ConnectionFacts{Mode: model.ConnectionRate,
				SetUp: &model.Percentiles{Count: 9, P50: 2e5}}}}
		most, now := uint64(16384), uint64(16000)
		r.Router.Connections, r.Router.ConnectionsMax = &now, &most
	}}.doc())
	for _, want := range []string{"12 000/s new TCP connections, set up in 200 µs; 0 failed in a trial.",
		"The router tracked 16 000 connections and has room for 16 384: it may have refused new ones."} {
		if !strings.Contains(got, want) {
			t.Errorf("want\n%s\nin\n%s", want, got)
		}
	}
}
