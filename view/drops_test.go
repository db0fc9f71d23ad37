package view_test

import (
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/test/golden"
	"pelt/view"
	"pelt/words"
)

// liveDrops are two seconds of a busy host.
func liveDrops() []model.LiveDrops {
	kind := 3
	drop := func(layer, reason, function, protocol, from, to string, n, total uint64) model.LiveDrop {
		return model.LiveDrop{Layer: layer, Reason: reason, Function: function, Interface: "eth0", Namespace: "host",
			Received: true,
			Protocol: protocol, From: from, To: to, PPS: float64(n), Packets: n, Bytes: n * 100, Total: total}
	}
	filter := func(n, total uint64) model.LiveDrop {
		return drop("receiver-filter", "NETFILTER_DROP", "nft_do_chain", "tcp", "[2001:db8::17]:443",
			"[2001:db8:1:2:3:4:5:6]:60001", n, total)
	}
	first := model.LiveDrops{Format: model.DropsFormat, At: time.Date(2026, 11, 14, 18, 30, 1, 0, time.Local),
		IntervalS: 1,
		Packets:   21412, Total: 21412, Drops: []model.LiveDrop{
			drop("receiver-buffer", "SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", "udp", "10.0.0.1:5201",
				"10.0.0.2:41000", 20000, 20000),
			filter(1400, 1400),
			drop("", "PACKET_SOCK_ERROR", "packet_rcv", "udp", "10.0.0.1:5201", "10.0.0.2:41000", 7, 7),
			drop("receiver-ip", "IP_INADDRERRORS", "ip_error", "icmp", "10.0.0.9", "10.0.0.2", 3, 3),
			drop("network", "NOT_SPECIFIED", "br_handle_frame_finish\x1b[2J", "arp", "", "", 2, 2)}}
	first.Drops[2].Ordinary = true
	first.Drops[3].ICMPType, first.Drops[3].ICMPCode = &kind, &kind
	second := model.LiveDrops{Format: model.DropsFormat, At: first.At.Add(time.Second), IntervalS: 1, Packets: 31,
		Total:     21443,
		SitesLost: 4, Unwatched: 2, Why: model.Reasons{{Code: model.NamesHidden}}, Drops: []model.LiveDrop{
			filter(30, 1430), {Layer: "sender-qdisc", Reason: "QDISC_DROP", Function: "__dev_queue_xmit", Rest: true,
				PPS: 1, Packets: 1, Total: 1}}}
	return []model.LiveDrops{first, second}
}

func TestDropsPages(t *testing.T) {
	for name, all := range map[string]bool{"drops": false, "drops-all": true} {
		d := view.NewDrops(words.English, map[bool]string{true: "port 5201"}[all], all)
		out := text(t, d.Page(), false)
		for _, x := range liveDrops() {
			d.Add(x)
			total := 0.0
			for _, s := range d.Gauges()[0].Samples {
				total += s.Value
			}
			if all && total != float64(x.Total) {
				t.Errorf("the gauges have %v packets of %d", total, x.Total)
			}
			out += strings.Repeat("=", 80) + "\n" + text(t, d.Page(),
				false) + "\n" + strings.Join(view.DropLines(words.English, x, all), "\n") + "\n"
		}
		sum := liveDrops()[0]
		sum.Sum, sum.IntervalS = true, 12.34
		out += strings.Repeat("=", 80) + "\n" + text(t, view.DropsTotal(words.English, sum, "", all), true)
		golden.File(t, "testdata/"+name+".txt", out)
		if strings.Contains(out, "\x1b") {
			t.Error("an escape sequence of outside reached the terminal")
		}
	}
}
