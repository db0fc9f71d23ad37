package bed

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/testenv"
)

// Bed is the two namespaces:
//
//	Sender                          Receiver
//	va 10.77.0.1/24 fd77::1/64 ──── vb 10.77.0.2/24 fd77::2/64
//
// Neighbours are known beforehand, so that nothing passes but what a test sends.
type Bed struct {
	T                testing.TB
	Sender, Receiver *Node
}

// Node is a namespace; it is gone with the test.
type Node struct {
	*netns.Handle
	T testing.TB
}

// New makes a bed. IPv6 is on only where it is asked for: it reports its groups by itself.
func New(t testing.TB, queues int, six bool) *Bed {
	t.Helper()
	b := &Bed{T: t, Sender: Namespace(t), Receiver: Namespace(t)}
	for _, n := range []*Node{b.Sender, b.Receiver} {
		if !six {
			n.Sysctl("net/ipv6/conf/default/disable_ipv6", "1")
			n.Sysctl("net/ipv6/conf/all/disable_ipv6", "1")
		}
	}
	b.Sender.Must(func() error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.NumTxQueues, attributes.NumRxQueues = "va", queues, queues
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "vb", PeerNamespace: netlink.NsFd(int(b.Receiver.File().Fd()))})
	})
	b.Sender.address("va", 1, six)
	b.Receiver.address("vb", 2, six)
	b.Sender.Neighbour("va", 2, b.Receiver.Hardware("vb"), six)
	b.Receiver.Neighbour("vb", 1, b.Sender.Hardware("va"), six)
	b.Sender.settle("va", 1, six)
	b.Receiver.settle("vb", 2, six)
	return b
}

// settle waits until the kernel has taken in that there is a carrier: only then
// are the IPv6 addresses the host's own, and has the interface a queue that sends.
func (n *Node) settle(name string, host byte, six bool) {
	n.T.Helper()
	n.AwaitUp(name)
	families := []bool{false, true}
	if !six {
		families = families[:1]
	}
	for _, six := range families {
		Until(n.T, fmt.Sprintf("address %v", Address(six, host)), func() (ready bool) {
			n.Must(func() error {
				routes, err := netlink.RouteGet(Address(six, host).AsSlice())
				ready = err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL
				return nil
			})
			return ready
		})
	}
}

// Namespace makes one that is gone with the test.
func Namespace(t testing.TB) *Node {
	t.Helper()
	testenv.Root(t)
	h, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	n := &Node{h, t}
	n.Link("lo", netlink.LinkSetUp)
	return n
}

// Must runs f in the namespace.
func (n *Node) Must(f func() error) {
	n.T.Helper()
	if err := n.Do(f); err != nil {
		n.T.Fatal(err)
	}
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
	if err != nil {
		n.T.Fatal(err)
	}
	return inode
}

// Sysctl sets one, as net/ipv4/ip_forward.
func (n *Node) Sysctl(name, value string) {
	n.T.Helper()
	n.Must(func() error { return os.WriteFile("/proc/sys/"+name, []byte(value), 0o644) })
}

func (n *Node) address(name string, host byte, six bool) {
	n.T.Helper()
	addresses := []*net.IPNet{{IP: net.IPv4(10, 77, 0, host), Mask: net.CIDRMask(24, 32)}}
	if six {
		addresses = append(addresses, &net.IPNet{IP: Address(true, host).AsSlice(), Mask: net.CIDRMask(64, 128)})
	}
	n.Link(name, func(l netlink.Link) error {
		for _, a := range addresses {
			if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: a, Flags: unix.IFA_F_NODAD}); err != nil {
				return fmt.Errorf("address %v: %w", a, err)
			}
		}
		return netlink.LinkSetUp(l)
	})
}

// Neighbour spares the bed ARP and neighbour discovery.
func (n *Node) Neighbour(name string, host byte, at net.HardwareAddr, six bool) {
	n.T.Helper()
	n.Link(name, func(l netlink.Link) error {
		for _, a := range []netip.Addr{Address(false, host), Address(true, host)} {
			if a.Is6() && !six {
				continue
			}
			one := &netlink.Neigh{LinkIndex: l.Attrs().Index, State: unix.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: at}
			if err := netlink.NeighSet(one); err != nil {
				return fmt.Errorf("neighbour %v: %w", a, err)
			}
		}
		return nil
	})
}

// AwaitUp waits until the kernel has told everyone of an interface's carrier.
func (n *Node) AwaitUp(name string) {
	n.T.Helper()
	Until(n.T, name+" to be up", func() (up bool) {
		n.Link(name, func(l netlink.Link) error {
			up = l.Attrs().OperState == netlink.OperUp
			return nil
		})
		return up
	})
}

// Address is that of a host on the bed.
func Address(six bool, host byte) netip.Addr {
	if six {
		return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 15: host})
	}
	return netip.AddrFrom4([4]byte{10, 77, 0, host})
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

// Until waits for something that the kernel does in its own time.
func Until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}
