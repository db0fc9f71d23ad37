package ledger

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"pelt/model"
)

// fault is one row of what faults made on purpose did on Linux 6.18: where the
// kernel let go of the packet, and which counters moved by one for each.
type fault struct {
	reason, function string
	at               string // namespace of the verdict: snd, rcv, "" unknown
	received         bool
	snd, rcv         string // counters that moved; ! before one that is read and did not
	errno            string // that send() returned, with IP_RECVERR
	socket           bool   // SO_MEMINFO drops moved
	unread           bool
	silent           bool   // the sender's next hop answers no lookup
	on, off          string // layer/cause by the watch, and without it: the same if it is "", none if it is -
}

var faults = map[string]fault{
	"tiny SO_RCVBUF": {reason: "SOCKET_RCVBUFF", function: "udp_queue_rcv_one_skb", at: "rcv", received: true,
		rcv: "Udp.RcvbufErrors Udp.InErrors", socket: true, on: "receiver-buffer/SOCKET_RCVBUFF"},
	"memcg socket limit": {reason: "PROTO_MEM", function: "__udp_enqueue_schedule_skb", at: "rcv", received: true,
		rcv: "!Udp.RcvbufErrors !Udp.InErrors", socket: true, on: "receiver-memory/PROTO_MEM"},
	"closed port": {reason: "NO_SOCKET", function: "__udp4_lib_rcv", at: "rcv", received: true, rcv: "Udp.NoPorts",
		on: "receiver-udp/NO_SOCKET"},
	"bad checksum, 64 B": {reason: "UDP_CSUM", function: "__udp4_lib_rcv", at: "rcv", received: true,
		rcv: "Udp.InCsumErrors Udp.InErrors", on: "receiver-udp/UDP_CSUM"},
	"bad checksum, 300 B": {reason: "UDP_CSUM", function: "udp_recvmsg", rcv: "Udp.InCsumErrors Udp.InErrors",
		received: true, socket: true, on: "receiver-udp/UDP_CSUM"},
	"socket filter": {reason: "SOCKET_FILTER", function: "udp_queue_rcv_one_skb", at: "rcv", received: true,
		rcv: "Udp.InErrors !Udp.RcvbufErrors", socket: true, on: "receiver-udp/SOCKET_FILTER"},
	"close with unread": {reason: "NOT_SPECIFIED", function: "udp_destruct_common", at: "rcv", received: true,
		unread: true, on: "application/unread"},
	"nft input drop": {reason: "NETFILTER_DROP", function: "nft_do_chain", at: "rcv", received: true,
		on: "receiver-filter/NETFILTER_DROP", off: "receiver-ip/IP_GAP"},
	"nft input drop with a counter": {reason: "NETFILTER_DROP", function: "nft_do_chain", at: "rcv", received: true,
		rcv: "nft.inet.filter.input.5.packets", on: "receiver-filter/NETFILTER_DROP"},
	"nft output drop": {reason: "NETFILTER_DROP", function: "nft_do_chain", at: "snd",
		snd: "Ip.OutDiscards Ip.OutRequests", errno: "EPERM", on: "send-call/EPERM"},
	"tbf full": {reason: "QDISC_DROP", function: "__dev_queue_xmit", at: "snd",
		snd: "qdisc.eth0.tbf.1:.drops Ip.OutDiscards Udp.SndbufErrors", errno: "ENOBUFS", on: "sender-qdisc/QDISC_DROP",
		off: "sender-qdisc/ENOBUFS"},
	"tbf full, without IP_RECVERR": {reason: "QDISC_DROP", function: "__dev_queue_xmit", at: "snd",
		snd: "qdisc.eth0.tbf.1:.drops Ip.OutDiscards Udp.SndbufErrors", on: "sender-qdisc/QDISC_DROP"},
	"tc egress": {reason: "TC_EGRESS", function: "__dev_queue_xmit", at: "snd",
		snd: "qdisc.eth0.clsact.ffff:.drops Ip.OutDiscards Udp.SndbufErrors", errno: "ENOBUFS",
		on: "sender-qdisc/TC_EGRESS"},
	"tc egress, without IP_RECVERR": {reason: "TC_EGRESS", function: "__dev_queue_xmit", at: "snd",
		snd: "qdisc.eth0.clsact.ffff:.drops Ip.OutDiscards Udp.SndbufErrors", on: "sender-qdisc/TC_EGRESS"},
	"tc ingress": {reason: "TC_INGRESS", function: "__netif_receive_skb_core.constprop.0", at: "rcv", received: true,
		rcv: "qdisc.eth1.clsact.ffff:.drops", on: "receiver-tc/TC_INGRESS"},
	"tcx ingress": {reason: "TC_INGRESS", function: "__netif_receive_skb_core.constprop.0", at: "rcv", received: true,
		on: "receiver-tc/TC_INGRESS", off: "receiver-tc/between-device-and-ip"},
	"XDP generic": {reason: "NOT_SPECIFIED", function: "do_xdp_generic", at: "rcv", on: "receiver-xdp/XDP",
		off: "receiver-tc/between-device-and-ip"},
	"XDP native": {reason: "NOT_SPECIFIED", function: "veth_xdp_rcv_skb", at: "rcv",
		rcv: "ethtool.eth1.rx_queue_0_xdp_drops", on: "receiver-xdp/XDP"},
	"small send buffer":  {snd: "Udp.SndbufErrors Ip.OutDiscards", errno: "EAGAIN", on: "send-call/EAGAIN"},
	"DF beyond the MTU":  {errno: "EMSGSIZE", on: "send-call/EMSGSIZE"},
	"pending ICMP error": {snd: "Ip.OutDiscards", errno: "ECONNREFUSED", on: "send-call/ECONNREFUSED"},
	"wrong link address": {reason: "OTHERHOST", function: "ip_rcv_core", at: "rcv", received: true,
		rcv: "dev.eth1.rx_otherhost_dropped", on: "receiver-ip/OTHERHOST"},
	"not a local address": {reason: "IP_INADDRERRORS", function: "ip_error", at: "rcv", received: true,
		rcv: "Ip.InAddrErrors", on: "receiver-ip/IP_INADDRERRORS"},
	"rp_filter": {reason: "IP_RPFILTER", function: "ip_rcv_finish_core", at: "rcv", received: true,
		rcv: "TcpExt.IPReversePathFilter", on: "receiver-ip/IP_RPFILTER"},
	"first fragment only": {reason: "FRAG_REASM_TIMEOUT", function: "ip_expire", at: "rcv", received: true,
		rcv: "Ip.ReasmTimeout Ip.ReasmFails", on: "receiver-ip/FRAG_REASM_TIMEOUT"},
	"unresolved neighbour": {reason: "NEIGH_QUEUEFULL", function: "__neigh_event_send", at: "snd",
		snd: "arp_cache.unresolved_discards", silent: true, on: "sender-device/NEIGH_QUEUEFULL"},
	"neighbour failed": {reason: "NEIGH_FAILED", function: "neigh_invalidate", at: "snd",
		on: "sender-device/NEIGH_FAILED", off: "-"},
	"no carrier": {reason: "QDISC_DROP", function: "__dev_queue_xmit", at: "snd",
		snd: "dev.eth0.tx_dropped !Ip.OutDiscards", on: "sender-device/NO_CARRIER", off: "sender-device/tx-dropped"},
	"backlog of a veth": {reason: "CPU_BACKLOG", function: "enqueue_to_backlog", at: "rcv",
		snd: "Ip.OutDiscards Udp.SndbufErrors dev.eth0.tx_dropped softnet.dropped",
		rcv: "dev.eth1.rx_dropped softnet.dropped", errno: "ENOBUFS", on: "receiver-backlog/CPU_BACKLOG"},
	"backlog of a veth, without IP_RECVERR": {reason: "CPU_BACKLOG", function: "enqueue_to_backlog", at: "rcv",
		snd: "Ip.OutDiscards Udp.SndbufErrors dev.eth0.tx_dropped softnet.dropped",
		rcv: "dev.eth1.rx_dropped softnet.dropped", on: "receiver-backlog/CPU_BACKLOG"},
	"backlog behind a qdisc": {reason: "CPU_BACKLOG", function: "enqueue_to_backlog", at: "rcv",
		snd: "dev.eth0.tx_dropped softnet.dropped", rcv: "dev.eth1.rx_dropped softnet.dropped",
		on: "receiver-backlog/CPU_BACKLOG"},
	"backlog in NAPI mode": {reason: "CPU_BACKLOG", function: "enqueue_to_backlog", at: "rcv",
		snd: "softnet.dropped dev.eth0.tx_packets", rcv: "dev.eth1.rx_dropped dev.eth1.rx_packets softnet.dropped",
		on: "receiver-backlog/CPU_BACKLOG"},
	"veth ring": {reason: "NOT_SPECIFIED", function: "veth_xmit", at: "rcv",
		snd: "dev.eth0.tx_dropped Ip.OutDiscards Udp.SndbufErrors", rcv: "!dev.eth1.rx_dropped !softnet.dropped",
		errno: "ENOBUFS", on: "receiver-ring/ring-full"},
	"veth ring, without IP_RECVERR": {reason: "NOT_SPECIFIED", function: "veth_xmit", at: "rcv",
		snd: "dev.eth0.tx_dropped Ip.OutDiscards Udp.SndbufErrors", rcv: "!dev.eth1.rx_dropped !softnet.dropped",
		on: "receiver-ring/ring-full"},
	"veth ring behind a qdisc": {reason: "QDISC_DROP", function: "__dev_queue_xmit", at: "snd",
		snd: "qdisc.eth0.tbf.1:.drops Ip.OutDiscards Udp.SndbufErrors", errno: "ENOBUFS", on: "sender-qdisc/QDISC_DROP",
		off: "sender-qdisc/ENOBUFS"},
	"bridge port disabled": {reason: "BRIDGE_INGRESS_STP_STATE", function: "br_handle_frame", at: "mid", received: true,
		on: "network/BRIDGE_INGRESS_STP_STATE", off: "network/wire/DUT (by elimination)"},
	"bridge, unknown unicast, one port": {reason: "NO_TX_TARGET", function: "br_handle_frame_finish", at: "mid",
		received: true, on: "network/NO_TX_TARGET", off: "network/wire/DUT (by elimination)"},
	"nft bridge drop": {reason: "NETFILTER_DROP", function: "nft_do_chain", at: "mid", received: true,
		on: "network/NETFILTER_DROP", off: "network/wire/DUT (by elimination)"},
	"tun without a reader": {reason: "FULL_RING", function: "tun_net_xmit", at: "mid", received: true,
		on: "network/FULL_RING", off: "network/wire/DUT (by elimination)"},
}

