package tcp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/model"
)

// control runs f on the descriptor and returns f's error.
func control(raw syscall.RawConn, f func(fd int) error) error {
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// tryOptions finds out on a socket of its own whether the order's options can
// be set, so that an impossible order is refused before anything is opened.
func tryOptions(o engine.Order) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for stream := range max(1, len(o.Flow.Controls())) {
		if err := set(fd, o, stream); err != nil {
			return err
		}
	}
	return nil
}

// setOptions sets what the order asks of a socket. A refused congestion
// control is an *engine.Refusal.
func setOptions(raw syscall.RawConn, o engine.Order, stream int) error {
	return control(raw, func(fd int) error { return set(fd, o, stream) })
}

func set(fd int, o engine.Order, stream int) error {
	if o.Flow.SourcePort != 0 && !o.Listen {
		// A port of the trial before may still wait out its last connection.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return fmt.Errorf("reuse local port: %w", err)
		}
	}
	if o.Flow.DSCP != 0 || o.Listen { // what is accepted has the listener's
		if err := setDSCP(fd, o.Flow.DSCP); err != nil {
			return err
		}
	}
	if o.Flow.MSS != 0 && !o.Listen { // what a caller announces binds both ends
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, o.Flow.MSS); err != nil {
			return fmt.Errorf("set MSS: %w", err)
		}
	}
	if o.Flow.Window != 0 {
		engine.SetBuffer(fd, unix.SO_SNDBUF, o.Flow.Window)
		engine.SetBuffer(fd, unix.SO_RCVBUF, o.Flow.Window)
	}
	if name := o.Flow.StreamControl(stream); o.Role == engine.Send && name != "" {
		return setControl(fd, name)
	}
	return nil
}

// window is the buffer that a connection's end of a role uses, as it was asked for: the kernel counts it twice. 0 if it
// is not told.
func window(raw syscall.RawConn, role engine.Role) (bytes int) {
	name := unix.SO_RCVBUF
	if role == engine.Send {
		name = unix.SO_SNDBUF
	}
	control(raw, func(fd int) (err error) {
		bytes, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, name)
		return err
	})
	return bytes / 2
}

// markAnswers sets the DSCP of what a listening socket answers to callers.
func markAnswers(l net.Listener, dscp int) {
	if raw, err := l.(*net.TCPListener).SyscallConn(); err == nil {
		_ = control(raw, func(fd int) error { return setDSCP(fd, dscp) }) // an order with that DSCP was tried before
	}
}

func setDSCP(fd, dscp int) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("set DSCP: %w", err)
	}
	// DSCP is the upper six bits of the field (RFC 2474 section 3). A socket of
	// IPv6 takes both, the second for IPv4 peers.
	if domain == unix.AF_INET6 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, dscp<<2); err != nil {
			return fmt.Errorf("set DSCP: %w", err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, dscp<<2); err != nil {
		return fmt.Errorf("set DSCP: %w", err)
	}
	return nil
}

func setControl(fd int, name string) error {
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return controlRefusal(name)
	case errors.Is(err, unix.EPERM):
		return engine.Refuse(model.ControlRoot, "control", name, "controls", controls("allowed"))
	case err != nil:
		return fmt.Errorf("set congestion control %q: %w", name, err)
	}
	got, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return fmt.Errorf("read back congestion control %q: %w", name, err)
	}
	if got != name {
		return fmt.Errorf("set congestion control %q: the kernel kept %q", name, got)
	}
	return nil
}

// controlRefusal refuses a congestion control that this kernel does not have.
func controlRefusal(control string) error {
	return engine.Refuse(model.ControlMissing, "control", control, "controls", controls("available"))
}

// loaded finds out whether the kernel has all of these congestion controls already.
func loaded(names []string) error {
	have := strings.Split(controls("available"), ", ")
	for _, name := range names {
		if name != "" && !slices.Contains(have, name) {
			return controlRefusal(name)
		}
	}
	return nil
}

// controls lists what /proc of the calling thread's namespace names.
func controls(which string) string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_" + which + "_congestion_control")
	if err != nil || len(b) == 0 {
		return "no list of those there are"
	}
	return strings.Join(strings.Fields(string(b)), ", ")
}

// controlInUse reads the congestion control back; "" if it is not told.
func controlInUse(raw syscall.RawConn) (name string) {
	control(raw, func(fd int) (err error) {
		name, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	return name
}

// readInfo reads TCP_INFO, and of a connection that is under BBR's control TCP_CC_INFO; ok is false if the kernel does
// not tell. x/sys's own call knows neither the length the kernel filled nor the newest fields.
func readInfo(raw syscall.RawConn, bbr bool) (i tcpinfo.Info, ok bool) {
	control(raw, func(fd int) error {
		var b [tcpinfo.Bytes]byte
		var own [tcpinfo.BBRBytes]byte
		n := option(fd, unix.TCP_INFO, b[:])
		if bbr {
			i, ok = tcpinfo.Parse(b[:n], own[:option(fd, unix.TCP_CC_INFO, own[:])])
		} else {
			i, ok = tcpinfo.Parse(b[:n], nil)
		}
		return nil
	})
	return i, ok
}

// option reads a socket option of TCP into b and returns its length; 0 where the kernel does not tell.
func option(fd, name int, b []byte) int {
	length := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, uintptr(name),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return 0
	}
	return min(int(length), len(b))
}

// broken is what ended a connection, a reset or a time-out; nil of one that is not.
func broken(raw syscall.RawConn) error {
	return control(raw, func(fd int) error {
		n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && n != 0 {
			err = unix.Errno(n)
		}
		return err
	})
}

// outstanding is how many bytes the peer has not acknowledged yet; known is false if
// the kernel does not tell.
func outstanding(raw syscall.RawConn) (n int, known bool) {
	err := control(raw, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		return err
	})
	return n, err == nil
}

// limitUnanswered bounds how long the kernel tries to reach a peer that answers nothing; else that takes minutes.
func limitUnanswered(raw syscall.RawConn, d time.Duration) {
	control(raw, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}

// pathMTU returns what the kernel knows of the connection's path, in bytes; 0 unknown.
func pathMTU(raw syscall.RawConn) (mtu int) {
	control(raw, func(fd int) error {
		// The first is refused on sockets of IPv6 whose peer is not an IPv4 one.
		var err error
		if mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU); err != nil {
			mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
		}
		return err
	})
	return mtu
}
