package ledger

import (
	"regexp"

	"pelt/model"
)

// Side is where on a flow's path a packet was when a kernel let go of it.
type Side int

// The sides. Both is a namespace that holds both ends, as loopback does.
const (
	SideUnknown Side = iota
	SideSender
	SideReceiver
	SideBoth
	SideOther // neither end's: a router, a switch, a container's host
)

// stage is what a packet was going through, whichever host it was on.
type stage int

const (
	stageOutput      stage = iota // on its way from the socket to the queue
	stageQdisc                    // queueing discipline or classifier of an output
	stageNeighbour                // waiting for a link address
	stageDevice                   // driver, virtual device
	stageRing                     // a device's receive ring
	stageXDP                      //
	stageTC                       // classifier of an input
	stageClassifier               // classifier of either
	stageBacklog                  // softnet backlog
	stageFilter                   // netfilter
	stageLink                     // bridge, tunnel, link addresses
	stageIP                       //
	stageUDP                      //
	stageMemory                   // of all UDP sockets
	stageBuffer                   // of the socket
	stagePurge                    // a queue was thrown away, the socket's or the device's
	stageApplication              // the socket was closed on it
	stageKernel                   // nothing known but that it was the kernel
	stageNone                     // a tap's copy, a segment that TCP has already: no loss
)

// rule maps drop reasons and functions to a stage. Names only: numbers of the
// kernel's enum move between versions.
type rule struct {
	reason, function *regexp.Regexp // nil fits all
	stage            stage
	cause            string // "" keeps the reason
}

// inTransit are causes that a reason means on a host which the packet only passes through.
var inTransit = [...]struct {
	reason   string
	function *regexp.Regexp
	cause    string
}{
	{"IP_INADDRERRORS", match(`^(ip_error|ip6_forward)$`), model.CauseForwardingOff},
	{"IP_INHDR", match(`^ip6?_forward$`), model.CauseTTL},
	{"NOT_SPECIFIED", match(`^(ip_error|dst_discard(_out)?)$`), model.CauseRouteRefused},
}

func match(expression string) *regexp.Regexp { return regexp.MustCompile(expression) }

var (
	unspecified  = match(`^(|NOT_SPECIFIED|([A-Z0-9]+_)*UNSPEC)$`)
	queuePurge   = match(`^(QUEUE_PURGE|NOT_SPECIFIED|)$`)
	reassembly   = match(`FRAG_REASM_TIMEOUT`)
	socketCloser = match(`^(udp(v6)?_destruct|inet6?_sock_destruct|__sk_destruct|sk_destruct|udp(v6)?_destroy_sock|udp_lib_close|inet6?_release)`)
)