const faultLost, faultSent = 100, 1000

// input is a trial between two namespaces of one machine with that fault.
func (f fault) input(watch bool) Input {
	in := Input{
		Sender: "sender", Receiver: "receiver", Flow: "up", Planned: faultSent, Attempted: faultSent, Accepted: faultSent,
		Streams: []uint64{faultSent}, Received: faultSent - faultLost, MissingKnown: true, Missing: []model.Marks{marks(50, faultLost, 0)},
		SocketKnown: true, DurationS: 1, Fragments: 1,
	}
	if f.errno != "" {
		in.SendErrors = map[string]uint64{f.errno: faultLost}
		in.Accepted -= faultLost
		in.Errnos, in.Refused = []string{f.errno}, []model.Marks{marks(50, faultLost, 0)}
	}
	if f.socket {
		in.SocketDrops = faultLost
	}
	if f.unread {
		in.Unread = faultLost
	}
	node := func(namespace uint64, moved, zero string) *model.Observation {
		return &model.Observation{Boot: "one", Namespace: namespace, Mode: model.DropsOff,
			Counters: append(counters(zero, 0), counters(moved, faultLost)...)}
	}
	snd := node(1, f.snd, "softnet.dropped")
	snd.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "eth0", NoAnswer: f.silent}}
	rcv := node(2, f.rcv, "softnet.dropped Udp.NoPorts Udp.InErrors")
	snd.Counters = append(snd.Counters, f.sent()...)
	rcv.Counters = append(rcv.Counters, f.came()...)
	if watch && f.reason != "" {
		namespaces := map[string]uint64{"snd": 1, "rcv": 2, "mid": 3}
		d := &model.Drops{
			Sites: []model.Site{{Reason: f.reason, Function: f.function, Namespace: namespaces[f.at],
				Interface: "veth7", Received: f.received}},
			Flows: []model.FlowDrops{{Flow: "up", Streams: []model.Marks{marks(50, faultLost, 0)},
				Counts: []model.SiteCount{{Site: 0, Packets: faultLost}}}},
		}
		snd.Mode, rcv.Mode, snd.Drops, rcv.Drops = model.DropsSeq, model.DropsSeq, d, d
	}
	in.Nodes = []Node{{Name: "sender", Observation: snd, Out: []string{"eth0"}},
		{Name: "receiver", Observation: rcv, In: []string{"eth1"}}}
	return in
}

