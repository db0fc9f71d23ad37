package netbed

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/testenv"
)

// Node is a namespace; it is gone with the test.
type Node struct {
	*netns.Handle
	T    testing.TB
	Name string // among the nodes of its network
	own  []netip.Addr
}

// Namespace makes one that is gone with the test.
func Namespace(t testing.TB) *Node {
	t.Helper()
	testenv.Root(t)
	h, err := netns.New()
	testenv.Must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	n := &Node{Handle: h, T: t}
	n.Link("lo", netlink.LinkSetUp)
	return n
}

// Must runs f in the namespace.
func (n *Node) Must(f func() error) {
	n.T.Helper()
	testenv.Must(n.T, n.Do(f))
}

// Start starts a program that sees the node's network, in /sys too.
func (n *Node) Start(c *exec.Cmd) error { return n.DoWithSys(c.Start) }

// Processes are those in the namespace.
func (n *Node) Processes() (pids []int) {
	inode := fmt.Sprintf("net:[%d]", n.ID())
	paths, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, path := range paths {
		if to, err := os.Readlink(path); err == nil && to == inode {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// Received is how many packets eth0 has received.
func (n *Node) Received() uint64 { return n.statistics("eth0").RxPackets }

// Sent is how many packets eth0 has sent.
func (n *Node) Sent() uint64 { return n.statistics("eth0").TxPackets }

// Unsent is how many packets an interface has dropped, as a cable's end does that finds the other one's ring full.
func (n *Node) Unsent(name string) uint64 { return n.statistics(name).TxDropped }

func (n *Node) statistics(name string) (s *netlink.LinkStatistics) {
	n.T.Helper()
	n.Link(name, func(l netlink.Link) error {
		s = l.Attrs().Statistics
		return nil
	})
	return s
}

// HasProgram tells whether an interface has an XDP program.
func (n *Node) HasProgram(name string) (has bool) {
	n.T.Helper()
	n.Link(name, func(l netlink.Link) error {
		has = l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached
		return nil
	})
	return has
}

// Link runs f in the namespace with one of its interfaces.
func (n *Node) Link(name string, f func(netlink.Link) error) {
	n.T.Helper()
	n.Must(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return f(l)
	})
}

// Index is an interface's number.
func (n *Node) Index(name string) (index int) {
	n.T.Helper()
	n.Link(name, func(l netlink.Link) error {
		index = l.Attrs().Index
		return nil
	})
	return index
}

// Hardware is an interface's link address.
func (n *Node) Hardware(name string) (a net.HardwareAddr) {
	n.T.Helper()
	n.Link(name, func(l netlink.Link) error {
		a = l.Attrs().HardwareAddr
		return nil
	})
	return a
}

// ID is the namespace's inode.
func (n *Node) ID() uint64 {
	n.T.Helper()
	inode, err := n.Inode()
	testenv.Must(n.T, err)
	return inode
}

// Sysctl sets one, as net/ipv4/ip_forward.
func (n *Node) Sysctl(name, value string) (undo func()) {
	n.T.Helper()
	var before []byte
	n.Must(func() (err error) {
		if before, err = os.ReadFile("/proc/sys/" + name); err != nil {
			return err
		}
		return os.WriteFile("/proc/sys/"+name, []byte(value), 0o644)
	})
	return func() { n.Must(func() error { return os.WriteFile("/proc/sys/"+name, before, 0o644) }) }
}

// Forwards makes the node a router.
func (n *Node) Forwards() {
	n.T.Helper()
	n.Sysctl("net/ipv4/ip_forward", "1")
	n.Sysctl("net/ipv6/conf/all/forwarding", "1")
}

// WithoutIPv6 switches off IPv6, which reports its groups by itself.
func (n *Node) WithoutIPv6() {
	n.T.Helper()
	n.Sysctl("net/ipv6/conf/default/disable_ipv6", "1")
	n.Sysctl("net/ipv6/conf/all/disable_ipv6", "1")
}

// Give gives an interface addresses and switches it on.
func (n *Node) Give(name string, addresses ...netip.Prefix) {
	n.T.Helper()
	n.Link(name, func(l netlink.Link) error {
		for _, p := range addresses {
			a := &netlink.Addr{IPNet: ipNet(p)}
			if p.Addr().Is6() {
				a.Flags = unix.IFA_F_NODAD
			}
			if err := netlink.AddrAdd(l, a); err != nil {
				return fmt.Errorf("address %v: %w", p, err)
			}
			n.own = append(n.own, p.Addr())
		}
		return netlink.LinkSetUp(l)
	})
}

// IP is the first address of a family that the node was given.
func (n *Node) IP(six bool) netip.Addr {
	n.T.Helper()
	i := slices.IndexFunc(n.own, func(a netip.Addr) bool { return a.Is6() == six })
	if i < 0 {
		n.T.Fatalf("node %s has no such address", n.Name)
	}
	return n.own[i]
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Route leads packets to a network over a neighbour.
func (n *Node) Route(to netip.Prefix, via netip.Addr) {
	n.T.Helper()
	n.Must(func() error { return netlink.RouteReplace(&netlink.Route{Dst: ipNet(to), Gw: via.AsSlice()}) })
}

// Neighbour spares an interface ARP or neighbour discovery for an address.
func (n *Node) Neighbour(name string, a netip.Addr, at net.HardwareAddr) {
	n.T.Helper()
	n.Neigh(netlink.NeighSet, name, netlink.Neigh{State: unix.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: at})
}

// Neigh changes what the kernel knows of a neighbour at an interface.
func (n *Node) Neigh(change func(*netlink.Neigh) error, name string, k netlink.Neigh) {
	n.T.Helper()
	k.LinkIndex = n.Index(name)
	n.Must(func() error { return change(&k) })
}

// AwaitCarrier waits until the kernel has told everyone that an interface has a carrier, or none.
func (n *Node) AwaitCarrier(name string, up bool) {
	n.T.Helper()
	testenv.Await(n.T, fmt.Sprint("carrier of ", name, ": ", up), func() (done bool) {
		n.Link(name, func(l netlink.Link) error {
			done = up == (l.Attrs().OperState == netlink.OperUp)
			return nil
		})
		return done
	})
}

// settle waits until the kernel has taken in that an interface has a carrier: only then are the node's IPv6 addresses
// its own, and has the interface a queue that sends.
func (n *Node) settle(name string) {
	n.T.Helper()
	n.AwaitCarrier(name, true)
	for _, a := range n.own {
		testenv.Await(n.T, fmt.Sprint("address ", a), func() (ready bool) {
			n.Must(func() error {
				routes, err := netlink.RouteGet(a.AsSlice())
				ready = err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL
				return nil
			})
			return ready
		})
	}
}

// Socket is a UDP socket in a namespace.
type Socket struct {
	FD   int
	Port uint16
}

// Option is what is done to a socket before it is used.
type Option = func(fd int) error

// Open opens a socket that is closed with the test.
func (n *Node) Open(six bool, options ...Option) Socket {
	n.T.Helper()
	s := Socket{FD: -1}
	n.Must(func() (err error) {
		family := unix.AF_INET
		if six {
			family = unix.AF_INET6
		}
		if s.FD, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		n.T.Cleanup(func() { _ = unix.Close(s.FD) })
		// The queue of veth pushes back on the sender's socket otherwise.
		if err := unix.SetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20); err != nil {
			return err
		}
		for _, o := range options {
			if err := o(s.FD); err != nil {
				return err
			}
		}
		name, err := unix.Getsockname(s.FD)
		if err != nil {
			return err
		}
		switch n := name.(type) {
		case *unix.SockaddrInet4:
			s.Port = uint16(n.Port)
		case *unix.SockaddrInet6:
			s.Port = uint16(n.Port)
		}
		return nil
	})
	return s
}

// Sockaddr is an address as system calls take it.
func Sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// Bound binds a socket.
func Bound(a netip.AddrPort) Option {
	return func(fd int) error { return unix.Bind(fd, Sockaddr(a)) }
}

// Connected connects a socket.
func Connected(a netip.AddrPort) Option {
	return func(fd int) error { return unix.Connect(fd, Sockaddr(a)) }
}

// With sets an option of a socket.
func With(level, name, value int) Option {
	return func(fd int) error { return unix.SetsockoptInt(fd, level, name, value) }
}
