package finding

import (
	"strings"

	"pelt/model"
)

// wording is one row of the table of phrases: the first row that fits speaks.
type wording struct {
	layer string // "" fits all
	cause string // ends in * to fit the beginning; "" fits all
	text  string // %h is the host
}

// wordings is that table, in travel order, the particular before the general.
var wordings = [...]wording{
	{model.LayerSendCall, "EAGAIN", "send buffer full at %h"},
	{model.LayerSendCall, "EWOULDBLOCK", "send buffer full at %h"},
	{model.LayerSendCall, "ENOBUFS", "refused by %h's kernel: no buffer"},
	{model.LayerSendCall, "EPERM", "forbidden by a rule at %h"},
	{model.LayerSendCall, "EACCES", "forbidden by a rule at %h"},
	{model.LayerSendCall, "EMSGSIZE", "too long for the path's MTU"},
	{model.LayerSendCall, "PKT_TOO_BIG", "too long for the path's MTU"},
	{model.LayerSendCall, "ECONNREFUSED", "not sent after an answer that nobody listens"},
	{model.LayerSendCall, "ENETUNREACH", "no route at %h"},
	{model.LayerSendCall, "EHOSTUNREACH", "no route at %h"},
	{model.LayerSendCall, "IP_OUTNOROUTES", "no route at %h"},
	{model.LayerSendCall, model.CauseRouteRefused, "route is a blackhole, or prohibited, at %h"},
	{model.LayerSendCall, "NETFILTER_DROP", "netfilter rule at %h"},
	{model.LayerSendCall, model.CauseConnectionsFull, "connection table at %h full"},
	{model.LayerSendCall, model.CauseNoPortLeft, "no free translated port at %h"},
	{model.LayerSendCall, model.CauseNoPeer, "WireGuard at %h has no peer for the address"},
	{model.LayerSendCall, "", "refused by %h's kernel"},
	{model.LayerSenderQdisc, "TC_EGRESS", "tc program at %h's output"},
	{model.LayerSenderQdisc, "", "queue of %h full"},
	{model.LayerSenderDevice, "NEIGH_CREATEFAIL", "neighbour table of %h full"},
	{model.LayerSenderDevice, "NEIGH_*", "no answer to %h's neighbour lookup"},
	{model.LayerSenderDevice, model.CauseNoCarrier, "network card of %h down or without carrier"},
	{model.LayerSenderDevice, model.CauseRingFull, "transmit ring of %h full"},
	{model.LayerSenderDevice, model.CauseNotRedirected, "not handed to %h's network card"},
	{model.LayerSenderDevice, "", "dropped by %h's network card"},
	{model.LayerNetwork, model.CauseLinkLoss, "lost on the %h, as asked"},
	{model.LayerNetwork, model.CauseLinkFragment, "a fragment lost on the %h, as asked"},
	{model.LayerNetwork, model.CauseLinkDamage, "damaged on the %h, as asked"},
	{model.LayerNetwork, model.CauseLinkQueue, "queue of the %h full"},
	{model.LayerNetwork, model.CauseStillQueued, "still in a queue on the way when the wait for it ended"},
	{model.LayerNetwork, model.CauseInside, "somewhere in %h (by elimination)"},
	{model.LayerNetwork, model.CauseElimination, "between the hosts (by elimination)"},
	{model.LayerNetwork, model.CauseICMP + "*", "refused by %h"},
	{model.LayerNetwork, model.CauseReset, "refused by a TCP reset"},
	{model.LayerNetwork, model.CauseDamaged, "damaged on the way to %h"},
	{model.LayerNetwork, "queue of *", "queue on the way at %h full"},
	{model.LayerNetwork, "QDISC_*", "queue on the way at %h full"},
	{model.LayerNetwork, "NETFILTER_DROP", "netfilter rule at %h"},
	{model.LayerNetwork, model.CauseIPGap, "dropped by the filter or by IP at %h; no counter tells which"},
	{model.LayerNetwork, model.CauseConnectionsFull, "connection table at %h full"},
	{model.LayerNetwork, model.CauseNoPortLeft, "no free translated port at %h"},
	{model.LayerNetwork, model.CauseFilterQueue, "filter queue for a program full, or without a listener, at %h"},
	{model.LayerNetwork, model.CauseForwardingOff, "forwarding is off at %h"},
	{model.LayerNetwork, model.CauseRouteRefused, "route is a blackhole, or prohibited, at %h"},
	{model.LayerNetwork, model.CauseTTL, "time to live used up at %h (a loop?)"},
	{model.LayerNetwork, "IP_INNOROUTES", "no route at %h"},
	{model.LayerNetwork, "IP_RPFILTER", "reverse path filter at %h"},
	{model.LayerNetwork, "PKT_TOO_BIG", "too long for the next link's MTU at %h"},
	{model.LayerNetwork, "OTHERHOST", "addressed to another host's card, seen at %h"},
	{model.LayerNetwork, "NEIGH_CREATEFAIL", "neighbour table at %h full"},
	{model.LayerNetwork, "NEIGH_*", "no answer to %h's neighbour lookup"},
	{model.LayerNetwork, model.CauseNoCarrier, "network card of %h down or without carrier"},
	{model.LayerNetwork, "BRIDGE_INGRESS_STP_STATE", "bridge port at %h does not forward"},
	{model.LayerNetwork, model.CauseIsolated, "bridge ports at %h are isolated from each other"},
	{model.LayerNetwork, model.CauseVLANFilter, "bridge port at %h not in the packets' VLAN"},
	{model.LayerNetwork, "NO_TX_TARGET", "no bridge port leads there at %h"},
	{model.LayerNetwork, model.CauseNoPeer, "WireGuard at %h has no peer for the address"},
	{model.LayerNetwork, model.CauseBeforeIP, "between the network card and IP at %h (XDP, tc or a bridge)"},
	{model.LayerNetwork, "XFRM_POLICY", "IPsec policy at %h"},
	{model.LayerNetwork, model.CauseTransmit, "dropped by %h's network card"},
	{model.LayerNetwork, "CPU_BACKLOG", "CPU backlog at %h full"},
	{model.LayerNetwork, model.CauseRingFull, "device ring at %h full"},
	{model.LayerNetwork, model.CauseRingMissed, "device ring at %h full"},
	{model.LayerNetwork, "FULL_RING", "device ring at %h full"},
	{model.LayerNetwork, "TC_*", "tc program at %h"},
	{model.LayerNetwork, "XDP", "XDP program at %h"},
	{model.LayerNetwork, "", "on the way at %h"},
	{model.LayerReceiverRing, "", "network card ring at %h full"},
	{model.LayerReceiverXDP, "", "XDP program at %h"},
	{model.LayerReceiverTC, model.CauseBeforeIP, "between the network card and IP at %h (XDP, tc or a bridge)"},
	{model.LayerReceiverTC, "", "tc program at %h"},
	{model.LayerReceiverBacklog, "", "CPU backlog at %h full"},
	{model.LayerReceiverFilter, model.CauseConnectionsFull, "connection table at %h full"},
	{model.LayerReceiverFilter, model.CauseNoPortLeft, "no free translated port at %h"},
	{model.LayerReceiverFilter, model.CauseFilterQueue,
		"filter queue for a program full, or without a listener, at %h"},
	{model.LayerReceiverFilter, "", "netfilter rule at %h"},
	{model.LayerReceiverIP, model.CauseIPGap, "dropped by the filter or by IP at %h; no counter tells which"},
	{model.LayerReceiverIP, "OTHERHOST", "addressed to another host's card, seen at %h"},
	{model.LayerReceiverIP, "IP_RPFILTER", "reverse path filter at %h"},
	{model.LayerReceiverIP, "IP_INADDRERRORS", "not an address of %h"},
	{model.LayerReceiverIP, "FRAG_REASM_TIMEOUT", "fragments never completed at %h"},
	{model.LayerReceiverIP, model.CauseFragmentMemory, "no memory for fragments at %h"},
	{model.LayerReceiverIP, model.CauseReassembly, "fragments never completed at %h"},
	{model.LayerReceiverIP, "IP_NOPROTO", "no UDP at %h"},
	{model.LayerReceiverIP, "VXLAN_VNI_NOT_FOUND", "VXLAN that no device of %h is in"},
	{model.LayerReceiverIP, "", "IP layer of %h"},
	{model.LayerReceiverUDP, "NO_SOCKET", "nobody listening at %h"},
	{model.LayerReceiverUDP, "UDP_CSUM", "wrong checksum at %h"},
	{model.LayerReceiverUDP, "SOCKET_FILTER", "socket filter at %h"},
	{model.LayerReceiverUDP, "", "UDP layer of %h"},
	{model.LayerReceiverMemory, "", "UDP memory limit at %h"},
	{model.LayerReceiverBuffer, "", "%r socket buffer full"},
	{model.LayerApplication, model.CauseUnread, "never read by the program at %h"},
	{model.LayerApplication, model.CauseLate, "arrived too late"},
	{model.LayerApplication, model.CauseNewAddress, "came from an address not known yet"},
	{model.LayerApplication, model.CauseOverrun, "came faster than %h could account for"},
	{model.LayerApplication, model.CauseWrongLength, "arrived with another length"},
	{model.LayerApplication, "", "lost by the program at %h"},
}

// phrase says for people where and why packets were lost: "receiver socket buffer full", "netfilter rule at the
// receiver". It holds no digits of its own and does not repeat the cause, which may stand behind it in brackets.
func phrase(layer, cause, host string) string {
	who, at := host, "at "
	switch {
	case host == model.Sender, host == model.Receiver:
		who = "the " + host
	case host == "":
		who = "an unknown node"
	case strings.HasPrefix(host, model.AnotherNamespace):
		at = "in "
		for _, end := range []string{model.Sender, model.Receiver} {
			if machine, ok := strings.CutSuffix(host, " "+end); ok {
				who = machine + " the " + end
			}
		}
	}
	for _, w := range wordings {
		if w.layer == layer && fits(w.cause, cause) {
			return strings.NewReplacer("at %h", at+who, "%h", who, "%r",
				strings.TrimPrefix(who, "the ")).Replace(w.text)
		}
	}
	return strings.TrimSpace(layer + " " + at + who)
}

func fits(pattern, cause string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(cause, begin)
	}
	return pattern == "" || pattern == cause
}
