package sample

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"pelt/model"
	"pelt/unit"
)

// router is a made-up router: what it carries and what that costs it.
type router struct {
	cores   int
	pps     map[string]float64 // by variant and direction, as "log up"; both share the mean
	bps     float64            // of its links, on the wire
	tcp     map[string]float64 // payload, bit/s
	seconds int
	lab     bool
}

// Bench is a home router of four MIPS cores between two hosts, without and with
// every packet logged. One trial lost sight of it for three seconds, one never
// saw it, one is not valid.
func Bench() model.Document {
	r := router{cores: 4, bps: 1e9, seconds: 10,
		pps: map[string]float64{"plain up": 148e3, "plain down": 136e3, "log up": 11.4e3, "log down": 10.9e3},
		tcp: map[string]float64{"plain up": 612e6, "plain down": 571e6, "log up": 88e6, "log down": 83e6}}
	d := Base("192.168.1.20:7358", []int{18}, 2, 10)
	d.Plan.DUT = "ssh://root@192.168.1.1"
	d.Plan.Variants = []model.Variant{{Name: "plain", Command: "ssh root@192.168.1.1 nft flush chain inet fw4 bench"},
		{Name: "log", Command: "ssh root@192.168.1.1 nft add rule inet fw4 bench log"}}
	d.Router = openWrt()
	var cells []model.Cell
	for _, v := range []string{"plain", "log"} {
		for _, direction := range []string{"up", "down"} {
			for _, frame := range []int{64, 256, 512, 1518} {
				cells = append(cells, BenchCell(frame, direction, v))
			}
			cells = append(cells, BenchCell(0, direction, v))
		}
		cells = append(cells, BenchCell(0, "both", v), LatencyCell(v))
	}
	r.run(&d, cells)
	lost, never, unfit := &d.Results[len(cells)+14], &d.Results[20], &d.Results[6]
	blind(lost, 6, 9, model.RouterGap{Why: model.GapLate, FromS: 6, ToS: 9})
	blind(never, 0, 10, model.RouterGap{Why: model.GapClosed,
		Of: fault("Connection to 192.168.1.1 closed by remote host")})
	never.Router.CPU, never.Router.Cores, never.Router.Samples, never.Router.CostRatio = nil, nil, 0, nil
	unfit.State, unfit.Why = model.Invalid, lateSender("down", model.SenderStarved, 97e3, 140e3)
	d.Warnings = model.Doubts{{Code: model.NotRestored, Name: "plain", Of: fault("no route to host")}}
	return d
}

// BenchLab is NAT in a lab of one machine with two cores.
func BenchLab() model.Document {
	r := router{cores: 2, bps: 10e9, seconds: 5, lab: true,
		pps: map[string]float64{"up": 412e3, "down": 398e3}, tcp: map[string]float64{"up": 7.9e9, "down": 7.6e9}}
	d := Base("lab:nat", []int{18}, 3, 5)
	d.Lab = &model.LabFacts{Topology: "nat", Nodes: []string{"sender", "router", "receiver"}}
	d.Router = &model.RouterFacts{Node: "router", Source: "lab:nat", System: "linux", Kernel: "6.12.9",
		CPU: "AMD EPYC 7763", Cores: 2, MemoryBytes: 4 << 30,
		Told: []model.RouterFact{fact(model.FactNoFlowtable)}}
	var cells []model.Cell
	for _, frame := range []int{64, 512, 1518, 0} {
		for _, direction := range []string{"up", "down", "both"} {
			cells = append(cells, BenchCell(frame, direction, ""))
		}
	}
	r.run(&d, append(cells, LatencyCell("")))
	return d
}

