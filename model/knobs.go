package model

import (
	"slices"
	"strings"
	"time"

	"pelt/unit"
	"pelt/words"
)

const payloadKnob = "payload_bytes"

// bulkWrite is the length of the writes of a transfer in bulk, in bytes.
const bulkWrite = 128 << 10

// knobs are in the order in which flags apply.
var knobs = []Knob{
	{Name: payloadKnob, Flag: "payload", Unit: unit.Bytes, Low: 1, High: MaxTCPWrite, Words: []string{PathMTULevel},
		Varies: true, Role: Traffic, Group: ToSend, of: func(f *Flow) any { return &f.PayloadBytes },
		apply: eachFlow(setPayload),
		Help:  "payload sizes: 64,1460 or 256..1472/256; UDP: 16 to 65507, or mtu, the largest in one packet"},
	{Name: "frame_bytes", Flag: "frame", Unit: unit.Bytes, Low: minFrame, High: MaxUDPPayload + 66, Only: UDP,
		Varies: true, Role: Traffic, Excludes: payloadKnob, Phrase: "% frames", apply: eachFlow(setFrame),
		Help: "Ethernet frame sizes with FCS, in place of --payload: 64,1518"},
	{Name: "rate_pps", Flag: "rate", Unit: unit.PPS, Must: true, Varies: true, Role: Traffic, Group: ToSend,
		Label: "Asked rate", of: func(f *Flow) any { return &f.Rate },
		Help: "rate of each flow, in a search the highest: max, 150kpps, or 95mbit of payload"},
	{Name: "interval_ns", Flag: "interval", Unit: unit.Nanos, High: 86400e9, Varies: true, Role: Traffic,
		Excludes: "rate_pps", Group: ToSend, Label: "Send interval", Phrase: "every %", Zero: "no pause",
		apply: eachFlow(setInterval), Help: "time between packets, in place of --rate: 5ms"},
	{Name: "profile", Flag: "profile", Kind: Texts, Only: UDP, Varies: true, apply: eachFlow(setProfile),
		Help: "packets over time: poisson, burst=64, on=10ms,off=90ms[,random], ramp=10kpps..100kpps, " +
			"trace=FILE, gaps=FILE (docs/engines.md)"},
	{Name: "protocol", Flag: "proto", Kind: Names, Must: true, Words: []string{string(UDP), string(TCP)},
		Varies: true, Role: Traffic, Opens: true, Group: ToSend, of: func(f *Flow) any { return (*string)(&f.Protocol) },
		apply: eachFlow(setProtocol), Help: "udp, tcp, or in router udp,tcp"},
	{Name: "direction", Flag: "direction", Kind: Names, Words: []string{"up", "down", "both"}, Varies: true, Role: Way,
		Group: ToSend, apply: setDirection, Help: "up (from here or LAN), down, both, or a list"},
	{Name: "streams", Flag: "streams", Unit: unit.Count, Low: 1, High: MaxStreams, Must: true, Varies: true,
		Role: Traffic, Opens: true, Group: ToSend, Phrase: "% streams", of: func(f *Flow) any { return &f.Streams },
		Help: "streams, each with socket and thread: 1 to 128"},
	{Name: "receivers", Flag: "receivers", Unit: unit.Count, Low: 1, High: MaxReceivers, Varies: true, Role: Way,
		Opens: true, Group: ThePath, Phrase: "% receivers", apply: setReceivers,
		in:   func(p *Plan) any { return &p.Receivers },
		Help: "receivers of lab:star (default 10), each sent the full rate"},
	{Name: "packets", Flag: "count", Unit: unit.Count, Low: 1, High: MaxPackets, Only: UDP, Varies: true,
		Phrase: "% packets", of: func(f *Flow) any { return &f.Packets },
		Help: "packets of each trial to each receiver (default: what fits in --time; in sweep 1000)"},
	{Flag: "quick", Kind: Switch, Help: "100 packets a trial, unless --count or --time is given"},
	{Name: "measure_s", Flag: "time", Unit: unit.Seconds, Low: MinMeasure.Seconds(), High: MaxMeasure.Seconds(),
		Must: true, Varies: true, Group: ToSend, in: func(p *Plan) any { return &p.Timing.MeasureSeconds },
		apply: func(t *Trial, v Value) error { t.Timing.MeasureSeconds = v.Number; return nil },
		Help:  "measured time of each trial: 10s; a longer transfer is cut"},
	{Name: "warmup_s", Flag: "warmup", Unit: unit.Seconds, High: MaxWarmup.Seconds(), Varies: true, Phrase: "warm-up %",
		in:    func(p *Plan) any { return &p.Timing.WarmupSeconds },
		apply: func(t *Trial, v Value) error { t.Timing.WarmupSeconds = v.Number; return nil },
		Help:  "time before the measured time, not counted: 1s"},
	{Name: "lead_s", Unit: unit.Seconds, High: MaxLead.Seconds(),
		in: func(p *Plan) any { return &p.Timing.LeadSeconds }},
	{Name: "drain_s", Unit: unit.Seconds, High: MaxDrain.Seconds(),
		in: func(p *Plan) any { return &p.Timing.DrainSeconds }},
	{Name: "quiet_s", Unit: unit.Seconds, High: MaxDrain.Seconds(),
		in: func(p *Plan) any { return &p.Timing.QuietSeconds }},
	{Name: "patience_s", Flag: "patience", Unit: unit.Seconds, High: MaxPatience.Seconds(),
		in:   func(p *Plan) any { return &p.Timing.PatienceSeconds },
		Help: "longest time without control connection: 0 to 1m; 0 ends the soak at its first outage"},
	{Name: "repeats", Flag: "repeats", Unit: unit.Count, Low: 1, High: MaxRepeats, Must: true, Group: ToSend,
		in:   func(p *Plan) any { return &p.Design.Repeats },
		Help: "interleaved trials of each combination; pelt compare needs 3"},
	{Name: "ordered", Kind: Switch, in: func(p *Plan) any { return &p.Design.Ordered }},
	{Name: "paired", Kind: Switch, in: func(p *Plan) any { return &p.Design.Paired }},
	{Name: "redo", Unit: unit.Count, High: MaxRedo, in: func(p *Plan) any { return &p.Design.Redo }},
	{Name: "seed", Flag: "seed", Kind: OneText, Unit: unit.Count, in: func(p *Plan) any { return &p.Design.Seed },
		Help: "seed of all random choices"},
	{Name: "max_loss_ratio", Flag: "max-loss", Unit: unit.Ratio, High: 1,
		in:   func(p *Plan) any { return &p.MaxLossRatio },
		Help: "exit code 3 if a combination loses more: 0.1%; in ndr the goals: 0,0.5%"},
	{Name: "family", Flag: "family", Unit: unit.Count, Low: 4, High: 6, of: func(f *Flow) any { return &f.Family },
		Help: "IP version: 4 or 6 (default: what the target has)"},
	{Name: "dscp", Flag: "dscp", Unit: unit.Count, High: 63, of: func(f *Flow) any { return &f.DSCP },
		Help: "DSCP of test packets: 0 to 63"},
	{Name: "dont_fragment", Flag: "df", Kind: Switch, Only: UDP, of: func(f *Flow) any { return &f.DontFragment },
		Help: "forbid fragments"},
	{Name: "engine", Flag: "engine", Kind: Names, Must: true, Words: Engines,
		in: func(p *Plan) any { return &p.Engine }, Help: "auto, udp, xdp, or SENDER:RECEIVER as xdp:udp"},
	{Name: "drops", Flag: "drops", Kind: Names, Words: []string{string(DropsSeq), string(DropsCount), string(DropsOff)},
		in:   func(p *Plan) any { return (*string)(&p.Drops) },
		Help: "watch kernel drops: seq (each packet), count or off (default: the best that works)"},
	{Name: "burst", Flag: "burst", Unit: unit.Count, Low: 1, High: MaxBurst, of: func(f *Flow) any { return &f.Burst },
		Help: "due packets that may leave back to back (default: a late sender catches up at twice the rate)"},
	{Name: "device", Flag: "dev", Kind: OneText, in: func(p *Plan) any { return &p.Device },
		Help: "call the target over this interface or VRF of this host (Linux): eth1"},
	{Name: "source_port", Flag: "source-port", Unit: unit.Count, Low: 1, High: MaxSourcePort,
		of: func(f *Flow) any { return &f.SourcePort }, Help: "first local port of the streams (default: any)"},
	{Name: "source_addresses", Flag: "source-address", Kind: OneText,
		of: func(f *Flow) any { return &f.SourceAddresses }, apply: eachFlow(setAddresses),
		Help: "local addresses of streams in turn: 192.0.2.1 or 198.18.129.1..198.18.129.8"},
	{Name: "send_buffer_bytes", Flag: "send-buffer", Unit: unit.Bytes, Low: MinSocketBuffer, High: MaxSocketBuffer,
		Only: UDP, Varies: true, Phrase: "send buffer %", of: func(f *Flow) any { return &f.SendBuffer },
		Help: "send buffer of each socket: 212992"},
	{Name: "receive_buffer_bytes", Flag: "receive-buffer", Unit: unit.Bytes, Low: MinSocketBuffer,
		High: MaxSocketBuffer, Only: UDP, Varies: true, Phrase: "receive buffer %",
		of:   func(f *Flow) any { return &f.ReceiveBuffer },
		Help: "receive buffer of each socket: 4194304 (default: 16 MiB shared, at least 512 KiB each)"},
	{Name: "joined", Flag: "gro", Kind: Switch, Only: UDP, of: func(f *Flow) any { return &f.Joined },
		Help: "the receiver's kernel joins packets (UDP_GRO)"},
	{Name: "segments", Flag: "gso", Unit: unit.Count, Low: 1, High: MaxSegments, Only: UDP,
		of:   func(f *Flow) any { return &f.Segments },
		Help: "packets in one buffer for the kernel (UDP_SEGMENT): 2 to 64"},
	{Name: "bulk", Flag: "bulk", Kind: Switch, Only: TCP, of: func(f *Flow) any { return &f.Bulk },
		Help: "large writes with Nagle, not small ones with TCP_NODELAY"},
	{Name: "control", Flag: "control", Kind: Names, Only: TCP, Varies: true, Group: ToSend,
		of:   func(f *Flow) any { return &f.Control },
		Help: "congestion control (default: the host's); in cc a list, baseline first; cubic+bbr compete"},

	// 88 and 32767 are the kernel's own bounds (net/ipv4/tcp.c, TCP_MAXSEG).
	{Name: "mss_bytes", Flag: "mss", Unit: unit.Bytes, Low: 88, High: 32767, Only: TCP,
		of:   func(f *Flow) any { return &f.MSS },
		Help: "largest segment, with its options: 536 (default: what the path carries)"},
	{Name: "window_bytes", Flag: "window", Unit: unit.Bytes, Low: MinSocketBuffer / 2, High: MaxSocketBuffer / 2,
		Only: TCP, of: func(f *Flow) any { return &f.Window },
		Help: "socket buffers of both ends: 256000 (default: they grow)"},

	// Of pelt cc.
	{Name: "link.loss_ratio", Flag: "loss", Unit: unit.Ratio, High: 1, Group: ThePath,
		Help: "lab: loss of each link: 0,1%,10%"},
	{Name: "bytes", Flag: "bytes", Unit: unit.Bytes, Low: 1, High: MaxBytes, Only: TCP,
		of:   func(f *Flow) any { return &f.Bytes },
		Help: "bytes of each timed transfer: 640MB (default: what fits in --time)"},
	{Name: "info_s", Unit: unit.Seconds, Low: 0.001, High: 60, Only: TCP,
		of: func(f *Flow) any { return &f.InfoSeconds }},
	{Name: "http", Flag: "http", Kind: Switch, Only: TCP, of: func(f *Flow) any { return &f.HTTP },
		Help: "send the bytes by HTTP, timed from the request"},
	{Name: "stagger_s", Flag: "stagger", Unit: unit.Seconds, High: MaxStagger, Only: TCP,
		of:   func(f *Flow) any { return &f.StaggerSeconds },
		Help: "time between starts of streams: 5s (default: together)"},

	// Of a router, and of soaks.
	{Name: "dut", Flag: "dut", Kind: OneText, Group: ThePath, in: func(p *Plan) any { return &p.DUT },
		Help: "router to watch: ssh://[USER@]HOST[:PORT], or pelt://HOST[:PORT] of its pelt serve --observe-only"},
	{Name: "variant", Flag: "variant", Kind: Texts, Varies: true, Opens: true, Group: ThePath,
		apply: func(t *Trial, v Value) error { t.Variant = v.Text; return nil },
		Help:  "a setup of the router: NAME=COMMAND; in a lab also plain, rules=N, log, joined by +"},
	{Name: "pair", Kind: Names, Varies: true, Opens: true, apply: noChange},
	{Name: "at_once", Kind: Switch, in: func(p *Plan) any { return &p.AtOnce }},
	{Flag: "idle-rate", Kind: OneText, Help: "UDP: rate of trials that measure the idle path's delay; 0: none"},
	{Name: "connections", Flag: "connections", Kind: Names, Words: []string{ConnectionRate, ConnectionKeep}, Only: TCP,
		Varies: true, Phrase: "connections: %", of: func(f *Flow) any { return &f.Connections },
		Help: "connections from LAN to WAN: rate (a second), keep (at a time, until the router refuses), or both"},
	// Of searches for the loss-free rate.
	{Flag: "loss-free", Kind: Switch, Help: "search the highest rate without loss, too (RFC 9971)"},
	{Flag: "strict", Kind: Switch, Help: "as RFC 2544: trials of 60 s without any loss"},
	{Flag: "goal", Kind: Names, Words: []string{"quick", "csit"},
		Help: "how long a search tests the rates that decide: quick (2 s) or csit (21 s, surer)"},
	{Flag: "searches", Unit: unit.Count, Low: 1, High: MaxSearches,
		Help: "searches of each combination, which tell how far the next run may be off; 1 with --goal csit " +
			"or --strict"},
	{Name: "search", Unit: unit.Count, Low: 1, High: MaxSearches, Varies: true, Phrase: "search %", apply: noChange},
	{Name: "return_pps", Unit: unit.PPS, Low: 1, High: maxKnobPackets, Varies: true, Label: "Asked rate down",
		apply: setDown},
	{Name: "load_ratio", Unit: unit.Ratio, High: 2, Varies: true, Label: "Load", Zero: "idle", apply: setLoad},
	{Name: "at_s", Flag: "at", Kind: Texts, Group: ThePath,
		Help: "lab: a change during the test (repeatable): 80s:router=rules=1000 or 2m:link-receiver=loss=1%"},
}

