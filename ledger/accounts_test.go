package ledger

import (
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

// Places where the kernel of a host lets go of packets; twoHosts' namespaces are 1.
var (
	buffer = model.Site{Reason: "SOCKET_RCVBUFF", Namespace: 1, Received: true}
	filter = model.Site{Reason: "NETFILTER_DROP", Namespace: 1, Received: true}
	queue  = model.Site{Reason: "QDISC_DROP", Namespace: 1}
	backed = model.Site{Reason: "CPU_BACKLOG", Function: "enqueue_to_backlog", Namespace: 1}
	pieces = model.Site{Reason: "FRAG_REASM_TIMEOUT", Function: "ip_expire", Namespace: 1, Received: true}
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

// router puts one between the ends, which nobody watches.
func router(in *Input) *Node {
	unwatched(in)
	in.Nodes = []Node{in.Nodes[0], {Name: "router", In: []string{"lan"}, Out: []string{"wan"},
		Observation: &model.Observation{Boot: "router", Mode: model.DropsOff}}, in.Nodes[1]}
	return &in.Nodes[1]
}

// remarks are checks that an account makes.
var remarks = map[string]string{
	"a watched receiver": "sender: not observed (its agent died)",
	"copies":             "15 verdicts were about copies of packets that arrived, and count for nothing",
}

// What two hosts tell of 100 lost packets, and what the account makes of it.
func TestAccounts(t *testing.T) {
	const elimination = "network@/wire/DUT (by elimination)"
	for _, c := range []struct {
		name   string
		change func(in *Input)
		want   string
	}{
		{"a watched receiver: its namespace is flooded by another generator, and nothing becomes that generator's loss", func(in *Input) {
			in.SocketKnown, in.SocketDrops = true, 60
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 60, 0), []model.Site{buffer},
				model.SiteCount{Site: 0, Packets: 60})
			in.Nodes[0].Observation, in.Nodes[0].Why = nil, "its agent died"
			add(&in.Nodes[1], 5000,
				"Udp.RcvbufErrors Udp.InErrors Udp.NoPorts Ip.InReceives softnet.dropped dev.eth0.rx_dropped "+
					"qdisc.eth0.clsact.ffff:.drops nft.inet.filter.input.5.packets")
		}, "receiver-buffer@receiver/SOCKET_RCVBUFF=60(exact-seq) lost=100 rest=40"},
		{"without a watch the lines are bounded by what moved, and say how much of it was others'", func(in *Input) {
			unwatched(in)
			in.SocketKnown, in.SocketDrops = true, 60
			add(&in.Nodes[1], 5000, "Udp.RcvbufErrors Udp.InErrors")
			add(&in.Nodes[1], 90, "Udp.NoPorts")
			in.Nodes[1].Observation.Counters[2].IdleHz = 70 // of them, in the one second
		}, "receiver-udp@receiver/NO_SOCKET=40(bounded)[90, 50 over] receiver-buffer@receiver/SOCKET_RCVBUFF=60(exact-count) lost=100 rest=0"},
		{"a full connection table and no free port are told from a rule by what connection tracking counted",
			func(in *Input) {
				in.Nodes[0].Observation = nil
				hook := filter
				hook.Function = "nf_hook_slow"
				in.Nodes[1].Observation.Drops = verdicts(marks(0, 60, 0), []model.Site{hook},
					model.SiteCount{Site: 0, Packets: 60})
				add(&in.Nodes[1], 60, "conntrack.drop")
			}, "receiver-filter@receiver/CONNTRACK_FULL=60(exact-seq) lost=100 rest=40"},
		{"the same at a router without a watch, whose time to live and MTU lost others", func(in *Input) {
			r := router(in)
			add(r, 90, "Ip.InReceives")
			add(r, 0, "Ip.InDelivers")
			add(r, 60, "conntrack.drop")
			add(r, 30, "conntrack.insert_failed")
			add(r, 20, "Ip.InHdrErrors")
			add(r, 1, "Icmp.OutTimeExcds")
			add(r, 10, "Ip.FragFails")
		}, "network@router/CONNTRACK_FULL=30(bounded) network@router/CONNTRACK_INSERT=30(bounded) network@router/PKT_TOO_BIG=10(bounded) " +
			"network@router/TTL_EXPIRED=20(bounded) lost=100 rest=10"},
		{"a NAT gave the flow other ports: the watch does not know of which stream the packets were", func(in *Input) {
			in.Nodes[0].Observation = nil
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 20, 0), []model.Site{filter},
				model.SiteCount{Site: 0, Packets: 60, Unreadable: 40})
		}, "receiver-filter@receiver/NETFILTER_DROP=60(exact-count)[20, 0 over] lost=100 rest=40"},
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
			}, "network@10.0.1.1/IP_RPFILTER=90(exact-count) lost=100 rest=10"},
		{"sockets that do not tell their own drops", func(in *Input) {
			unwatched(in)
			in.SocketKnown = false
			add(&in.Nodes[1], 60, "Udp.RcvbufErrors")
			add(&in.Nodes[1], 40, "Udp.MemErrors")
			add(&in.Nodes[1], 100, "Udp.InErrors")
		}, "receiver-memory@receiver/PROTO_MEM=40(bounded) receiver-buffer@receiver/SOCKET_RCVBUFF=60(bounded) lost=100 rest=0"},
		{"the warm-up's losses are in the counters, and not in the lines", func(in *Input) {
			unwatched(in)
			in.WarmupSent, in.WarmupReceived = 500, 450
			add(&in.Nodes[1], 150, "Udp.NoPorts")
			in.Nodes[1].Observation.Counters[0].Measure = 98 // two were in flight
		}, "receiver-udp@receiver/NO_SOCKET=100(bounded)[150, 0 over] lost=100 rest=0"},
		{"one buffer in the kernel's count is several datagrams", func(in *Input) {
			in.Segments = 10
			in.Nodes[0].Observation.Mode, in.Nodes[0].Observation.Drops = model.DropsOff, nil
			add(&in.Nodes[0], 8, "qdisc.eth0.tbf.1:.drops")
		}, "sender-qdisc@sender/QDISC_DROP=80(bounded)[8, 0 over] lost=100 rest=20"},
		{"a router's own drops are lines of the network, with its name", func(in *Input) {
			r := router(in)
			add(r, 990, "Ip.InReceives")
			add(r, 950, "Ip.ForwDatagrams")
			add(r, 0, "Ip.InDelivers")
			add(r, 50, "qdisc.wan.tbf.1:.drops")
			add(r, 10, "dev.lan.rx_missed_errors")
		}, "network@router/IP_GAP=40(bounded) network@router/QDISC_DROP=50(bounded) network@router/rx-missed=10(bounded) lost=100 rest=0"},
		{"a router whose route refuses the flow: what no counter tells was lost there", func(in *Input) {
			r := router(in)
			add(r, 1000, "Ip.InReceives")
			add(r, 900, "Ip.ForwDatagrams")
			add(r, 0, "Ip.InDelivers")
			r.Observation.Routes = []model.Route{{Flow: "down", Kind: model.RouteUsable},
				{Flow: "up", Kind: model.RouteProhibit}}
		}, "network@router/ROUTE_REFUSED=100(bounded) lost=100 rest=0"},
		{"the route of another flow says nothing", func(in *Input) {
			r := router(in)
			add(r, 1000, "Ip.InReceives")
			add(r, 900, "Ip.ForwDatagrams")
			add(r, 0, "Ip.InDelivers")
			r.Observation.Routes = []model.Route{{Flow: "down", Kind: model.RouteProhibit}}
		}, "network@router/IP_GAP=100(bounded) lost=100 rest=0"},
		{"a router's tunnel, which its other interface does not count", func(in *Input) {
			r := router(in)
			add(r, 60, "dev.tun0.tx_dropped")
			add(r, 40, "dev.other.tx_dropped")
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "tun0"}}
		}, "network@router/tx-dropped=60(bounded) lost=100 rest=40"},
		{"a router's interface without a carrier", func(in *Input) {
			r := router(in)
			add(r, 100, "dev.wan.tx_dropped")
			r.Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "wan",
				NoCarrier: true}}
		}, "network@router/NO_CARRIER=100(bounded) lost=100 rest=0"},
		{"neighbours that one of several hosts of a machine sought in vain: nobody knows which", func(in *Input) {
			unwatched(in)
			oneKernel(in)
			add(&in.Nodes[0], 100, "arp_cache.unresolved_discards")
			add(&in.Nodes[1], 100, "arp_cache.unresolved_discards")
		}, "lost=100 rest=100"},
		{"... unless the next hop of one is known to be silent", func(in *Input) {
			router(in)
			for i := range in.Nodes {
				in.Nodes[i].Observation.Boot, in.Nodes[i].Observation.Namespace = "one", uint64(i+1)
				add(&in.Nodes[i], 100, "arp_cache.unresolved_discards")
			}
			in.Nodes[1].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, NoAnswer: true}}
		}, "network@router/NEIGH_QUEUEFULL=100(bounded) lost=100 rest=0"},
		{"errors of send() that a route gives", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"EINVAL": 70, "EPERM": 30}, 900
			in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteBlackhole}}
		}, "send-call@sender/EPERM=30(exact-count) send-call@sender/ROUTE_REFUSED=70(exact-count) lost=100 rest=0"},
		{"the same errors without such a route", func(in *Input) {
			in.SendErrors, in.Accepted = map[string]uint64{"EINVAL": 100}, 900
			in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable}}
		}, "send-call@sender/EINVAL=100(exact-count) lost=100 rest=0"},
		{"Linux 6.18 counts as forwarded what the forward hook drops", func(in *Input) {
			r := router(in)
			add(r, 1000, "Ip.InReceives Ip.ForwDatagrams")
			add(r, 905, "Ip.OutTransmits")
			add(r, 5, "Ip.OutRequests")
			add(r, 0, "Ip.InDelivers")
		}, "network@router/IP_GAP=100(bounded) lost=100 rest=0"},

		// What is left between two observed ends is put to the wire by the devices' difference.
		{"devices agree", func(in *Input) { unwatched(in); devices(in, 1000, 900) },
			elimination + "=100(bounded) lost=100 rest=0"},
		{"devices saw part", func(in *Input) { unwatched(in); devices(in, 1000, 940) },
			elimination + "=60(inferred) lost=100 rest=40"},
		{"it arrived at the device", func(in *Input) { unwatched(in); devices(in, 1000, 1000) }, "lost=100 rest=100"},
		{"both watched, devices not read", func(*Input) {}, elimination + "=100(inferred) lost=100 rest=0"},
		{"both watched, it arrived", func(in *Input) { devices(in, 1000, 1000) }, "lost=100 rest=100"},
		{"nothing known of either", unwatched, "lost=100 rest=100"},
		{"receiver not observed", func(in *Input) { in.Nodes[1].Observation = nil }, "lost=100 rest=100"},
		{"loopback", func(in *Input) {
			oneKernel(in)
			in.Nodes[1].Observation.Namespace = 1
		}, "lost=100 rest=100"},

		// A kernel under load may not run the watch for a few packets: a counter that agrees with all the others'
		// verdicts stands in, and the line is as sure as that.
		{"three of a hundred without a verdict", func(in *Input) {
			in.Nodes[0].Observation = nil
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 97, 0), []model.Site{filter},
				model.SiteCount{Site: 0, Packets: 97})
			add(&in.Nodes[1], 100, "nft.inet.filter.input.5.packets")
		}, "receiver-filter@receiver/NETFILTER_DROP=100(bounded)[97, 0 over] lost=100 rest=0"},
		{"the same, and others' packets, too", func(in *Input) {
			in.Nodes[0].Observation = nil
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 97, 0), []model.Site{filter},
				model.SiteCount{Site: 0, Packets: 97})
			add(&in.Nodes[1], 400, "nft.inet.filter.input.5.packets")
		}, "receiver-filter@receiver/NETFILTER_DROP=97(exact-seq) lost=100 rest=3"},

		{"two kernels with a verdict on the same packet, as on a copy of it: the furthest counts", func(in *Input) {
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 60, 0), []model.Site{queue})
			in.Nodes[1].Observation.Drops = verdicts(marks(40, 60, 0), []model.Site{buffer})
		}, "sender-qdisc@sender/QDISC_DROP=40(exact-seq) receiver-buffer@receiver/SOCKET_RCVBUFF=60(exact-seq) lost=100 rest=0"},
		{"two processes on one kernel tell of the same packets: they are not added", func(in *Input) {
			oneKernel(in)
			in.Nodes[0].Observation.Mode, in.Nodes[1].Observation.Mode = model.DropsCount, model.DropsCount
			in.Nodes[0].Observation.Drops = verdicts(model.Marks{}, []model.Site{queue, of2(buffer)},
				model.SiteCount{Site: 0, Packets: 20}, model.SiteCount{Site: 1, Packets: 50})
			in.Nodes[1].Observation.Drops = verdicts(model.Marks{}, []model.Site{of2(buffer), queue},
				model.SiteCount{Site: 0, Packets: 60}, model.SiteCount{Site: 1, Packets: 20})
		}, "sender-qdisc@sender/QDISC_DROP=20(exact-count) receiver-buffer@receiver/SOCKET_RCVBUFF=60(exact-count) lost=100 rest=20"},
		{"copies: verdicts about packets that arrived; of two accounts of one kernel the larger counts",
			func(in *Input) {
				oneKernel(in)
				in.Nodes[0].Observation.Drops = verdicts(marks(0, 100, 0, 200, 10, 0), []model.Site{of2(buffer)})
				in.Nodes[1].Observation.Drops = verdicts(marks(0, 100, 0, 200, 10, 0, 300, 5, 0), []model.Site{of2(buffer)})
			}, "receiver-buffer@receiver/SOCKET_RCVBUFF=100(exact-seq) lost=100 rest=0"},
		{"a list of missing sequences that ended early leaves the rest to counts", func(in *Input) {
			in.Missing[0] = marks(0, 40, 0)
			in.Missing[0].Unlisted = 60
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 40, 0, 40, 60, 1, 200, 10, 1),
				[]model.Site{buffer, filter})
		}, "receiver-filter@receiver/NETFILTER_DROP=60(exact-count) receiver-buffer@receiver/SOCKET_RCVBUFF=40(exact-seq) lost=100 rest=0"},

		// The timeout of the reassembly follows from a fragment dropped elsewhere. By sequence the fragment's verdict
		// is the datagram's; a watch that only counts knows how many fragments it was.
		{"fragments by sequence", func(in *Input) {
			in.Fragments = 3
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 60, 1, 60, 40, 0), []model.Site{pieces, backed},
				model.SiteCount{Site: 0, Packets: 40}, model.SiteCount{Site: 1, Fragments: 60})
		}, "receiver-backlog@receiver/CPU_BACKLOG=60(exact-seq) receiver-ip@receiver/FRAG_REASM_TIMEOUT=40(exact-seq) lost=100 rest=0"},
		{"fragments that were only counted", func(in *Input) {
			in.Fragments = 3
			in.Nodes[1].Observation.Mode = model.DropsCount
			in.Nodes[1].Observation.Drops = verdicts(model.Marks{}, []model.Site{pieces, backed},
				model.SiteCount{Site: 0, Packets: 100}, model.SiteCount{Site: 1, Fragments: 60})
		}, "receiver-backlog@receiver/CPU_BACKLOG=60(bounded) receiver-ip@receiver/FRAG_REASM_TIMEOUT=40(bounded)[100, 0 over] lost=100 rest=0"},
		{"the later of two kernels waited in vain for fragments that the first had dropped", func(in *Input) {
			in.Fragments = 3
			in.Nodes[0].Observation.Drops = verdicts(marks(0, 70, 0), []model.Site{queue})
			in.Nodes[1].Observation.Drops = verdicts(marks(0, 100, 0), []model.Site{pieces})
		}, "sender-qdisc@sender/QDISC_DROP=70(exact-seq) receiver-ip@receiver/FRAG_REASM_TIMEOUT=30(exact-seq) lost=100 rest=0"},

		{"a watch that only counts, beside errors told by sequence: both tell of the same packets", func(in *Input) {
			in.Errnos, in.Refused = []string{"ENOBUFS", "EPERM"}, []model.Marks{marks(0, 60, 0, 60, 10, 1)}
			in.SendErrors, in.Accepted = map[string]uint64{"ENOBUFS": 60, "EPERM": 10}, 930
			rule := model.Site{Reason: "NETFILTER_DROP", Function: "nft_do_chain", Namespace: 1}
			in.Nodes[0].Observation.Mode = model.DropsCount
			in.Nodes[0].Observation.Drops = verdicts(model.Marks{}, []model.Site{queue, rule},
				model.SiteCount{Site: 0, Packets: 75}, model.SiteCount{Site: 1, Packets: 10})
			in.Retried = 5 // and ten were dropped after send() had returned
			in.Nodes[1].Observation = nil
		}, "send-call@sender/EPERM=10(exact-seq) sender-qdisc@sender/QDISC_DROP=75(bounded)[60, 0 over] lost=100 rest=15"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := twoHosts(100)
			c.change(&in)
			l := Balance(in)
			if got := words(l); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
			kind, _, _ := strings.Cut(c.name, ":")
			says := func(check model.Check) bool { return check.Held && check.Text == remarks[kind] }
			if remarks[kind] != "" && !slices.ContainsFunc(l.Checks, says) {
				t.Errorf("no check %q in %+v", remarks[kind], l.Checks)
			}
		})
	}
}