// rules is the table of places, measured and read on Linux 5.17 to 6.18
// (include/net/dropreason-core.h, dropreason-qdisc.h): the first row that fits
// decides.
var rules = [...]rule{
	{match(`^PACKET_SOCK_ERROR$`), nil, stageNone, ""},
	// what TCP has already, or wants no longer
	{match(`^TCP_(OLD_DATA|OLD_ACK|OLD_SEQUENCE|TOO_OLD_ACK|OFOMERGE|FLAGS|RESET|CLOSE|ABORT_ON_(CLOSE|DATA|LINGER))$`), nil,
		stageNone, ""},
	{unspecified, match(`^tcp_v[46]_rcv$`), stageNone, ""}, // a call that came again and is answered already
	{queuePurge, socketCloser, stageApplication, model.CauseUnread},
	{queuePurge, match(`^(sk_stream_kill_queues|(__)?tcp_(close|disconnect|write_queue_purge|rtx_queue_purge))`),
		stageApplication, model.CauseUnread},
	// what waited for an answer
	{queuePurge, match(`^(neigh_(invalidate|destroy|flush_dev)|arp_\w+)$`), stageNeighbour, "NEIGH_FAILED"},
	{queuePurge, match(`^(__)?skb_queue_purge`), stagePurge, ""},
	{match(`^SOCKET_CLOSE$`), nil, stageApplication, model.CauseUnread},

	{match(`^(SOCKET_(RCVBUFF|BACKLOG)|TCP_(ZEROWINDOW|OVERWINDOW|OFO_DROP|OFO_QUEUE_PRUNE|RCVQ\w*))$`), nil, stageBuffer, ""},
	{match(`^PROTO_MEM$`), nil, stageMemory, ""},
	{match(`^(NO_SOCKET|UDP_CSUM|SOCKET_FILTER|PSP_\w+)$`), nil, stageUDP, ""},
	{match(`^NETFILTER_DROP$`), nil, stageFilter, ""},
	{match(`^CPU_BACKLOG$`), nil, stageBacklog, ""},
	{match(`^XDP`), nil, stageXDP, "XDP"},
	{match(`^TC_INGRESS$`), nil, stageTC, ""},
	{match(`^TC_EGRESS$`), nil, stageQdisc, ""},
	{match(`^(TC_|RECURSION_LIMIT$)`), nil, stageClassifier, ""},
	{match(`^(QDISC_|CAKE_|FQ_|DUALPI2_|QUEUE_PURGE$)`), nil, stageQdisc, ""},
	{match(`^((\w+_)?(OVERLIMIT|CONGESTED|MAXFLOWS|FLOOD_PROTECTION|BAND_LIMIT|HORIZON_LIMIT|FLOW_LIMIT|L4S_STEP_NON_ECN)|GENERIC)$`), nil, stageQdisc, ""},
	{match(`^NEIGH_`), nil, stageNeighbour, ""},
	{match(`^(IP_OUTNOROUTES|IPV6DISABLED|SECURITY_HOOK|BPF_CGROUP_EGRESS|XFRM_POLICY|PKT_TOO_BIG)$`), nil,
		stageOutput, ""},
	{match(`^(FULL_RING)$`), nil, stageRing, ""},
	{match(`^(DEV_READY|DEV_HDR|NOMEM|HDR_TRUNC|SKB_GSO_SEG|SKB_CSUM|SKB_UCOPY_FAULT|TAP_\w+|PFMEMALLOC)$`), nil,
		stageDevice, ""},
	{match(`^(OTHERHOST|UNHANDLED_PROTO|BRIDGE_\w+|NO_TX_TARGET|MAC_\w+|LOCAL_MAC|ARP_\w+|VXLAN_\w+|IP_TUNNEL_ECN|TUNNEL_TXINFO|UNICAST_IN_L2_MULTICAST|OVS_\w+|OPENVSWITCH\w*|RX_DROP\w*|MAC80211\w*)$`), nil, stageLink, ""},
	{match(`^(IP_|IPV6_|DUP_FRAG$|FRAG_|ICMP_|PKT_TOO_SMALL$)`), nil, stageIP, ""},

	// The kernel gave no reason: the function speaks.
	{unspecified, match(`^(veth_xmit|veth_xdp_rx|veth_forward_skb)$`), stageRing, model.CauseRingFull},
	{unspecified, match(`xdp`), stageXDP, "XDP"},
	{unspecified, match(`^(enqueue_to_backlog|netif_rx|__netif_rx|flush_backlog|process_backlog|dev_cpu_dead)`),
		stageBacklog, "CPU_BACKLOG"},
	{unspecified, match(`^__udp_enqueue_schedule_skb|^sk_rmem_schedule|^__sk_mem`), stageMemory, "PROTO_MEM"},
	{unspecified, match(`^(__)?udp(v6)?_queue_rcv|^sock_queue_rcv`), stageBuffer, "SOCKET_RCVBUFF"},
	{unspecified, match(`^_*first_packet_length|^udp(v6)?_recvmsg`), stageUDP, "UDP_CSUM"}, // they drop nothing else
	{unspecified, match(`^(__)?(udp|udp4|udp6|udpv6)_|^__skb_recv_udp`), stageUDP, ""},
	{unspecified, match(`neigh|^arp_|^ndisc_`), stageNeighbour, ""},
	// found no room for one that began
	{unspecified, match(`^(ip_defrag|ipv6_frag_rcv)$`), stageIP, model.CauseFragmentMemory},
	{unspecified, match(`defrag|frag|^ip_expire|^ip6_expire|reasm`), stageIP, model.CauseReassembly},
	{unspecified, match(`^(sch_handle_ingress|tcf_|tc_run|tcx_run|cls_|act_)`), stageClassifier, ""},
	{unspecified, match(`codel\w*_dequeue`), stageQdisc, "QDISC_CONGESTED"}, // before Linux 6.14
	// What a bridge hands to a port, or a device to its peer, has passed all but the test of its length.
	{unspecified, match(`^(br_nf_dev_queue_xmit|br_dev_queue_push_xmit|__dev_forward_skb2?)$`), stageLink,
		"PKT_TOO_BIG"},
	{unspecified, match(`qdisc|dev_queue_xmit|_enqueue$|_dequeue$|fifo|tbf|codel|netem|cake|^fq_|^htb_|^sch_`),
		stageQdisc, ""},
	{unspecified, match(`^(__)?nf_queue$`), stageFilter, model.CauseFilterQueue},
	{unspecified, match(`^(nf_|nft_|ipt_|ip6t_|ebt_|xt_|br_nf)`), stageFilter, ""},
	{unspecified, match(`allowed_ingress$`), stageLink, model.CauseVLANFilter},
	{unspecified, match(`^br_flood$`), stageLink, "NO_TX_TARGET"}, // before Linux 6.14
	{unspecified, match(`^(br_|vlan_|macvlan_|ovs_|vxlan_|bond_|__?netif_receive|ieee80211_)`), stageLink, ""},
	{unspecified, match(`^wg_xmit$`), stageDevice, model.CauseNoPeer},
	{unspecified, match(`xmit|^tun_|^tap_|virtnet|_poll$|_clean_(rx|tx)`), stageDevice, ""},
	{unspecified, match(`^(ip_|ip6_|ipv6_|__ip|inet_|icmp)`), stageIP, ""},
}