func eachFlow(set func(*Flow, Value) error) func(*Trial, Value) error {
	return func(t *Trial, v Value) error {
		for i := range t.Flows {
			if err := set(&t.Flows[i], v); err != nil {
				return err
			}
		}
		return nil
	}
}

// setDown gives what is sent down a rate of its own: knobs are set in the order of their names, so after rate_pps.
func setDown(t *Trial, v Value) error {
	for i := range t.Flows {
		if t.Flows[i].From == Receiver {
			t.Flows[i].Rate = unit.PacketRate(uint64(v.Number))
		}
	}
	return nil
}

// loadLead is the lead of trials at a share of a rate, in seconds: longer than the round trip by a satellite.
const loadLead = 0.7

func setLoad(t *Trial, _ Value) error {
	t.Timing.LeadSeconds = max(t.Timing.LeadSeconds, loadLead)
	return nil
}

func setPayload(f *Flow, v Value) error {
	f.PayloadBytes = int(v.Number)
	switch {
	case v.Text != "" && f.Protocol != UDP:
		return words.Errorf("%s stands for a UDP payload; want a number of bytes", v.Text)
	case v.Text != "":
		f.PayloadBytes = WholePayload(f.Family, usualMTU)
	}
	return nil
}

func setFrame(f *Flow, v Value) error {
	if f.Protocol != UDP {
		return words.Errorf("a frame size is for UDP")
	}
	f.PayloadBytes = PayloadOf(f.Family, int(v.Number))
	return nil
}

