package counters

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/testenv"
	"pelt/model"
)

// bed is two namespaces and a wire:
//
//	a: a0 10.99.0.1/24 ---- veth ---- b0 10.99.0.2/24 :b
//	      fd99::1/64                     fd99::2/64
//
// Neighbours are known beforehand, so that nothing passes but what a test sends.
// IPv6 is on only where it is asked for: it reports its groups by itself.
type bed struct{ a, b *end }

type end struct {
	*netns.Handle
	name   string
	link   netlink.Link
	mac    net.HardwareAddr
	v4, v6 netip.Addr
	reader *Reader
}

func (e *end) do(t testing.TB, doing string, f func() error) {
	t.Helper()
	if err := e.Do(f); err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}

func newEnd(t testing.TB, last byte) *end {
	t.Helper()
	testenv.Root(t)
	h, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return &end{
		Handle: h, name: string('a'+rune(last)-1) + "0", mac: net.HardwareAddr{2, 0, 0, 0, 0, last},
		v4: netip.AddrFrom4([4]byte{10, 99, 0, last}), v6: netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x99, 15: last}),
	}
}

func newBed(t testing.TB, queues int, v6 bool) *bed {
	t.Helper()
	w := &bed{newEnd(t, 1), newEnd(t, 2)}
	for _, e := range []*end{w.a, w.b} {
		e.do(t, "quiet IPv6", func() error {
			settings := map[string]string{
				"disable_ipv6": "1", "accept_dad": "0", "router_solicitations": "0", "accept_ra": "0",
				"addr_gen_mode": "1", // no link-local address
			}
			if v6 {
				settings["disable_ipv6"] = "0"
			}
			for name, value := range settings {
				for _, of := range []string{"default", "all"} {
					_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+of+"/"+name, []byte(value), 0) // kernels without IPv6 have none
				}
			}
			return nil
		})
	}
	w.a.do(t, "make the wire", func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr, attrs.NumTxQueues, attrs.NumRxQueues = w.a.name, w.a.mac, queues, queues
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: w.b.name, PeerHardwareAddr: w.b.mac, PeerNamespace: netlink.NsFd(int(w.b.File().Fd()))})
	})
	for _, e := range []*end{w.a, w.b} {
		other := w.other(e)
		e.do(t, "set up "+e.name, func() (err error) {
			if e.link, err = netlink.LinkByName(e.name); err != nil {
				return err
			}
			if err := netlink.LinkSetUp(e.link); err != nil {
				return err
			}
			for _, p := range []struct {
				local, remote netip.Addr
				bits          int
			}{{e.v4, other.v4, 24}, {e.v6, other.v6, 64}} {
				if p.local.Is6() && !v6 {
					continue
				}
				address := &netlink.Addr{IPNet: &net.IPNet{IP: p.local.AsSlice(), Mask: net.CIDRMask(p.bits, p.local.BitLen())}, Flags: unix.IFA_F_NODAD}
				if err := netlink.AddrAdd(e.link, address); err != nil {
					return err
				}
				if err := e.neighbour(p.remote, other.mac); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, e := range []*end{w.a, w.b} {
		e.do(t, "wait for "+e.name, func() error { return w.ready(e, v6) })
		r, err := Open(e.Do)
		if err != nil {
			t.Fatal(err)
		}
		e.reader = r
	}
	w.settle(t)
	return w
}

// ready waits until an end's addresses can be used: the kernel hears later, from a
// worker of its own, that the other end is up.
func (w *bed) ready(e *end, v6 bool) (err error) {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var l netlink.Link
		if l, err = netlink.LinkByName(e.name); err != nil {
			return err
		}
		err = fmt.Errorf("%s is %v", e.name, l.Attrs().OperState)
		if l.Attrs().OperState != netlink.OperUp {
			continue
		}
		if !v6 {
			return nil
		}
		var fd int
		if fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		err = errors.Join(unix.Bind(fd, sockaddr(unix.AF_INET6, netip.AddrPortFrom(e.v6, 0))),
			unix.Connect(fd, sockaddr(unix.AF_INET6, netip.AddrPortFrom(w.other(e).v6, 9))))
		_ = unix.Close(fd)
		if err == nil {
			return nil
		}
	}
	return err
}

// neighbour makes an address's link address known for good.
func (e *end) neighbour(ip netip.Addr, mac net.HardwareAddr) error {
	return netlink.NeighSet(&netlink.Neigh{LinkIndex: e.link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: ip.AsSlice(), HardwareAddr: mac})
}

func (w *bed) other(e *end) *end {
	if e == w.a {
		return w.b
	}
	return w.a
}

// settle waits until nothing moves at both ends.
func (w *bed) settle(t testing.TB) (a, b Snapshot) {
	t.Helper()
	a, b = w.a.reader.Read(), w.b.reader.Read()
	still := 0
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
		nowA, nowB := w.a.reader.Read(), w.b.reader.Read()
		if Moving(a, nowA) || Moving(b, nowB) {
			still = 0
		} else {
			still++
		}
		a, b = nowA, nowB
		if still == 4 {
			return a, b
		}
	}
	t.Fatal("the namespaces never stood still")
	return a, b
}

// counts is by how much counters moved, by name.
type counts map[string]uint64

// moved runs f and tells what moved at both ends. Counters of the whole host, which
// others move as well, are in host.
func (w *bed) moved(t testing.TB, f func()) (a, b, host counts) {
	t.Helper()
	a1, b1 := w.settle(t)
	f()
	a2, b2 := w.settle(t)
	a, host = deltas(t, a1, a2)
	b, _ = deltas(t, b1, b2)
	return a, b, host
}

func deltas(t testing.TB, from, to Snapshot) (own, host counts) {
	t.Helper()
	if len(to.Unread) > 0 {
		t.Errorf("could not read: %v", to.Unread)
	}
	own, host = counts{}, counts{}
	for _, c := range Diff(Snapshot{}, from, Snapshot{}, to, 0) {
		if c.Reset {
			t.Errorf("went back: %+v", c)
		}
		switch {
		case c.Whole == 0:
		case c.Scope == hostScope:
			host[c.Name] = c.Whole
		default:
			own[c.Name] = c.Whole
		}
	}
	return own, host
}

// same fails unless exactly the wanted counters moved by exactly so much. Kernels
// without OutTransmits (6.1) count in OutRequests what others count there.
func (e *end) same(t testing.TB, got, want counts) {
	t.Helper()
	known := map[string]bool{}
	for _, r := range e.reader.Read().readings {
		known[r.name] = true
	}
	want = maps.Clone(want)
	if !known["Ip.OutTransmits"] {
		want["Ip.OutRequests"] = want["Ip.OutTransmits"]
		delete(want, "Ip.OutTransmits")
	}
	maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("in %s:\ngot  %v\nwant %v", e.name, got, want)
	}
}

