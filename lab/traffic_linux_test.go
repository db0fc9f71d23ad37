package lab

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
	"pelt/model"
)

// parseLinks reads "rate=1gbit" or "sender:rate=1gbit" as the command line does.
func parseLinks(t *testing.T, texts []string) []model.Link {
	t.Helper()
	var links []model.Link
	for _, text := range texts {
		node, rest, ok := strings.Cut(text, ":")
		if !ok {
			node, rest = "", text
		}
		l, _, err := model.ParseLink(node, rest)
		must(t, err)
		links = append(links, l)
	}
	return links
}

// listen opens a UDP socket in a node with a receive buffer that holds a burst.
func listen(t *testing.T, n *Node, addr netip.Addr) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := n.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	option(t, conn, unix.SO_RCVBUFFORCE, 64<<20)
	return conn
}

func dial(t *testing.T, n *Node, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	return dialFrom(t, n, nil, to)
}

// dialFrom is dial from a certain address of the node; nil is any.
func dialFrom(t *testing.T, n *Node, from *net.UDPAddr, to netip.AddrPort) (conn *net.UDPConn) {
	t.Helper()
	err := n.Do(func() (err error) {
		conn, err = net.DialUDP("udp", from, net.UDPAddrFromAddrPort(to))
		return err
	})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func option(t *testing.T, conn *net.UDPConn, name, value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, name, value) }))
	must(t, err)
}

func local(c *net.UDPConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }

type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// batch sends or receives up to 64 datagrams, whose content does not matter, with one system call.
type batch struct {
	msgs [64]mmsghdr
	iov  unix.Iovec
}

func newBatch(payload int) *batch {
	b := &batch{}
	b.iov.Base = &make([]byte, payload)[0]
	b.iov.SetLen(payload)
	for i := range b.msgs {
		b.msgs[i].hdr.Iov = &b.iov
		b.msgs[i].hdr.SetIovlen(1)
	}
	return b
}

func (b *batch) call(trap, fd uintptr, n int) (int, error) {
	done, _, e := unix.Syscall6(trap, fd, uintptr(unsafe.Pointer(&b.msgs[0])), uintptr(min(n, len(b.msgs))), unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(done), nil
}

// flood sends as fast as it can until ctx ends and a queue's worth is sent; it
// returns packets sent.
func flood(ctx context.Context, c *net.UDPConn, payload int) (sent int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	b := newBatch(payload)
	const least = 5000 // on a starved machine the time may pass with nothing done
	if err := c.SetWriteDeadline(time.Now().Add(testenv.Patience)); err != nil {
		return 0, err
	}
	for ctx.Err() == nil || sent < least {
		var n int
		var callErr error
		err := raw.Write(func(fd uintptr) bool {
			n, callErr = b.call(unix.SYS_SENDMMSG, fd, len(b.msgs))
			return !errors.Is(callErr, unix.EAGAIN)
		})
		if err = errors.Join(err, callErr); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// came is how many packets had come by a time.
type came struct {
	at      time.Time
	packets int
}

// middleRate cuts arrivals into twenty parts of about as many packets and returns the
// median of their rates: a machine that stands still for a while changes a few of them.
func middleRate(list []came) (pps float64) {
	if len(list) < 2 {
		return 0
	}
	var rates []float64
	each := (list[len(list)-1].packets - list[0].packets) / 20
	from := list[0]
	for _, a := range list[1:] {
		if a.packets-from.packets >= max(each, 1) && a.at.After(from.at) {
			rates = append(rates, float64(a.packets-from.packets)/a.at.Sub(from.at).Seconds())
			from = a
		}
	}
	slices.Sort(rates)
	if len(rates) == 0 {
		return 0
	}
	return (rates[(len(rates)-1)/2] + rates[len(rates)/2]) / 2
}

// count receives until nothing has come for quiet. The rate is that from 100 ms after
// the first arrival to the last.
func count(c *net.UDPConn, quiet time.Duration) (packets int, pps float64, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	b := newBatch(1)
	var began time.Time
	var list []came
	silent := 0
	for {
		const waits = 4 // of a silence: a machine that stands still ends one early
		if err := c.SetReadDeadline(time.Now().Add(quiet / waits)); err != nil {
			return 0, 0, err
		}
		var n int
		var callErr error
		err := raw.Read(func(fd uintptr) bool {
			n, callErr = b.call(unix.SYS_RECVMMSG, fd, len(b.msgs))
			return !errors.Is(callErr, unix.EAGAIN)
		})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if silent++; silent < waits {
				continue
			}
			return packets, middleRate(list), nil
		}
		silent = 0
		if err = errors.Join(err, callErr); err != nil {
			return packets, 0, err
		}
		packets += n
		now := time.Now()
		// The bucket starts full: judge the rate when its first burst is long over.
		if began.IsZero() {
			began = now
		}
		if now.Sub(began) >= 100*time.Millisecond {
			list = append(list, came{now, packets})
		}
	}
}

type flooded struct {
	sent, received int
	pps            float64
	took           time.Duration // of the sending
}

// segmentTogether lets one call carry a large datagram that the kernel sends as
// many of the given payload: the only way a small machine fills 10 Gbit/s.
func segmentTogether(t *testing.T, in, out *net.UDPConn, payload int) {
	t.Helper()
	for c, o := range map[*net.UDPConn][2]int{out: {unix.UDP_SEGMENT, payload}, in: {unix.UDP_GRO, 1}} {
		raw, err := c.SyscallConn()
		must(t, err)
		var set error
		err = raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_UDP, o[0], o[1]) })
		must(t, errors.Join(err, set))
	}
}

