package lab

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
)

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

// flood sends as fast as it can until ctx ends and a queue's worth is sent; it
// returns packets sent.
func flood(ctx context.Context, c *net.UDPConn, payload int) (sent int, err error) {
	const least = 5000 // on a starved machine the time may pass with nothing done
	if err := c.SetWriteDeadline(time.Now().Add(testenv.Patience)); err != nil {
		return 0, err
	}
	for b := make([]byte, payload); ctx.Err() == nil || sent < least; sent++ {
		if _, err := c.Write(b); err != nil {
			return sent, err
		}
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
// the first arrival to the last: a shaper's bucket starts full.
func count(c *net.UDPConn, quiet time.Duration) (packets int, pps float64, err error) {
	var began time.Time
	var list []came
	b := make([]byte, 1)
	const waits = 4 // of a silence: a machine that stands still ends one early
	for silent := 0; silent < waits; {
		if err := c.SetReadDeadline(time.Now().Add(quiet / waits)); err != nil {
			return 0, 0, err
		}
		if _, err := c.Read(b); errors.Is(err, os.ErrDeadlineExceeded) {
			silent++
			continue
		} else if err != nil {
			return packets, 0, err
		}
		silent = 0
		packets++
		now := time.Now()
		if began.IsZero() {
			began = now
		}
		if now.Sub(began) >= 100*time.Millisecond {
			list = append(list, came{now, packets})
		}
	}
	return packets, middleRate(list), nil
}

type flooded struct {
	sent, received int
	pps            float64
	took           time.Duration // of the sending
}

// floodFor sends from one node to another for a while and counts what arrives.
func floodFor(t *testing.T, from, to *Node, family, payload int, d time.Duration) (f flooded) {
	t.Helper()
	in := listen(t, to, to.Addr(family))
	out := dial(t, from, local(in))
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var sendErr error
	var wait sync.WaitGroup
	wait.Go(func() {
		began := time.Now()
		f.sent, sendErr = flood(ctx, out, payload)
		f.took = time.Since(began)
	})
	packets, pps, err := count(in, max(d/2, 200*time.Millisecond))
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