func openWrt() *model.RouterFacts {
	top := "Mem: 61340K used, 187412K free, 1204K shrd, 0K buff, 17240K cached\n" +
		"CPU:   0% usr   0% sys   0% nic  98% idle   0% io   0% irq   1% sirq\n" +
		"Load average: 0.04 0.03 0.00 1/71 4242\n" +
		"  PID  PPID USER     STAT   VSZ %VSZ %CPU COMMAND\n" +
		" 4240  4239 root     R     1316   1%   0% top -b -n1\n" +
		" 1381     1 root     S     3420   1%   0% /usr/sbin/hostapd -s -g\n"
	busy := "Mem: 62112K used, 186640K free, 1204K shrd, 0K buff, 17260K cached\n" +
		"CPU:   1% usr   2% sys   0% nic  66% idle   0% io   0% irq  29% sirq\n" +
		"Load average: 1.31 0.84 0.40 2/73 5120\n"
	return &model.RouterFacts{Node: "router", Source: "ssh://root@192.168.1.1", System: "openwrt",
		Model: "Xiaomi Mi Router 3G", Firmware: "OpenWrt 23.05.5 r24106-10cc5fcd00", Kernel: "5.15.167",
		CPU: "MIPS 1004Kc V2.15", Cores: 4, MemoryBytes: 250 << 20,
		Told: []model.RouterFact{
			fact(model.FactOffload, "by", "software", "state", "off", "name", "firewall.@defaults[0].flow_offloading"),
			fact(model.FactNoFlowtable), fact(model.FactSetting, "name", "eth0.qdisc", "value", "fq_codel"),
			fact(model.FactUntold, "name", "dmesg"),
		},
		Before: []model.Text{{Name: "top -b -n1", Text: top},
			{Name: "/proc/interrupts",
				Text: "           CPU0       CPU1       CPU2       CPU3\n" +
					" 22:          0    9120417          0          0  MIPS GIC  10  1e100000.ethernet\n"}},
		After: []model.Text{{Name: "top -b -n1", Text: busy}}}
}

// fact has words by pairs of name and word.
func fact(code string, words ...string) model.RouterFact {
	f := model.RouterFact{Code: code, Words: map[string]string{}}
	for pair := range slices.Chunk(words, 2) {
		f.Words[pair[0]] = pair[1]
	}
	return f
}

// BenchCell is one setting of a bench: a frame of UDP, or 0 for TCP.
func BenchCell(frame int, direction, variant string) model.Cell {
	c := model.Cell{"protocol": model.Word("tcp"), "direction": model.Word(direction)}
	if frame > 0 {
		c["protocol"], c["frame_bytes"] = model.Word("udp"), model.Number(float64(frame))
	}
	if variant != "" {
		c["variant"] = model.Word(variant)
	}
	return c
}

// LatencyCell asks for the delay of the idle path.
func LatencyCell(variant string) model.Cell {
	c := BenchCell(64, "up", variant)
	c["rate_pps"] = model.Number(1000)
	return c
}

// run fills a document with every cell's trials.
func (r router) run(d *model.Document, cells []model.Cell) {
	d.Plan.Command, d.Plan.Factors = "router", nil
	d.Plan.Flows = append(d.Plan.Flows, model.Flow{Name: "down", Protocol: model.UDP, From: model.Receiver,
		To: model.Sender, PayloadBytes: 18, Streams: 1})
	d.Plan.Design.Cells = cells
	for repeat := range d.Plan.Design.Repeats {
		for i, c := range cells {
			d.Results = append(d.Results, r.trial(c, repeat, i*10+repeat))
		}
	}
}

func (r router) trial(c model.Cell, repeat, seed int) model.Result {
	directions := []string{"up", "down"}
	if one := c["direction"].Text; one != "both" {
		directions = []string{one}
	}
	frame, variant := int(c["frame_bytes"].Number), c["variant"].Text
	payload := 1448
	if frame > 0 {
		payload = model.PayloadOf(4, frame)
	}
	var flows []model.FlowResult
	load := 0.0 // of what it can carry
	for i, way := range directions {
		key, n := way, 1+0.015*noise(seed+i*3)
		if variant != "" {
			key = variant + " " + way
		}
		most := r.pps[key] / float64(len(directions)) * n
		wire := r.bps / (float64(payload+46+20) * 8)
		sent, delay := 1.02*min(most*3, wire), 60e3+1.3e9/most*40
		got := min(most, wire*0.998)
		switch {
		case frame == 0:
			got = min(r.tcp[key]/float64(len(directions))*n, r.bps*0.941) / 8 / 1448
			sent = got
		case c["rate_pps"].Number > 0:
			got, sent, delay = 1000, 1000, 190e3
		}
		load += got / r.pps[key]
		if frame == 0 {
			load -= got / r.pps[key] * 0.25 // large segments cost it less
		}
		flows = append(flows, r.flow(way, frame, payload, sent, got, delay))
	}
	out := Result(payload, repeat, flows...)
	out.Cell = c
	if frame == 0 {
		out.Engine, out.EngineReason = "tcp", nil
		for i, s := range out.Series { // result takes the writes for packets
			if s.Metric == "goodput_bps" {
				for j := range s.Values {
					out.Series[i].Values[j] *= 1448. / (128 << 10)
				}
			}
		}
	}
	r.watch(&out, min(load, 1), variant == "log", seed)
	return out
}