// floodFor sends from one node to another for a while and counts what arrives.
func floodFor(t *testing.T, from, to *Node, family, payload int, d time.Duration) flooded {
	t.Helper()
	in := listen(t, to, to.Addr(family))
	return floodBetween(t, in, dial(t, from, local(in)), payload, d)
}

func floodBetween(t *testing.T, in, out *net.UDPConn, payload int, d time.Duration) flooded {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var (
		f       flooded
		sendErr error
		wait    sync.WaitGroup
	)
	wait.Go(func() {
		began := time.Now()
		f.sent, sendErr = flood(ctx, out, payload)
		f.took = time.Since(began)
	})
	packets, pps, err := count(in, max(d/2, 300*time.Millisecond))
	wait.Wait()
	must(t, errors.Join(err, sendErr))
	f.received, f.pps = packets, pps
	return f
}

// exchange sends one datagram there and one back, and returns the address the
// far end saw.
func exchange(t *testing.T, from, to *Node, family int) netip.Addr {
	t.Helper()
	return exchangeAs(t, from, netip.Addr{}, to, family)
}

// exchangeAs is exchange from a certain address of the first node; the zero address is any.
func exchangeAs(t *testing.T, from *Node, address netip.Addr, to *Node, family int) netip.Addr {
	t.Helper()
	in := listen(t, to, to.Addr(family))
	var as *net.UDPAddr
	if address.IsValid() {
		as = net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0))
	}
	out := dialFrom(t, from, as, local(in))
	for _, c := range []*net.UDPConn{in, out} {
		must(t, c.SetDeadline(time.Now().Add(testenv.Patience)))
	}
	if _, err := out.Write([]byte("there")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, peer, err := in.ReadFromUDPAddrPort(buf)
	if err != nil || string(buf[:n]) != "there" {
		t.Fatalf("%s to %s, IPv%d: %q, %v", from.Name(), to.Name(), family, buf[:n], err)
	}
	if _, err := in.WriteToUDPAddrPort([]byte("back"), peer); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "back" {
		t.Fatalf("%s to %s, IPv%d, back: %q, %v", to.Name(), from.Name(), family, buf[:n], err)
	}
	return peer.Addr().Unmap()
}
