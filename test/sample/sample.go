// Package sample builds realistic documents for the tests of the reports.
//
// Nothing comes in, a model.Document goes out, the same on every call. No
// program imports it, only tests do.
package sample

import (
	"math"
	"time"

	"pelt/model"
	"pelt/unit"
)

// Named is one document and what it shows.
type Named struct {
	Name string
	Doc  model.Document
}

// All returns every document, the tamest first.
func All() []Named {
	return []Named{
		{"router", Router()}, {"single", Single()}, {"both", Both()}, {"tcp", TCP()}, {"loss", Loss()},
		{"invalid", Invalid()}, {"nothing", Nothing()}, {"deadstreams", DeadStreams()}, {"aborted",
			Aborted()}, {"roundtrip", RoundTrip()},
		{"streams", Streams()}, {"ledger", Ledger()}, {"unwatched", Unwatched()}, {"chain", Chain()}, {"rates",
			Rates()}, {"paced", Paced()}, {"sweep", SmallSweep()}, {"bench", Bench()}, {"benchlab", BenchLab()},
		{"benchhostile", BenchHostile()}, {"cc", Controls()}, {"ccmix", ControlMix()},
		{"cchostile", ControlHostile()}, {"soak", Soak()}, {"soaklong", LongSoak()}, {"soakcut", CutSoak()},
		{"soakhostile", SoakHostile()}, {"latency", Latency()}, {"mesh", Mesh()}, {"meshcycles", MeshCycles()},
		{"search", Search()}, {"searchrandom", RandomLoss()}, {"nasty", Nasty()}, {"numbers", Numbers()},
		{"iperf3", Iperf3()}, {"iperf3cut", Iperf3Cut()}, {"empty", Empty()}, {"zero", model.Document{}},
	}
}

func start() time.Time { return time.Date(2026, 11, 14, 18, 30, 0, 0, time.UTC) }

// noise is a repeatable value in -1..1: figures of real runs never repeat.
func noise(n int) float64 {
	return math.Mod(math.Abs(math.Sin(float64(n)*12.9898)*43758.5453), 1)*2 - 1
}

// Base is a run of all payloads between two hosts, without any trial yet.
func Base(target string, payloads []int, repeats int, measure float64) model.Document {
	var levels []model.Value
	for _, p := range payloads {
		levels = append(levels, model.Number(float64(p)))
	}
	return model.Document{
		Format: model.RunFormat, ID: "20261114-183000-7f3a", Started: start(), Tool: model.Tool{Version: "0.1.0"},
		Plan: model.Plan{
			Format: model.PlanFormat, Command: "curve", Target: target, Engine: "auto",
			Flows: []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver,
				PayloadBytes: payloads[0], Streams: 1}},
			Factors: []model.Factor{{Knob: "payload_bytes", Levels: levels}},
			Design:  model.Design{Repeats: repeats, Seed: 1},
			Timing:  model.Timing{WarmupSeconds: 0.5, MeasureSeconds: measure, DrainSeconds: 1},
		},
		Host: []model.Host{
			{Node: model.Sender, Name: "desk", OS: "linux/amd64", Kernel: "6.12.9", CPU: "AMD Ryzen 5 5600",
				Cores: 12, MemoryBytes: 32 << 30, Version: "0.1.0",
				ClockSource: "tsc", Governor: "schedutil", Interface: "enp5s0", Driver: "r8169",
				LinkSpeedBits: 1e9, MTUBytes: 1500, Address: "192.168.1.20",
				ReceiveBufferB: 212992, SendBufferB: 212992, Privileged: true},
			{Node: model.Receiver, Name: "nas", OS: "linux/arm64", Kernel: "6.6.51", CPU: "Cortex-A76", Cores: 4,
				MemoryBytes: 8 << 30, Version: "0.1.0",
				ClockSource: "arch_sys_counter", Interface: "eth0", Driver: "macb",
				LinkSpeedBits: 1e9, MTUBytes: 1500, Address: "192.168.2.5",
				ReceiveBufferB: 212992, SendBufferB: 212992},
		},
		Complete: true, Results: []model.Result{}, Findings: []model.Finding{}, Warnings: model.Doubts{},
	}
}