func (r router) flow(way string, frame, payload int, sent, got, delay float64) model.FlowResult {
	f := UDP(way, payload, sent, got, float64(r.seconds), delay)
	if !r.lab && f.Delay != nil {
		f.Delay, f.RoundTrip = nil, f.Delay
	}
	if frame > 0 {
		f.FrameBytes = frame
		Line(&f, "network", "router", "softnet.dropped", 0.9, "bounded")
		Line(&f, "network", "", model.CauseElimination, 0.1, "inferred")
		return f
	}
	bytes := uint64(got * float64(r.seconds*1448))
	f.Protocol, f.PayloadBytes, f.FrameBytes, f.SendGap, f.Planned = model.TCP, 128<<10, 1518, nil, 0
	f.RoundTrip, f.Delay = quantiles(uint64(100*r.seconds), 4.1e6), nil
	f.TCP = &model.TCPFacts{Writes: bytes / (128 << 10), SentBytes: bytes, ReceivedBytes: bytes,
		SegmentsOut: f.Attempted, SegmentsIn: f.Received,
		Retransmits: uint64(13 * r.seconds), SegmentSizeBytes: 1448, Control: "cubic", RTTNanos: 4.1e6}
	f.Lost = f.TCP.Retransmits
	f.Received = f.Attempted - f.Lost
	f.LossRatio = float64(f.Lost) / float64(f.Attempted)
	f.Ledger = model.Ledger{Lost: f.Lost, Unattributed: f.Lost, Lines: []model.Line{}, Checks: []model.Check{}}
	f.GoodputBPS, f.SendGoodputBPS = got*1448*8, got*1448*8
	return f
}

// watch adds what the router was seen to do: one core does most of the work.
func (r router) watch(out *model.Result, load float64, logs bool, seed int) {
	cost, conn, most, dropped := 0.004+0.0005*noise(seed), uint64(18+seed%5), uint64(15616), uint64(0)
	for _, f := range out.Flows {
		for _, l := range f.Ledger.Lines {
			if l.Cause == "softnet.dropped" {
				dropped += l.Packets
			}
		}
	}
	hot := 61.0 + 14*load
	out.Router = &model.RouterWatch{Node: "router", Samples: r.seconds + 1, PeriodS: 1, CostRatio: &cost,
		SoftnetDropped: &dropped, Connections: &conn, ConnectionsMax: &most, TemperatureC: &hot}
	if !r.lab {
		out.Router.TemperatureC = nil
		clock := 880e6
		out.Router.ClockHz = &clock
	}
	all := model.CPUSplit{Core: -1}
	for core := range r.cores {
		share := 0.11
		if core == 1 || r.lab {
			share = 1
		}
		values := map[string][]float64{}
		var mean model.CPUSplit
		mean.Core = core
		for i := range r.seconds {
			s := splitOf(load*share, logs, r.lab, seed*100+core*17+i)
			for _, p := range parts(&s) {
				values[p.metric] = append(values[p.metric], *p.value)
			}
			addSplit(&mean, s, 1/float64(r.seconds))
		}
		out.Router.Cores = append(out.Router.Cores, mean)
		addSplit(&all, mean, 1/float64(r.cores))
		for _, p := range parts(&mean) {
			out.Series = append(out.Series, model.Series{Metric: p.metric, At: "router",
				Core: &out.Router.Cores[core].Core, StepSeconds: 1, Values: values[p.metric]})
		}
	}
	out.Router.CPU = &all
	var busy, own []float64
	for i := range r.seconds {
		busy = append(busy, min(1, all.Busy()*(1+0.02*noise(seed+i))))
		own = append(own, 0.55*load*(1+0.02*noise(seed+i)))
	}
	if r.lab {
		out.Series = append(out.Series, model.Series{Metric: "cpu_thread_ratio", At: "router", StepSeconds: 1,
			Values: own})
	}
	out.Series = append(out.Series, model.Series{Metric: "cpu_busy_ratio", At: "router", StepSeconds: 1, Values: busy})
}

