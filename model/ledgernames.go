package model

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

// Causes that pelt names itself. All others are the kernel's drop reasons, without SKB_DROP_REASON_, and errno names.
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
	CauseStillQueued   = "still-queued" // on its way when the wait for it ended
	CauseOverrun       = "overrun"
	CauseLinkLoss      = "link-loss"      // an emulated link lost it as it was told to
	CauseLinkFragment  = "link-fragment"  // ... of its fragments one or more
	CauseLinkDamage    = "link-damage"    // it turned one of the packet's bits, as it was told to
	CauseLinkQueue     = "link-queue"     // the queue of an emulated link was full
	CauseNotRedirected = "not-redirected" // an XDP frame that the kernel did not hand to the device
	CauseWrongLength   = "wrong-length"
	CauseNewAddress    = "new-address" // came from another address than before, which was not known yet
	CauseReset         = "tcp-reset"   // somebody refused a TCP connection: the host, or a firewall in its name
	CauseICMP          = "icmp: "      // begins the name of an ICMP error, which somebody answered the packets with

	CauseForwardingOff   = "FORWARDING_OFF"
	CauseRouteRefused    = "ROUTE_REFUSED" // a blackhole, or a route that is prohibited or unreachable
	CauseTTL             = "TTL_EXPIRED"
	CauseIPGap           = "IP_GAP" // IP or the filter took it in, and neither delivered nor forwarded it
	CauseNoCarrier       = "NO_CARRIER"
	CauseFilterQueue     = "NFQUEUE" // a program should have judged it: nothing listens, or its queue was full
	CauseConnectionsFull = "CONNTRACK_FULL"
	CauseNoPortLeft      = "CONNTRACK_INSERT" // none for the translated address
	CauseFragmentMemory  = "FRAG_MEMORY"
	CauseNoPeer          = "TUNNEL_NO_PEER"  // WireGuard has none for the address, or does not know where that is
	CauseVLANFilter      = "VLAN_FILTER"     // the bridge's port is not in the packet's VLAN
	CauseIsolated        = "BRIDGE_ISOLATED" // the ports that packets should pass are kept from each other
)