// UDP is one flow: offered and carried packets a second, delay at the median.
func UDP(name string, payload int, sent, received, seconds, delayNanos float64) model.FlowResult {
	attempted, got := uint64(sent*seconds), uint64(min(sent, received)*seconds)
	f := model.FlowResult{
		Name: name, Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: payload,
		FrameBytes: model.FrameBytes(model.UDP, 4, payload), Streams: 1, DurationS: seconds,
		Planned: attempted, Attempted: attempted, Accepted: attempted, Received: got, Lost: attempted - got,
		SendPPS: sent, ReceivePPS: min(sent,
			received), SendGoodputBPS: sent * float64(payload) * 8,
		GoodputBPS: min(sent, received) * float64(payload) * 8,
		JitterNS:   delayNanos / 9, BurstMax: 32,
		SendGap: quantiles(attempted, 1e9/max(sent, 1)),
		SenderCPU: model.CPU{ThreadRatio: 0.97, HostRatio: 0.11, SoftirqRatio: 0.02,
			BusiestRatio: 0.98}, ReceiverCPU: model.CPU{ThreadRatio: 0.55, HostRatio: 0.31, SoftirqRatio: 0.18,
			BusiestRatio: 0.83},
		Ledger: model.Ledger{Lost: attempted - got, Unattributed: attempted - got, Lines: []model.Line{},
			Checks: []model.Check{{Name: "balance", Held: true, Law: "balance",
				Counts: []uint64{attempted - got, 0, attempted - got}}}},
	}
	if attempted > 0 {
		f.LossRatio = float64(f.Lost) / float64(attempted)
	}
	if name == "down" {
		f.From, f.To = f.To, f.From
	}
	if n := model.Fragments(4, payload, 1500); n > 1 {
		f.Fragments = n
	}
	if delayNanos > 0 {
		f.Delay = quantiles(got, delayNanos)
	}
	return f
}

func quantiles(n uint64, mid float64) *model.Percentiles {
	return &model.Percentiles{Count: n, Min: mid * 0.4, P50: mid, P90: mid * 1.6, P99: mid * 3.1, P999: mid * 6.4,
		Max: mid * 20, Mean: mid * 1.2}
}

// Line adds one named loss to the flow's ledger.
func Line(f *model.FlowResult, layer, host, cause string, share float64, confidence string) {
	n := min(uint64(share*float64(f.Lost)), f.Ledger.Unattributed)
	f.Ledger.Unattributed -= n
	f.Ledger.Lines = append(f.Ledger.Lines, model.Line{Layer: layer, Host: host, Cause: cause, Packets: n,
		Confidence: confidence,
		Evidence:   []model.Evidence{{Counter: cause, Scope: "socket", Unit: "datagram", Delta: n}}})
}

// Result is a valid trial of a payload with these flows, and their rates by the second.
func Result(payload, repeat int, flows ...model.FlowResult) model.Result {
	r := model.Result{
		Cell: model.Cell{"payload_bytes": model.Number(float64(payload))}, Repeat: repeat,
		Started: start().Add(time.Duration(payload+repeat) * time.Second), State: model.Valid, Engine: "udp",
		EngineReason: model.Doubts{{Code: model.SocketsPlanned}}, Flows: flows, Series: []model.Series{},
	}
	for i, f := range flows {
		r.Series = append(r.Series, rates(f, payload*7+repeat*31+i)...)
	}
	return r
}