// join adds several sets up.
func (c counts) and(others ...counts) counts {
	sum := maps.Clone(c)
	for _, o := range others {
		for name, n := range o {
			sum[name] += n
		}
	}
	return sum
}

// sent, arrived and delivered are what n packets move on their way.
func (e *end) sent(n uint64) counts {
	return counts{"Ip.OutRequests": n, "Ip.OutTransmits": n, "Udp.OutDatagrams": n, "dev." + e.name + ".tx_packets": n}
}

func (e *end) arrived(n uint64) counts {
	return counts{"dev." + e.name + ".rx_packets": n, "Ip.InReceives": n, "Ip.InDelivers": n}
}

// socket opens a plain UDP socket in the namespace. It is closed with the test.
func (e *end) socket(t testing.TB, family int, local netip.AddrPort, options ...[3]int) int {
	t.Helper()
	var fd int
	e.do(t, "open a socket", func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	t.Cleanup(func() { _ = unix.Close(fd) })
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o[0], o[1], o[2]); err != nil {
			t.Fatalf("setsockopt %v: %v", o, err)
		}
	}
	if local.IsValid() {
		if err := unix.Bind(fd, sockaddr(family, local)); err != nil {
			t.Fatalf("bind to %v: %v", local, err)
		}
	}
	return fd
}

func sockaddr(family int, a netip.AddrPort) unix.Sockaddr {
	if family == unix.AF_INET6 {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

// send sends n datagrams and returns how many were refused with which error.
func send(t testing.TB, fd, family int, to netip.AddrPort, n, payload int) (refused map[error]uint64) {
	t.Helper()
	refused = map[error]uint64{}
	data := make([]byte, payload)
	for range n {
		if err := unix.Sendto(fd, data, 0, sockaddr(family, to)); err != nil {
			refused[err]++
		}
	}
	return refused
}

// drain reads a socket empty.
func drain(t testing.TB, fd int) (n uint64) {
	t.Helper()
	for b := make([]byte, 2000); ; n++ {
		if _, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT); errors.Is(err, unix.EAGAIN) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// program loads a BPF program that returns one number. The descriptor is closed
// with the test.
func program(t testing.TB, kind uint32, result int32) int {
	t.Helper()
	const load = 5 // BPF_PROG_LOAD
	code := []uint64{0xb7 | uint64(uint32(result))<<32, 0x95}
	license := []byte("GPL\x00")
	var attribute struct {
		kind, instructions uint32
		code, license      uint64
		_                  [96]byte
	}
	attribute.kind, attribute.instructions = kind, uint32(len(code))
	attribute.code, attribute.license = uint64(uintptr(unsafe.Pointer(&code[0]))), uint64(uintptr(unsafe.Pointer(&license[0])))
	fd, _, errno := unix.Syscall(unix.SYS_BPF, load, uintptr(unsafe.Pointer(&attribute)), unsafe.Sizeof(attribute))
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	if errno != 0 {
		t.Fatalf("load a program: %v", errno)
	}
	t.Cleanup(func() { _ = unix.Close(int(fd)) })
	return int(fd)
}

// filter changes the end's rules.
func (e *end) filter(t testing.TB, change func(c *nftables.Conn)) {
	t.Helper()
	e.do(t, "set rules", func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		change(c)
		return c.Flush()
	})
}

// descriptors counts the open files of the process.
func descriptors(t testing.TB) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func find(counters []model.Counter, name string) (model.Counter, error) {
	i := slices.IndexFunc(counters, func(c model.Counter) bool { return c.Name == name })
	if i < 0 {
		return model.Counter{}, fmt.Errorf("no counter %s", name)
	}
	return counters[i], nil
}
