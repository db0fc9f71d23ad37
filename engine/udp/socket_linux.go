package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/bind"
	"pelt/internal/icmp"
	"pelt/model"
)

// linuxSocket is a connected UDP socket that the Go runtime does not poll.
type linuxSocket struct {
	fd      int
	six     bool
	joined  int // buffers of joined packets to read at once; 0: they do not come joined
	granted int // of the flooded direction's buffer, as the kernel accounts it
	asked   int // likewise
	addr    netip.AddrPort
	peer    netip.AddrPort
	box     *batchInbox // for one datagram at a time
	errors  *errorQueue // while ICMP errors are watched; else nil
}

// connect opens a socket inside the host from one address to another. Port 0 and
// the unspecified address leave the choice to the kernel; shared lets others
// bind the same port.
func connect(host engine.Host, s settings, from, to netip.AddrPort, shared bool) (k *linuxSocket, err error) {
	err = host.Do(func() error {
		k, err = connectHere(s, from, to, shared)
		return err
	})
	return k, err
}

func connectHere(s settings, from, to netip.AddrPort, shared bool) (*linuxSocket, error) {
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	k := &linuxSocket{fd: fd, six: family == unix.AF_INET6, peer: to}
	if err := k.open(s, from, to, shared); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	k.box = newBatchInbox(fd, 1, false, s.clock)
	return k, nil
}

