package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pelt/model"
)

// liveDrops are some seconds of a busy host.
func liveDrops() []model.LiveDrops {
	kind, code := 3, 3
	drop := func(layer, reason, function, protocol, from, to string, n, total uint64) model.LiveDrop {
		return model.LiveDrop{Layer: layer, Reason: reason, Function: function, Interface: "eth0", Namespace: "host", Received: true, Protocol: protocol,
			From: from, To: to, PPS: float64(n), Packets: n, Bytes: n * 100, Total: total}
	}
	first := model.LiveDrops{Format: model.DropsFormat, At: time.Date(2026, 11, 14, 18, 30, 1, 0, time.Local), IntervalS: 1, Packets: 21412, Total: 21412, Drops: []model.LiveDrop{
		drop("receiver-buffer", "SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", "udp", "10.0.0.1:5201", "10.0.0.2:41000", 20000, 20000),
		drop("receiver-filter", "NETFILTER_DROP", "nft_do_chain", "tcp", "[2001:db8::17]:443", "[2001:db8:1:2:3:4:5:6]:60001", 1400, 1400),
		drop("", "PACKET_SOCK_ERROR", "packet_rcv", "udp", "10.0.0.1:5201", "10.0.0.2:41000", 7, 7),
		drop("receiver-ip", "IP_INADDRERRORS", "ip_error", "icmp", "10.0.0.9", "10.0.0.2", 3, 3),
		drop("network", "NO_TX_TARGET", "br_handle_frame_finish", "arp", "", "", 2, 2),
	}}
	first.Drops[2].Ordinary = true
	first.Drops[3].ICMPType, first.Drops[3].ICMPCode = &kind, &code
	second := model.LiveDrops{Format: model.DropsFormat, At: first.At.Add(time.Second), IntervalS: 1, Packets: 31, Total: 21443, SitesLost: 4, Unwatched: 2,
		Why: "kptr_restrict hides the kernel's addresses: functions have no names", Drops: []model.LiveDrop{
			drop("receiver-filter", "NETFILTER_DROP", "nft_do_chain", "tcp", "[2001:db8::17]:443", "[2001:db8:1:2:3:4:5:6]:60001", 30, 1430),
			{Layer: "sender-qdisc", Reason: "QDISC_DROP", Function: "__dev_queue_xmit", Rest: true, PPS: 1, Packets: 1, Total: 1},
		}}
	return []model.LiveDrops{first, second}
}

func TestDropsGolden(t *testing.T) {
	for _, c := range []struct {
		name        string
		width, rows int
		all         bool
	}{{"wide", 150, 30, false}, {"narrow", 80, 30, true}, {"low", 100, 6, false}} {
		v := NewDropsView("all traffic", c.all)
		var b bytes.Buffer
		fmt.Fprintln(&b, v.Table(c.width, c.rows, false))
		for _, d := range liveDrops() {
			v.Add(d)
			fmt.Fprintln(&b, v.Table(c.width, c.rows, false))
			fmt.Fprintln(&b, v.Lines())
		}
		sum := liveDrops()[0]
		sum.Sum, sum.IntervalS = true, 12.34
		if err := DropsSum(&b, sum, "all traffic", c.all, c.width, false); err != nil {
			t.Fatal(err)
		}
		golden(t, "drops-"+c.name+".txt", b.Bytes())
	}
}

// A table that is redrawn must never wrap or scroll.
func TestDropsTableFits(t *testing.T) {
	hostile := liveDrops()
	hostile[1].Why = "a\x1b[2J\nb"
	hostile[1].Drops[1].Reason = "\x1b]0;x\a" + strings.Repeat("LONG", 40)
	for i := range 300 {
		x := hostile[0].Drops[0]
		x.From = fmt.Sprintf("[2001:db8:1111:2222:3333:4444:5555:%x]:65535", i)
		hostile[0].Drops = append(hostile[0].Drops, x)
	}
	for _, width := range []int{40, 80, 150} {
		for _, lines := range []int{1, 3, 8, 24, 100} {
			v := NewDropsView("all traffic", false)
			for _, d := range hostile {
				v.Add(d)
			}
			text := style.ReplaceAllString(v.Table(width, lines, true), "")
			if strings.ContainsAny(text, "\x1b\a") {
				t.Fatalf("outside control characters reached the terminal: %q", text)
			}
			all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if len(all) > lines {
				t.Errorf("%d lines; want at most %d", len(all), lines)
			}
			for _, line := range all {
				if utf8.RuneCountInString(line) > width {
					t.Errorf("line of %d characters at width %d: %q", utf8.RuneCountInString(line), width, line)
				}
			}
		}
	}
}

func TestDropsJSONIsOneLine(t *testing.T) {
	var b bytes.Buffer
	for _, d := range liveDrops() {
		if err := DropsJSON(&b, d); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines of 2 intervals", len(lines))
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil || got["format"] != "pelt/drops/1" {
		t.Errorf("%v, %v", got["format"], err)
	}
	full := errors.New("no space left on device")
	if err := errors.Join(DropsJSON(failing{full}, liveDrops()[0]), DropsSum(failing{full}, liveDrops()[0], "x", true, 80, false)); !errors.Is(err, full) {
		t.Errorf("%v; want the writer's error", err)
	}
}
