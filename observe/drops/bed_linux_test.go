//go:build amd64 || arm64

package drops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/testenv"
	"pelt/model"
)

// A bed is two namespaces joined by a veth pair:
//
//	sender                          receiver
//	va 10.77.0.1/24 fd77::1/64 ──── vb 10.77.0.2/24 fd77::2/64
type bed struct {
	t                testing.TB
	sender, receiver *netns.Handle
	va, vb           int // indexes
	six              bool
	unread           socket         // that a fault closes
	early            map[uint64]int // packets that were read while the fault went on
}

const (
	testPort  = 9077
	testTrial = 0x1234
)

func newBed(t testing.TB) *bed {
	t.Helper()
	b := &bed{t: t, sender: namespace(t), receiver: namespace(t)}
	b.do(b.sender, func() error {
		pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "va"}, PeerName: "vb", PeerNamespace: netlink.NsFd(int(b.receiver.File().Fd()))}
		return netlink.LinkAdd(pair)
	})
	b.va = b.address(b.sender, "va", 1)
	b.vb = b.address(b.receiver, "vb", 2)
	b.neighbour(b.sender, "va", 2, b.hardware(b.receiver, "vb"))
	b.neighbour(b.receiver, "vb", 1, b.hardware(b.sender, "va"))
	b.settle(b.sender, "va", 1)
	b.settle(b.receiver, "vb", 2)
	return b
}

// settle waits until the kernel has taken in that there is a carrier: only then
// are the IPv6 addresses the host's own, and has the interface a queue that sends.
func (b *bed) settle(h *netns.Handle, name string, host byte) {
	b.t.Helper()
	until(b.t, name+" to be up", func() (up bool) {
		b.link(h, name, func(l netlink.Link) error {
			up = l.Attrs().OperState == netlink.OperUp
			return nil
		})
		return up
	})
	for _, six := range []bool{false, true} {
		until(b.t, fmt.Sprintf("address %v", address(six, host)), func() (ready bool) {
			b.do(h, func() error {
				routes, err := netlink.RouteGet(address(six, host).AsSlice())
				ready = err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL
				return nil
			})
			return ready
		})
	}
}

// namespace makes one that is gone with the test.
func namespace(t testing.TB) *netns.Handle {
	t.Helper()
	testenv.Root(t)
	h, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	err = h.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (b *bed) do(h *netns.Handle, f func() error) {
	b.t.Helper()
	if err := h.Do(f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) address(h *netns.Handle, name string, host byte) (index int) {
	b.t.Helper()
	b.do(h, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		index = l.Attrs().Index
		for _, a := range []*net.IPNet{
			{IP: net.IPv4(10, 77, 0, host), Mask: net.CIDRMask(24, 32)},
			{IP: net.ParseIP(fmt.Sprintf("fd77::%d", host)), Mask: net.CIDRMask(64, 128)},
		} {
			if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: a, Flags: unix.IFA_F_NODAD}); err != nil {
				return fmt.Errorf("address %v: %w", a, err)
			}
		}
		return netlink.LinkSetUp(l)
	})
	return index
}

func (b *bed) hardware(h *netns.Handle, name string) (a net.HardwareAddr) {
	b.t.Helper()
	b.do(h, func() error {
		l, err := netlink.LinkByName(name)
		if err == nil {
			a = l.Attrs().HardwareAddr
		}
		return err
	})
	return a
}

// neighbour spares the bed ARP and neighbour discovery.
func (b *bed) neighbour(h *netns.Handle, name string, host byte, at net.HardwareAddr) {
	b.t.Helper()
	b.do(h, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		for _, ip := range []net.IP{net.IPv4(10, 77, 0, host), net.ParseIP(fmt.Sprintf("fd77::%d", host))} {
			n := &netlink.Neigh{LinkIndex: l.Attrs().Index, State: unix.NUD_PERMANENT, IP: ip, HardwareAddr: at}
			if err := netlink.NeighSet(n); err != nil {
				return fmt.Errorf("neighbour %v: %w", ip, err)
			}
		}
		return nil
	})
}