func (k *linuxSocket) open(s settings, from, to netip.AddrPort, shared bool) error {
	if err := errors.Join(k.set(s, shared), bind.FD(k.fd, s.device)); err != nil {
		return err
	}
	if from.Port() != 0 || from.Addr().IsValid() && !from.Addr().IsUnspecified() {
		sa, _, err := engine.Sockaddr(from)
		if err != nil {
			return err
		}
		switch err := unix.Bind(k.fd, sa); {
		case errors.Is(err, unix.EADDRNOTAVAIL):
			return engine.Refuse(model.NotOwnAddress, "address", from.Addr())
		case errors.Is(err, unix.EADDRINUSE):
			return &engine.Fault{Why: model.NewReason(model.LocalPortTaken, "port", from.Port()), Cause: err}
		case err != nil:
			return fmt.Errorf("bind UDP port %d: %w", from.Port(), os.NewSyscallError("bind", err))
		}
	}
	sa, _, err := engine.Sockaddr(to)
	if err != nil {
		return err
	}
	if err := unix.Connect(k.fd, sa); err != nil {
		return os.NewSyscallError("connect", err)
	}
	local, err := unix.Getsockname(k.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	k.addr = addrPort(local)
	return nil
}

// set makes the options that must hold before the first packet.
func (k *linuxSocket) set(s settings, shared bool) error {
	type option struct {
		name         string
		level, which int
		value        int
	}
	options := []option{}
	discover := unix.IP_PMTUDISC_DONT // the same values for IPv6
	if s.flow.DontFragment {
		discover = unix.IP_PMTUDISC_DO
	}
	if k.six {
		options = append(options,
			option{"IPV6_V6ONLY", unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1},
			option{"IPV6_TCLASS", unix.IPPROTO_IPV6, unix.IPV6_TCLASS, s.flow.DSCP << 2},
			option{"IPV6_MTU_DISCOVER", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, discover})
	} else {
		options = append(options,
			option{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, s.flow.DSCP << 2},
			option{"IP_MTU_DISCOVER", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, discover})
	}
	if shared {
		options = append(options, option{"SO_REUSEPORT", unix.SOL_SOCKET, unix.SO_REUSEPORT, 1})
	}
	if s.sends && s.flow.Segments > 1 {
		// Only to see whether it is known: each send carries its own.
		if unix.SetsockoptInt(k.fd, unix.SOL_UDP, unix.UDP_SEGMENT, s.flow.PayloadBytes) != nil {
			return engine.Refuse(model.KernelCuts)
		}
		options = append(options, option{"UDP_SEGMENT", unix.SOL_UDP, unix.UDP_SEGMENT, 0})
	}
	if s.flow.Joined {
		k.joined = max(1, min(batchJoined, allJoined/joinedRoom/max(s.flow.Streams, 1)))
		if unix.SetsockoptInt(k.fd, unix.SOL_UDP, unix.UDP_GRO, 0) != nil {
			return engine.Refuse(model.KernelJoins)
		}
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(k.fd, o.level, o.which, o.value); err != nil {
			return fmt.Errorf("set %s to %d: %w", o.name, o.value, err)
		}
	}
	// What follows makes figures better and is told in the report where it is missing.
	unix.SetsockoptInt(k.fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if unix.SetsockoptInt(k.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1) != nil { // Linux 5.1
		unix.SetsockoptInt(k.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	half, which := s.receiveBuffer()/2, unix.SO_RCVBUF // the kernel doubles it
	if s.sends {
		half, which = s.sendBuffer()/2, unix.SO_SNDBUF
	}
	k.granted, k.asked = engine.SetBuffer(k.fd, which, half), 2*half
	return nil
}

// follow connects the socket again: what is in its queue stays there. remote returns the first peer still.
func (k *linuxSocket) follow(to netip.AddrPort) error {
	sa, _, err := engine.Sockaddr(to)
	if err != nil {
		return err
	}
	return unix.Connect(k.fd, sa)
}

func (k *linuxSocket) local() netip.AddrPort { return k.addr }

func (k *linuxSocket) read(wait time.Duration) (datagram, error) {
	got, err := k.box.receive(wait)
	if err != nil || len(got) == 0 {
		return datagram{}, err
	}
	return got[0], nil
}

func (k *linuxSocket) write(b []byte) error {
	for {
		_, err := unix.Write(k.fd, b)
		if err != unix.EINTR {
			return err
		}
	}
}

func (k *linuxSocket) watchICMP(on bool) {
	if on {
		k.errors = newErrorQueue(k.fd, k.six)
	} else {
		icmp.Gather(k.fd, k.six, false)
		k.errors = nil
	}
}

func (k *linuxSocket) icmpErrors(tell func(icmp.Error, []byte)) { k.errors.drain(tell) }

func (k *linuxSocket) try(b []byte) error { return unix.Send(k.fd, b, unix.MSG_DONTWAIT) }

func (k *linuxSocket) memory() (socketMemory, bool) { return memoryOf(k.fd) }

func (k *linuxSocket) remote() netip.AddrPort            { return k.peer }
func (k *linuxSocket) bufferBytes() (granted, asked int) { return k.granted, k.asked }
func (k *linuxSocket) close() error                      { return unix.Close(k.fd) }

func (k *linuxSocket) newOutbox(payloadBytes, batch, segments int) outbox {
	return newBatchOut(k, payloadBytes, batch, segments)
}

// newInbox switches UDP_GRO on where packets may be joined. Call it after consent: consent messages must arrive
// singly.
func (k *linuxSocket) newInbox() inbox {
	if k.joined == 0 {
		return newBatchInbox(k.fd, batchIn, false, k.box.clock)
	}
	unix.SetsockoptInt(k.fd, unix.SOL_UDP, unix.UDP_GRO, 1) // set found out that it is known
	return newBatchInbox(k.fd, k.joined, true, k.box.clock)
}

// forbidFragments sets DF. IP_PMTUDISC_PROBE leaves packets above the path MTU to the caller (RFC 8899 section 4.4):
// the kernel refuses only what the interface cannot take.
func (k *linuxSocket) forbidFragments() error {
	level, which := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER
	if k.six {
		level, which = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER
	}
	if err := unix.SetsockoptInt(k.fd, level, which, unix.IP_PMTUDISC_PROBE); err != nil { // the same value for IPv6
		return fmt.Errorf("forbid fragments: %w", err)
	}
	return nil
}

func (k *linuxSocket) pathMTU() int {
	level, which := unix.IPPROTO_IP, unix.IP_MTU
	if k.six {
		level, which = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu, err := unix.GetsockoptInt(k.fd, level, which)
	if err != nil {
		return 0
	}
	return mtu
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		a := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.ZoneId != 0 && a.Is6() {
			a = a.WithZone(strconv.Itoa(int(sa.ZoneId)))
		}
		return netip.AddrPortFrom(a, uint16(sa.Port))
	}
	return netip.AddrPort{}
}