func setInterval(f *Flow, v Value) error {
	f.Rate = unit.IntervalRate(time.Duration(v.Number))
	return nil
}

func setProfile(f *Flow, v Value) error {
	if f.Profile = nil; v.Text == ConstantGap {
		return nil
	}
	p, last, err := ParseProfile(v.String())
	if err != nil {
		return err
	}
	if f.Profile = &p; !last.IsMax() {
		f.Rate = last
	}
	return nil
}

// setProtocol makes a flow of UDP one of TCP, which has little of what is said of the first.
func setProtocol(f *Flow, v Value) error {
	switch Protocol(v.Text) {
	case f.Protocol:
		return nil
	case UDP:
		return words.Errorf("a flow of TCP cannot become one of UDP")
	}
	*f = Flow{Name: f.Name, Protocol: TCP, From: f.From, To: f.To, PayloadBytes: bulkWrite, Streams: f.Streams,
		Family: f.Family, DSCP: f.DSCP, SourceAddresses: f.SourceAddresses, Connections: f.Connections,
		Bulk: f.Connections == ""}
	if f.Connections != "" {
		f.PayloadBytes = ConnectionMessageBytes
	}
	return nil
}

func setAddresses(f *Flow, v Value) (err error) {
	f.SourceAddresses, err = unit.ParseAddresses(v.Text)
	if len(f.SourceAddresses) > 0 && f.Family == 0 {
		if f.Family = 4; f.SourceAddresses[0].Is6() {
			f.Family = 6
		}
	}
	return err
}

