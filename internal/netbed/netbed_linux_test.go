package netbed

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// path sends numbered datagrams from one node to another.
type path struct {
	t        testing.TB
	from, to Socket
	next     byte
}

func newPath(from, to *Node, six bool) *path {
	patient := func(fd int) error {
		return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 30})
	}
	p := &path{t: from.T, to: to.Open(six, patient, Bound(netip.AddrPortFrom(to.IP(six), 0)))}
	p.from = from.Open(six, Connected(netip.AddrPortFrom(to.IP(six), p.to.Port)))
	return p
}

// send sends the next datagram, which may be refused. It is 92 B long with IPv4's header.
func (p *path) send() {
	p.next++
	_, _ = unix.Write(p.from.FD, []byte{p.next, 63: 0})
}

// arrives sends a datagram and finds out that it is the next to arrive, and from whom.
func (p *path) arrives(what string) netip.Addr {
	p.t.Helper()
	_, _ = unix.GetsockoptInt(p.from.FD, unix.SOL_SOCKET, unix.SO_ERROR) // what a router told of an earlier one
	p.send()
	b := make([]byte, 65)
	n, from, err := unix.Recvfrom(p.to.FD, b, 0)
	if err != nil || n != 64 || b[0] != p.next {
		p.t.Fatalf("%s: received datagram %d, %v; want %d", what, b[0], err, p.next)
	}
	if four, ok := from.(*unix.SockaddrInet4); ok {
		return netip.AddrFrom4(four.Addr)
	}
	return netip.AddrFrom16(from.(*unix.SockaddrInet6).Addr)
}

// configured is what a node's interfaces have: addresses, routes, neighbours.
func configured(n *Node) (all []string) {
	n.Must(func() error {
		links, err := netlink.LinkList()
		for _, l := range links {
			all = append(all, fmt.Sprint(l.Attrs().Name, l.Attrs().MTU, l.Attrs().OperState))
			addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
			routes, err2 := netlink.RouteList(l, netlink.FAMILY_ALL)
			neighbours, err3 := netlink.NeighList(l.Attrs().Index, netlink.FAMILY_ALL)
			if err := cmp.Or(err, err2, err3); err != nil {
				return err
			}
			for _, a := range addresses {
				all = append(all, a.IPNet.String())
			}
			for _, r := range routes {
				all = append(all, r.String())
			}
			for _, a := range neighbours {
				if a.State == unix.NUD_PERMANENT {
					all = append(all, a.IP.String()+a.HardwareAddr.String())
				}
			}
		}
		return err
	})
	slices.Sort(all)
	return all
}

// Each fault loses packets. Once it is undone none are lost, and each node is as it was.
func TestFaults(t *testing.T) {
	nodes := Chain(t, "client", "router", "server")
	client, router, server := nodes[0], nodes[1], nodes[2]
	bridged := Switch(t, "switch", "h1", "h2")
	all := append(nodes, bridged...)
	for _, c := range []struct {
		name string
		make func(six bool) (undo func())
	}{
		{"rule", func(bool) func() {
			return router.Rule(nftables.ChainHookForward, &expr.Verdict{Kind: expr.VerdictDrop})
		}},
		{"no forwarding", func(six bool) func() {
			return router.Sysctl(map[bool]string{false: "net/ipv4/ip_forward",
				true: "net/ipv6/conf/all/forwarding"}[six], "0")
		}},
		{"cable", func(bool) func() { return server.Down("eth0") }},
		{"router's cable", func(bool) func() { return router.Down("to-server") }},
		{"short packets", func(bool) func() { return router.MTU("to-server", 70) }},
		{"blackhole", func(six bool) func() {
			return router.Refuse(server.IP(six), unix.RTN_BLACKHOLE)
		}},
		{"filter", func(bool) func() { return router.Shot("to-client", netlink.HANDLE_MIN_INGRESS) }},
		{"XDP", func(bool) func() { return server.XDP("eth0", 1, nl.XDP_FLAGS_SKB_MODE) }},
		{"bucket", func(bool) func() { return client.TBF("eth0", netlink.HANDLE_ROOT, 1000, 1) }},
		{"port", func(bool) func() { return bridged[0].PortState("to-h1", 0) }},
		{"out of the bridge", func(bool) func() { return bridged[0].Master("to-h2", "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, six := range []bool{false, true} {
				p := newPath(client, server, six)
				if slices.Contains([]string{"port", "out of the bridge"}, c.name) {
					p = newPath(bridged[1], bridged[2], six)
				}
				var before []string
				for _, n := range all {
					before = append(before, configured(n)...)
				}
				p.arrives("before")
				undo := c.make(six)
				p.send()
				undo()
				p.arrives("after")
				var after []string
				for _, n := range all {
					after = append(after, configured(n)...)
				}
				if !slices.Equal(before, after) {
					t.Errorf("%q\nbefore, then\n%q", before, after)
				}
			}
		})
	}
}

func TestMasquerade(t *testing.T) {
	nodes := Chain(t, "client", "router", "server")
	for _, six := range []bool{false, true} {
		undo := nodes[1].Masquerade("to-server")
		if from := newPath(nodes[0], nodes[2], six).arrives("hidden"); from != address(six, 1, 1) {
			t.Errorf("came from %v, want the router's %v", from, address(six, 1, 1))
		}
		undo()
	}
}

// A process's first thread stays where it is: it would keep a namespace, and its mounts, until the process ends.
func TestNodesSysKeepsNoThread(t *testing.T) {
	n := Namespace(t)
	where := func() string {
		net, err := os.Readlink("/proc/self/ns/net")
		mounts, err2 := os.Readlink("/proc/self/ns/mnt")
		return fmt.Sprint(net, mounts, err, err2)
	}
	before := where()
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if err := n.DoWithSys(func() error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	if all.Wait(); where() != before {
		t.Errorf("the first thread is in %s, was in %s", where(), before)
	}
}
