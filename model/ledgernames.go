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

// CarrierDown ends the names of counters of how often an interface lost its carrier, or was set down.
const CarrierDown = "carrier_down"

// UncountedRules ends the names of settings that are how many rules of a chain of nft may drop packets and count none:
// nft.inet.filter.input.uncounted, named as the counters of rules are.
const UncountedRules = ".uncounted"

// Forwarding6Off is the setting that is 1 if a host forwarded no IPv6 packets at some moment of a trial, else 0.
const Forwarding6Off = "ipv6_forwarding_off"

// KernelRelease is the setting that is a host's kernel, as uname -r has it.
const KernelRelease = "kernel.osrelease"

// GroupMemory begins the name of the setting that is the socket memory of a host's control group, in bytes. The group's
// name follows.
const GroupMemory = "socket_memory_bytes.of:"

// Causes that pelt names itself, and that not only the ledger speaks of: its table, ledger/causes.go, has them all.
const (
	CauseElimination   = "wire/DUT (by elimination)"
	CauseInside        = "inside (by elimination)"
	CauseRingFull      = "ring-full"
	CauseRingMissed    = "rx-missed"
	CauseDamaged       = "damaged-frame"
	CauseStillQueued   = "still-queued"   // on its way when the wait for it ended
	CauseLinkLoss      = "link-loss"      // an emulated link lost it as it was told to
	CauseLinkFragment  = "link-fragment"  // ... of its fragments one or more
	CauseLinkDamage    = "link-damage"    // it turned one of the packet's bits, as it was told to
	CauseLinkQueue     = "link-queue"     // the queue of an emulated link was full
	CauseNotRedirected = "not-redirected" // an XDP frame that the kernel did not hand to the device
	CauseNewAddress    = "new-address"    // came from another address than their stream had at the time
	CauseReset         = "tcp-reset"      // somebody refused a TCP connection: the host, or a firewall in its name
	CauseICMP          = "icmp: "         // begins the name of an ICMP error, which somebody answered the packets with

	CauseForwardingOff = "FORWARDING_OFF"
	CauseIPGap         = "IP_GAP" // IP or the filter took it in, and neither delivered nor forwarded it
)
