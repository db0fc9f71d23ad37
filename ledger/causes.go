package ledger

import "pelt/model"

// Cause is one way to lose a packet: a row of the one table about it.
type Cause struct {
	// Name is what files call it: the kernel's reason or errno, or a word of pelt's own. "": the kernel's reason, of
	// which only the part of the kernel is known. A verdict with that reason means it, if the row has no when.
	Name  string
	Words string // %h is the host; %r likewise, without the article
	Way   string // the words at a host that the packet only passes, where they differ
	at    stage
	// Further verdicts that mean it, as regular expressions: a reason, which files keep, or REASON@FUNCTION, which they
	// call by the row's name. The reason - stands for none. With ! the counter of the row must have moved for most of
	// the packets. The first row of the table that fits decides.
	seen   string
	errno  string             // of send(), with the same !; files keep it where the row has neither ! nor when
	when   func(f facts) bool // what must be so on the host for a verdict or an errno to mean this; nil: nothing
	counts string             // counters that name it, added up; those behind a minus count other causes
	how    counter
	// Counters that move as well, at the host of the loss and at the flow's sender: see supportBy. "": its own.
	moves, sender string
	rest          string // layers whose causes that no other row knows have these words
	// What the receiving end saw itself, and how that is called in evidence.
	end  func(in *Input) uint64
	told string
}

// facts are what is known of the host where packets were lost.
type facts struct {
	passing bool  // they only passed through it
	host    *view // nil: not observed
	device  string
	packets uint64
	errno   string                       // what send() said of them; "": the kernel's verdict
	read    func(counters string) uint64 // what counters of the host moved by
}

