// Package fastpath carries packets of known connections past a router's kernel
// by an XDP program at its interfaces, as a router's hardware does with flow
// offload. It takes the interfaces of a namespace, and gives what the program did
// with each frame; it makes no interface, and no rule.
//
// The first packets of a flow go through the kernel, with all its rules. Once its
// connection tracking knows the flow, the program finds there how addresses and
// ports are to be changed (bpf_xdp_ct_lookup), and in the routing table where the
// packet leaves, and keeps both. It asks again each second of a flow, and then
// puts off the time at which the kernel would forget the connection. So the kernel
// stays the one who decides: what it does not track, or no longer, it carries
// itself, and so it does with whatever is not a plain packet.
//
// Two things differ from the kernel's own way, as they do in hardware: for up to a
// second a flow goes on that the kernel was told to forget, and the checksums of
// UDP and TCP are carried along, not checked.
//
// It asks the kernel through its type information, so nothing has to be learned
// twice or told from outside: Linux 6.0 with CONFIG_DEBUG_INFO_BTF, and for a
// nf_conntrack that is a module CONFIG_DEBUG_INFO_BTF_MODULES.
package fastpath

import "time"

// Port is one of the two interfaces that packets are carried between.
type Port struct {
	Index   int     // in the namespace
	Address [6]byte // of Ethernet; only frames to it are carried
}

// Timeouts are after how long without a packet the kernel forgets a connection.
type Timeouts struct {
	UDP       time.Duration // that nobody answered
	UDPStream time.Duration
	TCP       time.Duration // that is established
}

// Count is how many frames had one fate. Carried is the first; all others were
// left to the kernel, for the reason that is named.
type Count struct {
	Reason string
	Frames uint64
}

// Carried is the reason of frames that the program sent on their way. One for
// which there is no room at the other end of the cable is lost there, and counted
// by the kernel at the interface that it leaves by (tx_queue_N_xdp_xmit_errors).
const Carried = "carried"
