package analysis

import (
	"math"
	"strings"
	"testing"

	"pelt/model"
)

// benchDoc is a bench of one real router with a link of 1 Gbit/s, two repeats of
// each cell, whose trials fill makes.
func benchDoc(target string, cells []model.Cell, fill func(c model.Cell, r *model.Result)) model.Document {
	doc := model.Document{
		Plan: model.Plan{Command: "router", Target: target, Design: model.Design{Kind: "list", Repeats: 2, Cells: cells}, Flows: []model.Flow{{Name: "up"}, {Name: "down"}}},
		Host: []model.Host{{Node: model.Sender, LinkSpeedBits: 1e9}, {Node: model.Receiver, LinkSpeedBits: 1e9}},
	}
	for repeat := range 2 {
		for _, c := range cells {
			r := model.Result{Cell: c, Repeat: repeat, State: model.Valid, Engine: "udp", Router: &model.RouterWatch{Node: "router", Samples: 3}}
			fill(c, &r)
			doc.Results = append(doc.Results, r)
		}
	}
	return doc
}

func udpCell(frame int, direction string) model.Cell {
	return model.Cell{"protocol": model.Word("udp"), "frame_bytes": model.Number(float64(frame)), "direction": model.Word(direction)}
}

// carried is a flow of UDP that lost a share of what was sent inside the router.
func carried(c model.Cell, pps, loss float64) model.FlowResult {
	frame := int(c["frame_bytes"].Number)
	sent := uint64(3 * pps / (1 - loss))
	lost := sent - uint64(3*pps)
	f := model.FlowResult{Name: c["direction"].Text, Protocol: model.UDP, To: model.Receiver, FrameBytes: frame, PayloadBytes: frame - 46, DurationS: 3,
		Attempted: sent, Received: uint64(3 * pps), Lost: lost, ReceivePPS: pps, GoodputBPS: pps * 8 * float64(frame-46), LossRatio: loss,
		Ledger: model.Ledger{Lost: lost}}
	if lost > 0 {
		f.Ledger.Lines = []model.Line{{Layer: "network", Host: "router", Cause: "CPU_BACKLOG", Packets: lost, Confidence: "bounded"}}
	}
	return f
}

// halfBusy gives the watch two cores, of which the second has the softirq share.
func halfBusy(w *model.RouterWatch, softirq float64) {
	w.Cores = []model.CPUSplit{{Core: 0, Idle: .9, System: .1}, {Core: 1, Softirq: softirq, Idle: 1 - softirq}}
	w.CPU = &model.CPUSplit{Core: -1, Softirq: softirq / 2, System: .05, Idle: 1 - softirq/2 - .05}
}