// counter is how a row's counters speak. Of rows with the same counters, the first that may speak does.
type counter struct {
	by    int // precedence: 0 is byNamespace
	where way
	when  func(b *book, v *view) bool      // at which nodes else; nil: at all
	also  string                           // further causes whose packets moved it
	enter func(b *book, v *view, c *Cause) // for what needs more thought
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

// What moves with causes of more than one row.
const (
	ringMoves    = "rx_missed_errors rx_dropped softnet.time_squeeze?"
	backlogMoves = "softnet.dropped! rx_dropped"
	senderMoves  = "tx_dropped Ip.OutDiscards Udp.SndbufErrors"
	filterMoves  = "conntrack.drop? conntrack.early_drop? conntrack.insert_failed? nft ip-gap Ip.OutDiscards"
	queueMoves   = "qdisc Ip.OutDiscards Udp.SndbufErrors"
	unsentMoves  = "tx_dropped tx_errors"
)

// unhandled are the words for what no protocol takes. A bond's driver has its standby ports take nothing:
// drivers/net/bonding/bond_main.c, bond_handle_frame.
const unhandled = "of a protocol unknown at %h, or received on a standby port of a bond"

// unqueued is where noop drops.
const unqueued = "QDISC_DROP@.* -@.*dev_queue_xmit|noop_enqueue|kfree_skb_list"

// uncounted are causes that no counter of IP counts.
const uncounted = "NETFILTER_DROP NETFILTER_HOOK NFQUEUE NFQUEUE_UNHEARD NFQUEUE_FULL CONNTRACK_FULL " +
	"CONNTRACK_INSERT CONNTRACK_CHAIN ROUTE_REFUSED IP_LOCALNET XFRM_POLICY NOT_SPECIFIED"

// causes is the table, in travel order, the particular before the general. Its verdicts were measured and read on Linux
// 5.17 to 6.18 (include/net/dropreason-core.h, dropreason-qdisc.h). They are names only: numbers of the kernel's enum
// move between versions. What moves as well was measured on Linux 6.18, with each fault made on purpose.
var causes = [...]Cause{
	// No losses.
	{Name: "PACKET_SOCK_ERROR", at: stageNone, Words: "a copy for a capture at %h"},
	// a call that came again is answered already
	{at: stageNone, Words: "data that TCP already had, at %h", rest: noLayer,
		seen: "TCP_(OLD_(DATA|ACK|SEQUENCE)|TOO_OLD_ACK|OFO(MERGE|_DROP)|FLAGS|RESET|CLOSE|" +
			"ABORT_ON_(CLOSE|DATA|LINGER)) " + // net/ipv4/tcp_input.c, tcp_ofo_queue
			"-@tcp_v[46]_rcv"},
	// net/sched/sch_tbf.c, tbf_segment: they were counted each, by QDISC_DROP
	{at: stageNone, Words: "a buffer whose packets were dropped singly at %h",
		seen: "(|NOT_SPECIFIED)@tbf_(enqueue|segment)"},

	// Frames that the sender hands to its card itself.
	{Name: model.CauseRingFull, at: stageTransmit, Words: "transmit ring of %h full", moves: unsentMoves},
	{Name: model.CauseNotRedirected, at: stageTransmit, Words: "not handed to %h's network card", moves: unsentMoves},

	// From the card to IP.
	{Name: model.CauseRingMissed, at: stageRing, Words: "network card ring at %h full", Way: "device ring at %h full",
		counts: "ring(rx_missed_errors,rx_fifo_errors,rx_over_errors)", how: counter{by: byDevice, beside: true},
		moves: ringMoves},
	{Name: model.CauseRingFull, at: stageRing, Words: "network card ring at %h full", Way: "device ring at %h full",
		seen: "FULL_RING -@veth_xmit|veth_xdp_rx|veth_forward_skb|tun_net_xmit", moves: ringMoves, sender: senderMoves},
	{Name: model.CauseDamaged, at: stageWay, Words: "damaged on the way to %h",
		counts: "rx_crc_errors rx_frame_errors", how: counter{by: byDevice, beside: true}},
	{Name: wrongLength, at: stageWay, Words: "too long for %h's network card, or cut off on the way",
		counts: "rx_length_errors", how: counter{by: byDevice, beside: true}},
	{Name: "XDP", at: stageXDP, Words: "XDP program at %h", rest: model.LayerReceiverXDP,
		seen:   "XDP.* -@.*xdp.*|veth_poll", // that function drops for nothing else
		counts: "xdp", how: counter{by: byDevice, beside: true, when: xdpUnseen}, moves: "xdp"},
	{Name: policer, at: stageTC, Words: "policer at %h", seen: "TC_INGRESS@.*! -@__netif_receive_skb_core.*!",
		counts: "policed-input(tc-input,police)", how: counter{by: byDevice}, moves: "tc-input"},
	{Name: redirect, at: stageTC,
		Words:  "redirected by tc at %h to an interface that did not take them (down, or its queue full?)",
		seen:   "TC_INGRESS@.*! -@__netif_receive_skb_core.*!",
		counts: "redirected-input(tc-input,mirred)", how: counter{by: byDevice}, moves: "tc-input"},
	// Before Linux 5.17 only the function is told, in which tc drops, too.
	{Name: "UNHANDLED_PROTO", at: stageLink, Words: unhandled,
		seen: "-@__netif_receive_skb_core.*", when: facts.untaken},
	{Name: "TC_INGRESS", at: stageTC, Words: "tc filter or program at %h", seen: "-@__netif_receive_skb_core.*",
		rest: model.LayerReceiverTC, counts: "tc-input", how: counter{by: byDevice, also: policer + " " + redirect},
		moves: "tc-input"},
	{Name: "between-device-and-ip", at: stageTC, Words: "between the network card and IP at %h (XDP, tc or a bridge)",
		moves: "tc-input"},
	{Name: "CPU_BACKLOG", at: stageBacklog, Words: "CPU backlog at %h full", rest: model.LayerReceiverBacklog,
		seen:   "-@(enqueue_to_backlog|netif_rx|__netif_rx|flush_backlog|process_backlog|dev_cpu_dead).*",
		counts: "backlog(softnet.dropped,rx_dropped)", how: counter{by: byDevice},
		moves: backlogMoves, sender: senderMoves},
	// It holds few packets of one flow once it is half full, if that is set: net/core/dev.c, skb_flow_limit.
	{Name: flowLimit, at: stageBacklog, Words: "flow limit of the CPU backlog at %h",
		moves: "softnet.flow_limit? " + backlogMoves, sender: senderMoves},
	{Name: fullOrFlowLimit, at: stageBacklog, Words: "CPU backlog at %h full, or its flow limit met",
		moves: "softnet.flow_limit? " + backlogMoves, sender: senderMoves},
	// The kernel gives a VLAN that no interface is in the same mark: net/core/dev.c, __netif_receive_skb_core.
	{Name: "OTHERHOST", at: stageLink, Words: "addressed to another card or VLAN, seen at %h",
		seen: "-@(ip|ip6)_rcv_core!", counts: "rx_otherhost_dropped", how: counter{by: byDevice},
		moves: "rx_otherhost_dropped"},
	{Name: "UNHANDLED_PROTO", at: stageLink, Words: unhandled},
	{Name: "BRIDGE_INGRESS_STP_STATE", at: stageLink, Words: "bridge port at %h does not forward",
		seen: "-@br_handle_frame"},
	{Name: "NO_TX_TARGET", at: stageLink, Words: "no bridge port leads there at %h",
		seen: "-@br_flood"}, // before Linux 6.14
	{Name: "VLAN_FILTER", at: stageLink, Words: "bridge port at %h not in the packets' VLAN",
		seen: "-@.*allowed_ingress"},
	{Name: "VXLAN_VNI_NOT_FOUND", at: stageLink, Words: "VXLAN that no device of %h is in"},
	// It counts what it does not take as damaged: drivers/net/wireguard/receive.c, net/ipv4/ip_tunnel.c; so do VXLAN and
	// Geneve where the marks of congestion inside and outside do not fit.
	{Name: tunnelRefused, at: stageLink,
		Words:  "refused by the tunnel's interface at %h (WireGuard: a source that is not allowed)",
		counts: "rx_refused", how: counter{by: byDevice, also: tunnelShut + " IP_TUNNEL_ECN", beside: true}},
	{Name: tunnelShut, at: stageLink, Words: "not taken out of the tunnel at %h (its interface is down, or another)",
		seen: `-@(vxlan|geneve|gre|gretap|ipip|ip_tunnel|sit|ip6_tnl|ip4ip6|ip6ip6|ip6gre|ipgre)\w*_rcv`},
	{Name: tunnelShut, at: stageLink, Words: "not taken out of the tunnel at %h (its interface is down, or another)",
		seen: "NO_SOCKET@.* -@__udp[46]_lib_rcv", when: facts.outside},
	// The kernel adds to the card's own count what no protocol takes: net/core/dev.c, __netif_receive_skb_core.
	{Name: "rx-dropped", at: stageDevice, Words: "dropped by %h's network interface, or of a protocol unknown there",
		counts: "rx_dropped", // where some drivers count frames without room, too
		how:    counter{by: byTransmit, also: "CPU_BACKLOG XDP " + model.CauseRingMissed},
		moves:  "rx_missed_errors rx_dropped"},

	// Packet filter and connection tracking. A rule of nft drops in a function of its own.
	{Name: "NETFILTER_HOOK", at: stageFilter, Words: "filter rule, or connection tracking, at %h",
		seen: "NETFILTER_DROP|-@nf_hook_slow", errno: "EPERM", when: facts.ruleOrTracking, moves: filterMoves},
	{Name: "CONNTRACK_FULL", at: stageFilter, Words: "connection table at %h full",
		seen: "NETFILTER_DROP|-@nf_hook_slow!", errno: "EPERM!",
		counts: "conntrack.drop -conntrack.insert_failed", moves: filterMoves},
	{Name: "CONNTRACK_INSERT", at: stageFilter, Words: "no free translated port, or a clash of two connections, at %h",
		seen: "NETFILTER_DROP|-@nf_hook_slow!", errno: "EPERM!", // a long chain of the table counts as failed, too
		counts: "conntrack.insert_failed -conntrack.chaintoolong", moves: filterMoves},
	// One chain of its hash table took no more: net/netfilter/nf_conntrack_core.c, __nf_conntrack_confirm.
	{Name: "CONNTRACK_CHAIN", at: stageFilter,
		Words: "bucket of %h's connection table full (too few nf_conntrack_buckets?)",
		seen:  "NETFILTER_DROP|-@nf_hook_slow!", errno: "EPERM!", counts: "conntrack.chaintoolong", moves: filterMoves},
	// A program should have judged it.
	{Name: "NFQUEUE_UNHEARD", at: stageFilter, Words: "no program reads the filter's queue at %h",
		seen: "-@(__)?nf_queue!", counts: "nfqueue.unheard", how: counter{by: byRule, also: "NFQUEUE"},
		moves: filterMoves},
	{Name: "NFQUEUE_FULL", at: stageFilter, Words: "filter queue of a program at %h full",
		seen: "-@(__)?nf_queue!", counts: "nfqueue.queue_dropped nfqueue.user_dropped",
		how: counter{by: byRule, also: "NFQUEUE"}, moves: filterMoves},
	{Name: "NFQUEUE", at: stageFilter, Words: "filter queue for a program full, or without a listener, at %h",
		seen: "-@(__)?nf_queue", moves: filterMoves},
	{Name: "NETFILTER_DROP", at: stageFilter, Words: "netfilter rule at %h", rest: model.LayerReceiverFilter,
		counts: "nft", how: counter{by: byRule}, moves: filterMoves},

	// IP.
	{Name: "IP_RPFILTER", at: stageIP, Words: "reverse path filter at %h", seen: "-@ip_rcv_finish.*!",
		counts: "TcpExt.IPReversePathFilter"},
	// A wrong checksum counts as a wrong header, too: net/ipv4/ip_input.c ip_rcv_core.
	{Name: "TTL_EXPIRED", at: stageIP, Words: "time to live used up at %h (a loop?)",
		seen:   "IP_INHDR@ip6?_forward -@ip6?_forward!", // who drops there forwards
		counts: "Ip.InHdrErrors -Ip.InCsumErrors", how: counter{when: answersTimeExceeded}},
	{Name: "IP_INHDR", at: stageIP, Words: "broken IP header at %h", seen: "-@ip6?_rcv_core!",
		counts: "Ip.InHdrErrors -Ip.InCsumErrors"},
	// The kernel counts it as if it did not forward: net/ipv6/ip6_output.c, ip6_forward.
	{Name: "LINK_LOCAL_SOURCE", at: stageIP, Words: "link-local source address, which is not forwarded at %h",
		seen: "IP_INADDRERRORS@ip6_forward -@ip6_forward!", when: facts.forwards,
		counts: "Ip.InAddrErrors", how: counter{when: (*book).forwards}},
	{Name: model.CauseForwardingOff, at: stageIP, Words: "forwarding is off at %h",
		seen: "IP_INADDRERRORS@ip_error|ip6_forward -@ip_error|ip6_forward!", when: facts.passes,
		counts: "Ip.InAddrErrors", how: counter{when: (*book).passes}},
	{Name: "IP_INADDRERRORS", at: stageIP, seen: "-@ip_error!",
		Words:  "sent to another address, and forwarding is off at %h (a stale NAT entry, or a lost address?)",
		counts: "Ip.InAddrErrors"},
	// Of IPv6 the kernel tells neither from a route that prohibits: net/ipv6/route.c, ip6_pkt_drop.
	{Name: "NO_ROUTE_OR_REFUSED", at: stageIP, Words: "no route, or one that refuses, at %h",
		seen: `IP_INNOROUTES|-@ip6_pkt_\w+`, when: facts.unread},
	{Name: "IP_INNOROUTES", at: stageIP, Words: "no route at %h", seen: `-@ip_error|ip6_pkt_\w+|ip6_forward!`,
		counts: "Ip.InNoRoutes"},
	// UDP and TCP are always there: net/ipv4/af_inet.c, inet_init.
	{Name: "IP_NOPROTO", at: stageIP, Words: "of an IP protocol unknown at %h (a tunnel's?)",
		counts: "Ip.InUnknownProtos"},
	{Name: "PKT_TOO_SMALL", at: stageIP, Words: "cut off on the way to %h", seen: "-@ip6?_rcv_core!",
		counts: "Ip.InTruncatedPkts"},
	{Name: "IP_CSUM", at: stageIP, Words: "wrong IP checksum at %h", seen: "-@ip_rcv_core!", counts: "Ip.InCsumErrors"},
	{Name: "OTHERHOST", at: stageLink, Words: "addressed to another card or VLAN, seen at %h",
		seen: "-@(ip|ip6)_rcv_core", when: facts.countersRead}, // all else is counted; before Linux 5.19 this is not
	{Name: "IP_INVALID_SOURCE", at: stageIP, Words: "impossible address (a martian) at %h",
		seen: "IP_(LOCAL_SOURCE|LOCALNET|INVALID_DEST)"},
	{Name: "ip-discard", at: stageIP, Words: "IP layer of %h", counts: "Ip.InDiscards"},
	{Name: "PKT_TOO_BIG", at: stageOutput, Words: "too long for the path's MTU",
		Way: "too long for the next link's MTU at %h", seen: "-@ip6?_forward!", errno: "EMSGSIZE",
		counts: "Ip.FragFails", how: counter{when: (*book).passes}, moves: "Ip.FragFails Ip.InTooBigErrors"},
	// What a bridge hands to a port has passed all but the test of its length.
	{Name: "PKT_TOO_BIG", at: stageLink, Words: "too long for the next link's MTU at %h",
		seen: "-@br_nf_dev_queue_xmit|br_dev_queue_push_xmit"},
	// Whether the peer is up is tested before how long the packet may be there, so that no length tells which it was:
	// include/linux/netdevice.h, __is_skb_forwardable.
	{Name: "NOT_FORWARDED", at: stageLink, Words: "not taken by the next interface at %h (down, or its MTU too small)",
		seen: "-@__dev_forward_skb2?"},
	{Name: "FRAG_REASM_TIMEOUT", at: stageIP, Words: "fragments never completed at %h",
		seen: "-@ip_expire|ip6_.*expire.*", counts: "Ip.ReasmFails",
		how: counter{when: timedOut, enter: (*book).unassembled}, moves: "Ip.ReasmTimeout Ip.ReasmFails"},
	{Name: "FRAG_MEMORY", at: stageIP, Words: "no memory for fragments at %h", moves: "Ip.ReasmFails!",
		seen: "-@ip_defrag|ipv6_frag_rcv"}, // found no room for one that began
	// Those of an identification that comes again count as failed, too, and never time out: net/ipv4/ip_fragment.c,
	// ip_frag_too_far.
	{Name: "FRAG_FAILED", at: stageIP,
		Words:  "fragments not put together at %h (no memory, or too many other fragments between them)",
		counts: "Ip.ReasmFails", how: counter{enter: (*book).unassembled}},
	// The kernel tells none of these from another where it drops: the route does, if it is still there.
	{Name: "ROUTE_BLACKHOLE", at: stageIP, Words: "route is a blackhole at %h"},
	{Name: "ROUTE_PROHIBIT", at: stageIP, Words: "route is prohibited at %h"},
	{Name: "ROUTE_UNREACHABLE", at: stageIP, Words: "route is unreachable at %h"},
	{Name: "ROUTE_REFUSED", at: stageIP, Words: "refused by a route or ip rule at %h",
		seen:  "-@ip_error|dst_discard(_out)?",
		errno: "EINVAL EACCES EHOSTUNREACH", // net/ipv4/fib_semantics.c, fib_props
		when:  facts.refuses, counts: uncountedByIP, how: counter{also: uncounted, when: refuses}},
	{Name: model.CauseIPGap, at: stageIP, Words: "dropped by the filter or by IP at %h; no counter tells which",
		counts: uncountedByIP, how: counter{also: uncounted}},

	// UDP and its sockets.
	{Name: "NO_SOCKET", at: stageUDP, Words: "nobody listening at %h", seen: "-@__udp[46]_lib_rcv!",
		counts: "Udp.NoPorts", how: counter{where: arrives}},
	{Name: "NO_SOCKET_OR_TUNNEL", at: stageUDP,
		Words: "one of: nobody listening, or the tunnel's interface is down, at %h"},
	{Name: "UDP_CSUM", at: stageUDP, Words: "wrong or missing checksum at %h",
		seen: "-@_*first_packet_length.*|udp(v6)?_recvmsg.* " + // they drop nothing else
			"-@__udp[46]_lib_rcv|udp(v6)?_queue_rcv_one_skb!",
		counts: "Udp.InCsumErrors", how: counter{where: arrives, also: "SOCKET_DROP"},
		moves: "Udp.InCsumErrors! Udp.InErrors!",
		told:  "wrong checksums at the device", end: func(in *Input) uint64 { return in.Broken }},
	{Name: "SECURITY_HOOK", at: stageUDP, Words: "security module of %h (SELinux, AppArmor)", when: facts.always,
		seen: "SECURITY_HOOK@(__)?(udp|sk_filter|tcp).*", moves: "socket Udp.InErrors!"},
	{Name: "PFMEMALLOC", at: stageUDP, Words: "no memory for packets at %h",
		moves: "socket Udp.InErrors! TcpExt.PFMemallocDrop"},
	{Name: "SOCKET_FILTER", at: stageUDP, seen: "-@udp(v6)?_queue_rcv_one_skb!",
		Words:  "forbidden at %h (socket filter, control group, IPsec policy or security module)",
		counts: "Udp.InErrors -Udp.RcvbufErrors -Udp.InCsumErrors -Udp.MemErrors",
		how:    counter{where: arrives, also: "SOCKET_DROP"}, moves: "socket Udp.InErrors!"},
	{Name: "SOCKET_FILTER_OR_MEMORY", at: stageUDP,
		Words: "one of: a socket filter, a control group, IPsec, or the limit of socket memory, at %h"},
	// TCP has one reason for both: net/ipv4/tcp_input.c, tcp_try_rmem_schedule.
	{Name: "BUFFER_OR_MEMORY", at: stageBuffer, Words: "one of: %r socket buffer full, or the limit of socket memory",
		seen: "PROTO_MEM@tcp_.*"},
	// Its count is the flow's own, and those that tell which it was hold packets of other sockets.
	{Name: "SOCKET_DROP", at: stageBuffer, moves: "Udp.InErrors",
		Words: "one of: %r socket buffer full, wrong checksum, forbidden, or the limit of socket memory"},
	{Name: "PROTO_MEM", at: stageMemory, rest: model.LayerReceiverMemory,
		Words:  "socket memory limit at %h (udp_mem, or a control group)",
		seen:   "-@__udp_enqueue_schedule_skb.*|sk_rmem_schedule.*|__sk_mem.* -@udp(v6)?_queue_rcv_one_skb!",
		counts: "Udp.MemErrors", how: counter{where: arrives, when: socketsUnread}, moves: "socket Udp.MemErrors"},
	{Name: "SOCKET_RCVBUFF", at: stageBuffer, Words: "%r socket buffer full", rest: model.LayerReceiverBuffer,
		seen: `SOCKET_BACKLOG|TCP_(ZEROWINDOW|OVERWINDOW|OFO_QUEUE_PRUNE|RCVQ\w*) ` +
			"-@(__)?udp(v6)?_queue_rcv.*|sock_queue_rcv.*",
		counts: "Udp.RcvbufErrors", how: counter{where: arrives, when: socketsUnread},
		moves: "socket Udp.RcvbufErrors! Udp.InErrors!"},

	// The receiving program.
	{Name: "unread", at: stageApplication, Words: "never read by the program at %h",
		seen: "SOCKET_CLOSE@.* QUEUE_PURGE|-@(udp(v6)?_destruct|inet6?_sock_destruct|__sk_destruct|sk_destruct|" +
			"udp(v6)?_destroy_sock|udp_lib_close|inet6?_release|" +
			"sk_stream_kill_queues|(__)?tcp_(close|disconnect|write_queue_purge|rtx_queue_purge)).*",
		told: "left in the socket", end: func(in *Input) uint64 { return in.Unread }},
	{Name: "late", at: stageApplication, Words: "arrived too late",
		told: "arrived after the drain", end: func(in *Input) uint64 { return in.Late }},
	{Name: "wrong-length", at: stageApplication, Words: "arrived with another length",
		told: "arrived with another length", end: func(in *Input) uint64 { return in.WrongLength }},
	{Name: model.CauseNewAddress, at: stageApplication,
		Words: "came from another address or port than %h expected (a NAT?)",
		told:  "came from another address", end: func(in *Input) uint64 { return in.Unmoved }},
	{Name: "overrun", at: stageApplication, Words: "came faster than %h could account for",
		told: "came too far ahead", end: func(in *Input) uint64 { return in.Overrun }},

	// From the socket to the queue.
	{Name: "EAGAIN", at: stageOutput, Words: "send buffer full at %h", errno: "EWOULDBLOCK",
		moves: "Udp.SndbufErrors Ip.OutDiscards"},
	{Name: "EPERM", at: stageOutput, Words: "forbidden at %h (firewall rule, IPsec policy or control group)",
		moves: "Ip.OutDiscards nft"},
	// ROUTE_REFUSED, but gone, as long as no security module answers so
	{Name: "EACCES", at: stageOutput, Words: "route is prohibited, or forbidden by a security module, at %h"},
	{Name: "ECONNREFUSED", at: stageOutput, Words: `not sent after an ICMP answer "port unreachable"`},
	// ROUTE_REFUSED, but gone; or another call that the kernel finds wrong
	{Name: "EINVAL", at: stageOutput, Words: "refused by %h's kernel (a route that is a blackhole?)"},
	{Name: "IP_OUTNOROUTES", at: stageOutput, Words: "no route at %h", errno: "ENETUNREACH EHOSTUNREACH",
		moves: "Ip.OutNoRoutes"},
	{Name: "IPV6DISABLED", at: stageOutput, Words: "IPv6 is off at %h"},
	{Name: "SECURITY_HOOK", at: stageOutput, Words: "security module of %h (SELinux, AppArmor)"},
	{Name: "BPF_CGROUP_EGRESS", at: stageOutput, Words: "BPF program of a control group at %h"},
	{Name: "XFRM_POLICY", at: stageOutput, Words: "IPsec policy at %h"},

	// The way out.
	{Name: "QUEUE_PURGE", at: stageQdisc, Words: "lost as the queue of %h was changed",
		seen: unqueued, when: facts.changed, moves: unsentMoves},
	{Name: "NO_CARRIER", at: stageDevice, Words: "network card of %h down or without carrier",
		seen: unqueued, when: facts.uncounted, counts: unsent,
		how: counter{by: byTransmit, where: goesOut, when: noCarrier, enter: (*book).unsentBy}, moves: unsentMoves},
	// WireGuard has none for the address, or does not know where that is.
	{Name: "TUNNEL_NO_PEER", at: stageDevice, Words: "WireGuard at %h has no peer for the address", seen: "-@wg_xmit",
		errno: "ENOKEY EDESTADDRREQ", when: facts.wireguard, counts: unsent,
		how: counter{by: byTransmit, where: goesOut, when: noPeer, enter: (*book).unsentBy}, moves: unsentMoves},
	{Name: longPacket, at: stageQdisc, Words: "longer than the bucket of %h's queue",
		Way: "longer than the bucket of a queue at %h", moves: queueMoves},
	// It counts both alike: net/sched/sch_netem.c, netem_enqueue.
	{Name: netemLoss, at: stageQdisc, Words: "netem at %h, which is set to lose packets (or its queue was full)",
		moves: queueMoves},
	// A program, TCP's pacing or a BPF program of tc sets when each is to be sent: net/sched/sch_fq.c, fq_enqueue.
	{Name: pastHorizon, at: stageQdisc, Words: "scheduled later than the queue of %h allows (fq's horizon)",
		seen: `(\w+_)?HORIZON_LIMIT`, moves: queueMoves},
	{Name: "QDISC_DROP_ALL", at: stageQdisc, Words: "queue of %h full, or its bucket shorter than the packet",
		Way: "queue on the way at %h full, or its bucket shorter than the packet", moves: queueMoves},
	{Name: "QDISC_CONGESTED", at: stageQdisc, Words: "queue of %h dropped early, to have the program slow down",
		Way: "queue on the way at %h asked the sender to slow down",
		seen: `(\w+_)?(CONGESTED|L4S_STEP_NON_ECN|FLOOD_PROTECTION)|` +
			"CAKE_FLOOD|DUALPI2_STEP_DROP " + // net/sched/sch_cake.c, cobalt_should_drop; sch_dualpi2.c, do_step_aqm
			"-@.*codel\\w*_dequeue.*|drop_func", // the functions before Linux 6.14
		moves: queueMoves},
	{Name: "QDISC_DROP", at: stageQdisc, Words: "queue of %h full", Way: "queue on the way at %h full",
		rest: model.LayerSenderQdisc, errno: "ENOBUFS",
		seen:   `QDISC_.*|CAKE_.*|FQ_.*|DUALPI2_.*|(\w+_)?(OVERLIMIT|MAXFLOWS|BAND_LIMIT|FLOW_LIMIT)`,
		counts: "queue", how: counter{by: byDevice, where: goesOut, also: "ENOBUFS"}, moves: queueMoves},
	{Name: policer, at: stageQdisc, Words: "policer at %h",
		seen: "TC_EGRESS@.*! -@__dev_queue_xmit!", counts: "policed-output(tc-output,police)",
		how: counter{by: byDevice, where: goesOut}, moves: "tc-output Ip.OutDiscards Udp.SndbufErrors"},
	{Name: redirect, at: stageQdisc,
		Words: "redirected by tc at %h to an interface that did not take them (down, or its queue full?)",
		seen:  "TC_EGRESS@.*! -@__dev_queue_xmit!", counts: "redirected-output(tc-output,mirred)",
		how: counter{by: byDevice, where: goesOut}, moves: "tc-output Ip.OutDiscards Udp.SndbufErrors"},
	{Name: "TC_EGRESS", at: stageQdisc, Words: "tc filter or program at %h's output",
		Way: "tc filter or program at %h", seen: "-@__dev_queue_xmit!", counts: "tc-output",
		how:   counter{by: byDevice, where: goesOut, also: policer + " " + redirect},
		moves: "tc-output Ip.OutDiscards Udp.SndbufErrors"},
	{Name: "RECURSION_LIMIT", at: stageClassifier, Words: "went round in a loop of %h's devices"},
	{Name: "tx-dropped", at: stageDevice, Words: "dropped by %h's network interface", counts: unsent,
		how: counter{by: byTransmit, where: goesOut, enter: (*book).unsentBy}, moves: unsentMoves},
	// Of the whole kernel: the first namespace's file counts for all.
	{Name: "NEIGH_CREATEFAIL", at: stageNeighbour, Words: "neighbour table of %h full",
		counts: "neighbour.table_fulls", how: counter{by: byHost, where: goesOut, when: ofSeeker},
		moves: "neighbour.table_fulls neighbour.unresolved_discards"},
	{Name: "NEIGH_QUEUEFULL", at: stageNeighbour, Words: "no answer in time to %h's neighbour lookup",
		seen: "-@__neigh_event_send!", counts: "neighbour.unresolved_discards",
		how:   counter{by: byHost, where: goesOut, when: ofSeeker},
		moves: "neighbour.unresolved_discards"},
	{Name: "NEIGH_FAILED", at: stageNeighbour, Words: "no answer in time to %h's neighbour lookup",
		seen:  `NEIGH_.* QUEUE_PURGE|-@neigh_(invalidate|destroy|flush_dev)|arp_\w+`, // what waited for an answer
		moves: "neighbour.unresolved_discards"},

	// Between the hosts.
	{Name: model.CauseLinkLoss, at: stageWay, Words: "dropped on the %h, as asked"},
	{Name: model.CauseLinkFragment, at: stageWay, Words: "a fragment dropped on the %h, as asked"},
	{Name: model.CauseLinkDamage, at: stageWay, Words: "damaged on the %h, as asked"},
	{Name: model.CauseLinkQueue, at: stageWay, Words: "queue of the %h full"},
	{Name: model.CauseStillQueued, at: stageWay, Words: "still in a queue on the way when the trial ended"},
	{Name: model.CauseInside, at: stageWay, Words: "somewhere in %h (by elimination)"},
	{Name: model.CauseElimination, at: stageWay, Words: "between the hosts (by elimination)"},
	{Name: model.CauseICMP + "time to live exceeded", at: stageWay, Words: "time to live used up at %h (a loop?)"},
	{Name: model.CauseICMP, at: stageWay, Words: "refused by %h"},
	{Name: model.CauseReset, at: stageWay, Words: "refused by a TCP reset"},

	// Only the part of the kernel is known, by the reason or by the function.
	{at: stagePurge, Words: "lost by the program at %h", seen: "QUEUE_PURGE|-@(__)?skb_queue_purge.*",
		rest: model.LayerApplication},
	{Name: "QUEUE_PURGE", at: stageQdisc, Words: "lost as the queue of %h was changed",
		seen: "-@__rtnl_unlock"}, // a queue's that was changed or taken away: net/core/rtnetlink.c, rtnl_kfree_skbs
	{at: stageUDP, Words: "UDP layer of %h", rest: model.LayerReceiverUDP,
		seen: `PSP_\w+ -@(__)?(udp|udp4|udp6|udpv6)_.*|__skb_recv_udp.*`},
	{Name: "NEIGH_FAILED", at: stageNeighbour, Words: "no answer in time to %h's neighbour lookup",
		seen: "-@.*neigh.*|arp_.*|ndisc_.*", moves: "neighbour.unresolved_discards"},
	{Name: "reassembly", at: stageIP, Words: "fragments never completed at %h",
		seen: "-@.*(frag|reasm).*", moves: "Ip.ReasmTimeout Ip.ReasmFails"},
	{at: stageClassifier, Words: "tc filter or program at %h", moves: "tc-input tc-output",
		seen: "TC_.* -@(sch_handle_ingress|tcf_|tc_run|tcx_run|cls_|act_).*"},
	{Name: "QDISC_DROP", at: stageQdisc, Words: "queue of %h full", Way: "queue on the way at %h full",
		seen: "-@.*(qdisc|dev_queue_xmit|fifo|codel|netem|cake).*|.*_(enqueue|dequeue)|(fq_|htb_|sch_).*" +
			"|kfree_skb_list", moves: queueMoves},
	{Name: "NETFILTER_DROP", at: stageFilter, Words: "netfilter rule at %h", moves: filterMoves,
		seen: "-@(nf_|nft_|ipt_|ip6t_|ebt_|xt_|br_nf).*"},
	{Name: "BRIDGE_ISOLATED", at: stageLink, Words: "bridge ports at %h are isolated from each other", seen: "-@br_.*",
		when: facts.isolated},
	{Name: "BRIDGE_INGRESS_STP_STATE", at: stageLink, Words: "bridge port at %h does not forward", seen: "-@br_.*",
		when: facts.portShut},
	{Name: "BRIDGE_PORT", at: stageLink, seen: "-@br_handle_frame.*|br_forward.*",
		Words: "bridge at %h passes it on to no port (none leads there, isolated, blocked, or another VLAN)"},
	{at: stageLink, Words: "link layer of %h",
		seen: `BRIDGE_\w+|MAC_\w+|LOCAL_MAC|ARP_\w+|VXLAN_\w+|IP_TUNNEL_ECN|TUNNEL_TXINFO ` +
			`UNICAST_IN_L2_MULTICAST|OVS_\w+|OPENVSWITCH\w*|RX_DROP\w*|MAC80211\w* ` +
			"-@(br_|vlan_|macvlan_|ovs_|vxlan_|bond_|__?netif_receive|ieee80211_).*"},
	{Name: "DEV_READY", at: stageDevice, Words: "interface of %h is down"},
	{Name: "NOMEM", at: stageDevice, Words: "no memory for packets at %h"},
	{Name: "SKB_GSO_SEG", at: stageDevice, Words: "buffer of several packets that was not split at %h"},
	{Name: "SKB_CSUM", at: stageDevice, Words: "checksum not made at %h"},
	{Name: "TAP_FILTER", at: stageDevice, Words: "filter of a TAP device at %h", seen: `TAP_\w+`},
	{at: stageDevice, Words: "dropped by %h's network interface",
		rest:  model.LayerSenderDevice + " " + model.LayerReceiverRing,
		seen:  "DEV_HDR|HDR_TRUNC|SKB_UCOPY_FAULT -@.*xmit.*|(tun_|tap_).*|.*virtnet.*|.*_(poll|clean_rx|clean_tx)",
		moves: "tx_dropped tx_errors rx_missed_errors rx_dropped"},
	{at: stageOutput, Words: "refused by %h's kernel", rest: model.LayerSendCall},
	{at: stageIP, Words: "IP layer of %h", rest: model.LayerReceiverIP,
		seen: "IP_.*|IPV6_.*|DUP_FRAG|FRAG_.*|ICMP_.* -@(ip_|ip6_|ipv6_|__ip|inet_|icmp).*"},
	{Name: "TCP_LISTEN_OVERFLOW", at: stageKernel, Words: "queue of new connections at %h full"},
	{at: stageKernel, Words: "refused by %h's TCP", seen: "TCP_.*"},
	{at: stageKernel, Words: "not a network packet, at %h", seen: "UNIX_.*|CAN.*|INVALID_PROTO"},
	{Name: unknownFunction, at: stageKernel, Words: "dropped by the kernel's %c at %h"},
	{at: stageKernel, Words: "at %h, for an unknown reason", rest: model.LayerNetwork, seen: ".*"},
}
