package model

import "strings"

// The layers that may lose a packet, in travel order.
const (
	LayerSendCall        = "send-call"
	LayerSenderQdisc     = "sender-qdisc"
	LayerSenderDevice    = "sender-device"
	LayerNetwork         = "network" // between the two ends, whichever node it was
	LayerReceiverRing    = "receiver-ring"
	LayerReceiverXDP     = "receiver-xdp"
	LayerReceiverTC      = "receiver-tc"
	LayerReceiverBacklog = "receiver-backlog"
	LayerReceiverFilter  = "receiver-filter"
	LayerReceiverIP      = "receiver-ip"
	LayerReceiverUDP     = "receiver-udp"
	LayerReceiverMemory  = "receiver-memory"
	LayerReceiverBuffer  = "receiver-buffer"
	LayerApplication     = "application"
)

// Layers lists the layers that may lose a packet, in travel order.
func Layers() []string {
	return []string{
		LayerSendCall, LayerSenderQdisc, LayerSenderDevice, LayerNetwork,
		LayerReceiverRing, LayerReceiverXDP, LayerReceiverTC, LayerReceiverBacklog, LayerReceiverFilter,
		LayerReceiverIP, LayerReceiverUDP, LayerReceiverMemory, LayerReceiverBuffer, LayerApplication,
	}
}

// Causes that pelt names itself, in small letters; those in capitals are the
// kernel's drop reasons, without SKB_DROP_REASON_, and errno names.
const (
	CauseElimination   = "wire/DUT (by elimination)"
	CauseInside        = "inside (by elimination)"
	CauseRingFull      = "ring-full"
	CauseTransmit      = "tx-dropped"
	CauseReceive       = "rx-dropped"
	CauseRingMissed    = "rx-missed"
	CauseDamaged       = "damaged-frame"
	CauseBeforeIP      = "between-device-and-ip"
	CauseIPDiscard     = "ip-discard"
	CauseReassembly    = "reassembly"
	CauseUnread        = "unread"
	CauseLate          = "late"
	CauseOverrun       = "overrun"
	CauseLinkLoss      = "link-loss"      // an emulated link lost it as it was told to
	CauseLinkFragment  = "link-fragment"  // ... of its fragments one or more
	CauseLinkDamage    = "link-damage"    // it turned one of the packet's bits, as it was told to
	CauseLinkQueue     = "link-queue"     // the queue of an emulated link was full
	CauseNotRedirected = "not-redirected" // an XDP frame that the kernel did not hand to the device
	CauseWrongLength   = "wrong-length"
	reasonReassembled  = "FRAG_REASM_TIMEOUT"
	reasonNoProtocol   = "IP_NOPROTO"
	reasonReversePath  = "IP_RPFILTER"
	reasonOtherAddress = "OTHERHOST"
)

// wording is one row of the table of phrases: the first row that fits speaks.
type wording struct {
	layer string // "" fits all
	cause string // ends in * to fit the beginning; "" fits all
	text  string // %h is the host
}