// sent is what the sender counted of packets that got past each place.
func (f fault) sent() []model.Counter {
	udp, device := uint64(faultSent), uint64(faultSent)
	if f.errno != "" || strings.Contains(f.snd, "SndbufErrors") {
		udp -= faultLost
	}
	if layer, _, _ := strings.Cut(f.on, "/"); layerPlace(layer) < layerPlace(model.LayerNetwork) ||
		strings.Contains(f.snd, "tx_dropped") || strings.Contains(f.snd, "tx_packets") {
		device -= faultLost
	}
	return append(counters("Udp.OutDatagrams", udp), counters("dev.eth0.tx_packets", device)...)
}

// came is what the receiver counted of them.
func (f fault) came() (list []model.Counter) {
	device, ip, udp := uint64(faultSent-faultLost), uint64(faultSent-faultLost), uint64(faultSent-faultLost)
	switch layer, _, _ := strings.Cut(f.on, "/"); layer {
	case model.LayerReceiverBuffer, model.LayerReceiverMemory, model.LayerReceiverUDP, model.LayerApplication:
		device, ip, udp = faultSent, faultSent, faultSent
	case model.LayerReceiverFilter, model.LayerReceiverIP:
		device, ip = faultSent, faultSent
	case model.LayerReceiverTC, model.LayerReceiverXDP:
		device = faultSent
	}
	if strings.Contains(f.rcv, "rx_otherhost") {
		ip -= faultLost
	}
	for name, n := range map[string]uint64{"dev.eth1.rx_packets": device, "Ip.InReceives": ip, "Ip.InDelivers": udp,
		"Udp.InDatagrams": faultSent - faultLost} {
		list = append(list, counters(name, n)...)
	}
	return list
}