func rates(f model.FlowResult, seed int) []model.Series {
	var sent, received, bits, softirq []float64
	for i := range int(f.DurationS) {
		n := noise(seed + i)
		sent = append(sent, f.SendPPS*(1+0.01*n))
		received = append(received, f.ReceivePPS*(1+0.02*noise(seed+i+99)))
		bits = append(bits, received[i]*float64(f.PayloadBytes)*8)
		softirq = append(softirq, min(1, f.ReceiverCPU.SoftirqRatio*(1+0.2*n)))
	}
	one := 1.0
	return []model.Series{
		{Metric: "send_pps", Flow: f.Name, At: f.From, StepSeconds: one, Values: sent},
		{Metric: "receive_pps", Flow: f.Name, At: f.To, StepSeconds: one, Values: received},
		{Metric: "goodput_bps", Flow: f.Name, At: f.To, StepSeconds: one, Values: bits},
		{Metric: "cpu_softirq_ratio", At: f.To, StepSeconds: one, Values: softirq},
	}
}

// carried is what a path of frames per second and bits per second lets through:
// 20 B of preamble and gap belong to each frame on Ethernet.
func carried(payload int, framesPerSecond, bitsPerSecond float64) float64 {
	frame := float64(model.FrameBytes(model.UDP, 4, payload))
	n := float64(model.Fragments(4, payload, 1500))
	return min(framesPerSecond/n, bitsPerSecond/((frame+58*(n-1)+20*n)*8))
}

// Router is a soft router's curve with three repeats of each size that pelt curve sends by default.
func Router() model.Document {
	sizes := []int{18, 64, 100, 200, 400, 800, 1472}
	d := Base("192.168.2.5", sizes, 3, 3)
	for repeat := range 3 {
		for i, p := range sizes {
			n := 1 + 0.015*(noise(p+repeat*17)-1)
			path := carried(p, 406e3, 1e9) * n
			sent := min(870e3*(1+0.01*noise(p*3+repeat)), carried(p, 1e9, 1e9))
			f := UDP("up", p, sent, path, 3, 180e3+float64(i)*22e3)
			Line(&f, "network", "router", "NETDEV_BACKLOG", 0.93, "inferred")
			Line(&f, "receiver-buffer", "receiver", "SOCKET_RCVBUFF", 0.05, "exact-count")
			d.Results = append(d.Results, Result(p, repeat, f))
		}
	}
	d.Warnings = model.Doubts{{Code: model.SendBufferCut, Node: "sender",
		Numbers: map[string]float64{"granted_bytes": 212992, "asked_bytes": 4194304}}}
	return d
}

// Single is one size for two minutes whose rate falls after 80 s.
func Single() model.Document {
	d := Base("192.168.2.5", []int{64}, 1, 120)
	f := UDP("up", 64, 300e3, 262e3, 120, 210e3)
	Line(&f, "network", "", "", 1, "inferred")
	r := Result(64, 0, f)
	for i := 80; i < 120; i++ {
		r.Series[1].Values[i] *= 0.38
		r.Series[2].Values[i] *= 0.38
		r.Series[3].Values[i] = 0.24 + 0.01*noise(i)
	}
	r.Changes = []model.Change{{Kind: model.ChangeShift, Metric: "receive_pps", Flow: "up", At: "receiver",
		StartS: 80, StartLowS: 79, StartHighS: 81, EndS: 120,
		Before: 262e3, After: 100e3, Size: -162e3, PValue: 1e-9, Tested: 3, AlarmHours: 24,
		Causes: []model.Mover{{Metric: "cpu_softirq_ratio", At: "receiver", StartS: 80, Before: 0.6, After: 0.24,
			Fit: 0.36}}}}
	d.Results = append(d.Results, r)
	return d
}