func TestRouterLimits(t *testing.T) {
	for name, c := range map[string]struct {
		target    string
		pps, loss float64
		frame     int
		fill      func(*model.Result)
		kind      string
		says      string
	}{
		"a full core": {"10.0.0.2", 148e3, .5, 64, func(r *model.Result) { halfBusy(r.Router, 1) }, KindRouterCPU,
			"CPU-bound: LAN to WAN 64 B 148 kpps: core 1 is 100 % busy, 100 % softirq."},
		"a full core, another one in each trial": {"10.0.0.2", 148e3, .5, 64, func(r *model.Result) {
			halfBusy(r.Router, 1)
			if r.Repeat == 1 {
				r.Router.Cores[0].Core, r.Router.Cores[1].Core = 1, 0
			}
		}, KindRouterCPU, "CPU-bound: LAN to WAN 64 B 148 kpps: a core is 100 % busy, 100 % softirq."},
		"a full link, by one core of many": {"10.0.0.2", 81270, 0, 1518, func(r *model.Result) {
			r.Router.CPU = &model.CPUSplit{Core: -1, Idle: .95, Softirq: .05}
			for i := range 16 {
				r.Router.Cores = append(r.Router.Cores, model.CPUSplit{Core: i, Idle: 1})
			}
			r.Router.Cores[3] = model.CPUSplit{Core: 3, Softirq: .8, Idle: .2}
		}, KindRouterLink, "Link-bound: LAN to WAN 1518 B 957 Mbit/s, CPU 95 % idle."},
		"a full link": {"10.0.0.2", 81270, .01, 1518, func(r *model.Result) { halfBusy(r.Router, .6) }, KindRouterLink,
			"Link-bound: LAN to WAN 1518 B 957 Mbit/s, CPU 65 % idle."},
		"a full link past the processors": {"10.0.0.2", 81270, 0, 1518, func(r *model.Result) {
			r.Router.CPU = &model.CPUSplit{Core: -1, Idle: .98, System: .02}
			r.Router.Cores = []model.CPUSplit{{Idle: .98, System: .02}}
		}, KindRouterOffload, "Offloaded: LAN to WAN 1518 B 957 Mbit/s, CPU 98 % idle."},
		"the kernel forwarded none": {"lab:fast", 900e3, 0, 64, func(r *model.Result) {
			ratio := .4
			r.Router.ThreadRatio = &ratio
			r.Counters = []model.Counter{{Host: "router", Name: "Ip.ForwDatagrams", Measure: 27000}}
		}, KindRouterOffload, "Offloaded: LAN to WAN 64 B 900 kpps: the router's kernel forwarded 1.0 % of the packets itself; its thread took 40 % of a core."},
		"a lab's thread": {"lab:nat", 505e3, .6, 64, func(r *model.Result) {
			ratio := .99
			r.Router.ThreadRatio = &ratio
			halfBusy(r.Router, 1)
			r.Counters = []model.Counter{{Host: "router", Name: "Ip.ForwDatagrams", Measure: 1515000}}
		}, KindRouterCPU, "CPU-bound: LAN to WAN 64 B 505 kpps: the router's own thread took 99 % of a core."},
		"a lab's thread that shared its core": {"lab:fast", 1.7e6, .3, 64, func(r *model.Result) {
			ratio := .75
			r.Router.ThreadRatio = &ratio
			r.Flows[0].Ledger.Lines[0].Cause = "ring-full"
			r.Counters = []model.Counter{{Host: "router", Name: "Ip.ForwDatagrams", Measure: 12}}
		}, KindRouterCPU, "CPU-bound: LAN to WAN 64 B 1.70 Mpps: the router's own thread took 75 % of a core, which other work on this machine shared, in its fast path."},
		"a lab's cores are everybody's": {"lab:nat", 100e3, .5, 64, func(r *model.Result) { halfBusy(r.Router, 1) }, KindRouterUnknown,
			"Limited by neither the router's processors nor a link that is known: LAN to WAN 64 B 100 kpps."},
		"a full sender": {"10.0.0.2", 300e3, 0, 64, func(r *model.Result) {
			halfBusy(r.Router, .5)
			r.Flows[0].SenderCPU.ThreadRatio = .99
		}, KindSenderLimited, "Limited by the sender, so the router may carry more: LAN to WAN 64 B 300 kpps, CPU 70 % idle."},
		"a full receiver": {"10.0.0.2", 300e3, .2, 64, func(r *model.Result) {
			halfBusy(r.Router, .5)
			r.Flows[0].Ledger.Lines[0] = model.Line{Layer: "receiver-buffer", Host: model.Receiver, Packets: r.Flows[0].Lost}
		}, KindReceiverLimited, "Limited by the receiver"},
		"nothing known": {"10.0.0.2", 300e3, .2, 64, func(*model.Result) {}, KindRouterUnknown, "Limited by neither"},
	} {
		t.Run(name, func(t *testing.T) {
			cell := udpCell(c.frame, "up")
			doc := benchDoc(c.target, []model.Cell{cell}, func(x model.Cell, r *model.Result) {
				r.Flows = []model.FlowResult{carried(x, c.pps, c.loss)}
				c.fill(r)
			})
			var found []string
			for _, f := range Analyze(doc) {
				found = append(found, f.Kind+": "+f.Text)
				if f.Kind == c.kind && strings.Contains(f.Text, c.says) {
					return
				}
			}
			t.Errorf("no %s that says %q in:\n%s", c.kind, c.says, strings.Join(found, "\n"))
		})
	}
}

// What two sizes cost tells what others would.
func TestRouterSizes(t *testing.T) {
	cost := func(frame float64) float64 { return 5e-6 + 2e-9*frame }
	cells := []model.Cell{udpCell(64, "up"), udpCell(512, "up")}
	doc := benchDoc("10.0.0.2", cells, func(c model.Cell, r *model.Result) {
		r.Flows = []model.FlowResult{carried(c, 1/cost(c["frame_bytes"].Number), .3)}
		halfBusy(r.Router, 1)
	})
	for _, f := range Analyze(doc) {
		if f.Kind != KindRouterSizes {
			continue
		}
		for frame, want := range map[string]float64{"up_256_frame_bytes_pps": 1 / cost(256), "up_1518_frame_bytes_pps": 1e9 / 8 / 1538} {
			if got := f.Values[frame]; math.Abs(got/want-1) > 1e-6 {
				t.Errorf("%s: got %v, want %v (%s)", frame, got, want, f.Text)
			}
		}
		if !strings.Contains(f.Text, "1518 B 81.3 kpps (957 Mbit/s, the link)") || !strings.Contains(f.Text, "from 5 µs a packet and 2 ns a byte") {
			t.Errorf("says %q", f.Text)
		}
		return
	}
	t.Error("nothing was foretold")
}

