package icmp

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Gather has the kernel keep the errors of a socket in its error queue, or throw them away. Where a system lacks the
// option, less is known of what is lost.
func Gather(fd int, six, on bool) {
	value := 0
	if on {
		value = 1
	}
	if six {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, value)
	} else {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, value)
	}
}

// Read finds an ICMP error among the control messages of an error queue: struct sock_extended_err and the address of
// who sent it (include/uapi/linux/errqueue.h).
func Read(control []byte) (e Error, ok bool) {
	const errBytes = 16
	list, _ := unix.ParseSocketControlMessage(control) // what cannot be read is not known
	for _, m := range list {
		four := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR
		six := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if !four && !six || len(m.Data) < errBytes {
			continue
		}
		e.Errno = unix.Errno(binary.NativeEndian.Uint32(m.Data))
		origin, kind, code, from := m.Data[4], m.Data[5], m.Data[6], m.Data[errBytes:]
		switch origin {
		case unix.SO_EE_ORIGIN_ICMP:
			e.What = names[[2]byte{kind, code}]
		case unix.SO_EE_ORIGIN_ICMP6:
			e.What = names6[[2]byte{kind, code}]
		default: // an error of this host, which the send returned, too
			return Error{}, false
		}
		if e.What == "" {
			e.What = fmt.Sprintf("error of type %d code %d", kind, code)
		}
		switch {
		case four && len(from) >= 8: // struct sockaddr_in
			e.From = netip.AddrFrom4([4]byte(from[4:8]))
		case six && len(from) >= 24: // struct sockaddr_in6
			e.From = netip.AddrFrom16([16]byte(from[8:24])).Unmap()
		}
		return e, true
	}
	return Error{}, false
}

// The names of ICMP errors by type and code (RFC 792, RFC 1812 section 5.2.7.1).
var names = map[[2]byte]string{
	{3, 0}: NetworkUnreachable, {3, 1}: HostUnreachable, {3, 2}: "protocol unreachable", {3, 3}: "port unreachable",
	{3, 4}: "fragmentation needed", {3, 6}: NetworkUnreachable, {3, 7}: HostUnreachable, {3, 9}: "network prohibited",
	{3, 10}: "host prohibited", {3, 13}: "administratively prohibited",
	{11, 0}: TimeExceeded, {11, 1}: "reassembly time exceeded", {12, 0}: "parameter problem",
}

// The same names for ICMPv6 (RFC 4443).
var names6 = map[[2]byte]string{
	{1, 0}: NetworkUnreachable, {1, 1}: "administratively prohibited", {1, 3}: HostUnreachable, {1,
		4}: "port unreachable",
	{1, 5}: "source address prohibited", {1, 6}: "route rejected", {2, 0}: "packet too big",
	{3, 0}: TimeExceeded, {3, 1}: "reassembly time exceeded", {4, 0}: "parameter problem",
}

// Dial opens a TCP connection. With an error it also returns what the kernel tells of the attempt.
func Dial(ctx context.Context, d net.Dialer, to netip.AddrPort) (net.Conn, Attempt, error) {
	fd, prepare := -1, d.Control // a descriptor of its own, for after the dialer has closed its one
	d.Control = func(network, address string, raw syscall.RawConn) error {
		err := raw.Control(func(socket uintptr) {
			unix.Close(fd) // the dialer may try again
			fd, _ = unix.FcntlInt(socket, unix.F_DUPFD_CLOEXEC, 0)
			Gather(fd, to.Addr().Is6(), true)
		})
		if err != nil || prepare == nil {
			return err
		}
		return prepare(network, address, raw)
	}
	conn, err := d.DialContext(ctx, "tcp", to.String())
	defer unix.Close(fd)
	if err == nil {
		Gather(fd, to.Addr().Is6(), false) // else such an error would end it
		return conn, Attempt{}, nil
	}
	var a Attempt
	control := make([]byte, 512)
	if _, n, _, _, err := unix.Recvmsg(fd, make([]byte, 128), control,
		unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT); err == nil {
		a.Error, _ = Read(control[:n])
	}
	if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
		a.Sent = 1 + uint64(info.Total_retrans)
	}
	return nil, a, err
}