// Both is both directions at once.
func Both() model.Document {
	d := Base("lab:router", []int{64, 512, 1472}, 2, 2)
	d.Plan.Flows = append(d.Plan.Flows, model.Flow{Name: "down", Protocol: model.UDP, From: model.Receiver,
		To: model.Sender, PayloadBytes: 64, Streams: 1})
	d.Plan.Links = []model.Link{{Rate: unit.BitRate(1e9), OverheadBytes: 24},
		{Node: "receiver", Toward: "receiver", Rate: unit.BitRate(2e8), QueuePackets: 100, OverheadBytes: 24}}
	d.Plan.Factors = append(d.Plan.Factors, model.Factor{Knob: "direction", Levels: []model.Value{model.Word("both")}})
	d.Lab = &model.LabFacts{Topology: "router", Nodes: []string{"sender", "router", "receiver"}, Links: []model.LabLink{
		{From: "sender", To: "router", Backend: "tbf", Settings: d.Plan.Links[0]},
		{From: "router", To: "receiver", Backend: "tbf", At: "router", Settings: d.Plan.Links[1]}}}
	for repeat := range 2 {
		for _, p := range []int{64, 512, 1472} {
			up := UDP("up", p, 240e3, carried(p, 210e3+9e3*noise(p+repeat), 2e8), 2, 90e3)
			down := UDP("down", p, 230e3, carried(p, 190e3+9e3*noise(p*5+repeat), 9e8), 2, 140e3)
			r := Result(p, repeat, up, down)
			r.Cell["direction"] = model.Word("both")
			d.Results = append(d.Results, r)
		}
	}
	return d
}

// TCP is small writes against bulk-size ones, up.
func TCP() model.Document {
	d := Base("192.168.2.5", []int{64, 1460}, 2, 10)
	d.Plan.Flows[0].Protocol = model.TCP
	for repeat := range 2 {
		for _, p := range []int{64, 1460} {
			writes := map[int]float64{64: 410e3, 1460: 79e3}[p] * (1 + 0.04*noise(p+repeat))
			segments := map[int]float64{64: 158e3, 1460: 79.4e3}[p] * (1 + 0.03*noise(p+repeat+5))
			bytes := uint64(writes * 10 * float64(p))
			f := UDP("up", p, segments, segments, 10, 0)
			f.Protocol, f.FrameBytes, f.SendGap = model.TCP, model.FrameBytes(model.TCP, 4, p), nil
			f.GoodputBPS, f.SendGoodputBPS = writes*float64(p)*8, writes*float64(p)*8
			f.Lost = uint64(40 * repeat)
			f.Received = f.Attempted - f.Lost
			f.LossRatio = float64(f.Lost) / float64(f.Attempted)
			f.Ledger.Lost, f.Ledger.Unattributed = f.Lost, f.Lost
			f.TCP = &model.TCPFacts{Writes: uint64(writes * 10), SentBytes: bytes, ReceivedBytes: bytes,
				SegmentsOut: f.Attempted, SegmentsIn: f.Received,
				Retransmits: f.Lost, SegmentSizeBytes: 1448, Control: "cubic", RTTNanos: 1.4e6}
			f.RoundTrip = quantiles(100, 1.4e6)
			r := Result(p, repeat, f)
			r.Engine, r.EngineReason = "tcp", nil
			d.Results = append(d.Results, r)
		}
	}
	return d
}

// Loss has a ledger with several causes.
func Loss() model.Document {
	d := Base("10.0.0.2", []int{64, 512, 1472, 4096}, 1, 5)
	for i, p := range []int{64, 512, 1472, 4096} {
		sent := 150e3 / float64(1+i)
		f := UDP("up", p, sent, sent*(1-0.031*float64(i)), 5, 300e3)
		Line(&f, "receiver-buffer", "receiver", "SOCKET_RCVBUFF", 0.6, "exact-seq")
		Line(&f, "network", "router", "tx_dropped", 0.2, "bounded")
		Line(&f, "receiver-ip", "receiver", "FRAG_REASM_TIMEOUT", 0.1, "bounded")
		d.Results = append(d.Results, Result(p, 0, f))
	}
	return d
}

// Invalid has a trial whose sender missed its schedule, and a cell with nothing else.
func Invalid() model.Document {
	d := Base("10.0.0.2", []int{64, 1472}, 2, 2)
	d.Plan.Flows[0].Rate = unit.PacketRate(900e3)
	for repeat := range 2 {
		for _, p := range []int{64, 1472} {
			r := Result(p, repeat, UDP("up", p, 610e3, 80e3, 2, 50e3))
			if p == 64 || repeat == 1 {
				r.Flows[0].Planned = 1794118 + uint64(repeat)*9000
				r.State, r.Why = model.Invalid, lateSender("up", model.SenderCoreFull, 610e3, 900e3)
			}
			d.Results = append(d.Results, r)
		}
	}
	return d
}