// Of one size it is not known what a byte takes.
func TestRouterSizesOfOne(t *testing.T) {
	doc := benchDoc("10.0.0.2", []model.Cell{udpCell(512, "up")}, func(c model.Cell, r *model.Result) {
		r.Flows = []model.FlowResult{carried(c, 100e3, .3)}
		halfBusy(r.Router, 1)
	})
	for _, f := range Analyze(doc) {
		if f.Kind == KindRouterSizes {
			for _, want := range []string{"64 B at least 100 kpps", "1024 B at most 100 kpps"} {
				if !strings.Contains(f.Text, want) {
					t.Errorf("says %q, want %q in it", f.Text, want)
				}
			}
			return
		}
	}
	t.Error("nothing was foretold")
}

// Frames of IPv6 carry 20 B less, and none is as short as 64 B.
func TestRouterSizesOfIPv6(t *testing.T) {
	cells := []model.Cell{udpCell(128, "up"), udpCell(512, "up")}
	doc := benchDoc("10.0.0.2", cells, func(c model.Cell, r *model.Result) {
		f := carried(c, 100e3, .3)
		f.PayloadBytes -= 20
		f.GoodputBPS = f.ReceivePPS * 8 * float64(f.PayloadBytes)
		r.Flows = []model.FlowResult{f}
		halfBusy(r.Router, 1)
	})
	for _, f := range Analyze(doc) {
		if f.Kind != KindRouterSizes {
			continue
		}
		if strings.Contains(f.Text, " 64 B") || !strings.Contains(f.Text, ": 256 B 100 kpps (152 Mbit/s), 1024 B") {
			t.Errorf("says %q", f.Text)
		}
		return
	}
	t.Error("nothing was foretold")
}

// A router so busy taking packets in that none comes through tells nothing of other sizes.
func TestRouterThatPassesNothing(t *testing.T) {
	doc := benchDoc("10.0.0.2", []model.Cell{udpCell(64, "up")}, func(c model.Cell, r *model.Result) {
		f := carried(c, 0, 0)
		f.Attempted, f.Lost = 3e6, 3e6
		f.Ledger = model.Ledger{Lost: 3e6, Unattributed: 3e6}
		r.Flows = []model.FlowResult{f}
		halfBusy(r.Router, 1)
	})
	for _, f := range Analyze(doc) {
		if f.Kind == KindRouterSizes || strings.Contains(f.Text, "NaN") {
			t.Errorf("%s: %s", f.Kind, f.Text)
		}
	}
}

func TestRouterDelayAndVerdict(t *testing.T) {
	idle := udpCell(64, "up")
	idle["rate_pps"] = model.Number(1000)
	cells := []model.Cell{udpCell(64, "up"), {"protocol": model.Word("tcp"), "direction": model.Word("up")}, idle}
	doc := benchDoc("10.0.0.2", cells, func(c model.Cell, r *model.Result) {
		f := carried(c, 148e3, .5)
		f.RoundTrip = &model.Percentiles{P50: 12e6, P99: 20e6}
		if _, slow := c["rate_pps"]; slow {
			f = carried(c, 1000, 0)
			f.RoundTrip = &model.Percentiles{P50: 3e5, P99: 5e5}
		}
		if c["protocol"].Text == "tcp" {
			f = model.FlowResult{Name: "up", Protocol: model.TCP, GoodputBPS: 938e6, Attempted: 1000}
		}
		r.Flows = []model.FlowResult{f}
		halfBusy(r.Router, 1)
	})
	found := Analyze(doc)
	if want := "This router carries 148 kpps at 64 B and 938 Mbit/s of TCP, LAN to WAN. CPU-bound at 64 B: core 1 is 100 % busy, 100 % softirq."; found[0].Text != want {
		t.Errorf("verdict\n got %s\nwant %s", found[0].Text, want)
	}
	want := "LAN to WAN: round trip of the idle path 300 µs, 99 % within 500 µs; under full load at most 12 ms (64 B), 99 % within 20 ms."
	for _, f := range found {
		if f.Kind == KindRouterDelay && f.Text == want {
			return
		}
	}
	t.Errorf("no finding says %q: %+v", want, found)
}

func TestRouterDoubts(t *testing.T) {
	doc := benchDoc("10.0.0.2", []model.Cell{udpCell(64, "up")}, func(c model.Cell, r *model.Result) {
		r.Flows = []model.FlowResult{carried(c, 1000, 0)}
		r.Router.Gaps = []string{"not observed from t=1.0 s: the connection was closed"}
	})
	all := strings.Join(Warnings(doc), "\n")
	for _, want := range []string{"router not observed from t=1.0 s: the connection was closed (2 of 2 trials)", "processors are not known in 2 of 2 trials"} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning says %q:\n%s", want, all)
		}
	}
}
