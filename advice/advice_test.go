package advice

import (
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/model"
)

// lost is a line with the counter behind it.
func lost(layer, cause, counter string, more ...string) model.Line {
	l := model.Line{Layer: layer, Host: "receiver", Cause: cause, Packets: 100, Interface: "eth0",
		Evidence: []model.Evidence{{Counter: counter, Role: "primary", Delta: 100}}}
	for _, c := range more {
		l.Evidence = append(l.Evidence, model.Evidence{Counter: c, Role: "confirms", Delta: 7})
	}
	return l
}

// knobs makes settings of name=value words; a ~ in a value is a blank.
func knobs(text string) (list []model.HostSetting) {
	for _, one := range strings.Fields(text) {
		name, value, _ := strings.Cut(one, "=")
		list = append(list, model.HostSetting{Name: name, Value: strings.ReplaceAll(value, "~", " ")})
	}
	return list
}

func TestAdvice(t *testing.T) {
	buffer := lost("receiver-buffer", "SOCKET_RCVBUFF", "verdict SOCKET_RCVBUFF @ udp_queue_rcv_one_skb+0x1")
	for name, c := range map[string]struct {
		line model.Line
		c    Context
		want string // knob present -> value, one a line
	}{
		"a socket may ask for more": {buffer,
			Context{RatePPS: 1e6, Streams: 1, PayloadBytes: 64, BufferBytes: 425984, Knobs: knobs("net.core.rmem_max=212992")},
			// 1e6/s x 10 ms x 832 B = 8320000 B, half of it rounded up to 64 KiB
			"net.core.rmem_max 212992 -> 4194304"},
		"measured cost of a datagram, four sockets, a longer stall": {buffer,
			Context{RatePPS: 1e6, Streams: 4, PayloadBytes: 64, TruesizeBytes: 1000, StallS: 0.1, BufferBytes: 425984, Knobs: knobs("net.core.rmem_max=212992")},
			"net.core.rmem_max 212992 -> 12517376"},
		"the buffer is not the limit": {buffer,
			Context{RatePPS: 1e5, Streams: 1, PayloadBytes: 64, BufferBytes: 8 << 20, Knobs: knobs("net.core.rmem_max=212992")},
			"socket.receive_buffer 8388608 ->"},
		"the program did not ask": {buffer,
			Context{RatePPS: 1e6, Streams: 1, PayloadBytes: 64, BufferBytes: 212992, Knobs: knobs("net.core.rmem_max=67108864")},
			"socket.receive_buffer 212992 -> 8320000"},
		"settings unknown": {buffer, Context{RatePPS: 1e6, Streams: 1, PayloadBytes: 64, BufferBytes: 212992}, ""},
		"no rate":          {buffer, Context{Knobs: knobs("net.core.rmem_max=212992")}, ""},
		"a lying setting":  {buffer, Context{RatePPS: 1e6, Knobs: []model.HostSetting{{Name: "net.core.rmem_max", Value: "1; reboot"}}}, ""},
		"UDP memory": {lost("receiver-memory", "PROTO_MEM", "SO_MEMINFO drops"),
			Context{RatePPS: 1e6, Streams: 4, BufferBytes: 64 << 20, Knobs: knobs("net.ipv4.udp_mem=47034~62714~94068 page_size_bytes=4096")},
			"net.ipv4.udp_mem 47034 62714 94068 -> 81920 81920 94068"},
		"UDP memory is not the limit": {lost("receiver-memory", "PROTO_MEM", "SO_MEMINFO drops"),
			Context{RatePPS: 1e6, Streams: 1, BufferBytes: 1 << 20, Knobs: knobs("net.ipv4.udp_mem=47034~62714~94068 page_size_bytes=4096")},
			"net.ipv4.udp_mem 47034 62714 94068 ->"},
		"UDP memory of larger pages": {lost("receiver-memory", "PROTO_MEM", "SO_MEMINFO drops"),
			Context{RatePPS: 1e6, Streams: 4, BufferBytes: 256 << 20, Knobs: knobs("net.ipv4.udp_mem=47034~62714~94068 page_size_bytes=16384")},
			"net.ipv4.udp_mem 47034 62714 94068 -> 81920 81920 94068"},
		"UDP memory of pages that are not known": {lost("receiver-memory", "PROTO_MEM", "SO_MEMINFO drops"),
			Context{RatePPS: 1e6, Streams: 4, BufferBytes: 256 << 20, Knobs: knobs("net.ipv4.udp_mem=47034~62714~94068")}, ""},
		"backlog": {lost("receiver-backlog", "CPU_BACKLOG", "softnet.dropped"),
			Context{RatePPS: 250e3, Knobs: knobs("net.core.netdev_max_backlog=1000")},
			"net.core.netdev_max_backlog 1000 -> 3000"},
		"backlog of a router": {lost("network", "CPU_BACKLOG", "softnet.dropped"),
			Context{RatePPS: 250e3, Knobs: knobs("net.core.netdev_max_backlog=10000")},
			"net.core.netdev_max_backlog 10000 ->"},
		"ring": {lost("receiver-ring", "rx-missed", "dev.eth0.rx_missed_errors"),
			Context{RatePPS: 1e6, Streams: 1, Knobs: knobs("eth0.txqueuelen=1000 eth0.rx_ring=256 eth0.rx_ring_max=4096 eth0.channels_combined=8")},
			"eth0.rx_ring 256 -> 1024"},
		"ring over several queues, at most what the card has": {lost("receiver-ring", "rx-missed", "dev.eth0.rx_missed_errors", "softnet.time_squeeze"),
			Context{RatePPS: 10e6, Streams: 8, Knobs: knobs("eth0.txqueuelen=1000 eth0.rx_ring=256 eth0.rx_ring_max=512 eth0.channels_combined=4 net.core.netdev_budget=300")},
			"eth0.rx_ring 256 -> 512\n" +
				"net.core.netdev_budget 300 -> 600"},
		"more queues than are used": {lost("receiver-ring", "rx-missed", "dev.eth0.rx_missed_errors"),
			Context{RatePPS: 1e6, Streams: 6, Knobs: knobs("eth0.txqueuelen=1000 eth0.channels_combined=2 eth0.channels_combined_max=4")},
			"eth0.channels_combined 2 -> 4"},
		"one stream fills one queue": {lost("receiver-ring", "rx-missed", "dev.eth0.rx_missed_errors"),
			Context{RatePPS: 1e6, Streams: 1, Knobs: knobs("eth0.txqueuelen=1000 eth0.channels_combined=1 eth0.channels_combined_max=4")}, ""},
		"cores that clock down": {lost("receiver-backlog", "CPU_BACKLOG", "softnet.dropped"), Context{Knobs: knobs("cpu.governor=powersave")},
			"cpu.governor powersave -> performance"},
		"cores that do not": {lost("receiver-backlog", "CPU_BACKLOG", "softnet.dropped"), Context{Knobs: knobs("cpu.governor=performance")}, ""},
		"an interface that is a command": {func() model.Line {
			l := lost("receiver-ring", "rx-missed", "dev.x.rx_missed_errors")
			l.Interface = "x;reboot"
			return l
		}(), Context{RatePPS: 1e6, Knobs: knobs("x;reboot.txqueuelen=1 x;reboot.rx_ring=1 x;reboot.rx_ring_max=4096")}, ""},
		"an interface that is an option": {func() model.Line {
			l := lost("receiver-ring", "rx-missed", "dev.x.rx_missed_errors")
			l.Interface = "-h"
			return l
		}(), Context{RatePPS: 1e6, Knobs: knobs("-h.txqueuelen=1 -h.rx_ring=1 -h.rx_ring_max=4096")}, ""},
		"threaded NAPI": {lost("receiver-ring", "ring-full", "dev.eth0.tx_dropped"), Context{RatePPS: 1e6, Knobs: knobs("eth0.txqueuelen=1000 eth0.threaded=1")},
			"eth0.threaded 1 -> 0"},
		"no thread": {lost("receiver-ring", "ring-full", "dev.eth0.tx_dropped"), Context{RatePPS: 1e6, Knobs: knobs("eth0.txqueuelen=1000 eth0.threaded=0")}, ""},
		"queue": {lost("sender-qdisc", "ENOBUFS", "send errors ENOBUFS"), Context{RatePPS: 1e6, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=pfifo_fast")},
			"eth0.txqueuelen 1000 -> 10000"},
		"fair queue, of one socket": {lost("sender-qdisc", "FQ_FLOW_LIMIT", "verdict"), Context{RatePPS: 4e5, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=fq eth0.qdisc_limit_packets=10000 eth0.qdisc_flow_limit_packets=100")},
			"eth0.qdisc_flow_limit_packets 100 -> 4000"},
		"fair queue, of all": {lost("sender-qdisc", "FQ_BAND_LIMIT", "verdict"), Context{RatePPS: 2e6, Streams: 400, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=fq eth0.qdisc_limit_packets=10000 eth0.qdisc_flow_limit_packets=100")},
			"eth0.qdisc_limit_packets 10000 -> 20000"},
		"fair queue, both": {lost("sender-qdisc", "FQ_FLOW_LIMIT", "verdict"), Context{RatePPS: 2e6, Streams: 2, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=fq eth0.qdisc_limit_packets=10000 eth0.qdisc_flow_limit_packets=100")},
			"eth0.qdisc_flow_limit_packets 100 -> 10000\n" +
				"eth0.qdisc_limit_packets 10000 -> 20000"},
		"a fair queue that holds it": {lost("sender-qdisc", "FQ_BAND_LIMIT", "verdict"), Context{RatePPS: 1e5, Streams: 100, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=fq eth0.qdisc_limit_packets=10000 eth0.qdisc_flow_limit_packets=100")},
			"eth0.txqueuelen 1000 ->"},
		"fair queues of many queues": {lost("sender-qdisc", "FQ_FLOW_LIMIT", "verdict"), Context{RatePPS: 4e5, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=mq net.core.default_qdisc=fq")}, ""},
		"queues of many queues": {lost("sender-qdisc", "QDISC_DROP", "verdict"), Context{RatePPS: 1e6, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=mq net.core.default_qdisc=pfifo_fast")},
			"eth0.txqueuelen 1000 -> 10000"},
		"others below many queues": {lost("sender-qdisc", "QDISC_DROP", "verdict"), Context{RatePPS: 1e6, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=mq net.core.default_qdisc=fq_codel")},
			"eth0.txqueuelen 1000 ->"},
		"a shaper's queue": {lost("network", "QDISC_DROP", "qdisc.eth0.tbf.1:.drops"), Context{RatePPS: 1e6, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=tbf")},
			"eth0.txqueuelen 1000 ->"},
		"a plain queue with a limit of its own": {lost("sender-qdisc", "QDISC_DROP", "verdict"), Context{RatePPS: 2e5, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=pfifo eth0.qdisc_limit_packets=50")},
			"eth0.qdisc_limit_packets 50 -> 2000"},
		"a plain queue that holds it": {lost("sender-qdisc", "QDISC_DROP", "verdict"), Context{RatePPS: 2e5, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=pfifo eth0.qdisc_limit_packets=2000")},
			"eth0.txqueuelen 1000 ->"},
		"a queue of which only the length is known": {lost("sender-qdisc", "QDISC_DROP", "verdict"), Context{RatePPS: 2e5, Knobs: knobs("eth0.txqueuelen=1000")}, ""},
		"a tc program": {lost("sender-qdisc", "TC_EGRESS", "verdict"), Context{RatePPS: 1e6, Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=pfifo_fast")}, ""},
		"send buffer": {lost("send-call", "EAGAIN", "send errors EAGAIN"), Context{RatePPS: 1e6, PayloadBytes: 64, Knobs: knobs("net.core.wmem_max=212992 eth0.txqueuelen=1000")},
			"net.core.wmem_max 212992 -> 851968"},
		"neighbour": {lost("sender-device", "NEIGH_QUEUEFULL", "verdict"), Context{RatePPS: 1e5, PayloadBytes: 64, Knobs: knobs("net.ipv4.neigh.eth0.unres_qlen_bytes=212992 eth0.txqueuelen=1")},
			"net.ipv4.neigh.eth0.unres_qlen_bytes 212992 -> 835584"},
		"reverse path": {lost("receiver-ip", "IP_RPFILTER", "TcpExt.IPReversePathFilter"), Context{Knobs: knobs("net.ipv4.conf.eth0.rp_filter=1 net.ipv4.conf.all.rp_filter=0 eth0.txqueuelen=1")},
			"net.ipv4.conf.eth0.rp_filter 1 -> 2"},
		"connections": {lost("receiver-filter", "NETFILTER_DROP", "verdict", "conntrack.drop"), Context{Knobs: knobs("net.netfilter.nf_conntrack_max=65536 net.netfilter.nf_conntrack_count=65530")},
			"net.netfilter.nf_conntrack_max 65536 -> 131072"},
		"a rule, not the table": {lost("receiver-filter", "NETFILTER_DROP", "verdict"), Context{Knobs: knobs("net.netfilter.nf_conntrack_max=65536 net.netfilter.nf_conntrack_count=65530")}, ""},
		"nobody listening":      {lost("receiver-udp", "NO_SOCKET", "Udp.NoPorts"), Context{RatePPS: 1e6}, ""},
		"nothing moved": {func() model.Line {
			l := buffer
			l.Evidence = []model.Evidence{{Counter: "x", Delta: 5, Excess: 5}}
			return l
		}(),
			Context{RatePPS: 1e6, PayloadBytes: 64, BufferBytes: 1, Knobs: knobs("net.core.rmem_max=212992")}, ""},
		"no packets": {func() model.Line { l := buffer; l.Packets = 0; return l }(), Context{RatePPS: 1e6, BufferBytes: 1, Knobs: knobs("net.core.rmem_max=212992")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range For(c.line, c.c) {
				got = append(got, strings.TrimSpace(s.Knob+" "+s.Present+" -> "+s.Value))
				if s.Why == "" || s.Host != c.line.Host {
					t.Errorf("%+v lacks a reason or host", s)
				}
				if proposed := s.Value != ""; (s.Command == "") == proposed || (s.Undo == "") == proposed || s.Command == "" && s.Note == "" {
					t.Errorf("%+v says nothing to do, or has a command without a value", s)
				}
			}
			if g := strings.Join(got, "\n"); g != c.want {
				t.Errorf("got\n%s\nwant\n%s", g, c.want)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	q := &question{Context: Context{Knobs: knobs("eth0.qdisc=fq")}}
	for _, c := range []struct{ knob, value, want string }{
		{"net.core.rmem_max", "4194304", "sysctl -w net.core.rmem_max=4194304"},
		{"net.ipv4.udp_mem", "1 2 3", "sysctl -w net.ipv4.udp_mem='1 2 3'"},
		{bufferKnob, "8320000", "pelt curve HOST --receive-buffer 8320000"},
		{"eth0.rx_ring", "1024", "ethtool -G eth0 rx 1024"},
		{"eth0.channels_combined", "4", "ethtool -L eth0 combined 4"},
		{"eth0.channels_rx", "4", "ethtool -L eth0 rx 4"},
		{"cpu.governor", "performance", "cpupower frequency-set -g performance"},
		{"eth0.threaded", "0", "echo 0 > /sys/class/net/eth0/threaded"},
		{"eth0.txqueuelen", "10000", "ip link set dev eth0 txqueuelen 10000"},
		{"eth0.qdisc_flow_limit_packets", "4000", "tc qdisc change dev eth0 root fq flow_limit 4000"},
		{"eth0.qdisc_limit_packets", "20000", "tc qdisc change dev eth0 root fq limit 20000"},
	} {
		if got := q.command(c.knob, c.value); got != c.want {
			t.Errorf("%s: %q, want %q", c.knob, got, c.want)
		}
	}
}

// words is what a shell makes of a command.
func words(t rapid.TB, command string) []string {
	out, err := exec.Command("sh", "-c", "set -f; printf '%s\\0' "+command).Output()
	if err != nil {
		t.Fatalf("sh on %q: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// Whatever a host says of itself: no advice without a loss that something
// confirms, nothing below the present, and commands that a shell takes as meant.
func TestAdviceOfAnyHost(t *testing.T) {
	names := []string{"net.core.rmem_max", "net.core.wmem_max", "net.core.netdev_max_backlog", "net.core.netdev_budget", "net.ipv4.udp_mem", "page_size_bytes",
		"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_count", "net.ipv4.conf.all.rp_filter", "cpu.governor"}
	perDevice := []string{".txqueuelen", ".rx_ring", ".rx_ring_max", ".channels_combined", ".channels_combined_max", ".threaded", ".qdisc", ".qdisc_limit_packets"}
	commands := map[string]int{}
	testenv.Tool(t, "sh")
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) string { return strconv.FormatUint(rapid.Uint64().Draw(t, "n"), 10) })
		value := rapid.OneOf(number, rapid.Just("1"), rapid.Just("1000"), rapid.Just("1000"), rapid.Just("10 20 30"), rapid.SampledFrom([]string{"fq", "pfifo", "pfifo_fast"}), rapid.Map(rapid.Uint64Range(0, 5000), func(n uint64) string { return strconv.FormatUint(n, 10) }), rapid.String(),
			rapid.SampledFrom([]string{"1 2 3", "fq", "mq", "pfifo", "pfifo_fast", "$(reboot)", "1'; reboot; '", "-1", "0x10", "1e9", "", "1\n2", "9 8 7", "1 1 1 1"}))
		dev := rapid.OneOf(rapid.SampledFrom([]string{"eth0", "eth0", "eth0", "eth0.10", "eth0.10", "a;b", "$(x)", "-G", "a b", "a'b", "..", "../x", "`x`", "é"}), rapid.String()).Draw(t, "device")
		c := Context{RatePPS: rapid.OneOf(rapid.Float64Range(1e3, 1e7), rapid.Float64Range(1e5, 1e7), rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(1))).Draw(t, "rate"),
			Streams: rapid.IntRange(-3, 200).Draw(t, "streams"), PayloadBytes: rapid.OneOf(rapid.IntRange(16, 1472), rapid.Int()).Draw(t, "payload"), BufferBytes: rapid.OneOf(rapid.IntRange(0, 1<<24), rapid.Int()).Draw(t, "buffer"),
			TruesizeBytes: rapid.OneOf(rapid.Just(0), rapid.Int()).Draw(t, "truesize"), StallS: rapid.OneOf(rapid.Just(0.0), rapid.Float64()).Draw(t, "stall")}
		for _, n := range names {
			c.Knobs = append(c.Knobs, model.HostSetting{Name: n, Value: value.Draw(t, n)})
		}
		for _, n := range append([]string{}, perDevice...) {
			c.Knobs = append(c.Knobs, model.HostSetting{Name: dev + n, Value: value.Draw(t, n)})
		}
		c.Knobs = append(c.Knobs, model.HostSetting{Name: "net.ipv4.conf." + dev + ".rp_filter", Value: value.Draw(t, "rp")}, model.HostSetting{Name: "net.ipv4.neigh." + dev + ".unres_qlen_bytes", Value: value.Draw(t, "neigh")})
		place := rapid.SampledFrom([][2]string{{"receiver-buffer", "SOCKET_RCVBUFF"}, {"receiver-memory", "PROTO_MEM"}, {"receiver-backlog", "CPU_BACKLOG"}, {"network", "CPU_BACKLOG"},
			{"receiver-ring", "rx-missed"}, {"receiver-ring", "ring-full"}, {"sender-qdisc", "ENOBUFS"}, {"network", "QDISC_DROP"}, {"send-call", "EAGAIN"},
			{"sender-device", "NEIGH_QUEUEFULL"}, {"receiver-ip", "IP_RPFILTER"}, {"receiver-filter", "NETFILTER_DROP"}, {"application", "late"}}).Draw(t, "place")
		line := model.Line{Layer: place[0], Host: "h", Interface: dev, Packets: rapid.Uint64Range(0, 3).Draw(t, "packets"), Cause: place[1],
			Evidence: []model.Evidence{{Counter: rapid.SampledFrom([]string{"conntrack.drop", "softnet.time_squeeze", "x"}).Draw(t, "counter"), Role: rapid.SampledFrom([]string{"primary", "confirms", "primary", "contradicts"}).Draw(t, "role"), Delta: rapid.Uint64Range(0, 2).Draw(t, "delta")}}}
		list := For(line, c)
		if len(list) > 0 && (line.Packets == 0 || line.Evidence[0].Delta == 0 || line.Evidence[0].Role == "contradicts") {
			t.Fatalf("advice without a loss that moved something: %+v", list)
		}
		for _, a := range list {
			if !a.Proposes() {
				if len(list) > 1 || a.Value+a.Command+a.Undo != "" || a.Note == "" {
					t.Fatalf("%+v: beside a proposal, or with a value of its own, or without a way out, in %+v", a, list)
				}
				continue
			}
			present, value := strings.Fields(a.Present), strings.Fields(a.Value)
			if len(present) != len(value) || len(value) == 0 {
				t.Fatalf("%+v: present and value differ in kind", a)
			}
			for i := range value {
				p, err1 := strconv.ParseUint(present[i], 10, 64)
				v, err2 := strconv.ParseUint(value[i], 10, 64)
				if err1 != nil || err2 != nil || v < p && !strings.HasSuffix(a.Knob, ".threaded") {
					t.Fatalf("%+v: not a raise", a)
				}
			}
			if (a.Command == "") != (a.Undo == "") {
				t.Fatalf("%+v: one command without the other", a)
			}
			for command, value := range map[string]string{a.Command: a.Value, a.Undo: a.Present} {
				if strings.ContainsAny(command, ";&|`$\\\"\n\r()<*?[") && !strings.HasPrefix(command, "echo ") {
					t.Fatalf("%q would be more than a command", command)
				}
				if verb, rest, redirects := strings.Cut(command, " > "); redirects {
					command = verb
					if strings.ContainsAny(rest, " ;&|`$\\'\"\n()<>*?[") || strings.Contains(rest, "..") {
						t.Fatalf("%q writes elsewhere", rest)
					}
				}
				if command == "" {
					continue
				}
				verb, _, _ := strings.Cut(command, " ")
				commands[verb]++
				if w := words(t, command); !strings.HasSuffix(w[len(w)-1], value) && !strings.HasPrefix(command, "echo ") {
					t.Fatalf("%q is %q to a shell, want %q last", command, w, value)
				}
			}
		}
	})
	if len(commands) == 0 && !testing.Short() { // then there are 20 tries
		t.Error("no command was tried")
	}
	t.Logf("commands tried: %v", commands)
}

func FuzzParse(f *testing.F) {
	f.Add("12")
	f.Add("+1")
	f.Add("0x1")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parse(s); ok && strings.TrimLeft(s, "0") != strings.TrimLeft(strconv.FormatUint(n, 10), "0") {
			t.Errorf("parse(%q) = %d", s, n)
		}
	})
}

// TestNothingIsProposedTwice: once a proposal is made, it is proposed no more. One case for each row.
func TestNothingIsProposedTwice(t *testing.T) {
	ring := lost("receiver-ring", "rx-missed", "dev.eth0.rx_missed_errors", "softnet.time_squeeze")
	cases := map[string]struct {
		line model.Line
		c    Context
	}{
		"net.core.rmem_max":           {lost("receiver-buffer", "SOCKET_RCVBUFF", "verdict"), Context{Knobs: knobs("net.core.rmem_max=212992")}},
		"net.ipv4.udp_mem":            {lost("receiver-memory", "PROTO_MEM", "drops"), Context{Knobs: knobs("net.ipv4.udp_mem=1~2~3 page_size_bytes=4096")}},
		"net.core.netdev_max_backlog": {lost("receiver-backlog", "CPU_BACKLOG", "softnet.dropped"), Context{Knobs: knobs("net.core.netdev_max_backlog=1000")}},
		"eth0.rx_ring":                {ring, Context{Knobs: knobs("eth0.txqueuelen=1000 eth0.rx_ring=256 eth0.rx_ring_max=4096")}},
		"eth0.channels_combined":      {ring, Context{Streams: 6, Knobs: knobs("eth0.txqueuelen=1000 eth0.channels_combined=2 eth0.channels_combined_max=4")}},
		"net.core.netdev_budget":      {ring, Context{Knobs: knobs("net.core.netdev_budget=300")}},
		"eth0.threaded":               {lost("receiver-ring", "ring-full", "dev.eth0.tx_dropped"), Context{Knobs: knobs("eth0.txqueuelen=1000 eth0.threaded=1")}},
		"eth0.txqueuelen":             {lost("sender-qdisc", "QDISC_DROP", "verdict"), Context{Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=pfifo_fast")}},
		"net.core.wmem_max":           {lost("send-call", "EAGAIN", "send errors EAGAIN"), Context{Knobs: knobs("net.core.wmem_max=212992 eth0.txqueuelen=1000")}},
		"socket.receive_buffer":       {lost("receiver-buffer", "SOCKET_RCVBUFF", "verdict"), Context{BufferBytes: 1 << 16, Knobs: knobs("net.core.rmem_max=67108864")}},
		"eth0.channels_rx":            {ring, Context{Streams: 6, Knobs: knobs("eth0.txqueuelen=1000 eth0.channels_rx=2 eth0.channels_rx_max=4")}},
		"eth0.qdisc_limit_packets":    {lost("sender-qdisc", "QDISC_DROP", "verdict"), Context{Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=pfifo eth0.qdisc_limit_packets=50")}},
		"eth0.qdisc_flow_limit_packets": {lost("sender-qdisc", "FQ_FLOW_LIMIT", "verdict"),
			Context{Knobs: knobs("eth0.txqueuelen=1000 eth0.qdisc=fq eth0.qdisc_flow_limit_packets=50")}},
		"net.ipv6.neigh.eth0.unres_qlen_bytes": {lost("sender-device", "NEIGH_QUEUEFULL", "ndisc_cache.unresolved_discards"),
			Context{Knobs: knobs("net.ipv6.neigh.eth0.unres_qlen_bytes=212992 eth0.txqueuelen=1")}},
		"net.ipv4.neigh.eth0.unres_qlen_bytes": {lost("sender-device", "NEIGH_QUEUEFULL", "verdict"),
			Context{Knobs: knobs("net.ipv4.neigh.eth0.unres_qlen_bytes=212992 eth0.txqueuelen=1")}},
		"net.ipv4.conf.eth0.rp_filter": {lost("receiver-ip", "IP_RPFILTER", "verdict"), Context{Knobs: knobs("net.ipv4.conf.eth0.rp_filter=1 eth0.txqueuelen=1")}},
		"net.netfilter.nf_conntrack_max": {lost("receiver-filter", "NETFILTER_DROP", "verdict", "conntrack.drop"),
			Context{Knobs: knobs("net.netfilter.nf_conntrack_max=100 net.netfilter.nf_conntrack_count=99")}},
		"cpu.governor": {lost("receiver-backlog", "CPU_BACKLOG", "softnet.dropped"), Context{Knobs: knobs("cpu.governor=powersave")}},
	}
	for _, r := range rows {
		if _, ok := cases[strings.Replace(r.knob, "DEV", "eth0", 1)]; !ok {
			t.Errorf("no case for %s", r.knob)
		}
	}
	for knob, c := range cases {
		c.c.RatePPS, c.c.PayloadBytes = 1e6, 64
		first := For(c.line, c.c)
		if len(first) == 0 || first[0].Knob != knob || !first[0].Proposes() {
			t.Errorf("%s: at first %+v", knob, first)
			continue
		}
		for i, k := range c.c.Knobs {
			if k.Name == first[0].Knob {
				c.c.Knobs[i].Value = first[0].Value
			}
		}
		if first[0].Knob == bufferKnob {
			c.c.BufferBytes, _ = strconv.Atoi(first[0].Value)
		}
		then := For(c.line, c.c)
		for _, s := range then {
			if s.Proposes() == (s.Value == "") || s.Value == s.Present || !s.Proposes() && len(then) > 1 {
				t.Errorf("%s: once it is %s: %+v", knob, first[0].Value, then)
			}
		}
	}
}