// counters makes counters of names in one line that moved by n, those with a !
// by nothing.
func counters(names string, n uint64) (list []model.Counter) {
	for _, name := range strings.Fields(names) {
		c := model.Counter{Name: name, Scope: "namespace", Unit: "skb", Before: 5, After: 5 + n, Whole: n, Measure: n}
		if zero, ok := strings.CutPrefix(name, "!"); ok {
			c.Name, c.After, c.Whole, c.Measure = zero, 5, 0, 0
		}
		switch kind, _, _ := strings.Cut(c.Name, "."); kind {
		case "dev", "qdisc", "ethtool":
			c.Scope = "device"
		case "softnet", "arp_cache":
			c.Scope = "host"
		}
		list = append(list, c)
	}
	return list
}

func TestEveryFaultIsNamed(t *testing.T) {
	for name, f := range faults {
		for watch, want := range map[bool]string{true: f.on, false: cmp.Or(f.off, f.on)} {
			t.Run(fmt.Sprintf("%s, watched %v", name, watch), func(t *testing.T) {
				in := f.input(watch)
				l := Balance(in)
				agree(t, in, l)
				if want == "-" { // no counter tells
					if len(l.Lines) != 0 || l.Unattributed != faultLost {
						t.Fatalf("got %s, want all unattributed", words(l))
					}
					return
				}
				if len(l.Lines) != 1 || l.Unattributed != 0 || l.Lines[0].Layer+"/"+l.Lines[0].Cause != want {
					t.Fatalf("got %s, want one line %s", words(l), want)
				}
				line := l.Lines[0]
				if exact := line.Confidence == ExactSeq; watch &&
					(!exact || len(line.Sequences) != 1 ||
						line.Sequences[0] != (model.Span{From: 50, Count: faultLost})) {
					t.Errorf("got %+v, want exact-seq with its sequences", line)
				}
				if watch && f.reason != "" && f.errno != "EPERM" &&
					(line.Function != f.function || line.Interface != "veth7") {
					t.Errorf("got function %q at %q, want %q", line.Function, line.Interface, f.function)
				}
				host := map[string]string{"send": "sender", "rece": "receiver", "appl": "receiver",
					"netw": "another namespace"}[line.Layer[:4]]
				if line.Cause == model.CauseElimination {
					host = "" // somewhere between
				}
				if line.Host != host {
					t.Errorf("got host %q, want %q", line.Host, host)
				}
				for _, e := range line.Evidence {
					if e.Role == "contradicts" || e.Excess != 0 {
						t.Errorf("evidence %+v speaks against a true line", e)
					}
				}
				for _, c := range l.Checks {
					if !c.Held {
						t.Errorf("check %+v", c)
					}
				}
			})
		}
	}
}

