package ledger

import (
	"testing"

	"pgregory.net/rapid"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		reason, function string
		side             Side
		received         bool
		layer, cause     string
	}{
		// Each reason on the side where it belongs.
		{"IP_OUTNOROUTES", "ip_output", SideSender, false, "send-call", "IP_OUTNOROUTES"},
		{"XFRM_POLICY", "xfrm_lookup", SideSender, false, "send-call", "XFRM_POLICY"},
		{"BPF_CGROUP_EGRESS", "ip_finish_output", SideSender, false, "send-call", "BPF_CGROUP_EGRESS"},
		{"NETFILTER_DROP", "nft_do_chain", SideSender, false, "send-call", "NETFILTER_DROP"},
		{"NEIGH_QUEUEFULL", "__neigh_event_send", SideSender, false, "sender-device", "NEIGH_QUEUEFULL"},
		{"NEIGH_HH_FILLFAIL", "neigh_hh_output", SideSender, false, "sender-device", "NEIGH_HH_FILLFAIL"},
		{"QDISC_DROP", "__dev_queue_xmit", SideSender, false, "sender-qdisc", "QDISC_DROP"},
		{"QDISC_OVERLIMIT", "kfree_skb_list_reason", SideSender, false, "sender-qdisc", "QDISC_OVERLIMIT"},
		{"FQ_FLOW_LIMIT", "fq_enqueue", SideSender, false, "sender-qdisc", "FQ_FLOW_LIMIT"},
		{"QDISC_DROP_FLOOD_PROTECTION", "cake_dequeue", SideSender, false, "sender-qdisc", "QDISC_DROP_FLOOD_PROTECTION"},
		{"QDISC_BAND_LIMIT", "fq_enqueue", SideSender, false, "sender-qdisc", "QDISC_BAND_LIMIT"},
		{"BAND_LIMIT", "fq_enqueue", SideSender, false, "sender-qdisc", "BAND_LIMIT"},
		{"L4S_STEP_NON_ECN", "dualpi2_qdisc_enqueue", SideSender, false, "sender-qdisc", "L4S_STEP_NON_ECN"},
		{"TC_EGRESS", "__dev_queue_xmit", SideSender, false, "sender-qdisc", "TC_EGRESS"},
		{"TC_CHAIN_NOTFOUND", "tcf_classify", SideReceiver, true, "receiver-tc", "TC_CHAIN_NOTFOUND"},
		{"QUEUE_PURGE", "qdisc_reset", SideSender, false, "sender-qdisc", "QUEUE_PURGE"},
		{"QUEUE_PURGE", "skb_queue_purge_reason", SideReceiver, true, "application", "QUEUE_PURGE"},
		{"QUEUE_PURGE", "inet_sock_destruct", SideReceiver, true, "application", "unread"},
		{"QUEUE_PURGE", "sk_stream_kill_queues", SideReceiver, true, "application", "unread"},
		{"FULL_RING", "tun_net_xmit", SideOther, true, "network", "FULL_RING"},
		{"FULL_RING", "tun_net_xmit", SideSender, false, "sender-device", "FULL_RING"},
		{"NOMEM", "virtnet_receive", SideReceiver, false, "receiver-ring", "NOMEM"},
		{"CPU_BACKLOG", "enqueue_to_backlog", SideReceiver, false, "receiver-backlog", "CPU_BACKLOG"},
		{"XDP", "do_xdp_generic", SideReceiver, false, "receiver-xdp", "XDP"},
		{"TC_INGRESS", "__netif_receive_skb_core", SideReceiver, true, "receiver-tc", "TC_INGRESS"},
		{"OTHERHOST", "ip_rcv_core", SideReceiver, true, "receiver-ip", "OTHERHOST"},
		{"BRIDGE_INGRESS_STP_STATE", "br_handle_frame", SideOther, true, "network", "BRIDGE_INGRESS_STP_STATE"},
		{"NETFILTER_DROP", "nft_do_chain", SideReceiver, true, "receiver-filter", "NETFILTER_DROP"},
		{"NETFILTER_DROP", "nft_do_chain", SideOther, true, "network", "NETFILTER_DROP"},
		{"IP_RPFILTER", "ip_rcv_finish_core", SideReceiver, true, "receiver-ip", "IP_RPFILTER"},
		{"IPV6_BAD_EXTHDR", "ipv6_parse_hopopts", SideReceiver, true, "receiver-ip", "IPV6_BAD_EXTHDR"},
		{"FRAG_REASM_TIMEOUT", "ip_expire", SideReceiver, true, "receiver-ip", "FRAG_REASM_TIMEOUT"},
		{"NO_SOCKET", "__udp6_lib_rcv", SideReceiver, true, "receiver-udp", "NO_SOCKET"},
		{"UDP_CSUM", "udp_recvmsg", SideReceiver, true, "receiver-udp", "UDP_CSUM"},
		{"SOCKET_FILTER", "udp_queue_rcv_one_skb", SideReceiver, true, "receiver-udp", "SOCKET_FILTER"},
		{"PROTO_MEM", "__udp_enqueue_schedule_skb", SideReceiver, true, "receiver-memory", "PROTO_MEM"},
		{"SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", SideReceiver, true, "receiver-buffer", "SOCKET_RCVBUFF"},
		{"SOCKET_CLOSE", "udp_queue_rcv_one_skb", SideReceiver, true, "application", "unread"},
		{"PACKET_SOCK_ERROR", "packet_rcv", SideReceiver, true, "", "PACKET_SOCK_ERROR"},

		// No reason: the function tells.
		{"NOT_SPECIFIED", "veth_xmit", SideReceiver, false, "receiver-ring", "ring-full"},
		{"NOT_SPECIFIED", "veth_xmit", SideSender, false, "sender-device", "ring-full"},
		{"NOT_SPECIFIED", "veth_xmit", SideOther, false, "network", "ring-full"},
		{"NOT_SPECIFIED", "do_xdp_generic", SideReceiver, false, "receiver-xdp", "XDP"},
		{"NOT_SPECIFIED", "veth_xdp_rcv_skb", SideReceiver, false, "receiver-xdp", "XDP"},
		{"NOT_SPECIFIED", "virtnet_receive_xdp", SideReceiver, false, "receiver-xdp", "XDP"},
		{"NOT_SPECIFIED", "udp_destruct_common", SideReceiver, true, "application", "unread"},
		{"NOT_SPECIFIED", "udpv6_destruct_sock", SideReceiver, true, "application", "unread"},
		{"NOT_SPECIFIED", "ip_defrag", SideReceiver, true, "receiver-ip", "reassembly"},
		{"NOT_SPECIFIED", "br_forward_finish", SideOther, true, "network", "NOT_SPECIFIED"},
		{"NOT_SPECIFIED", "sch_direct_xmit", SideSender, false, "sender-qdisc", "NOT_SPECIFIED"},
		{"NOT_SPECIFIED", "virtio_net_start_xmit", SideSender, false, "sender-device", "NOT_SPECIFIED"},
		{"NOT_SPECIFIED", "something_new", SideReceiver, true, "receiver-ip", "NOT_SPECIFIED"},
		{"", "enqueue_to_backlog", SideReceiver, false, "receiver-backlog", "CPU_BACKLOG"}, // before 5.17
		{"", "__udp_enqueue_schedule_skb", SideReceiver, true, "receiver-memory", "PROTO_MEM"},
		{"QDISC_DROP_UNSPEC", "tbf_enqueue", SideSender, false, "sender-qdisc", "QDISC_DROP_UNSPEC"},

		// A kernel's new reason keeps its name.
		{"BRAND_NEW", "whatever", SideReceiver, true, "receiver-ip", "BRAND_NEW"},
		{"BRAND_NEW", "whatever", SideSender, false, "sender-device", "BRAND_NEW"},

		// Both ends in one namespace: what came in is the receiver's.
		{"NETFILTER_DROP", "nft_do_chain", SideBoth, false, "send-call", "NETFILTER_DROP"},
		{"NETFILTER_DROP", "nft_do_chain", SideBoth, true, "receiver-filter", "NETFILTER_DROP"},
		{"QDISC_DROP", "__dev_queue_xmit", SideBoth, false, "sender-qdisc", "QDISC_DROP"},
		{"CPU_BACKLOG", "enqueue_to_backlog", SideBoth, false, "receiver-backlog", "CPU_BACKLOG"},
		{"SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", SideBoth, true, "receiver-buffer", "SOCKET_RCVBUFF"},

		// Namespace unknown: the socket's layers are the receiver's, the queue's the sender's.
		{"UDP_CSUM", "udp_recvmsg", SideUnknown, true, "receiver-udp", "UDP_CSUM"},
		{"QDISC_DROP", "__dev_queue_xmit", SideUnknown, false, "sender-qdisc", "QDISC_DROP"},
		{"BRAND_NEW", "whatever", SideUnknown, true, "network", "BRAND_NEW"},

		// An end that forwards is on the way.
		{"QDISC_DROP", "__dev_queue_xmit", SideReceiver, true, "network", "QDISC_DROP"},
		{"NETFILTER_DROP", "nft_do_chain", SideSender, true, "network", "NETFILTER_DROP"},
	} {
		layer, cause := Classify(c.reason, c.function, c.side, c.received)
		if layer != c.layer || cause != c.cause {
			t.Errorf("Classify(%q, %q, %d, %v) = %q, %q; want %q, %q", c.reason, c.function, c.side, c.received, layer, cause, c.layer, c.cause)
		}
	}
}

// Whatever a kernel calls things, a layer of the list comes out.
func TestClassifyAnyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reason, function := rapid.String().Draw(t, "reason"), rapid.String().Draw(t, "function")
		layer, cause := Classify(reason, function, Side(rapid.IntRange(-1, 9).Draw(t, "side")), rapid.Bool().Draw(t, "received"))
		if layer != "" && layerPlace(layer) < 0 || cause == "" || layer == "" && reason != "PACKET_SOCK_ERROR" {
			t.Fatalf("Classify(%q, %q) = %q, %q", reason, function, layer, cause)
		}
	})
}
