package netbed

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
)

// Bed is two nodes:
//
//	Sender                          Receiver
//	va 10.77.0.1/24 fd77::1/64 ──── vb 10.77.0.2/24 fd77::2/64
//
// Neighbours are known beforehand, so that nothing passes but what a test sends.
type Bed struct {
	T                testing.TB
	Sender, Receiver *Node
}

// New makes a bed. IPv6 is on only where it is asked for: it reports its groups by itself.
func New(t testing.TB, queues int, six bool) *Bed {
	t.Helper()
	b := &Bed{T: t, Sender: Namespace(t), Receiver: Namespace(t)}
	if !six {
		b.Sender.WithoutIPv6()
		b.Receiver.WithoutIPv6()
	}
	Cable(b.Sender, "va", b.Receiver, "vb", queues)
	connect(0, b.Sender, "va", b.Receiver, "vb", six)
	return b
}

// Address is the address of a host on the first segment of a network.
func Address(six bool, host byte) netip.Addr { return address(six, 0, host) }

// address is the address of a host on one of a network's segments.
func address(six bool, segment, host byte) netip.Addr {
	if six {
		return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 7: segment, 15: host})
	}
	return netip.AddrFrom4([4]byte{10, 77, segment, host})
}

// prefix is an address with the length of its network.
func prefix(six bool, segment, host byte) netip.Prefix {
	if six {
		return netip.PrefixFrom(address(six, segment, host), 64)
	}
	return netip.PrefixFrom(address(six, segment, host), 24)
}

// everywhere is the destination of a default route.
func everywhere(six bool) netip.Prefix {
	if six {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

// Cable joins two nodes by a veth pair.
func Cable(a *Node, from string, b *Node, to string, queues int) {
	a.T.Helper()
	a.Must(func() error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.NumTxQueues, attributes.NumRxQueues = from, queues, queues
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: to,
			PeerNamespace: netlink.NsFd(int(b.File().Fd()))})
	})
}

// connect gives the ends of a cable their addresses: .1 and .2 of a segment.
func connect(segment byte, a *Node, from string, b *Node, to string, six bool) {
	a.T.Helper()
	families := []bool{false, true}
	if !six {
		families = families[:1]
	}
	for _, six := range families {
		a.Give(from, prefix(six, segment, 1))
		b.Give(to, prefix(six, segment, 2))
		a.Neighbour(from, address(six, segment, 2), b.Hardware(to))
		b.Neighbour(to, address(six, segment, 1), a.Hardware(from))
	}
	a.settle(from)
	b.settle(to)
}

// named makes nodes.
func named(t testing.TB, names []string) (nodes []*Node) {
	t.Helper()
	for _, name := range names {
		n := Namespace(t)
		n.Name = name
		n.Sysctl("net/ipv6/conf/default/router_solicitations", "0") // nothing passes but what a test sends
		n.Sysctl("net/ipv6/conf/default/dad_transmits", "0")
		nodes = append(nodes, n)
	}
	return nodes
}

// Chain joins nodes in a row. Those between the first and the last are routers:
//
//	client                router                  server
//	eth0 10.77.0.1 ────── 10.77.0.2 to-client
//	     fd77::1          fd77::2
//	                      to-server 10.77.1.1 ─── 10.77.1.2 eth0
//	                                fd77:0:0:1::1 fd77:0:0:1::2
//
// An interface of a router is named after the node that it leads to.
func Chain(t testing.TB, names ...string) []*Node {
	t.Helper()
	nodes := named(t, names)
	last := len(nodes) - 1
	for _, n := range nodes[1:last] {
		n.Forwards()
	}
	for i := range last {
		from, to := "eth0", "eth0"
		if i > 0 {
			from = "to-" + names[i+1]
		}
		if i+1 < last {
			to = "to-" + names[i]
		}
		Cable(nodes[i], from, nodes[i+1], to, 1)
		connect(byte(i), nodes[i], from, nodes[i+1], to, true)
	}
	for i, n := range nodes {
		for _, six := range []bool{false, true} {
			switch {
			case last == 1:
			case i == 0:
				n.Route(everywhere(six), address(six, 0, 2))
			case i == last:
				n.Route(everywhere(six), address(six, byte(i-1), 1))
			default:
				for segment := range last {
					if network := prefix(six, byte(segment), 0); segment > i {
						n.Route(network, address(six, byte(i), 2))
					} else if segment < i-1 {
						n.Route(network, address(six, byte(i-1), 1))
					}
				}
			}
		}
	}
	return nodes
}

// Star joins nodes to a router, which is the first of those it returns:
//
//	router                   h1
//	to-h1 10.77.0.1 ──────── 10.77.0.2 eth0
//	      fd77::1            fd77::2
//	to-h2 10.77.1.1 ──────── 10.77.1.2 eth0 of h2, and so on
func Star(t testing.TB, router string, names ...string) []*Node {
	t.Helper()
	nodes := named(t, append([]string{router}, names...))
	nodes[0].Forwards()
	for i, n := range nodes[1:] {
		Cable(nodes[0], "to-"+n.Name, n, "eth0", 1)
		connect(byte(i), nodes[0], "to-"+n.Name, n, "eth0", true)
		for _, six := range []bool{false, true} {
			n.Route(everywhere(six), address(six, byte(i), 1))
		}
	}
	return nodes
}

// Switch joins nodes by a bridge, in the first of those it returns:
//
//	switch             h1
//	to-h1 (switch) ─── 10.77.0.1, fd77::1 eth0
//	to-h2 (switch) ─── 10.77.0.2, fd77::2 eth0 of h2, and so on
func Switch(t testing.TB, at string, names ...string) []*Node {
	t.Helper()
	nodes := named(t, append([]string{at}, names...))
	nodes[0].Bridge("switch")
	for i, n := range nodes[1:] {
		nodes[0].Plug("switch", "to-"+n.Name, n, "eth0")
		n.Give("eth0", prefix(false, 0, byte(i+1)), prefix(true, 0, byte(i+1)))
		n.settle("eth0")
		nodes[0].AwaitCarrier("to-"+n.Name, true)
		for _, six := range []bool{false, true} {
			for _, other := range nodes[1 : i+1] {
				n.Neighbour("eth0", other.IP(six), other.Hardware("eth0"))
				other.Neighbour("eth0", n.IP(six), n.Hardware("eth0"))
			}
		}
	}
	return nodes
}

// Bridge makes a bridge that is up.
func (n *Node) Bridge(name string) {
	n.T.Helper()
	n.Must(func() error { return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}) })
	n.Link(name, netlink.LinkSetUp)
}

// Plug joins an interface of another node to a bridge.
func (n *Node) Plug(bridge, port string, other *Node, name string) {
	n.T.Helper()
	Cable(n, port, other, name, 1)
	n.Master(port, bridge)
	n.Link(port, netlink.LinkSetUp)
}

// Master puts an interface into a bridge, or takes it out if no bridge is named.
func (n *Node) Master(port, bridge string) (undo func()) {
	n.T.Helper()
	before := 0
	n.Link(port, func(l netlink.Link) error {
		before = l.Attrs().MasterIndex
		if bridge == "" {
			return netlink.LinkSetNoMaster(l)
		}
		b, err := netlink.LinkByName(bridge)
		if err != nil {
			return err
		}
		return netlink.LinkSetMaster(l, b)
	})
	return func() { n.Link(port, func(l netlink.Link) error { return netlink.LinkSetMasterByIndex(l, before) }) }
}
