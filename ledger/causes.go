package ledger

import "pelt/model"

// Cause is one way to lose a packet: a row of the one table about it.
type Cause struct {
	// Name is what files call it: the kernel's reason or errno, or a word of pelt's own. "": the kernel's reason, of
	// which only the part of the kernel is known.
	Name  string
	Words string // %h is the host; %r likewise, without the article
	Way   string // the words at a host that the packet only passes, where they differ
	at    stage
	// Verdicts that mean it, as regular expressions: a reason, which files keep, or REASON@FUNCTION, which they call by
	// the row's name. The reason - stands for none. The first row of the table that fits decides.
	seen  string
	errno string             // of send(); files keep it where the row has no when
	when  func(f facts) bool // what must be so on the host for a verdict or an errno to mean this; nil: nothing
	count counter
	// Counters that move as well, at the host of the loss and at the flow's sender: see supportBy.
	moves, sender string
	rest          string // layers whose causes that no other row knows have these words
}

// facts are what is known of the host where packets were lost.
type facts struct {
	passing bool  // they only passed through it
	host    *view // nil: not observed
	device  string
	packets uint64
	errno   string // what send() said of them; "": the kernel's verdict
}

// counter is how counters name a cause: the first row of the table whose counter may speak speaks for it.
type counter struct {
	by    int    // precedence: byNamespace, byDevice, ...
	names string // those that are added up; of which those behind a minus are others'
	where way
	when  func(b *book, v *view) bool              // at which nodes else; nil: at all
	also  func(b *book, v *view) func(*claim) bool // further claims whose packets moved it
	enter func(b *book, v *view, c *Cause)         // for what needs more thought
	// It counts frames that never became a packet, which no watch of drops sees.
	beside bool
}

// way is which nodes a counter speaks at.
type way int

const (
	goesIn  way = iota // any but the sender
	arrives            // the receiver, of UDP
	goesOut            // any but the receiver
)

const filterMoves = "conntrack.drop? conntrack.early_drop? conntrack.insert_failed? nft ip-gap Ip.OutDiscards"

