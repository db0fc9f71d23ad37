package advice

import (
	"fmt"
	"maps"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/ledger"
	"pelt/model"
	"pelt/test/golden"
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

// asked is what a line of testdata/advice.txt asks.
func asked(t testing.TB, question string) (model.Line, Context) {
	parts := strings.Split(question+" | | ", " | ")
	words := strings.Fields(parts[0])
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "~", " ")
	}
	l, c := lost(words[0], words[1], words[2], words[3:]...), Context{Knobs: knobs(parts[2])}
	for _, word := range strings.Fields(parts[1]) {
		name, text, _ := strings.Cut(word, "=")
		n, err := strconv.ParseFloat(text, 64)
		switch name {
		case "interface":
			l.Interface, err = text, nil
		case "function":
			l.Function, err = text, nil
		case "packets":
			l.Packets = uint64(n)
		case "excess":
			l.Evidence[0].Excess = uint64(n)
		case "rate":
			c.RatePPS = n
		case "streams":
			c.Streams = int(n)
		case "payload":
			c.PayloadBytes = int(n)
		case "buffer":
			c.BufferBytes = int(n)
		case "burst":
			c.BurstPackets = int(n)
		case "truesize":
			c.TruesizeBytes = int(n)
		}
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
	}
	return l, c
}