// Classify says which layer of the ledger a packet was lost in, and the cause
// that the line bears: the kernel's reason (without SKB_DROP_REASON_), or a word
// of pelt's own where the kernel gives none and its function tells. received
// says that the packet had come in through an interface of the namespace it was
// in. The layer is "" if nothing of the flow was lost there (a tap's copy).
func Classify(reason, function string, side Side, received bool) (layer, cause string) {
	_, layer, cause = classify(reason, function, side, received)
	return layer, cause
}

func classify(reason, function string, side Side, received bool) (at stage, layer, cause string) {
	at, cause = find(reason, function)
	if layer = layerOf(at, side, received); layer != model.LayerNetwork {
		return at, layer, cause
	}
	for _, b := range inTransit {
		if b.reason == spell(reason) && b.function.MatchString(function) {
			return at, layer, b.cause
		}
	}
	return at, layer, cause
}

func find(reason, function string) (at stage, cause string) {
	for _, r := range rules {
		if (r.reason == nil || r.reason.MatchString(reason)) &&
			(r.function == nil || r.function.MatchString(function)) {
			if r.cause != "" {
				return r.stage, r.cause
			}
			return r.stage, spell(reason)
		}
	}
	return stageKernel, spell(reason)
}

func spell(reason string) string {
	if reason == "" {
		return "NOT_SPECIFIED"
	}
	return reason
}

// layers are what each stage means at either end of a flow.
var layers = [...]struct {
	sender, receiver string
	leaves           bool // a packet that came in nowhere yet is on its way out there
}{
	stageOutput:      {model.LayerSendCall, model.LayerReceiverIP, true},
	stageQdisc:       {model.LayerSenderQdisc, model.LayerNetwork, true}, // it left the receiver's namespace again
	stageNeighbour:   {model.LayerSenderDevice, model.LayerNetwork, true},
	stageDevice:      {model.LayerSenderDevice, model.LayerReceiverRing, true},
	stageRing:        {model.LayerSenderDevice, model.LayerReceiverRing, false},
	stageXDP:         {model.LayerSenderDevice, model.LayerReceiverXDP, false},
	stageTC:          {model.LayerSenderQdisc, model.LayerReceiverTC, false},
	stageClassifier:  {model.LayerSenderQdisc, model.LayerReceiverTC, true},
	stageBacklog:     {model.LayerSenderDevice, model.LayerReceiverBacklog, false},
	stageFilter:      {model.LayerSendCall, model.LayerReceiverFilter, true},
	stageLink:        {model.LayerSenderDevice, model.LayerReceiverIP, false},
	stageIP:          {model.LayerSendCall, model.LayerReceiverIP, true},
	stageUDP:         {model.LayerSendCall, model.LayerReceiverUDP, false},
	stageMemory:      {model.LayerSendCall, model.LayerReceiverMemory, false},
	stageBuffer:      {model.LayerSendCall, model.LayerReceiverBuffer, false},
	stagePurge:       {model.LayerSenderQdisc, model.LayerApplication, false},
	stageApplication: {model.LayerSendCall, model.LayerApplication, false},
	stageKernel:      {model.LayerSenderDevice, model.LayerReceiverIP, true},
}

// layerOf maps a stage on one side to a layer.
func layerOf(at stage, side Side, received bool) string {
	if at == stageNone {
		return ""
	}
	is, sends := layers[at], false
	switch side {
	case SideOther:
		return model.LayerNetwork
	case SideSender:
		sends = true
	case SideBoth:
		sends = !received && is.leaves
	case SideUnknown:
		switch at { // of these it is plain which end they belong to
		case stageOutput, stageQdisc, stageNeighbour:
			return is.sender
		case stageKernel, stageDevice, stageLink, stageClassifier:
			return model.LayerNetwork
		}
	}
	switch {
	case !sends:
		return is.receiver
	case received: // the sender's namespace forwarded it for itself, as a container host does
		return model.LayerNetwork
	}
	return is.sender
}