// wordings is that table, in travel order, the particular before the general.
var wordings = [...]wording{
	{LayerSendCall, "EAGAIN", "send buffer full at %h"},
	{LayerSendCall, "EWOULDBLOCK", "send buffer full at %h"},
	{LayerSendCall, "ENOBUFS", "refused by %h's kernel: no buffer"},
	{LayerSendCall, "EPERM", "forbidden by a rule at %h"},
	{LayerSendCall, "EACCES", "forbidden by a rule at %h"},
	{LayerSendCall, "EMSGSIZE", "too long for the path's MTU"},
	{LayerSendCall, "PKT_TOO_BIG", "too long for the path's MTU"},
	{LayerSendCall, "ECONNREFUSED", "not sent after an answer that nobody listens"},
	{LayerSendCall, "ENETUNREACH", "no route at %h"},
	{LayerSendCall, "EHOSTUNREACH", "no route at %h"},
	{LayerSendCall, "IP_OUTNOROUTES", "no route at %h"},
	{LayerSendCall, "NETFILTER_DROP", "netfilter rule at %h"},
	{LayerSendCall, "", "refused by %h's kernel"},
	{LayerSenderQdisc, "TC_EGRESS", "tc program at %h's output"},
	{LayerSenderQdisc, "", "queue of %h full"},
	{LayerSenderDevice, "NEIGH_*", "no answer to %h's neighbour lookup"},
	{LayerSenderDevice, "QDISC_DROP", "network card of %h down or without carrier"},
	{LayerSenderDevice, CauseRingFull, "transmit ring of %h full"},
	{LayerSenderDevice, CauseNotRedirected, "not handed to %h's network card"},
	{LayerSenderDevice, "", "dropped by %h's network card"},
	{LayerNetwork, CauseLinkLoss, "lost on the %h, as asked"},
	{LayerNetwork, CauseLinkFragment, "a fragment lost on the %h, as asked"},
	{LayerNetwork, CauseLinkDamage, "damaged on the %h, as asked"},
	{LayerNetwork, CauseLinkQueue, "queue of the %h full"},
	{LayerNetwork, CauseInside, "somewhere in %h (by elimination)"},
	{LayerNetwork, CauseElimination, "on the wire or in a device between (by elimination)"},
	{LayerNetwork, CauseDamaged, "damaged on the way to %h"},
	{LayerNetwork, "queue of *", "queue on the way at %h full"},
	{LayerNetwork, "QDISC_*", "queue on the way at %h full"},
	{LayerNetwork, "NETFILTER_DROP", "netfilter rule at %h"},
	{LayerNetwork, "CPU_BACKLOG", "CPU backlog at %h full"},
	{LayerNetwork, CauseRingFull, "device ring at %h full"},
	{LayerNetwork, CauseRingMissed, "device ring at %h full"},
	{LayerNetwork, "FULL_RING", "device ring at %h full"},
	{LayerNetwork, "TC_*", "tc program at %h"},
	{LayerNetwork, "XDP", "XDP program at %h"},
	{LayerNetwork, "", "on the way at %h"},
	{LayerReceiverRing, "", "network card ring at %h full"},
	{LayerReceiverXDP, "", "XDP program at %h"},
	{LayerReceiverTC, CauseBeforeIP, "between the network card and IP at %h (XDP, tc or a bridge)"},
	{LayerReceiverTC, "", "tc program at %h"},
	{LayerReceiverBacklog, "", "CPU backlog at %h full"},
	{LayerReceiverFilter, "", "netfilter rule at %h"},
	{LayerReceiverIP, reasonOtherAddress, "addressed to another host's card, seen at %h"},
	{LayerReceiverIP, reasonReversePath, "reverse path filter at %h"},
	{LayerReceiverIP, "IP_INADDRERRORS", "not an address of %h"},
	{LayerReceiverIP, reasonReassembled, "fragments never completed at %h"},
	{LayerReceiverIP, CauseReassembly, "fragments never completed at %h"},
	{LayerReceiverIP, reasonNoProtocol, "no UDP at %h"},
	{LayerReceiverIP, "", "IP layer of %h"},
	{LayerReceiverUDP, "NO_SOCKET", "nobody listening at %h"},
	{LayerReceiverUDP, "UDP_CSUM", "wrong checksum at %h"},
	{LayerReceiverUDP, "SOCKET_FILTER", "socket filter at %h"},
	{LayerReceiverUDP, "", "UDP layer of %h"},
	{LayerReceiverMemory, "", "UDP memory limit at %h"},
	{LayerReceiverBuffer, "", "%r socket buffer full"},
	{LayerApplication, CauseUnread, "never read by the program at %h"},
	{LayerApplication, CauseLate, "arrived too late"},
	{LayerApplication, CauseOverrun, "came faster than %h could account for"},
	{LayerApplication, CauseWrongLength, "arrived with another length"},
	{LayerApplication, "", "lost by the program at %h"},
}

// Phrase says for people where and why packets were lost: "receiver socket buffer full", "netfilter rule at the
// receiver". It holds no digits of its own and does not repeat the cause, which may stand behind it in brackets.
func Phrase(layer, cause, host string) string {
	who := host
	switch host {
	case Sender, Receiver:
		who = "the " + host
	case "":
		who = "an unknown node"
	}
	for _, w := range wordings {
		if w.layer == layer && fits(w.cause, cause) {
			return strings.NewReplacer("%h", who, "%r", strings.TrimPrefix(who, "the ")).Replace(w.text)
		}
	}
	return strings.TrimSpace(layer + " at " + who)
}

func fits(pattern, cause string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(cause, begin)
	}
	return pattern == "" || pattern == cause
}