// splitOf is a second of a core with a load of 0..1.
func splitOf(load float64, logs, generators bool, seed int) (s model.CPUSplit) {
	n := 1 + 0.03*noise(seed)
	s.Softirq, s.System, s.User, s.IRQ = 0.96*load*n, 0.012+0.01*load, 0.006, 0.01*load
	switch {
	case logs: // the kernel's ring, and the program that reads it
		s.Softirq, s.System, s.User = 0.58*load*n, 0.05+0.21*load*n, 0.03+0.13*load*n
	case generators:
		s.Softirq, s.System, s.User = 0.47*load*n, 0.03+0.41*load, 0.01+0.06*load
	}
	sum := s.Softirq + s.System + s.User + s.IRQ
	if sum > 1 {
		s.Softirq, s.System, s.User, s.IRQ = s.Softirq/sum, s.System/sum, s.User/sum, s.IRQ/sum
	}
	s.Idle = math.Max(0, 1-s.Softirq-s.System-s.User-s.IRQ)
	return s
}

type part struct {
	metric string
	value  *float64
}

func parts(s *model.CPUSplit) []part {
	return []part{{"cpu_user_ratio", &s.User}, {"cpu_system_ratio", &s.System}, {"cpu_nice_ratio", &s.Nice},
		{"cpu_idle_ratio", &s.Idle},
		{"cpu_iowait_ratio", &s.IOWait}, {"cpu_irq_ratio", &s.IRQ}, {"cpu_softirq_ratio",
			&s.Softirq}, {"cpu_steal_ratio", &s.Steal}}
}

func addSplit(to *model.CPUSplit, s model.CPUSplit, weight float64) {
	from := parts(&s)
	for i, p := range parts(to) {
		*p.value += *from[i].value * weight
	}
}

// blind takes the seconds from until to out of what was seen of the router.
func blind(r *model.Result, from, to int, why model.RouterGap) {
	for i := range r.Series {
		if s := &r.Series[i]; s.At == "router" {
			for j := from; j < min(to, len(s.Values)); j++ {
				s.Values[j] = math.NaN()
			}
		}
	}
	r.Router.Samples -= to - from
	r.Router.Gaps = append(r.Router.Gaps, why)
}

// BenchHostile is a bench whose router says what would break out of a report.
func BenchHostile() model.Document {
	d := Bench()
	evil := "</pre><script>alert(1)</script>\x1b[31m\u202e" + fmt.Sprint(unit.Rate{})
	d.Results = d.Results[:24]
	d.Plan.Variants[0].Name = evil
	f := d.Router
	f.Model, f.Firmware, f.Source = evil, evil, evil
	f.Told = []model.RouterFact{fact(evil), fact(model.FactSetting), fact(model.FactFlowtable, "name", evil),
		{Code: model.FactUntold, Of: fault(evil)}}
	f.Before = []model.Text{{Name: evil, Text: evil + "\n" + evil}}
	for i := range d.Results {
		r := &d.Results[i]
		r.Cell = maps.Clone(r.Cell)
		r.Cell["variant"] = model.Word(evil)
		r.Router.Gaps = append(r.Router.Gaps, model.RouterGap{Why: model.GapClosed, Of: fault(evil)},
			model.RouterGap{Why: evil})
	}
	r := d.Results[0].Router
	nan, huge := math.NaN(), math.Inf(1)
	r.CostRatio, r.ClockHz, r.CPU.Softirq, r.CPU.Idle = &nan, &huge, nan, -3
	d.Results[1].Router = nil
	d.Results[2].Series[len(d.Results[2].Series)-2].StepSeconds = 0
	d.Results[3].Router.Cores = nil
	d.Results[4].Flows = nil
	return d
}
