package ledger

import (
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// Places where the kernel of a host lets go of packets; twoHosts' namespaces are 1.
var (
	buffer     = model.Site{Reason: "SOCKET_RCVBUFF", Namespace: 1, Received: true}
	filter     = model.Site{Reason: "NETFILTER_DROP", Namespace: 1, Received: true}
	queue      = model.Site{Reason: "QDISC_DROP", Namespace: 1}
	backed     = model.Site{Reason: "CPU_BACKLOG", Function: "enqueue_to_backlog", Namespace: 1}
	forbidding = model.Site{Reason: "NETFILTER_DROP", Function: "nft_do_chain", Namespace: 1}
	pieces     = model.Site{Reason: "FRAG_REASM_TIMEOUT", Function: "ip_expire", Namespace: 1, Received: true}
)

// of2 is a place in the receiver's namespace, 2, where both ends share a kernel.
func of2(s model.Site) model.Site {
	s.Namespace = 2
	return s
}

// verdicts are what a kernel says of one stream, with counts by place.
func verdicts(list model.Marks, sites []model.Site, counts ...model.SiteCount) *model.Drops {
	f := model.FlowDrops{Flow: "up", Counts: counts}
	if list.Packets > 0 {
		f.Streams = []model.Marks{list}
	}
	return &model.Drops{Sites: sites, Flows: []model.FlowDrops{f}}
}

// unwatched takes the verdicts of all nodes away.
func unwatched(in *Input) {
	for _, n := range in.Nodes {
		n.Observation.Mode, n.Observation.Drops = model.DropsOff, nil
	}
}

// oneKernel has both ends on one kernel.
func oneKernel(in *Input) {
	for i, n := range in.Nodes {
		n.Observation.Boot, n.Observation.Namespace = "one", uint64(i+1)
	}
}

// refusedByDevice has the sender's device take no packet, on the kernel of both ends.
func refusedByDevice(in *Input) {
	oneKernel(in)
	unwatched(in)
	in.SendErrors, in.Accepted = map[string]uint64{"ENOBUFS": 100}, 900
	add(&in.Nodes[0], 100, "dev.eth0.tx_dropped Ip.OutDiscards")
	in.Nodes[0].Observation.Interface = "eth0"
}

// add adds counters that moved by n.
func add(n *Node, moved uint64, names string) {
	n.Observation.Counters = append(n.Observation.Counters, counters(names, moved)...)
}

// devices gives the ends devices that sent and received so many.
func devices(in *Input, sent, received uint64) {
	for i := range in.Nodes {
		in.Nodes[i].In, in.Nodes[i].Out = []string{"eth0"}, []string{"eth0"}
	}
	add(&in.Nodes[0], sent, "dev.eth0.tx_packets")
	add(&in.Nodes[1], received, "dev.eth0.rx_packets")
}

// connection makes the flow one of TCP, of which places at the receiver dropped segments: in the measured part, and
// in the warm-up.
func connection(in *Input, dropped ...[2]uint64) {
	in.TCP, in.Missing, in.MissingKnown = true, nil, false
	of := &in.Nodes[1]
	of.Observation.Mode = model.DropsCount
	var counts []model.SiteCount
	for i, n := range dropped {
		counts = append(counts, model.SiteCount{Site: i, Packets: n[0], Warmup: n[1]})
	}
	of.Observation.Drops = verdicts(model.Marks{}, []model.Site{backed, filter, buffer}, counts...)
}

// router puts one between the ends, which nobody watches.
func router(in *Input) *Node {
	unwatched(in)
	in.Nodes = []Node{in.Nodes[0], {Name: "router", In: []string{"lan"}, Out: []string{"wan"},
		Observation: &model.Observation{Boot: "router", Mode: model.DropsOff}}, in.Nodes[1]}
	return &in.Nodes[1]
}

// throughBridge has a router take in 1000 packets and let 900 through. settings are told of it.
func throughBridge(in *Input, settings ...string) *Node {
	r := router(in)
	in.Nodes[0].Out, in.Nodes[2].In = []string{"eth0"}, []string{"eth0"}
	add(&in.Nodes[0], 1000, "dev.eth0.tx_packets")
	add(r, 1000, "dev.lan.rx_packets")
	add(r, 900, "dev.wan.tx_packets")
	add(&in.Nodes[2], 900, "dev.eth0.rx_packets")
	for _, s := range settings {
		r.Observation.Knobs = append(r.Observation.Knobs, model.HostSetting{Name: s, Value: "on"})
	}
	return r
}

// throughIP is throughBridge by IP, which has seen so many of the packets.
func throughIP(in *Input, seen uint64, settings ...string) {
	r := throughBridge(in, settings...)
	add(r, seen, "Ip.InReceives")
	r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "wan"}}
}

