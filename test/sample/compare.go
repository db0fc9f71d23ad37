package sample

import (
	"maps"
	"time"

	"pelt/model"
)

// Variants is a router's bench of several variants: two frame sizes up, both ways at
// once, TCP, and the row for latency; each five times.
func Variants() model.Document { return variants("20261121-100000-7f3a", "lab:nat", 0, 5) }

// Routers are two runs of another router each, 35 minutes apart.
func Routers() []model.Document {
	a, b := variants("20261121-100000-7f3a", "192.168.2.5", 0, 5), variants("20261121-103500-55b1", "192.168.3.5",
		35*time.Minute, 5)
	for i, d := range []*model.Document{&a, &b} {
		var kept []model.Result
		for _, r := range d.Results {
			if r.Cell["variant"].Text != []string{"plain", "log"}[i] {
				continue
			}
			delete(r.Cell, "variant")
			kept = append(kept, r)
		}
		d.Results, d.Plan.Variants, d.Plan.Design.Cells = kept, nil, d.Plan.Design.Cells[:len(d.Plan.Design.Cells)/4]
		for _, c := range d.Plan.Design.Cells {
			delete(c, "variant")
		}
		d.Plan.DUT = []string{"ssh://root@192.168.1.1", "ssh://root@192.168.8.1"}[i]
		d.Router.Source, d.Router.Model, d.Router.Firmware = d.Plan.DUT, []string{"Xiaomi Mi Router 4A",
			"TP-Link WR841N"}[i], []string{"OpenWrt 23.05.5", "OpenWrt 19.07.10"}[i]
	}
	return []model.Document{a, b}
}

func variants(id, target string, later time.Duration, repeats int) model.Document {
	d := Base(target, []int{18}, repeats, 3)
	d.ID, d.Started, d.Plan.Command = id, start().Add(later), "router"
	d.Plan.Factors = nil
	d.Router = &model.RouterFacts{Node: "router", Source: "the lab", System: "linux", Kernel: "6.12.9",
		CPU: "MIPS 24Kc", Cores: 2, MemoryBytes: 128 << 20, Told: []model.RouterFact{
			fact(model.FactOffload, "by", "software", "state", "on", "name", "firewall.@defaults[0].flow_offloading"),
			fact(model.FactNoFlowtable)}}
	// What each variant carries at most, in packets and bits a second, and what a packet takes of the processors.
	kinds := []struct {
		name           string
		pps, busy, per float64
	}{{"plain", 673e3, 0.9, 1}, {"log", 148e3, 0.99, 4}, {"fast", 1150e3, 0.06, 0.04}, {"queue", 671e3, 0.9, 1}}
	for _, k := range kinds {
		d.Plan.Variants = append(d.Plan.Variants, model.Variant{Name: k.name})
	}
	for repeat := range repeats {
		for i, k := range kinds {
			for j, c := range []model.Cell{
				{"protocol": model.Word("udp"), "frame_bytes": model.Number(64), "direction": model.Word("up")},
				{"protocol": model.Word("udp"), "frame_bytes": model.Number(1518), "direction": model.Word("up")},
				{"protocol": model.Word("udp"), "frame_bytes": model.Number(64), "direction": model.Word("both")},
				{"protocol": model.Word("tcp"), "direction": model.Word("down")},
				{"protocol": model.Word("udp"), "frame_bytes": model.Number(64), "rate_pps": model.Number(1000),
					"direction": model.Word("up")},
			} {
				c["variant"] = model.Word(k.name)
				if repeat == 0 {
					d.Plan.Design.Cells = append(d.Plan.Design.Cells, maps.Clone(c))
				}
				n := func(salt int) float64 { return 1 + 0.012*noise(repeat*101+i*17+j*7+salt+int(later.Minutes())) }
				most := k.pps * n(1)
				one := func(name string, frame int, share float64) model.FlowResult {
					f := UDP(name, frame-46, min(1.6e6, 1.02*carried(frame-46, 1e9, 1e9))*share,
						carried(frame-46, most, 0.995e9*(1+0.0002*noise(repeat*3+i)))*share, 3, 180e3*k.per*n(3))
					f.FrameBytes = frame
					return f
				}
				var flows []model.FlowResult
				busy := k.busy
				switch {
				case c["direction"].Text == "both":
					flows = []model.FlowResult{one("up", 64, 0.52), one("down", 64, 0.48)}
				case c["protocol"].Text == "tcp":
					f := UDP("down", 1448, 81e3, 81e3, 3, 0)
					f.Protocol, f.Lost, f.LossRatio = model.TCP, 12, 12.0/243e3
					f.GoodputBPS = 938e6 * min(1, k.pps/200e3) * n(4)
					f.TCP = &model.TCPFacts{SegmentSizeBytes: 1448}
					flows, busy = []model.FlowResult{f}, min(1, k.per*0.11)
				case c["rate_pps"].Number > 0:
					f := UDP("up", 18, 1000, 1000, 3, 61e3*(0.7+0.3*k.per)*n(5))
					flows, busy = []model.FlowResult{f}, 0.02*k.per
				case c["frame_bytes"].Number == 1518:
					flows, busy = []model.FlowResult{one("up", 1518, 1)}, min(1, k.per*0.12)
				default:
					flows = []model.FlowResult{one("up", 64, 1)}
				}
				r := Result(int(c["frame_bytes"].Number), repeat, flows...)
				r.Cell, r.Started = c, d.Started.Add(time.Duration(len(d.Results))*4*time.Second)
				busy = min(0.995, busy*n(2))
				r.Router = &model.RouterWatch{Node: "router", Samples: 3, PeriodS: 1,
					CPU: &model.CPUSplit{Core: -1, Softirq: busy * 0.88, System: busy * 0.12, Idle: 1 - busy}}
				d.Results = append(d.Results, r)
			}
		}
	}
	d.Warnings = model.Doubts{model.NewReason(model.OtherHosts, "node", "receiver", "was", "desk",
		"was_kernel", "6.12.0", "was_cpu", "AMD EPYC", "is", "desk", "is_kernel", "6.1.0", "is_cpu", "AMD EPYC")}
	last := &d.Results[len(d.Results)-1]
	last.State, last.Why = model.Invalid, lateSender("up", model.SenderTimerLate, 91e3, 100e3)
	return d
}