func inode(t testing.TB, h *netns.Handle) uint64 {
	t.Helper()
	i, err := h.Inode()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func sysctl(h *netns.Handle, name, value string) error {
	return h.Do(func() error { return os.WriteFile("/proc/sys/"+name, []byte(value), 0o644) })
}

func (b *bed) sysctl(h *netns.Handle, name, value string) {
	b.t.Helper()
	if err := sysctl(h, name, value); err != nil {
		b.t.Fatal(err)
	}
}

// socket is a UDP socket in a namespace.
type socket struct {
	fd   int
	port uint16
}

func (s socket) close() { _ = unix.Close(s.fd) }

func open(t testing.TB, h *netns.Handle, six bool, options ...func(fd int) error) socket {
	t.Helper()
	s := socket{fd: -1}
	err := h.Do(func() (err error) {
		family := unix.AF_INET
		if six {
			family = unix.AF_INET6
		}
		if s.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		// The queue of veth pushes back on the sender's socket otherwise.
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20); err != nil {
			return err
		}
		for _, o := range options {
			if err := o(s.fd); err != nil {
				return err
			}
		}
		name, err := unix.Getsockname(s.fd)
		if err != nil {
			return err
		}
		switch n := name.(type) {
		case *unix.SockaddrInet4:
			s.port = uint16(n.Port)
		case *unix.SockaddrInet6:
			s.port = uint16(n.Port)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func address(six bool, host byte) netip.Addr {
	if six {
		return netip.MustParseAddr(fmt.Sprintf("fd77::%d", host))
	}
	return netip.AddrFrom4([4]byte{10, 77, 0, host})
}

func bound(a netip.AddrPort) func(int) error {
	return func(fd int) error { return unix.Bind(fd, sockaddr(a)) }
}

func connected(a netip.AddrPort) func(int) error {
	return func(fd int) error { return unix.Connect(fd, sockaddr(a)) }
}

func option(level, name, value int) func(int) error {
	return func(fd int) error { return unix.SetsockoptInt(fd, level, name, value) }
}

// header writes a test header; see package engine.
func header(b []byte, trial uint16, sequence uint64) {
	binary.BigEndian.PutUint16(b, 0x9e17)
	binary.BigEndian.PutUint16(b[2:], trial)
	binary.BigEndian.PutUint64(b[4:], sequence<<16)
	binary.BigEndian.PutUint32(b[12:], 0xdeadbeef)
}

// send sends sequences from..from+n-1 and returns how many the kernel refused.
func send(t testing.TB, s socket, trial uint16, from, n uint64, payload int) (refused uint64) {
	t.Helper()
	b := make([]byte, payload)
	for i := range n {
		header(b, trial, from+i)
		for {
			_, err := unix.Write(s.fd, b)
			if errors.Is(err, unix.ECONNREFUSED) {
				continue // about an earlier one; this one was not sent
			}
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				refused++
			}
			break
		}
	}
	return refused
}

// held is the memory of the packets that wait to be read, in bytes.
func (s socket) held(t testing.TB) int {
	t.Helper()
	var words [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(words))
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&words)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		t.Fatal(e)
	}
	return int(words[unix.SK_MEMINFO_RMEM_ALLOC])
}

// drain reads what has come, until nothing has for a while.
func (s socket) drain(t testing.TB, trial uint16, got map[uint64]int) {
	t.Helper()
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 65536)
	for {
		n, err := unix.Read(s.fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				t.Errorf("read: %v", err)
			}
			return
		}
		if n >= 16 && binary.BigEndian.Uint32(b) == 0x9e17<<16|uint32(trial) {
			got[binary.BigEndian.Uint64(b[4:])>>16]++
		}
	}
}

// One machine serves all tests, as it serves all trials of a process.
var shared struct {
	once    sync.Once
	machine *Machine
	err     error
}

func machine(t testing.TB) *Machine {
	t.Helper()
	testenv.Root(t)
	shared.once.Do(func() { shared.machine, shared.err = Open(Verdicts) })
	if shared.err != nil {
		t.Fatalf("%+v", shared.err)
	}
	return shared.machine
}

func TestMain(m *testing.M) {
	if r, w, err := os.Pipe(); err == nil { // has Go open what it needs for waiting
		_, _ = r.Close(), w.Close()
	}
	before := openFiles()
	code := m.Run()
	if shared.machine != nil {
		if err := shared.machine.Close(); err != nil {
			fmt.Println("close:", err)
			code = 1
		}
	}
	for i := 0; openFiles() > before && i < 20; i++ { // threads that end close theirs a little later
		time.Sleep(50 * time.Millisecond)
	}
	if after := openFiles(); after > before {
		fmt.Printf("%d files left open\n", after-before)
		code = 1
	}
	os.Exit(code)
}

func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

func track(t testing.TB, m *Machine, trial uint16, flow string, o TrackOptions, tuples ...model.Tuple) *Track {
	t.Helper()
	k, err := m.Track(trial, flow, tuples, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// verdicts lists one stream's verdicts by sequence.
func verdicts(t testing.TB, d model.Drops, flow string, stream int) map[uint64]model.Site {
	t.Helper()
	out := map[uint64]model.Site{}
	for _, f := range d.Flows {
		if f.Flow != flow || stream >= len(f.Streams) {
			continue
		}
		for s, err := range f.Streams[stream].Stretches() {
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Count {
				out[s.From+i] = d.Sites[s.Mark]
			}
		}
	}
	return out
}