// Aborted was cut in its third trial, which kept no flow.
func Aborted() model.Document {
	d := Base("10.0.0.2:9000", []int{64, 512, 1472}, 1, 2)
	d.Complete = false
	d.Results = append(d.Results, Result(64, 0, UDP("up", 64, 200e3, 200e3, 2, 70e3)))
	cut := Result(512, 0, UDP("up", 512, 150e3, 149e3, 0.7, 70e3))
	cut.State, cut.Why = model.Aborted, model.Reasons{{Code: model.Interrupted}}
	gone := Result(1472, 0)
	gone.State, gone.Why = model.Aborted, model.Reasons{{Code: model.TrialCut,
		Of: fault("the receiver's control connection went away")}}
	d.Results = append(d.Results, cut, gone)
	d.Warnings = model.Doubts{{Code: model.BytesCut, Numbers: map[string]float64{"cut_bytes": 117}}}
	return d
}

// RoundTrip is between hosts whose clocks are not one.
func RoundTrip() model.Document {
	d := Base("198.51.100.7", []int{64, 1472}, 1, 2)
	for _, p := range []int{64, 1472} {
		f := UDP("up", p, 20e3, 20e3, 2, 0)
		f.RoundTrip = quantiles(40, 11.3e6)
		d.Results = append(d.Results, Result(p, 0, f))
	}
	return d
}

// Iperf3 is what a file of iperf3 holds: both ways of UDP.
func Iperf3() model.Document {
	d := Base("192.0.2.7", []int{200}, 1, 10)
	d.ID, d.Tool, d.Host = "iperf3.json", model.Tool{Name: "iperf3", Version: "3.21"}, nil
	d.Plan = model.Plan{Target: "192.0.2.7"}
	up, down := UDP("up", 200, 5e3, 4.7e3, 10, 0), UDP("down", 200, 5e3, 5e3, 10, 0)
	told := []string{"goodput_bps", "receive_pps", "loss_ratio", "lost_packets", "received_packets"}
	up.Told, down.Told = append(told, "send_bps", "attempted_packets"), told
	up.Ledger, down.Ledger = model.Ledger{}, model.Ledger{}
	r := Result(200, 0, up, down)
	r.Cell["direction"], r.Engine = model.Word("both"), "iperf3"
	r.Series = []model.Series{{Metric: "goodput_bps", Flow: "down", At: model.Sender, StepSeconds: 1,
		Values: []float64{8e6, 8e6, 7.9e6}}}
	d.Results = append(d.Results, r)
	return d
}

// Iperf3Cut is a test that was stopped.
func Iperf3Cut() model.Document {
	d := Iperf3()
	d.Complete = false
	r := &d.Results[0]
	r.State = model.Aborted
	r.Why = model.Reasons{{Code: model.ToolStopped, Name: "iperf3",
		Text: "the receiver's control connection went away"}}
	return d
}

// Streams varies the number of streams beside the size.
func Streams() model.Document {
	d := Base("lab:switch", []int{64, 512, 1472}, 1, 2)
	d.Plan.Factors = append(d.Plan.Factors, model.Factor{Knob: "streams",
		Levels: []model.Value{model.Number(1), model.Number(4)}})
	for _, n := range []int{1, 4} {
		for _, p := range []int{64, 512, 1472} {
			f := UDP("up", p, 300e3*math.Sqrt(float64(n)), carried(p, 260e3*math.Sqrt(float64(n)), 2e9), 2, 70e3)
			f.Streams = n
			r := Result(p, 0, f)
			r.Cell["streams"] = model.Number(float64(n))
			d.Results = append(d.Results, r)
		}
	}
	return d
}