// causes is the table, in travel order, the particular before the general. Its verdicts were measured and read on Linux
// 5.17 to 6.18 (include/net/dropreason-core.h, dropreason-qdisc.h). They are names only: numbers of the kernel's enum
// move between versions. What moves as well was measured on Linux 6.18, with each fault made on purpose.
var causes = [...]Cause{
	// No losses.
	{Name: "PACKET_SOCK_ERROR", at: stageNone, Words: "a copy for a capture at %h", seen: "PACKET_SOCK_ERROR"},
	// a call that came again is answered already
	{at: stageNone, Words: "nothing new to TCP at %h",
		seen: "TCP_(OLD_(DATA|ACK|SEQUENCE)|TOO_OLD_ACK|OFOMERGE|FLAGS|RESET|CLOSE|ABORT_ON_(CLOSE|DATA|LINGER)) " +
			"-@tcp_v[46]_rcv"},

	// Frames that the sender hands to its card itself.
	{Name: model.CauseRingFull, at: stageTransmit, Words: "transmit ring of %h full", moves: "tx_dropped tx_errors"},
	{Name: model.CauseNotRedirected, at: stageTransmit, Words: "not handed to %h's network card",
		moves: "tx_dropped tx_errors"},

	// From the card to IP.
	{Name: model.CauseRingMissed, at: stageRing, Words: "network card ring at %h full", Way: "device ring at %h full",
		count: counter{by: byDevice, names: "ring(rx_missed_errors,rx_fifo_errors,rx_over_errors)", beside: true},
		moves: "rx_missed_errors rx_dropped softnet.time_squeeze?"},
	{Name: model.CauseRingFull, at: stageRing, Words: "network card ring at %h full", Way: "device ring at %h full",
		seen:   "FULL_RING -@veth_xmit|veth_xdp_rx|veth_forward_skb",
		moves:  "rx_missed_errors rx_dropped softnet.time_squeeze?",
		sender: "tx_dropped Ip.OutDiscards Udp.SndbufErrors"},
	{Name: model.CauseDamaged, at: stageWay, Words: "damaged on the way to %h",
		count: counter{by: byDevice, names: "rx_crc_errors rx_frame_errors rx_length_errors", beside: true}},
	{Name: "XDP", at: stageXDP, Words: "XDP program at %h", seen: "XDP.* -@.*xdp.*", rest: model.LayerReceiverXDP,
		count: counter{by: byDevice, names: "xdp", beside: true, when: xdpUnseen}, moves: "xdp"},
	{Name: "TC_INGRESS", at: stageTC, Words: "tc program at %h", seen: "TC_INGRESS", rest: model.LayerReceiverTC,
		count: counter{by: byDevice, names: "tc-input"}, moves: "tc-input"},
	{Name: "between-device-and-ip", at: stageTC, Words: "between the network card and IP at %h (XDP, tc or a bridge)",
		moves: "tc-input"},
	{Name: "CPU_BACKLOG", at: stageBacklog, Words: "CPU backlog at %h full", rest: model.LayerReceiverBacklog,
		seen:  "CPU_BACKLOG -@(enqueue_to_backlog|netif_rx|__netif_rx|flush_backlog|process_backlog|dev_cpu_dead).*",
		count: counter{by: byDevice, names: "backlog(softnet.dropped,rx_dropped)"},
		moves: "softnet.dropped! rx_dropped", sender: "tx_dropped Ip.OutDiscards Udp.SndbufErrors"},
	{Name: "OTHERHOST", at: stageLink, Words: "addressed to another host's card, seen at %h", seen: "OTHERHOST",
		count: counter{by: byDevice, names: "rx_otherhost_dropped"}, moves: "rx_otherhost_dropped"},
	{Name: "BRIDGE_INGRESS_STP_STATE", at: stageLink, Words: "bridge port at %h does not forward",
		seen: "BRIDGE_INGRESS_STP_STATE"},
	{Name: "NO_TX_TARGET", at: stageLink, Words: "no bridge port leads there at %h",
		seen: "NO_TX_TARGET -@br_flood"}, // without a reason before Linux 6.14
	{Name: "VLAN_FILTER", at: stageLink, Words: "bridge port at %h not in the packets' VLAN",
		seen: "-@.*allowed_ingress"},
	// What a bridge hands to a port, or a device to its peer, has passed all but the test of its length.
	{Name: "PKT_TOO_BIG", at: stageLink, Words: "too long for the next link's MTU at %h",
		seen: "-@br_nf_dev_queue_xmit|br_dev_queue_push_xmit|__dev_forward_skb2?"},
	{Name: "VXLAN_VNI_NOT_FOUND", at: stageLink, Words: "VXLAN that no device of %h is in",
		seen: "VXLAN_VNI_NOT_FOUND"},
	{at: stageLink, Words: "link layer of %h",
		seen: `UNHANDLED_PROTO|BRIDGE_\w+|MAC_\w+|LOCAL_MAC|ARP_\w+|VXLAN_\w+|IP_TUNNEL_ECN|TUNNEL_TXINFO ` +
			`UNICAST_IN_L2_MULTICAST|OVS_\w+|OPENVSWITCH\w*|RX_DROP\w*|MAC80211\w*`},
	{Name: "rx-dropped", at: stageDevice, Words: "dropped by %h's network card",
		count: counter{by: byTransmit, names: "rx_dropped",
			also: func(b *book, v *view) func(*claim) bool { return b.at(v, stageBacklog) }},
		moves: "rx_missed_errors rx_dropped"},

	// Packet filter and connection tracking.
	{Name: "CONNTRACK_FULL", at: stageFilter, Words: "connection table at %h full",
		seen:  "NETFILTER_DROP|-@nf_hook_slow", // a rule of nft drops in a function of its own
		errno: "EPERM", when: facts.tableFull,
		count: counter{by: byNamespace, names: "conntrack.drop -conntrack.insert_failed"}, moves: filterMoves},
	{Name: "CONNTRACK_INSERT", at: stageFilter, Words: "no free translated port at %h",
		seen: "NETFILTER_DROP|-@nf_hook_slow", errno: "EPERM", when: facts.noPort,
		count: counter{by: byNamespace, names: "conntrack.insert_failed"}, moves: filterMoves},
	{Name: "NETFILTER_HOOK", at: stageFilter, Words: "filter rule, or connection tracking without room, at %h",
		seen: "NETFILTER_DROP|-@nf_hook_slow", when: facts.unread, moves: filterMoves},
	// A program should have judged it: nothing listens, or its queue was full.
	{Name: "NFQUEUE", at: stageFilter, Words: "filter queue for a program full, or without a listener, at %h",
		seen: "-@(__)?nf_queue", moves: filterMoves},
	{Name: "NETFILTER_DROP", at: stageFilter, Words: "netfilter rule at %h", seen: "NETFILTER_DROP",
		rest: model.LayerReceiverFilter, count: counter{by: byRule, names: "nft"}, moves: filterMoves},

	// IP.
	{Name: "IP_RPFILTER", at: stageIP, Words: "reverse path filter at %h", seen: "IP_RPFILTER",
		count: counter{by: byNamespace, names: "TcpExt.IPReversePathFilter"}, moves: "TcpExt.IPReversePathFilter!"},
	// A wrong checksum counts as a wrong header, too: net/ipv4/ip_input.c ip_rcv_core.
	{Name: "TTL_EXPIRED", at: stageIP, Words: "time to live used up at %h (a loop?)", seen: "IP_INHDR@ip6?_forward",
		when:  facts.passes,
		count: counter{by: byNamespace, names: "Ip.InHdrErrors -Ip.InCsumErrors", when: answersTimeExceeded},
		moves: "Ip.InHdrErrors!"},
	{Name: "IP_INHDR", at: stageIP, Words: "broken IP header at %h", seen: "IP_INHDR",
		count: counter{by: byNamespace, names: "Ip.InHdrErrors -Ip.InCsumErrors"}, moves: "Ip.InHdrErrors!"},
	{Name: model.CauseForwardingOff, at: stageIP, Words: "forwarding is off at %h",
		seen: "IP_INADDRERRORS@ip_error|ip6_forward", when: facts.passes,
		count: counter{by: byNamespace, names: "Ip.InAddrErrors", when: (*book).passes},
		moves: "Ip.InAddrErrors!"},
	{Name: "IP_INADDRERRORS", at: stageIP, Words: "sent to an address that %h does not have (an old NAT entry?)", seen: "IP_INADDRERRORS",
		count: counter{by: byNamespace, names: "Ip.InAddrErrors"}, moves: "Ip.InAddrErrors!"},
	{Name: "IP_INNOROUTES", at: stageIP, Words: "no route at %h", seen: "IP_INNOROUTES",
		count: counter{by: byNamespace, names: "Ip.InNoRoutes"}, moves: "Ip.InNoRoutes!"},
	{Name: "IP_INVALID_SOURCE", at: stageIP, Words: "impossible address (a martian) at %h",
		seen: "IP_(INVALID_SOURCE|LOCAL_SOURCE|LOCALNET|INVALID_DEST)"},
	{Name: "IP_NOPROTO", at: stageIP, Words: "no UDP at %h", seen: "IP_NOPROTO",
		count: counter{by: byNamespace, names: "Ip.InUnknownProtos"}, moves: "Ip.InUnknownProtos!"},
	{Name: "PKT_TOO_SMALL", at: stageIP, Words: "cut off on the way to %h", seen: "PKT_TOO_SMALL",
		count: counter{by: byNamespace, names: "Ip.InTruncatedPkts"}, moves: "Ip.InTruncatedPkts!"},
	{Name: "IP_CSUM", at: stageIP, Words: "wrong IP checksum at %h", seen: "IP_CSUM",
		count: counter{by: byNamespace, names: "Ip.InCsumErrors"}, moves: "Ip.InCsumErrors!"},
	{Name: "ip-discard", at: stageIP, Words: "IP layer of %h",
		count: counter{by: byNamespace, names: "Ip.InDiscards"}, moves: "Ip.InDiscards!"},
	{Name: "PKT_TOO_BIG", at: stageOutput, Words: "too long for the path's MTU",
		Way: "too long for the next link's MTU at %h", seen: "PKT_TOO_BIG", errno: "EMSGSIZE",
		count: counter{by: byNamespace, names: "Ip.FragFails", when: (*book).passes},
		moves: "Ip.FragFails Ip.InTooBigErrors"},
	{Name: "FRAG_REASM_TIMEOUT", at: stageIP, Words: "fragments never completed at %h", seen: "FRAG_REASM_TIMEOUT",
		count: counter{names: "Ip.ReasmFails", when: func(_ *book, v *view) bool {
			return v.table.field("Ip", "ReasmTimeout").whole > 0
		}, enter: (*book).unassembled}, moves: "Ip.ReasmTimeout Ip.ReasmFails"},
	{Name: "FRAG_MEMORY", at: stageIP, Words: "no memory for fragments at %h",
		seen:  "-@ip_defrag|ipv6_frag_rcv", // found no room for one that began
		count: counter{names: "Ip.ReasmFails", enter: (*book).unassembled}},
	{Name: "ROUTE_REFUSED", at: stageIP, Words: "route is a blackhole, or prohibited, at %h",
		seen:  "-@ip_error|dst_discard(_out)?",
		errno: "EINVAL EACCES EHOSTUNREACH", // net/ipv4/fib_semantics.c, fib_props
		when:  facts.refuses,
		count: counter{by: byNamespace, names: uncountedByIP, also: uncounted, when: func(b *book, v *view) bool {
			return b.passes(v) && v.route.Refuses()
		}}},
	{Name: model.CauseIPGap, at: stageIP, Words: "dropped by the filter or by IP at %h; no counter tells which",
		count: counter{by: byNamespace, names: uncountedByIP, also: uncounted}},

	// UDP and its sockets.
	{Name: "NO_SOCKET", at: stageUDP, Words: "nobody listening at %h", seen: "NO_SOCKET",
		count: counter{by: byNamespace, names: "Udp.NoPorts", where: arrives}, moves: "Udp.NoPorts!"},
	{Name: "UDP_CSUM", at: stageUDP, Words: "wrong checksum at %h",
		seen:  `UDP_CSUM -@_*first_packet_length.*|udp(v6)?_recvmsg.*`, // they drop nothing else
		count: counter{by: byNamespace, names: "Udp.InCsumErrors", where: arrives},
		moves: "Udp.InCsumErrors! Udp.InErrors!"},
	{Name: "SOCKET_FILTER", at: stageUDP, Words: "socket filter at %h", seen: "SOCKET_FILTER",
		count: counter{by: byNamespace, where: arrives,
			names: "Udp.InErrors -Udp.RcvbufErrors -Udp.InCsumErrors -Udp.MemErrors"},
		moves: "socket Udp.InErrors!"},
	{Name: "SOCKET_RCVBUFF", at: stageBuffer, Words: "%r socket buffer full", rest: model.LayerReceiverBuffer,
		seen: `SOCKET_(RCVBUFF|BACKLOG)|TCP_(ZEROWINDOW|OVERWINDOW|OFO_DROP|OFO_QUEUE_PRUNE|RCVQ\w*) ` +
			"-@(__)?udp(v6)?_queue_rcv.*|sock_queue_rcv.*",
		count: counter{by: byNamespace, names: "Udp.RcvbufErrors", where: arrives, when: socketsUnread},
		moves: "socket Udp.RcvbufErrors! Udp.InErrors!"},
	{Name: "PROTO_MEM", at: stageMemory, Words: "UDP memory limit at %h", rest: model.LayerReceiverMemory,
		seen:  "PROTO_MEM -@__udp_enqueue_schedule_skb.*|sk_rmem_schedule.*|__sk_mem.*",
		count: counter{by: byNamespace, names: "Udp.MemErrors", where: arrives, when: socketsUnread},
		moves: "socket Udp.MemErrors"},

	// The receiving program.
	{Name: "unread", at: stageApplication, Words: "never read by the program at %h",
		seen: `SOCKET_CLOSE@.* QUEUE_PURGE|-@(udp(v6)?_destruct|inet6?_sock_destruct|__sk_destruct|sk_destruct|` +
			`udp(v6)?_destroy_sock|udp_lib_close|inet6?_release|` +
			`sk_stream_kill_queues|(__)?tcp_(close|disconnect|write_queue_purge|rtx_queue_purge)).*`},
	{Name: "late", at: stageApplication, Words: "arrived too late"},
	{Name: model.CauseNewAddress, at: stageApplication, Words: "came from a new address or port (a NAT changed) before %h knew it"},
	{Name: "overrun", at: stageApplication, Words: "came faster than %h could account for"},
	{Name: "wrong-length", at: stageApplication, Words: "arrived with another length"},

	// From the socket to the queue.
	{Name: "EAGAIN", at: stageOutput, Words: "send buffer full at %h", errno: "EAGAIN EWOULDBLOCK",
		moves: "Udp.SndbufErrors Ip.OutDiscards"},
	{Name: "EPERM", at: stageOutput, Words: "forbidden by a rule at %h", errno: "EPERM EACCES",
		moves: "Ip.OutDiscards nft"},
	{Name: "ECONNREFUSED", at: stageOutput, Words: `not sent after an ICMP answer "port unreachable"`,
		errno: "ECONNREFUSED"},
	{Name: "EINVAL", at: stageOutput, Words: "route is a blackhole at %h", errno: "EINVAL"}, // ROUTE_REFUSED, but gone
	{Name: "IP_OUTNOROUTES", at: stageOutput, Words: "no route at %h", seen: "IP_OUTNOROUTES",
		errno: "ENETUNREACH EHOSTUNREACH", moves: "Ip.OutNoRoutes"},
	{Name: "IPV6DISABLED", at: stageOutput, Words: "IPv6 is off at %h", seen: "IPV6DISABLED"},
	{Name: "SECURITY_HOOK", at: stageOutput, Words: "security module of %h (SELinux, AppArmor)", seen: "SECURITY_HOOK"},
	{Name: "BPF_CGROUP_EGRESS", at: stageOutput, Words: "BPF program of a control group at %h",
		seen: "BPF_CGROUP_EGRESS"},
	{Name: "XFRM_POLICY", at: stageOutput, Words: "IPsec policy at %h", seen: "XFRM_POLICY"},

	// The way out.
	// A qdisc that drops without counting is the one of a device that is down or has no carrier: noop,
	// net/sched/sch_generic.c.
	{Name: "NO_CARRIER", at: stageDevice, Words: "network card of %h down or without carrier", seen: "QDISC_DROP@.*",
		when: facts.noCarrier,
		count: counter{by: byTransmit, names: unsent, where: goesOut, when: func(_ *book, v *view) bool {
			return v.route.NoCarrier
		}, enter: (*book).unsentBy},
		moves: "tx_dropped tx_errors"},
	// WireGuard has none for the address, or does not know where that is.
	{Name: "TUNNEL_NO_PEER", at: stageDevice, Words: "WireGuard at %h has no peer for the address", seen: "-@wg_xmit",
		errno: "ENOKEY EDESTADDRREQ", when: facts.wireguard,
		count: counter{by: byTransmit, names: unsent, where: goesOut, when: noPeer, enter: (*book).unsentBy},
		moves: "tx_dropped tx_errors"},
	{Name: "QDISC_DROP", at: stageQdisc, Words: "queue of %h full", Way: "queue on the way at %h full",
		seen: `QDISC_.*|CAKE_.*|FQ_.*|DUALPI2_.*|GENERIC|(\w+_)?(OVERLIMIT|CONGESTED|MAXFLOWS|FLOOD_PROTECTION|` +
			`BAND_LIMIT|HORIZON_LIMIT|FLOW_LIMIT|L4S_STEP_NON_ECN)`,
		errno: "ENOBUFS", count: counter{by: byDevice, names: "queue", where: goesOut, also: refusedByQueue},
		moves: "qdisc Ip.OutDiscards Udp.SndbufErrors"},
	{Name: "QDISC_CONGESTED", at: stageQdisc, Words: "queue of %h full", Way: "queue on the way at %h full",
		seen:  `-@.*codel\w*_dequeue.*`, // before Linux 6.14
		moves: "qdisc Ip.OutDiscards Udp.SndbufErrors"},
	{Name: "TC_EGRESS", at: stageQdisc, Words: "tc program at %h's output", Way: "tc program at %h", seen: "TC_EGRESS",
		count: counter{by: byDevice, names: "tc-output", where: goesOut},
		moves: "tc-output Ip.OutDiscards Udp.SndbufErrors"},
	{Name: "RECURSION_LIMIT", at: stageClassifier, Words: "went round in a loop of %h's devices",
		seen: "RECURSION_LIMIT"},
	{at: stageClassifier, Words: "tc program at %h", seen: "TC_.*", moves: "tc-input tc-output"},
	{Name: "tx-dropped", at: stageDevice, Words: "dropped by %h's network card",
		count: counter{by: byTransmit, names: unsent, where: goesOut, enter: (*book).unsentBy},
		moves: "tx_dropped tx_errors"},
	{Name: "NEIGH_CREATEFAIL", at: stageNeighbour, Words: "neighbour table of %h full", seen: "NEIGH_CREATEFAIL",
		moves: "neighbour.unresolved_discards"},
	// Of the whole kernel: the first namespace's file counts for all. A meeting has so few packets that those of others
	// would hide them, and control has found the neighbour.
	{Name: "NEIGH_QUEUEFULL", at: stageNeighbour, Words: "no answer to %h's neighbour lookup", seen: "NEIGH_QUEUEFULL",
		count: counter{by: byHost, names: "neighbour.unresolved_discards", where: goesOut,
			when: func(b *book, v *view) bool { return v == b.seeker(v.kernel) && b.in.Way == "" }},
		moves: "neighbour.unresolved_discards"},
	{Name: "NEIGH_FAILED", at: stageNeighbour, Words: "no answer to %h's neighbour lookup",
		seen:  `NEIGH_.* QUEUE_PURGE|-@neigh_(invalidate|destroy|flush_dev)|arp_\w+`, // what waited for an answer
		moves: "neighbour.unresolved_discards"},

	// Between the hosts.
	{Name: model.CauseLinkLoss, at: stageWay, Words: "lost on the %h, as asked", seen: model.CauseLinkLoss},
	{Name: model.CauseLinkFragment, at: stageWay, Words: "a fragment lost on the %h, as asked",
		seen: model.CauseLinkFragment},
	{Name: model.CauseLinkDamage, at: stageWay, Words: "damaged on the %h, as asked", seen: model.CauseLinkDamage},
	{Name: model.CauseLinkQueue, at: stageWay, Words: "queue of the %h full", seen: model.CauseLinkQueue},
	{Name: model.CauseStillQueued, at: stageWay, Words: "still in a queue on the way when the wait for it ended"},
	{Name: model.CauseInside, at: stageWay, Words: "somewhere in %h (by elimination)"},
	{Name: model.CauseElimination, at: stageWay, Words: "between the hosts (by elimination)"},
	{Name: model.CauseICMP, at: stageWay, Words: "refused by %h"},
	{Name: model.CauseReset, at: stageWay, Words: "refused by a TCP reset"},

	// Only the part of the kernel is known, by the reason or by the function.
	{at: stagePurge, Words: "lost by the program at %h", rest: model.LayerApplication,
		seen: "QUEUE_PURGE|-@(__)?skb_queue_purge.*"},
	{at: stageQdisc, Words: "thrown away with the queue of %h", seen: "QUEUE_PURGE"},
	{at: stageUDP, Words: "UDP layer of %h", rest: model.LayerReceiverUDP,
		seen: `PSP_\w+ -@(__)?(udp|udp4|udp6|udpv6)_.*|__skb_recv_udp.*`},
	{at: stageNeighbour, Words: "neighbour lookup of %h", seen: "-@.*neigh.*|arp_.*|ndisc_.*",
		moves: "neighbour.unresolved_discards"},
	{Name: "reassembly", at: stageIP, Words: "fragments never completed at %h",
		seen: "-@.*(frag|reasm).*|ip_expire.*|ip6_expire.*", moves: "Ip.ReasmTimeout Ip.ReasmFails"},
	{at: stageClassifier, Words: "tc program at %h", seen: "-@(sch_handle_ingress|tcf_|tc_run|tcx_run|cls_|act_).*"},
	{at: stageQdisc, Words: "queue of %h full", Way: "queue on the way at %h full", rest: model.LayerSenderQdisc,
		seen:  "-@.*(qdisc|dev_queue_xmit|fifo|tbf|codel|netem|cake).*|.*_(enqueue|dequeue)|(fq_|htb_|sch_).*",
		moves: "qdisc Ip.OutDiscards Udp.SndbufErrors"},
	{at: stageFilter, Words: "netfilter rule at %h", seen: "-@(nf_|nft_|ipt_|ip6t_|ebt_|xt_|br_nf).*",
		moves: filterMoves},
	{Name: "BRIDGE_ISOLATED", at: stageLink, Words: "bridge ports at %h are isolated from each other", seen: "-@br_.*",
		when: facts.isolated},
	{Name: "BRIDGE_INGRESS_STP_STATE", at: stageLink, Words: "bridge port at %h does not forward", seen: "-@br_.*",
		when: facts.portShut},
	{Name: "BRIDGE_PORT", at: stageLink,
		Words: "bridge at %h passes it on to no port (isolated, blocked, or another VLAN)",
		seen:  "-@br_handle_frame.*|br_forward.*"},
	{at: stageLink, Words: "link layer of %h",
		seen: "-@(br_|vlan_|macvlan_|ovs_|vxlan_|bond_|__?netif_receive|ieee80211_).*"},
	{Name: "DEV_READY", at: stageDevice, Words: "interface of %h is down", seen: "DEV_READY"},
	{Name: "NOMEM", at: stageDevice, Words: "no memory for packets at %h", seen: "NOMEM|PFMEMALLOC",
		moves: "TcpExt.PFMemallocDrop"},
	{Name: "SKB_GSO_SEG", at: stageDevice, Words: "buffer of several packets not cut up at %h", seen: "SKB_GSO_SEG"},
	{Name: "SKB_CSUM", at: stageDevice, Words: "checksum not made at %h", seen: "SKB_CSUM"},
	{Name: "TAP_FILTER", at: stageDevice, Words: "filter of a TAP device at %h", seen: `TAP_\w+`},
	{at: stageDevice, Words: "dropped by %h's network card",
		rest:  model.LayerSenderDevice + " " + model.LayerReceiverRing,
		seen:  "DEV_HDR|HDR_TRUNC|SKB_UCOPY_FAULT -@.*xmit.*|(tun_|tap_).*|.*virtnet.*|.*_(poll|clean_rx|clean_tx)",
		moves: "tx_dropped tx_errors rx_missed_errors rx_dropped"},
	{at: stageOutput, Words: "refused by %h's kernel", rest: model.LayerSendCall},
	{at: stageIP, Words: "IP layer of %h", rest: model.LayerReceiverIP,
		seen: "IP_.*|IPV6_.*|DUP_FRAG|FRAG_.*|ICMP_.* -@(ip_|ip6_|ipv6_|__ip|inet_|icmp).*"},
	{Name: "TCP_LISTEN_OVERFLOW", at: stageKernel, Words: "queue of new connections at %h full",
		seen: "TCP_LISTEN_OVERFLOW"},
	{at: stageKernel, Words: "refused by %h's TCP", seen: "TCP_.*"},
	{at: stageKernel, Words: "no packet of a network, at %h", seen: "UNIX_.*|CAN.*|INVALID_PROTO"},
	{at: stageKernel, Words: "on the way at %h", rest: model.LayerNetwork, seen: ".*"},
}