// TestAccounts: two hosts tell of 100 lost packets; what the account makes of it stands in the golden file.
func TestAccounts(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct {
		name   string
		change func(in *Input)
	}{
		{"a watched receiver: another generator floods its namespace, and nothing becomes its loss", func(in *Input) {
			in.SocketKnown, in.SocketDrops = true, 60
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 60, 0), []model.Site{buffer},
				model.SiteCount{Site: 0, Packets: 60})
			in.Nodes[0].Observation = nil
			add(&in.Nodes[1], 5000,
				"Udp.RcvbufErrors Udp.InErrors Udp.NoPorts Ip.InReceives softnet.dropped dev.eth0.rx_dropped "+
					"qdisc.eth0.clsact.ffff:.drops nft.inet.filter.input.5.packets")
		}},
		{"without a watch the lines are bounded by what moved, and say how much of it was others'", func(in *Input) {
			unwatched(in)
			in.SocketKnown, in.SocketDrops = true, 60
			add(&in.Nodes[1], 5000, "Udp.RcvbufErrors Udp.InErrors")
			add(&in.Nodes[1], 90, "Udp.NoPorts")
			in.Nodes[1].Observation.Counters[2].IdleHz = 70 // of them, in the one second
		}},
		{"two counters that may both have counted ours: which of them did is left open", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 86, "Udp.NoPorts")
			add(&in.Nodes[1], 112, "dev.eth0.rx_otherhost_dropped")
		}},
		{"... but for what the other cannot have been", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 86, "Ip.InAddrErrors")
			add(&in.Nodes[1], 30, "Udp.NoPorts")
		}},
		{"... nor its warm-up, nor what another flow lost", func(in *Input) {
			unwatched(in)
			in.WarmupSent, in.Beside = 8, 8
			add(&in.Nodes[1], 86, "Ip.InAddrErrors")
			add(&in.Nodes[1], 30, "Udp.NoPorts")
		}},
		{"most of what a queue dropped is others': it may have dropped all of ours, or none", func(in *Input) {
			add(router(in), 160, "qdisc.wan.tbf.8001:.drops")
		}},
		{"... if its background is not to blame", func(in *Input) {
			r := router(in)
			add(r, 160, "qdisc.wan.tbf.8001:.drops")
			r.Observation.Counters[0].IdleHz = 100
		}},
		{"packets whose tunnel does not take them find no socket of its own", func(in *Input) {
			shut := model.Site{Reason: "NO_SOCKET", Function: "__udp4_lib_rcv", Namespace: 1, Received: true}
			shut.Interface = "eth0"
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 100, 0), []model.Site{shut},
				model.SiteCount{Site: 0, Packets: 100})
			in.Nodes[1].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "vx0",
				Device: "vxlan"}}
		}},
		{"... and by counters alone it may be either", func(in *Input) {
			unwatched(in)
			in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "vx0",
				Device: "vxlan"}}
			add(&in.Nodes[1], 100, "Udp.NoPorts")
		}},
		{"a full connection table and no free port are told from a rule by what connection tracking counted",
			func(in *Input) {
				in.Nodes[0].Observation = nil
				hook := filter
				hook.Function = "nf_hook_slow"
				in.Nodes[1].Observation.Drops = verdicts(marks(0, 60, 0), []model.Site{hook},
					model.SiteCount{Site: 0, Packets: 60})
				add(&in.Nodes[1], 60, "conntrack.drop")
			}},
		{"at a router of which only drops are seen, iptables and connection tracking drop alike", func(in *Input) {
			oneKernel(in)
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 60, 0), []model.Site{{Reason: "NETFILTER_DROP",
				Function: "nf_hook_slow", Namespace: 9, Address: "10.0.1.1"}})
			in.Nodes[1].Observation.Drops = in.Nodes[0].Observation.Drops
		}},
		{"at a bridge of which only drops are seen", func(in *Input) {
			oneKernel(in)
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 60, 0), []model.Site{{Function: "br_handle_frame_finish",
				Reason: "NOT_SPECIFIED", Namespace: 9}})
			in.Nodes[1].Observation.Drops = in.Nodes[0].Observation.Drops
		}},
		{"a card without room counts what no watch of its kernel sees", func(in *Input) {
			add(&in.Nodes[1], 60, "dev.eth1.rx_missed_errors")
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 40, 0), []model.Site{buffer})
		}},
		{"the same at a router without a watch, whose time to live and MTU lost others", func(in *Input) {
			r := router(in)
			add(r, 90, "Ip.InReceives")
			add(r, 0, "Ip.InDelivers")
			add(r, 60, "conntrack.drop")
			add(r, 30, "conntrack.insert_failed")
			add(r, 20, "Ip.InHdrErrors")
			add(r, 1, "Icmp.OutTimeExcds")
			add(r, 10, "Ip.FragFails")
		}},
		{"a NAT gave the flow other ports: the watch does not know of which stream the packets were", func(in *Input) {
			in.Nodes[0].Observation = nil
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 20, 0), []model.Site{filter},
				model.SiteCount{Site: 0, Packets: 60, Unreadable: 40})
		}},
		{"two processes on one kernel: only one could learn the interface and the address, in two sites of its own",
			func(in *Input) {
				oneKernel(in)
				known := model.Site{Reason: "IP_RPFILTER", Function: "ip_rcv", Namespace: 3, Interface: "lan",
					Received: true, Address: "10.0.1.1"}
				other, unknown := known, known
				other.Address, unknown.Interface, unknown.Address = "10.0.1.9", "", ""
				in.Nodes[0].Observation.Mode, in.Nodes[1].Observation.Mode = model.DropsCount, model.DropsCount
				in.Nodes[0].Observation.Drops = verdicts(model.Marks{}, []model.Site{unknown},
					model.SiteCount{Site: 0, Packets: 80})
				in.Nodes[1].Observation.Drops = verdicts(model.Marks{}, []model.Site{known, other},
					model.SiteCount{Site: 0, Packets: 30},
					model.SiteCount{Site: 1, Packets: 60})
			}},
		{"sockets that do not tell their own drops", func(in *Input) {
			unwatched(in)
			in.SocketKnown = false
			add(&in.Nodes[1], 60, "Udp.RcvbufErrors")
			add(&in.Nodes[1], 40, "Udp.MemErrors")
			add(&in.Nodes[1], 100, "Udp.InErrors")
		}},
		{"a kernel that does not count memory errors", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 100, "Udp.InErrors")
			in.SocketDrops = 100
		}},
		{"the warm-up's losses are in the counters, and not in the lines", func(in *Input) {
			unwatched(in)
			in.WarmupSent, in.WarmupReceived = 500, 450
			add(&in.Nodes[1], 150, "Udp.NoPorts")
			in.Nodes[1].Observation.Counters[0].Measure = 98 // two were in flight
		}},
		{"one buffer in the kernel's count is several datagrams", func(in *Input) {
			in.Segments = 10
			in.Nodes[0].Observation.Mode, in.Nodes[0].Observation.Drops = model.DropsOff, nil
			add(&in.Nodes[0], 8, "qdisc.eth0.tbf.1:.drops")
		}},
		{"a router's own drops are lines of the network, with its name", func(in *Input) {
			r := router(in)
			add(r, 990, "Ip.InReceives")
			add(r, 950, "Ip.ForwDatagrams")
			add(r, 0, "Ip.InDelivers")
			add(r, 50, "qdisc.wan.tbf.1:.drops")
			add(r, 10, "dev.lan.rx_missed_errors")
		}},
		{"a queue inside of another one at a router, which dropped most packets to have the sender slow down",
			func(in *Input) {
				r := router(in)
				add(r, 100, "qdisc.wan.htb.1:.drops")
				r.Observation.Queues = []model.Queue{{Interface: "wan", Kind: "htb", Handle: "1:", Dropped: 100},
					{Interface: "wan", Kind: "pfifo", Handle: "2:", Inside: true, Dropped: 1, LimitPackets: 9},
					{Interface: "wan", Kind: "fq_codel", Handle: "3:", Inside: true, Dropped: 99, EarlyDropped: 60},
					{Interface: "other", Kind: "cake", Handle: "4:", Inside: true, Dropped: 999}}
			}},
		{"the same as a verdict tells it, whose reason stays", func(in *Input) {
			full := queue
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 100, 0), []model.Site{full})
			in.Nodes[0].Observation.Queues = []model.Queue{
				{Interface: "eth0", Kind: "fq_codel", Handle: "1:", Dropped: 100, EarlyDropped: 60, LimitPackets: 200}}
		}},
		{"packets longer than the bucket of a router's queue", func(in *Input) {
			r := router(in)
			in.PacketBytes = 1442
			add(r, 100, "qdisc.wan.tbf.1:.drops")
			r.Observation.Queues = []model.Queue{{Interface: "wan", Kind: "tbf", Handle: "1:", Dropped: 100,
				BurstBytes: 1000, LimitBytes: 8000}}
		}},
		{"... of which each fragment fits it", func(in *Input) {
			r := router(in)
			in.PacketBytes, in.Fragments = 3042, 3
			add(r, 100, "qdisc.wan.tbf.1:.drops")
			r.Observation.Queues = []model.Queue{{Interface: "wan", Kind: "tbf", Handle: "1:", Dropped: 100,
				BurstBytes: 2000, LimitBytes: 8000}}
		}},
		{"a queue that a router's input passes through first", func(in *Input) {
			r := router(in)
			add(r, 100, "qdisc.ifb4lan.cake.1:.drops")
			add(r, 0, "qdisc.lan.ingress.ffff:.drops")
			r.Observation.Queues = []model.Queue{{Interface: "ifb4lan", Kind: "cake", Handle: "1:", Dropped: 100,
				EarlyDropped: 100}}
		}},
		{"a policer, which other tc programs at the input do not hide", func(in *Input) {
			r := router(in)
			add(r, 100, "qdisc.lan.clsact.ffff:.drops")
			add(r, 60, "police.7.drops")
			add(r, 3, "police.8.drops")
			r.Observation.Knobs = []model.HostSetting{{Name: "police.7.rate_bps", Value: "20000000"},
				{Name: "police.7.burst_bytes", Value: "16384"}, {Name: "police.8.rate_bps", Value: "9"}}
		}},
		{"a policer of others beside a tc program", func(in *Input) {
			r := router(in)
			add(r, 100, "qdisc.lan.clsact.ffff:.drops")
			add(r, 40, "police.7.drops")
		}},
		{"a redirect of tc that had nobody to take it, and a filter", func(in *Input) {
			r := router(in)
			add(r, 100, "qdisc.lan.clsact.ffff:.drops")
			add(r, 80, "mirred.1.overlimits")
		}},
		{"a policer and a redirect, which count the same drops", func(in *Input) {
			r := router(in)
			add(r, 100, "qdisc.lan.clsact.ffff:.drops")
			add(r, 100, "police.7.drops")
			add(r, 100, "mirred.1.overlimits")
		}},
		{"what the memory of UDP refused, or the receiver's control group", func(in *Input) {
			r := &in.Nodes[1]
			r.Observation.Drops = verdicts(marks(0, 100, 0), []model.Site{{Reason: "PROTO_MEM",
				Function: "__udp_enqueue_schedule_skb", Namespace: r.Observation.Namespace, Interface: "eth0", Received: true}})
			in.BufferBytes = 4096 * 40
			r.Observation.Knobs = []model.HostSetting{{Name: "net.ipv4.udp_mem", Value: "100 200 300"},
				{Name: "page_size_bytes", Value: "4096"}, {Name: model.GroupMemory + "/docker/ab", Value: "81920"}}
		}},
		{"the filter's queues: one that no program reads, and one that is full", func(in *Input) {
			r := router(in)
			add(r, 60, "nfqueue.5.unheard")
			add(r, 30, "nfqueue.6.queue_dropped")
			add(r, 10, "nfqueue.6.user_dropped")
			add(r, 1000, "Ip.InReceives")
			add(r, 900, "Ip.ForwDatagrams")
			add(r, 0, "Ip.InDelivers")
		}},
		{"a connection table with its numbers", func(in *Input) {
			r := router(in)
			add(r, 100, "conntrack.drop")
			r.Observation.Knobs = []model.HostSetting{{Name: "net.netfilter.nf_conntrack_max", Value: "16384"},
				{Name: "net.netfilter.nf_conntrack_count", Value: "16383"}}
		}},
		{"a neighbour table that is full at a router, and its MTU", func(in *Input) {
			r := router(in)
			add(r, 60, "ndisc_cache.table_fulls")
			add(r, 40, "Ip6.FragFails")
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "wan", MTU: 1400}}
			r.Observation.Knobs = []model.HostSetting{{Name: "net.ipv4.neigh.default.gc_thresh3", Value: "1024"},
				{Name: "net.ipv6.neigh.default.gc_thresh3", Value: "512"}, {Name: "ndisc_cache.entries", Value: "512"}}
		}},
		{"... and at the sender, where send() says that there is no buffer", func(in *Input) {
			unwatched(in)
			in.SendErrors, in.Accepted = map[string]uint64{"ENOBUFS": 100}, 900
			add(&in.Nodes[0], 100, "arp_cache.table_fulls")
		}},
		{"a router whose route refuses the flow: what no counter tells was lost there", func(in *Input) {
			r := router(in)
			add(r, 1000, "Ip.InReceives")
			add(r, 900, "Ip.ForwDatagrams")
			add(r, 0, "Ip.InDelivers")
			r.Observation.Routes = []model.Route{{Flow: "down", Kind: model.RouteUsable},
				{Flow: "up", Kind: model.RouteProhibit}}
		}},
		{"the route of another flow says nothing", func(in *Input) {
			r := router(in)
			add(r, 1000, "Ip.InReceives")
			add(r, 900, "Ip.ForwDatagrams")
			add(r, 0, "Ip.InDelivers")
			r.Observation.Routes = []model.Route{{Flow: "down", Kind: model.RouteProhibit}}
		}},
		{"a router's tunnel, which its other interface does not count", func(in *Input) {
			r := router(in)
			add(r, 60, "dev.tun0.tx_dropped")
			add(r, 40, "dev.other.tx_dropped")
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "tun0"}}
		}},
		{"a router's interface without a carrier", func(in *Input) {
			r := router(in)
			add(r, 100, "dev.wan.tx_dropped")
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "wan",
				NoCarrier: true}}
		}},
		{"a connection table that is full at the sender", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"EPERM": 100}, 900
			add(&in.Nodes[0], 110, "conntrack.drop")
			add(&in.Nodes[0], 10, "conntrack.insert_failed")
		}},
		{"a rule at the sender, beside a few connections of others", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"EPERM": 100}, 900
			add(&in.Nodes[0], 50, "conntrack.drop")
		}},
		{"a rule at the sender, which the kernel's own verdict tells from what else send() forbids", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"EPERM": 100}, 900
			in.Nodes[0].Observation.Drops = verdicts(model.Marks{}, []model.Site{forbidding},
				model.SiteCount{Site: 0, Packets: 100})
		}},
		{"... unless there are two", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"EPERM": 100}, 900
			group := model.Site{Reason: "BPF_CGROUP_EGRESS", Function: "ip_finish_output", Namespace: 1}
			in.Nodes[0].Observation.Drops = verdicts(model.Marks{}, []model.Site{forbidding, group},
				model.SiteCount{Site: 0, Packets: 60}, model.SiteCount{Site: 1, Packets: 40})
		}},
		{"a device that takes no more has a full ring at the far end of its cable", func(in *Input) {
			refusedByDevice(in)
			in.Nodes[0].Out, in.Nodes[1].In = []string{"eth0"}, []string{"eth0"}
		}},
		{"... of which nothing is known between two hosts on one machine", refusedByDevice},
		{"WireGuard without a peer at the sender", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"ENOKEY": 100}, 900
			in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Device: "wireguard"}}
		}},
		{"WireGuard without a peer at a router", func(in *Input) {
			r := router(in)
			add(r, 100, "dev.wg0.tx_errors")
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "wg0",
				Device: "wireguard"}}
		}},
		{"WireGuard whose queue is full", func(in *Input) {
			r := router(in)
			add(r, 100, "dev.wg0.tx_dropped")
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "wg0",
				Device: "wireguard"}}
		}},
		{"what came to a router's devices and not to its IP", func(in *Input) { throughIP(in, 900, "") }},
		{"... where a program sits", func(in *Input) { throughIP(in, 900, "lan.xdp") }},
		{"... and comes out again all the same, as a flow table has it", func(in *Input) { throughIP(in, 200, "") }},
		{"a router's interface without a carrier, where nothing counts", func(in *Input) {
			r := throughBridge(in)
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "bond0",
				NoCarrier: true}}
		}},
		{"the same at the sender", func(in *Input) {
			unwatched(in)
			devices(in, 900, 900)
			in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, NoCarrier: true}}
		}},
		{"the same, where the carrier came back", func(in *Input) {
			unwatched(in)
			devices(in, 900, 900)
			add(&in.Nodes[0], 1, "dev.eth0.carrier_down")
		}},
		{"the same of two hosts alone, whose ways are not told", func(in *Input) {
			unwatched(in)
			in.Nodes[0].Observation.Interface = "eth0"
			add(&in.Nodes[0], 900, "dev.eth0.tx_packets")
			add(&in.Nodes[0], 1, "dev.eth0.carrier_down")
			add(&in.Nodes[1], 900, "dev.eth0.rx_packets")
		}},
		{"... and send() said so of some, which are no full ring at the next host that is known", func(in *Input) {
			unwatched(in)
			oneKernel(in)
			devices(in, 900, 900)
			in.SendErrors, in.Accepted = map[string]uint64{"ENOBUFS": 60}, 940
			add(&in.Nodes[0], 1, "dev.eth0.carrier_down")
			add(&in.Nodes[0], 60, "dev.eth0.tx_dropped Ip.OutDiscards Udp.SndbufErrors")
		}},
		{"the same, which a watch calls a queue's drop", func(in *Input) {
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 100, 0), []model.Site{queue})
			in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, NoCarrier: true}}
		}},
		{"ports of a bridge that are isolated", func(in *Input) {
			throughBridge(in, "lan.bridge_isolated", "wan.bridge_isolated")
		}},
		{"one port alone is isolated from none", func(in *Input) { throughBridge(in, "lan.bridge_isolated") }},
		{"a port of a bridge that does not forward", func(in *Input) { throughBridge(in, "wan.bridge_state") }},
		{"packets longer than the MTU of a bridge's port", func(in *Input) {
			in.PacketBytes = 1315
			r := throughBridge(in)
			r.Observation.Knobs = []model.HostSetting{{Name: "wan.bridge_mtu", Value: "1300"}}
		}},
		{"... and as long as it", func(in *Input) {
			in.PacketBytes = 1314
			r := throughBridge(in)
			r.Observation.Knobs = []model.HostSetting{{Name: "wan.bridge_mtu", Value: "1300"}}
		}},
		{"fragments that a router's queue dropped: its devices count them, too", func(in *Input) {
			throughBridge(in)
			in.Fragments = 3
			add(&in.Nodes[1], 100, "qdisc.wan.tbf.1:.drops")
		}},
		{"fragments that a filter on the way dropped: the others fill the memory of the receiver", func(in *Input) {
			unwatched(in)
			devices(in, 3000, 2900)
			in.Fragments = 3
			add(&in.Nodes[1], 80, "Ip.ReasmFails")
		}},
		{"fragments that all came: another program fills the memory", func(in *Input) {
			unwatched(in)
			devices(in, 3000, 3000)
			in.Fragments = 3
			add(&in.Nodes[1], 300, "Ip.ReasmFails")
		}},
		{"a few packets that IP has not delivered yet are no loss", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 1000, "Ip.InReceives")
			add(&in.Nodes[1], 985, "Ip.InDelivers")
		}},
		{"what was seen dropped at a host between explains that less came in: the rest did not go there", func(in *Input) {
			oneKernel(in)
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 90, 0), []model.Site{{Reason: "NETFILTER_DROP",
				Function: "nft_do_chain", Namespace: 9, Received: true, Address: "10.0.1.1"}})
			in.Nodes[1].Observation.Drops = in.Nodes[0].Observation.Drops
			devices(in, 1000, 910)
		}},
		{"a router answered to a packet: what was lost in a row with it was lost there", func(in *Input) {
			unwatched(in)
			devices(in, 1000, 900)
			in.Missing = []model.Marks{marks(100, 30, 0, 500, 70, 0)}
			in.ICMP = []model.ICMPErrors{{From: "10.0.1.1", What: "administratively prohibited", Packets: 3,
				Of: []model.Span{{From: 569, Count: 1}, {From: 570, Count: 1}, {From: 99, Count: 1}}}}
		}},
		{"... which says of a router that its next hop does not answer", func(in *Input) {
			unwatched(in)
			r := router(in)
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "wan", NoAnswer: true}}
			in.Missing = []model.Marks{marks(100, 100, 0)}
			in.ICMP = []model.ICMPErrors{{From: "10.0.1.1", What: "host unreachable", Packets: 3,
				Of: []model.Span{{From: 150, Count: 1}}}}
		}},
		{"... and a filter of the receiver has lost some of them", func(in *Input) {
			unwatched(in)
			in.Missing = []model.Marks{marks(400, 100, 0)}
			in.ICMP = []model.ICMPErrors{{From: "10.0.1.1", What: "time to live exceeded", Packets: 8,
				Of: []model.Span{{From: 450, Count: 1}}}, {What: "errors from others", Packets: 9}}
			add(&in.Nodes[1], 40, "nft.inet.filter.mine.input.5.packets")
		}},
		{"the receiver answered to packets that its filter had dropped, and others had died before", func(in *Input) {
			unwatched(in)
			devices(in, 1000, 970)
			in.Missing = []model.Marks{marks(100, 30, 0, 500, 70, 0)}
			in.ICMP = []model.ICMPErrors{{From: "10.0.2.2", What: "port unreachable", Packets: 1,
				Of: []model.Span{{From: 520, Count: 1}}}}
			add(&in.Nodes[1], 970, "Ip.InReceives")
			add(&in.Nodes[1], 900, "Ip.InDelivers")
		}},
		{"a router cut the packets up: of their fragments, nothing is missing at the receiver", func(in *Input) {
			unwatched(in)
			devices(in, 1000, 1800)
			add(&in.Nodes[1], 1800, "Ip.InReceives")
			add(&in.Nodes[1], 900, "Ip.InDelivers")
			add(&in.Nodes[1], 1800, "Ip.ReasmReqds")
			add(&in.Nodes[1], 900, "Ip.ReasmOKs")
		}},
		{"... but what its filter dropped of the whole ones, and what lost a fragment before", func(in *Input) {
			unwatched(in)
			devices(in, 1000, 1980)
			add(&in.Nodes[1], 1980, "Ip.InReceives")
			add(&in.Nodes[1], 900, "Ip.InDelivers")
			add(&in.Nodes[1], 1980, "Ip.ReasmReqds")
			add(&in.Nodes[1], 980, "Ip.ReasmOKs")
			add(&in.Nodes[1], 20, "Ip.ReasmFails")
			add(&in.Nodes[1], 20, "Ip.ReasmTimeout")
		}},
		{"what the devices of both ends say was lost between them is not what others lost at the receiver",
			func(in *Input) {
				unwatched(in)
				devices(in, 1000, 900)
				add(&in.Nodes[1], 1000, "Ip.InReceives")
				add(&in.Nodes[1], 900, "Ip.InDelivers")
			}},
		{"... unless the sender sends to others", func(in *Input) {
			unwatched(in)
			devices(in, 1100, 1000)
			add(&in.Nodes[1], 1000, "Ip.InReceives")
			add(&in.Nodes[1], 900, "Ip.InDelivers")
		}},
		{"neighbours that one of several hosts of a machine sought in vain: nobody knows which", func(in *Input) {
			unwatched(in)
			oneKernel(in)
			add(&in.Nodes[0], 100, "arp_cache.unresolved_discards")
			add(&in.Nodes[1], 100, "arp_cache.unresolved_discards")
		}},
		{"... unless the next hop of one is known to be silent", func(in *Input) {
			router(in)
			for i := range in.Nodes {
				in.Nodes[i].Observation.Boot, in.Nodes[i].Observation.Namespace = "one", uint64(i+1)
				add(&in.Nodes[i], 100, "arp_cache.unresolved_discards")
			}
			in.Nodes[1].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, NoAnswer: true}}
		}},
		{"errors of send() that a route gives", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"EINVAL": 70, "EPERM": 30}, 900
			in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteBlackhole}}
		}},
		{"the same errors without such a route", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"EINVAL": 100}, 900
			in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable}}
		}},
		{"Linux 6.18 counts as forwarded what the forward hook drops", func(in *Input) {
			r := router(in)
			add(r, 1000, "Ip.InReceives Ip.ForwDatagrams")
			add(r, 905, "Ip.OutTransmits")
			add(r, 5, "Ip.OutRequests")
			add(r, 0, "Ip.InDelivers")
		}},

		// What is left between two observed ends is put to the wire by the devices' difference.
		{"devices agree", func(in *Input) { unwatched(in); devices(in, 1000, 900) }},
		{"devices saw part", func(in *Input) { unwatched(in); devices(in, 1000, 940) }},
		{"it arrived at the device", func(in *Input) { unwatched(in); devices(in, 1000, 1000) }},
		{"a watched kernel has both: few packets between its devices are pelt's own", func(in *Input) {
			oneKernel(in)
			devices(in, 1000, 1000-stranger)
		}},
		{"... but no more than these", func(in *Input) { oneKernel(in); devices(in, 1000, 1000-stranger-1) }},
		{"both watched, devices not read", func(*Input) {}},
		{"both watched, it arrived", func(in *Input) { devices(in, 1000, 1000) }},
		{"nothing known of either", unwatched},
		{"receiver not observed", func(in *Input) { in.Nodes[1].Observation = nil }},
		{"loopback", func(in *Input) {
			oneKernel(in)
			in.Nodes[1].Observation.Namespace = 1
		}},

		// A kernel under load may not run the watch for a few packets: a counter that agrees with all the others'
		// verdicts stands in, and the line is as sure as that.
		{"three of a hundred without a verdict", func(in *Input) {
			in.Nodes[0].Observation = nil
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 97, 0), []model.Site{filter},
				model.SiteCount{Site: 0, Packets: 97})
			add(&in.Nodes[1], 100, "nft.inet.filter.input.5.packets")
		}},
		{"the same, and others' packets, too", func(in *Input) {
			in.Nodes[0].Observation = nil
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 97, 0), []model.Site{filter},
				model.SiteCount{Site: 0, Packets: 97})
			add(&in.Nodes[1], 400, "nft.inet.filter.input.5.packets")
		}},

		{"two kernels with a verdict on the same packet, as on a copy of it: the furthest counts", func(in *Input) {
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 60, 0), []model.Site{queue})
			in.Nodes[1].Observation.Drops = verdicts(marks(40, 60, 0), []model.Site{buffer})
		}},
		{"two processes on one kernel tell of the same packets: they are not added", func(in *Input) {
			oneKernel(in)
			in.Nodes[0].Observation.Mode, in.Nodes[1].Observation.Mode = model.DropsCount, model.DropsCount
			in.Nodes[0].Observation.Drops = verdicts(model.Marks{}, []model.Site{queue, of2(buffer)},
				model.SiteCount{Site: 0, Packets: 20}, model.SiteCount{Site: 1, Packets: 50})
			in.Nodes[1].Observation.Drops = verdicts(model.Marks{}, []model.Site{of2(buffer), queue},
				model.SiteCount{Site: 0, Packets: 60}, model.SiteCount{Site: 1, Packets: 20})
		}},
		{"copies: verdicts about packets that arrived; of two accounts of one kernel the larger counts",
			func(in *Input) {
				oneKernel(in)
				sites := []model.Site{of2(buffer)}
				in.Nodes[0].Observation.Drops = verdicts(marks(0, 100, 0, 200, 10, 0), sites)
				in.Nodes[1].Observation.Drops = verdicts(marks(0, 100, 0, 200, 10, 0, 300, 5, 0), sites)
			}},
		{"a list of missing sequences that ended early leaves the rest to counts", func(in *Input) {
			in.Missing[0] = marks(0, 40, 0)
			in.Missing[0].Unlisted = 60
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 40, 0, 40, 60, 1, 200, 10, 1),
				[]model.Site{buffer, filter})
		}},

		// A queue of seconds: the newest packets are in it when the wait for them ends.
		{"packets still came: of the newest, what nobody saw lost is on its way", func(in *Input) {
			in.StillCame, in.Missing = true, []model.Marks{marks(100, 20, 0, 920, 80, 0)}
			in.Nodes[1].Observation.Drops = verdicts(marks(930, 30, 0), []model.Site{queue})
		}},
		{"nothing came any more", func(in *Input) { in.Missing = []model.Marks{marks(900, 100, 0)} }},
		{"packets still came, the newest one, too", func(in *Input) {
			in.StillCame, in.Missing = true, []model.Marks{marks(899, 100, 0)}
		}},
		{"one of two streams is dead, and of the other packets still came", func(in *Input) {
			in.StillCame, in.Streams = true, []uint64{500, 500}
			in.Missing = []model.Marks{marks(410, 90, 0), marks(490, 10, 0)}
		}},
		{"packets still came, and a counter says what the queue dropped", func(in *Input) {
			in.StillCame, in.Missing = true, []model.Marks{marks(900, 100, 0)}
			add(router(in), 30, "qdisc.wan.tbf.8001:.drops")
		}},

		// The timeout of the reassembly follows from a fragment dropped elsewhere. By sequence the fragment's verdict
		// is the datagram's; a watch that only counts knows how many fragments it was.
		{"fragments by sequence", func(in *Input) {
			in.Fragments = 3
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 60, 1, 60, 40, 0), []model.Site{pieces, backed},
				model.SiteCount{Site: 0, Packets: 40}, model.SiteCount{Site: 1, Fragments: 60})
		}},
		{"fragments that were only counted", func(in *Input) {
			in.Fragments = 3
			in.Nodes[1].Observation.Mode = model.DropsCount
			in.Nodes[1].Observation.Drops = verdicts(model.Marks{}, []model.Site{pieces, backed},
				model.SiteCount{Site: 0, Packets: 100}, model.SiteCount{Site: 1, Fragments: 60})
		}},
		{"the later of two kernels waited in vain for fragments that the first had dropped", func(in *Input) {
			in.Fragments = 3
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 70, 0), []model.Site{queue})
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 100, 0), []model.Site{pieces})
		}},

		{"a watch that only counts, beside errors told by sequence: both tell of the same packets", func(in *Input) {
			in.Errnos, in.Refused = []string{"ENOBUFS", "EPERM"}, []model.Marks{marks(0, 60, 0, 60, 10, 1)}
			in.SendErrors, in.Accepted = map[string]uint64{"ENOBUFS": 60, "EPERM": 10}, 930
			rule := model.Site{Reason: "NETFILTER_DROP", Function: "nft_do_chain", Namespace: 1}
			in.Nodes[0].Observation.Mode = model.DropsCount
			in.Nodes[0].Observation.Drops = verdicts(model.Marks{}, []model.Site{queue, rule},
				model.SiteCount{Site: 0, Packets: 75}, model.SiteCount{Site: 1, Packets: 10})
			in.Retried = 5 // and ten were dropped after send() had returned
			in.Nodes[1].Observation = nil
		}},

		// What TCP sent again is fewer segments than were dropped, or more.
		{"TCP: a place that dropped enough for all leaves the others their share", func(in *Input) {
			connection(in, [2]uint64{120}, [2]uint64{12})
		}},
		{"... at least one of each", func(in *Input) { connection(in, [2]uint64{1}, [2]uint64{9000}, [2]uint64{1}) }},
		{"... and the sum is exact", func(in *Input) { connection(in, [2]uint64{50}, [2]uint64{50}, [2]uint64{50}) }},
		{"... while there is room", func(in *Input) {
			in.Received = 998
			connection(in, [2]uint64{5}, [2]uint64{7}, [2]uint64{6})
		}},
		{"TCP: all that was dropped was sent again", func(in *Input) { connection(in, [2]uint64{88}, [2]uint64{12}) }},
		{"TCP: some of what was sent again was not seen to be lost",
			func(in *Input) { connection(in, [2]uint64{70}, [2]uint64{12}) }},
		{"TCP: what was dropped in the warm-up has its share of the rest", func(in *Input) {
			connection(in, [2]uint64{70, 40}, [2]uint64{20, 10}, [2]uint64{0, 1})
		}},
		{"TCP: all that was dropped in the warm-up was sent again, too", func(in *Input) {
			connection(in, [2]uint64{70, 5}, [2]uint64{20})
		}},
	} {
		in := twoHosts(100)
		c.change(&in)
		tell(t, &out, c.name, in)
	}
	golden.File(t, "testdata/accounts.txt", out.String())
}
