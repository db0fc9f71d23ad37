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
	gatherErrors(fd, six, 1)
	return &errorQueue{newMessages(batchICMP, 1), uintptr(fd)}
}

// gatherErrors has the kernel keep an error queue, or with 0 throw it away.
func gatherErrors(fd int, six bool, on int) {
	if six {
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, on)
	} else {
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, on)
	}
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
			f.what = icmpNames[[2]byte{t, code}]
		case origin == unix.SO_EE_ORIGIN_ICMP6:
			f.what = icmp6Names[[2]byte{t, code}]
		default:
			return icmpError{}, false // an error of this host, which the send returned, too
		}
		if f.what == "" {
			f.what = fmt.Sprintf("error of type %d code %d", t, code)
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

// The names of ICMP errors by type and code (RFC 792, RFC 1812 section 5.2.7.1).
var icmpNames = map[[2]byte]string{
	{3, 0}: "network unreachable", {3, 1}: "host unreachable", {3, 2}: "protocol unreachable", {3, 3}: "port unreachable",
	{3, 4}: "fragmentation needed", {3, 9}: "network prohibited", {3, 10}: "host prohibited", {3, 13}: "packet filtered",
	{11, 0}: "time to live exceeded", {11, 1}: "reassembly time exceeded", {12, 0}: "parameter problem",
}

// The same for ICMPv6 (RFC 4443).
var icmp6Names = map[[2]byte]string{
	{1, 0}: "network unreachable", {1, 1}: "administratively prohibited", {1, 3}: "address unreachable", {1, 4}: "port unreachable",
	{1, 5}: "source address failed policy", {1, 6}: "route rejected", {2, 0}: "packet too big",
	{3, 0}: "hop limit exceeded", {3, 1}: "reassembly time exceeded", {4, 0}: "parameter problem",
}
