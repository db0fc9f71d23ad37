package fleet

import (
	"net"
	"syscall"
)

// quietTCP keeps retransmissions of a thin stream at a steady pace instead of
// doubling the pause each time: beats must get through beside a flood, and the
// first order after it must not wait out a long pause. It is only a help, so
// errors do not matter.
func quietTCP(c net.Conn) {
	const tcpThinLinearTimeouts = 16 // include/uapi/linux/tcp.h
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpThinLinearTimeouts, 1)
	})
}