// Rates varies the offered rate at one size.
func Rates() model.Document {
	d := Base("lab:switch", []int{64}, 1, 2)
	d.Plan.Factors = []model.Factor{{Knob: "rate_pps",
		Levels: []model.Value{model.Number(1e4), model.Number(1e5), model.Number(2e5), model.Number(4e5)}}}
	for _, rate := range []float64{1e4, 1e5, 2e5, 4e5} {
		r := Result(64, 0, UDP("up", 64, rate, min(rate, 230e3), 2, 70e3))
		r.Cell = model.Cell{"rate_pps": model.Number(rate)}
		d.Results = append(d.Results, r)
	}
	return d
}

// Nasty has names and errors that try to break out of every output.
func Nasty() model.Document {
	const evil = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\"'`${7*7}{{.}}" +
		"\x1b[31mred\x1b[0m\x00\u202eltr\xff&amp;"
	d := Router()
	d.Results = d.Results[:4]
	d.ID, d.Plan.Target, d.Tool.Version = evil, "host; rm -rf $HOME '"+evil, evil
	for i := range d.Host {
		h := &d.Host[i]
		h.Name, h.Kernel, h.CPU, h.Driver, h.Interface = evil, evil, evil, evil, evil
	}
	d.Lab = &model.LabFacts{Topology: evil, Nodes: []string{evil}, Varied: []string{evil},
		Links: []model.LabLink{{From: evil, To: evil, Backend: evil, At: evil}}}
	for i := range d.Results {
		r := &d.Results[i]
		r.Why, r.Engine, r.EngineReason = model.Reasons{{Code: evil, Flow: evil, Text: evil}}, evil,
			model.Doubts{{Code: evil, Names: map[string]string{evil: evil}, Of: model.Reasons{{Text: evil}}}}
		r.Cell["=cmd|' /C calc'!A0"] = model.Word("=1+1" + evil)
		f := &r.Flows[0]
		f.Name, f.From, f.To, f.SendErrors = evil, evil, evil, map[string]uint64{evil: 3}
		f.Ledger.Lines = append(f.Ledger.Lines,
			model.Line{Layer: evil, Host: evil, Cause: evil, Packets: 1, Confidence: evil})
		for j := range r.Series {
			r.Series[j].Metric, r.Series[j].Flow, r.Series[j].At = evil+"_pps", evil, evil
		}
	}
	d.Results[1].State = model.Invalid
	d.Warnings = append(d.Warnings, model.Reason{Code: evil, Text: evil})
	return d
}

// Numbers has figures that no JSON can hold and no axis can show.
func Numbers() model.Document {
	d := Router()
	nan, inf := math.NaN(), math.Inf(1)
	f := &d.Results[0].Flows[0]
	f.SendPPS, f.ReceivePPS, f.GoodputBPS, f.LossRatio, f.JitterNS, f.DurationS = nan, inf, -inf, nan, inf, 0
	f.Delay.P50, f.Delay.P99 = nan, inf
	f.SenderCPU.HostRatio = nan
	d.Results[1].Flows[0].Delay = &model.Percentiles{}
	d.Results[2].Flows[0].ReceivePPS = math.MaxFloat64
	d.Results[2].Flows[0].FrameBytes = -5
	d.Results[3].Flows[0].PayloadBytes = -1
	d.Results[4].Cell["rate_pps"] = model.Number(nan)
	d.Results[0].Series[0].Values[1] = nan
	d.Results[0].Series[1].StepSeconds = 0
	d.Results[0].Series[2].Values = nil
	d.Results[5].Started = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	return d
}

// Empty was cut before its first trial.
func Empty() model.Document {
	d := Base("lab:router", []int{64, 1472}, 2, 2)
	d.Complete = false
	return d
}

// fault is what an error without a code is told as.
func fault(text string) model.Reasons { return model.Reasons{{Code: model.HostFault, Text: text}} }

// lateSender is why a trial with a sender that was too late is invalid.
func lateSender(flow, code string, kept, asked float64) model.Reasons {
	return model.Reasons{{Code: code, Flow: flow, Node: "sender", Numbers: map[string]float64{
		"kept_pps": kept, "asked_pps": asked, "late_ratio": 1 - kept/asked,
		"run_ratio": 0.3, "wait_ratio": 0.6, "sleep_ratio": 0.1, "steal_ratio": 0,
	}}}
}