// noChange is for knobs that only tell trials apart: they set nothing.
func noChange(*Trial, Value) error { return nil }

func setReceivers(t *Trial, v Value) error {
	t.Receivers = int(v.Number)
	return nil
}

func setDirection(t *Trial, v Value) error {
	keep := []string{v.Text}
	if v.Text == "both" {
		keep = []string{"up", "down"}
	}
	t.Flows = slices.DeleteFunc(t.Flows, func(f Flow) bool { return !slices.Contains(keep, f.Name) })
	if len(t.Flows) != len(keep) {
		return words.Errorf("the plan has no flow for direction %v", v)
	}
	return nil
}

// FlagOf is the flag that sets a field of a plan, as "--rate" for "rate_pps"; "" if none does.
func FlagOf(field string) string {
	special := map[string]string{"links": "--link", "target": "TARGET", "near": "TARGET",
		"variants": "--variant", "timed": "--at"}
	for word := range strings.FieldsFuncSeq(field, func(r rune) bool { return r == '.' }) {
		word, _, _ = strings.Cut(word, "[")
		if flag, ok := special[word]; ok {
			return flag
		}
		if i := slices.IndexFunc(knobs, func(k Knob) bool { return k.Name == word && k.Flag != "" }); i >= 0 {
			return "--" + knobs[i].Flag
		}
	}
	return ""
}