// said are the codes of reasons, with their figures.
func said(why model.Doubts) string {
	var list []string
	for _, r := range why {
		text := strings.TrimSpace(r.Code + " " + r.Name)
		for _, name := range slices.Sorted(maps.Keys(r.Numbers)) {
			text += fmt.Sprintf(" %s=%v", name, r.Numbers[name])
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// TestAdvice: each line of the file is a loss, what is known of its flow, and settings of its host. Below stands what
// is advised, why, and with which command. Once that is done, the same value is not proposed again.
func TestAdvice(t *testing.T) {
	testenv.Tool(t, "sh")
	proposed := map[string]bool{}
	golden.Table(t, "testdata/advice.txt", func(question string) string {
		line, c := asked(t, question)
		var out strings.Builder
		list := For(line, c)
		for _, s := range list {
			fmt.Fprintf(&out, "%s: %s -> %s. %s", s.Knob, s.Present, s.Value, said(s.Why))
			if s.Command != "" {
				fmt.Fprintf(&out, " [%s] [%s]", s.Command, s.Undo)
			}
			out.WriteString(strings.TrimSuffix(" "+said(s.Note), " ") + "\n")
			if s.Why == nil || s.Host != line.Host {
				t.Errorf("%+v lacks a reason or host", s)
			}
			if proposed := s.Value != ""; (s.Command == "") == proposed || s.Command == "" && s.Note == nil {
				t.Errorf("%+v says nothing to do, or has a command without a value", s)
			}
			checkCommands(t, s)
		}
		if len(list) == 0 {
			return "nothing"
		}
		if !list[0].Proposes() {
			return out.String()
		}
		proposed[list[0].Knob] = true
		for i, k := range c.Knobs {
			if k.Name == list[0].Knob {
				c.Knobs[i].Value = list[0].Value
			}
		}
		if list[0].Knob == bufferKnob {
			c.BufferBytes, _ = strconv.Atoi(list[0].Value)
		}
		then := For(line, c)
		for _, s := range then {
			if s.Proposes() == (s.Value == "") || s.Value == s.Present || !s.Proposes() && len(then) > 1 {
				t.Errorf("%s: once %s is %s: %+v", question, list[0].Knob, list[0].Value, then)
			}
		}
		return out.String()
	})
	for _, r := range rows {
		if !proposed[strings.Replace(r.knob, "DEV", "eth0", 1)] {
			t.Errorf("no line of the file has %s proposed first", r.knob)
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

// checkCommands wants commands that a shell takes as meant: one command each, which sets one value.
func checkCommands(t rapid.TB, a model.Advice) {
	t.Helper()
	if (a.Command == "") != (a.Undo == "") {
		t.Fatalf("%+v: one command without the other", a)
	}
	for command, value := range map[string]string{a.Command: a.Value, a.Undo: a.Present} {
		said, file, _ := strings.Cut(command, " > ")
		if strings.ContainsAny(said+file, ";&|`$\\\"\n\r()<>*?[") || strings.ContainsAny(file, " '") ||
			strings.Contains(file, "..") {
			t.Fatalf("%q would be more than a command, or write elsewhere", command)
		}
		if command == "" {
			continue
		}
		if w := words(t, said); !strings.HasSuffix(w[len(w)-1], value) {
			t.Fatalf("%q is %q to a shell, want %q last", command, w, value)
		}
	}
}

// Whatever a host says of itself: no advice without a loss that something
// confirms, nothing below the present, and commands that a shell takes as meant.
func TestAdviceOfAnyHost(t *testing.T) {
	names := []string{"net.core.rmem_max", "net.core.wmem_max", "net.core.netdev_max_backlog",
		"net.core.netdev_budget", "net.ipv4.udp_mem", "page_size_bytes",
		"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_count", "net.ipv4.conf.all.rp_filter",
		"net.ipv4.ipfrag_high_thresh", "cpu.governor"}
	perDevice := []string{".txqueuelen", ".rx_ring", ".rx_ring_max", ".channels_combined", ".channels_combined_max",
		".threaded", ".qdisc", ".qdisc_limit_packets"}
	testenv.Tool(t, "sh")
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) string { return strconv.FormatUint(rapid.Uint64().Draw(t, "n"), 10) })
		value := rapid.OneOf(number, rapid.Just("1"), rapid.Just("1000"), rapid.Just("1000"), rapid.Just("10 20 30"),
			rapid.SampledFrom([]string{"fq", "pfifo", "pfifo_fast"}),
			rapid.Map(rapid.Uint64Range(0, 5000), func(n uint64) string { return strconv.FormatUint(n, 10) }),
			rapid.String(),
			rapid.SampledFrom([]string{"1 2 3", "fq", "mq", "pfifo", "pfifo_fast", "$(reboot)", "1'; reboot; '", "-1",
				"0x10", "1e9", "", "1\n2", "9 8 7", "1 1 1 1"}))
		dev := rapid.OneOf(rapid.SampledFrom([]string{"eth0", "eth0", "eth0", "eth0.10", "eth0.10", "a;b", "$(x)",
			"-G", "a b", "a'b", "..", "../x", "`x`", "é"}), rapid.String()).Draw(t, "device")
		c := Context{RatePPS: rapid.OneOf(rapid.Float64Range(1e3, 1e7), rapid.Float64Range(1e5, 1e7), rapid.Float64(),
			rapid.Just(math.NaN()), rapid.Just(math.Inf(1))).Draw(t, "rate"),
			Streams: rapid.IntRange(-3, 200).Draw(t, "streams"), PayloadBytes: rapid.OneOf(rapid.IntRange(16, 1472),
				rapid.Int()).Draw(t, "payload"),
			BufferBytes:   rapid.OneOf(rapid.IntRange(0, 1<<24), rapid.Int()).Draw(t, "buffer"),
			TruesizeBytes: rapid.OneOf(rapid.Just(0), rapid.Int()).Draw(t, "truesize")}
		for _, n := range names {
			c.Knobs = append(c.Knobs, model.HostSetting{Name: n, Value: value.Draw(t, n)})
		}
		for _, n := range perDevice {
			c.Knobs = append(c.Knobs, model.HostSetting{Name: dev + n, Value: value.Draw(t, n)})
		}
		c.Knobs = append(c.Knobs, model.HostSetting{Name: "net.ipv4.conf." + dev + ".rp_filter",
			Value: value.Draw(t, "rp")}, model.HostSetting{Name: "net.ipv4.neigh." + dev + ".unres_qlen_bytes",
			Value: value.Draw(t, "neigh")})
		layer, cause, _ := strings.Cut(rapid.SampledFrom([]string{"receiver-buffer SOCKET_RCVBUFF",
			"receiver-memory PROTO_MEM", "receiver-backlog CPU_BACKLOG", "network CPU_BACKLOG",
			"receiver-ring rx-missed", "receiver-ring ring-full", "sender-qdisc ENOBUFS", "network QDISC_DROP",
			"send-call EAGAIN", "sender-device NEIGH_QUEUEFULL", "receiver-ip IP_RPFILTER",
			"receiver-ip FRAG_MEMORY", "receiver-filter NETFILTER_DROP", "application late"}).Draw(t, "place"), " ")
		counter := rapid.SampledFrom([]string{"conntrack.drop", "softnet.time_squeeze", "x"}).Draw(t, "counter")
		role := rapid.SampledFrom([]string{"primary", "confirms", "primary", "contradicts"}).Draw(t, "role")
		line := model.Line{Layer: layer, Host: "h", Interface: dev, Cause: cause,
			Packets:  rapid.Uint64Range(0, 3).Draw(t, "packets"),
			Evidence: []model.Evidence{{Counter: counter, Role: role, Delta: rapid.Uint64Range(0, 2).Draw(t, "delta")}}}
		list := For(line, c)
		if len(list) > 0 && (line.Packets == 0 || line.Evidence[0].Delta == 0 ||
			line.Evidence[0].Role == "contradicts") {
			t.Fatalf("advice without a loss that moved something: %+v", list)
		}
		for _, a := range list {
			if !a.Proposes() {
				if len(list) > 1 || a.Value+a.Command+a.Undo != "" || a.Note == nil {
					t.Fatalf("%+v: beside a proposal, or with a value of its own, or without a way out, in %+v", a,
						list)
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
			checkCommands(t, a)
		}
	})
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

// Each setting is for causes that the ledger has.
func TestRowsHaveCauses(t *testing.T) {
	for _, r := range rows {
		for name := range strings.FieldsSeq(r.causes) {
			known := func(layer string) bool { return ledger.Of(layer, name).Name == name }
			if !slices.ContainsFunc(model.Layers(), known) {
				t.Errorf("%s is for %s, which is no cause", r.knob, name)
			}
		}
	}
}
