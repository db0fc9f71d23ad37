package fleet

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// onSocket does something with the socket of a TCP connection, if it is one.
func onSocket(c net.Conn, do func(fd int)) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// quietTCP keeps retransmissions of a thin stream at a steady pace instead of
// doubling the pause each time: beats must get through beside a flood, and the
// first order after it must not wait out a long pause. It is only a help, so
// errors do not matter.
func quietTCP(c net.Conn) {
	onSocket(c, func(fd int) { _ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_THIN_LINEAR_TIMEOUTS, 1) })
}

// lost reports whether packets of a connection were sent again, or came out of order.
func lost(c net.Conn) (found bool) {
	onSocket(c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		found = err == nil && (info.Total_retrans > 0 || info.Rcv_ooopack > 0)
	})
	return found
}

// smallSegment is the most that a segment carries where large packets may not pass: what every IPv4 host takes (RFC
// 9293).
const smallSegment = 536

// smallSegments has a socket send and take only small segments. Where a system lacks the option, large ones stay.
func smallSegments(c syscall.RawConn) {
	_ = c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, smallSegment)
	})
}
