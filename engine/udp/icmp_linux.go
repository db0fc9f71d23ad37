package udp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// batchICMP is how many messages one call takes from the error queue.
const batchICMP = 16

// errorQueue reads what IP_RECVERR gathers. A queue that is not read fills up
// the receive buffer, and leaves the error of its newest message to be
// returned for a packet to come.
type errorQueue struct {
	messages
	fd uintptr
}

// newErrorQueue makes the kernel tell what becomes of this socket's packets:
// ICMP errors in its error queue, and a packet that a queue of this host has no
// room for as ENOBUFS of its send (net/ipv4/ip_output.c ip_send_skb). Where a
// system lacks the option, the loss is left to the counters.
func newErrorQueue(fd int, six bool) *errorQueue {
	if six {
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
	} else {
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	}
	return &errorQueue{newMessages(batchICMP, 1), uintptr(fd)}
}

// drain tells each ICMP error in the queue.
func (q *errorQueue) drain(tell func(icmpError)) {
	for range 64 { // more come as long as packets are sent
		n, _ := q.read(q.fd, unix.MSG_ERRQUEUE)
		for i := range n {
			if f, ok := readICMPError(q.controls(i)); ok {
				tell(f)
			}
		}
		if n < batchICMP {
			return
		}
	}
}

// readICMPError finds an ICMP error among control messages: struct sock_extended_err
// and the address of who sent it (include/uapi/linux/errqueue.h).
func readICMPError(control []byte) (icmpError, bool) {
	const errBytes = 16
	for c, rest, ok := nextControl(control); ok; c, rest, ok = nextControl(rest) {
		four := c.level == unix.IPPROTO_IP && c.kind == unix.IP_RECVERR
		six := c.level == unix.IPPROTO_IPV6 && c.kind == unix.IPV6_RECVERR
		if !four && !six || len(c.data) < errBytes {
			continue
		}
		f := icmpError{errno: unix.Errno(binary.NativeEndian.Uint32(c.data))}
		origin, t, code, from := c.data[4], c.data[5], c.data[6], c.data[errBytes:]
		switch {
		case origin == unix.SO_EE_ORIGIN_ICMP:
			f.what, f.plain = icmpName(t, code)
		case origin == unix.SO_EE_ORIGIN_ICMP6:
			f.what, f.plain = icmp6Name(t, code)
		default:
			return icmpError{}, false // an error of this host, which the send returned, too
		}
		switch {
		case four && len(from) >= 8: // struct sockaddr_in
			f.from = netip.AddrFrom4([4]byte(from[4:8]))
		case six && len(from) >= 24: // struct sockaddr_in6
			f.from = netip.AddrFrom16([16]byte(from[8:24])).Unmap()
		}
		return f, true
	}
	return icmpError{}, false
}

// icmpName names an ICMP error, and says whether a connected socket is told of
// it without IP_RECVERR (RFC 792; net/ipv4/icmp.c icmp_err_convert).
func icmpName(t, code byte) (name string, plain bool) {
	unreachable := [...]struct {
		name  string
		plain bool
	}{
		{"network unreachable", false}, {"host unreachable", false}, {"protocol unreachable", true}, {"port unreachable", true},
		{"fragmentation needed", false}, {"source route failed", false}, {"network unknown", true}, {"host unknown", true},
		{"host isolated", true}, {"network prohibited", true}, {"host prohibited", true}, {"network unreachable for its service", false},
		{"host unreachable for its service", false}, {"packet filtered", true}, {"precedence violated", true}, {"precedence cut off", true},
	}
	switch {
	case t == 3 && int(code) < len(unreachable):
		return unreachable[code].name, unreachable[code].plain
	case t == 11 && code == 0:
		return "time to live exceeded", false
	case t == 11 && code == 1:
		return "reassembly time exceeded", false
	case t == 12:
		return "parameter problem", true
	}
	return fmt.Sprintf("error of type %d code %d", t, code), false
}

// icmp6Name does the same for ICMPv6 (RFC 4443; net/ipv6/icmp.c icmpv6_err_convert).
func icmp6Name(t, code byte) (name string, plain bool) {
	unreachable := [...]struct {
		name  string
		plain bool
	}{
		{"network unreachable", false}, {"administratively prohibited", true}, {"beyond scope of source address", false}, {"address unreachable", false},
		{"port unreachable", true}, {"source address failed policy", true}, {"route rejected", true},
	}
	switch {
	case t == 1 && int(code) < len(unreachable):
		return unreachable[code].name, unreachable[code].plain
	case t == 2:
		return "packet too big", false
	case t == 3 && code == 0:
		return "hop limit exceeded", false
	case t == 3 && code == 1:
		return "reassembly time exceeded", false
	case t == 4:
		return "parameter problem", true
	}
	return fmt.Sprintf("error of type %d code %d", t, code), false
}