// The matrix at its fullest: five faults at once, on packets of their own.
func TestFaultsTogether(t *testing.T) {
	together := []string{"tiny SO_RCVBUF", "nft input drop with a counter", "tbf full, without IP_RECVERR",
		"tc ingress", "closed port"}
	const lost = faultLost * 5
	for _, watch := range []bool{true, false} {
		in := faults[together[0]].input(watch)
		in.Received = faultSent - lost
		in.Missing = []model.Marks{marks(0, lost, 0)}
		in.SocketDrops = faultLost
		snd, rcv := in.Nodes[0].Observation, in.Nodes[1].Observation
		snd.Counters = append(counters("softnet.dropped", 0),
			counters("Udp.OutDatagrams dev.eth0.tx_packets", faultSent-faultLost)...)
		// 500 arrive, and each fault lets its packets come up to where it is.
		rcv.Counters = append(counters("softnet.dropped Ip.InAddrErrors", 0), counters("dev.eth1.rx_packets", 900)...)
		rcv.Counters = append(rcv.Counters, counters("Ip.InReceives", 800)...)
		rcv.Counters = append(rcv.Counters, counters("Ip.InDelivers", 700)...)
		rcv.Counters = append(rcv.Counters, counters("Udp.InDatagrams", 500)...)
		d := &model.Drops{Flows: []model.FlowDrops{{Flow: "up"}}}
		var w model.MarksWriter
		want := map[string]uint64{}
		for i, name := range together {
			f := faults[name]
			want[f.on] = faultLost
			snd.Counters = append(snd.Counters, counters(f.snd, faultLost)...)
			rcv.Counters = append(rcv.Counters, counters(f.rcv, faultLost)...)
			d.Sites = append(d.Sites, model.Site{Reason: f.reason, Function: f.function,
				Namespace: map[string]uint64{"snd": 1, "rcv": 2}[f.at], Received: f.received})
			d.Flows[0].Counts = append(d.Flows[0].Counts, model.SiteCount{Site: i, Packets: faultLost})
			w.Add(uint64(i*faultLost), faultLost, uint16(i))
		}
		d.Flows[0].Streams = []model.Marks{w.Marks()}
		if watch {
			snd.Drops, rcv.Drops, snd.Mode, rcv.Mode = d, d, model.DropsSeq, model.DropsSeq
		}
		l := Balance(in)
		agree(t, in, l)
		got := map[string]uint64{}
		for _, x := range l.Lines {
			got[x.Layer+"/"+x.Cause] += x.Packets
			if watch != (x.Confidence == ExactSeq) {
				t.Errorf("watched %v: %s is %s", watch, x.Cause, x.Confidence)
			}
		}
		if l.Unattributed != 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("watched %v: got %s, want %v", watch, words(l), want)
		}
		for _, c := range l.Checks {
			if !c.Held {
				t.Errorf("watched %v: %+v", watch, c)
			}
		}
	}
}
