package counters

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The faults of the ledger's measured table, each alone: which counters move in
// which namespace, by how much, and that no other does.

const (
	some     = 200 // packets
	payload  = 64
	testPort = 9999
)

func (e *end) at(port uint16) netip.AddrPort { return netip.AddrPortFrom(e.v4, port) }

func TestDelivered(t *testing.T) {
	w := newBed(t, 1, false)
	in := w.b.socket(t, unix.AF_INET, w.b.at(testPort), [3]int{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8 << 20})
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	a, b, _ := w.moved(t, func() {
		send(t, out, unix.AF_INET, w.b.at(testPort), some, payload)
		w.settle(t)
		drain(t, in)
	})
	w.a.same(t, a, w.a.sent(some))
	w.b.same(t, b, w.b.arrived(some).and(counts{"Udp.InDatagrams": some}))
}

// An AF_INET6 socket that takes IPv4 stands in /proc/net/udp6, its packets in Udp.
func TestReceiveBuffer(t *testing.T) {
	for _, c := range []struct {
		name, group, file string
		socket, family    int
	}{
		{"IPv4", "Udp", "udp", unix.AF_INET, unix.AF_INET},
		{"IPv4 into a socket for both", "Udp", "udp6", unix.AF_INET6, unix.AF_INET},
		{"IPv6", "Udp6", "udp6", unix.AF_INET6, unix.AF_INET6},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newBed(t, 1, c.family == unix.AF_INET6)
			listen, to := netip.AddrPortFrom(netip.IPv6Unspecified(), testPort), w.b.at(testPort)
			if c.socket == unix.AF_INET {
				listen = to
			}
			if c.family == unix.AF_INET6 {
				to = netip.AddrPortFrom(w.b.v6, testPort)
			}
			in := w.b.socket(t, c.socket, listen, [3]int{unix.SOL_SOCKET, unix.SO_RCVBUF, 4096})
			out := w.a.socket(t, c.family, netip.AddrPort{})
			received := uint64(0)
			_, b, _ := w.moved(t, func() {
				if refused := send(t, out, c.family, to, some, payload); len(refused) > 0 {
					t.Errorf("refused: %v", refused)
				}
				w.settle(t)
				received = drain(t, in)
			})
			if received == 0 || received == some {
				t.Fatalf("%d of %d received: no overflow to look at", received, some)
			}
			lost := some - received
			want := counts{c.group + ".InDatagrams": received, c.group + ".InErrors": lost, c.group + ".RcvbufErrors": lost,
				c.file + "." + strconv.Itoa(testPort) + ".drops": lost}
			if c.family == unix.AF_INET {
				w.b.same(t, b, want.and(w.b.arrived(some)))
				return
			}
			for name, n := range want { // and reports of groups, for which nobody asked
				if b[name] != n {
					t.Errorf("%s moved by %d, want %d: %v", name, b[name], n, b)
				}
			}
			for name, n := range b {
				if strings.HasPrefix(name, "Udp.") {
					t.Errorf("IPv6 moved %s by %d", name, n)
				}
			}
		})
	}
}

func TestNoPort(t *testing.T) {
	w := newBed(t, 1, false)
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	for range 10 {
		_, b, _ := w.moved(t, func() { send(t, out, unix.AF_INET, w.b.at(testPort), some, payload) })
		if b["Udp.NoPorts"] != some || b["Ip.InDelivers"] != some {
			t.Fatalf("NoPorts %d, InDelivers %d, want %d: %v", b["Udp.NoPorts"], b["Ip.InDelivers"], some, b)
		}
		if n := b["Icmp.OutDestUnreachs"]; n >= some {
			t.Fatalf("%d ICMP messages, want a few: they are rate limited", n)
		} else if n > 0 {
			return
		}
		time.Sleep(300 * time.Millisecond) // older kernels limit them for all namespaces at once
	}
	t.Error("no ICMP message for any of the packets")
}

// refusedByQueue sends over a socket that is told what the queue refuses.
func refusedByQueue(t *testing.T, w *bed) (refused uint64) {
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{}, [3]int{unix.SOL_IP, unix.IP_RECVERR, 1})
	return send(t, out, unix.AF_INET, w.b.at(testPort), some, payload)[unix.ENOBUFS]
}

func tbf(e *end, parent uint32) netlink.Qdisc {
	return &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: e.link.Attrs().Index, Handle: netlink.MakeHandle(2, 0), Parent: parent},
		Rate:       100000, Buffer: 50000, Limit: 3000,
	}
}

func TestQueue(t *testing.T) {
	w := newBed(t, 1, false)
	w.a.do(t, "add tbf", func() error { return netlink.QdiscAdd(tbf(w.a, netlink.HANDLE_ROOT)) })
	w.b.socket(t, unix.AF_INET, w.b.at(testPort))
	refused := uint64(0)
	a, b, _ := w.moved(t, func() { refused = refusedByQueue(t, w) })
	if refused == 0 || refused == some {
		t.Fatalf("%d of %d refused", refused, some)
	}
	overlimits := a["qdisc.a0.tbf.2:.overlimits"]
	if overlimits == 0 {
		t.Errorf("tbf never held a packet back: %v", a)
	}
	w.a.same(t, a, w.a.sent(some-refused).and(counts{
		"qdisc.a0.tbf.2:.drops": refused, "qdisc.a0.tbf.2:.overlimits": overlimits,
		"Ip.OutDiscards": refused, "Udp.SndbufErrors": refused, "Ip.OutRequests": refused, "Ip.OutTransmits": refused,
	}))
	w.b.same(t, b, w.b.arrived(some-refused))
}

// mq has the sum of its children; theirs are not counted again.
func TestQueueUnderMQ(t *testing.T) {
	w := newBed(t, 2, false)
	w.a.do(t, "add mq and tbf", func() error {
		root := &netlink.GenericQdisc{QdiscType: "mq", QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: w.a.link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT,
		}}
		if err := netlink.QdiscAdd(root); err != nil {
			return err
		}
		for queue := range uint16(2) {
			child := tbf(w.a, netlink.MakeHandle(1, queue+1))
			child.Attrs().Handle = netlink.MakeHandle(0x20+queue, 0)
			if err := netlink.QdiscAdd(child); err != nil {
				return err
			}
		}
		return nil
	})
	w.b.socket(t, unix.AF_INET, w.b.at(testPort))
	refused := uint64(0)
	a, _, _ := w.moved(t, func() { refused = refusedByQueue(t, w) })
	overlimits := a["qdisc.a0.mq.1:.overlimits"]
	w.a.same(t, a, w.a.sent(some-refused).and(counts{
		"qdisc.a0.mq.1:.drops": refused, "qdisc.a0.mq.1:.overlimits": overlimits,
		"Ip.OutDiscards": refused, "Udp.SndbufErrors": refused, "Ip.OutRequests": refused, "Ip.OutTransmits": refused,
	}))
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// shoot drops everything at one of clsact's two places.
func (e *end) shoot(t *testing.T, parent uint32) {
	e.do(t, "add a filter", func() error {
		clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: e.link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
		}}
		if err := netlink.QdiscAdd(clsact); err != nil {
			return err
		}
		return netlink.FilterAdd(&netlink.BpfFilter{
			FilterAttrs:  netlink.FilterAttrs{LinkIndex: e.link.Attrs().Index, Parent: parent, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
			Fd:           program(t, unix.BPF_PROG_TYPE_SCHED_CLS, 2), // TC_ACT_SHOT
			Name:         "drop",
			DirectAction: true,
		})
	})
}

func TestClassifierIn(t *testing.T) {
	w := newBed(t, 1, false)
	w.b.shoot(t, netlink.HANDLE_MIN_INGRESS)
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	a, b, _ := w.moved(t, func() { send(t, out, unix.AF_INET, w.b.at(testPort), some, payload) })
	w.a.same(t, a, w.a.sent(some))
	w.b.same(t, b, counts{"qdisc.b0.clsact.ffff:.drops": some, "dev.b0.rx_packets": some})
}

func TestClassifierOut(t *testing.T) {
	w := newBed(t, 1, false)
	w.a.shoot(t, netlink.HANDLE_MIN_EGRESS)
	refused := uint64(0)
	a, b, _ := w.moved(t, func() { refused = refusedByQueue(t, w) })
	if refused != some {
		t.Errorf("%d of %d refused", refused, some)
	}
	w.a.same(t, a, counts{"qdisc.a0.clsact.ffff:.drops": some, "Ip.OutDiscards": some, "Udp.SndbufErrors": some,
		"Ip.OutRequests": some, "Ip.OutTransmits": some})
	w.b.same(t, b, counts{})
}

// A frame for somebody else is counted by the kernel before IP sees it.
func TestOtherHost(t *testing.T) {
	w := newBed(t, 1, false)
	w.a.do(t, "change the neighbour", func() error { return w.a.neighbour(w.b.v4, net.HardwareAddr{2, 0, 0, 0, 9, 9}) })
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	_, b, _ := w.moved(t, func() { send(t, out, unix.AF_INET, w.b.at(testPort), some, payload) })
	w.b.same(t, b, counts{"dev.b0.rx_otherhost_dropped": some, "dev.b0.rx_packets": some})
}

func TestReversePath(t *testing.T) {
	w := newBed(t, 1, false)
	foreign := netip.MustParseAddr("10.77.0.1")
	w.b.do(t, "switch the filter on", func() error {
		return os.WriteFile("/proc/sys/net/ipv4/conf/b0/rp_filter", []byte("1"), 0)
	})
	w.a.do(t, "add an address", func() error {
		return netlink.AddrAdd(w.a.link, &netlink.Addr{IPNet: &net.IPNet{IP: foreign.AsSlice(), Mask: net.CIDRMask(32, 32)}})
	})
	out := w.a.socket(t, unix.AF_INET, netip.AddrPortFrom(foreign, 0))
	_, b, _ := w.moved(t, func() { send(t, out, unix.AF_INET, w.b.at(testPort), some, payload) })
	w.b.same(t, b, counts{"TcpExt.IPReversePathFilter": some, "dev.b0.rx_packets": some, "Ip.InReceives": some})
}

func TestNotLocal(t *testing.T) {
	w := newBed(t, 1, false)
	stranger := netip.MustParseAddr("10.99.0.77")
	w.a.do(t, "add a neighbour", func() error { return w.a.neighbour(stranger, w.b.mac) })
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	_, b, _ := w.moved(t, func() { send(t, out, unix.AF_INET, netip.AddrPortFrom(stranger, testPort), some, payload) })
	w.b.same(t, b, counts{"Ip.InAddrErrors": some, "dev.b0.rx_packets": some, "Ip.InReceives": some})
}

// raw sends IPv4 packets of UDP with a header of the test's making.
func raw(t *testing.T, w *bed, n int, flags uint16, checksum uint16) {
	var fd int
	w.a.do(t, "open a raw socket", func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	})
	defer unix.Close(fd)
	p := make([]byte, 28+payload)
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(p[6:], flags)
	from, to := w.a.v4.As4(), w.b.v4.As4()
	copy(p[12:], from[:])
	copy(p[16:], to[:])
	binary.BigEndian.PutUint16(p[20:], 1234)
	binary.BigEndian.PutUint16(p[22:], testPort)
	binary.BigEndian.PutUint16(p[24:], 8+payload)
	binary.BigEndian.PutUint16(p[26:], checksum)
	for i := range n {
		binary.BigEndian.PutUint16(p[4:], uint16(i+1))
		if err := unix.Sendto(fd, p, 0, &unix.SockaddrInet4{Addr: to}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChecksum(t *testing.T) {
	w := newBed(t, 1, false)
	w.b.socket(t, unix.AF_INET, w.b.at(testPort))
	_, b, _ := w.moved(t, func() { raw(t, w, some, 0, 0xdead) })
	w.b.same(t, b, w.b.arrived(some).and(counts{"Udp.InCsumErrors": some, "Udp.InErrors": some}))
}

func TestReassemblyTimeout(t *testing.T) {
	w := newBed(t, 1, false)
	w.b.do(t, "shorten the wait", func() error { return os.WriteFile("/proc/sys/net/ipv4/ipfrag_time", []byte("1"), 0) })
	const few = 20
	timeouts := func() (n uint64) {
		for _, r := range w.b.reader.Read().readings {
			if r.name == "Ip.ReasmTimeout" {
				n += r.value
			}
		}
		return n
	}
	before := timeouts()
	_, b, _ := w.moved(t, func() {
		raw(t, w, few, 0x2000, 0) // more fragments follow, it says
		for begun := time.Now(); timeouts() < before+few && time.Since(begun) < 10*time.Second; {
			time.Sleep(20 * time.Millisecond)
		}
	})
	if n := b["Icmp.OutTimeExcds"]; n > few {
		t.Errorf("%d ICMP messages for %d datagrams", n, few)
	}
	expected := counts{"Ip.ReasmReqds": few, "Ip.ReasmTimeout": few, "Ip.ReasmFails": few, "Ip.InReceives": few, "Ip.ReasmOKs": 0}
	for name, want := range expected {
		if b[name] != want {
			t.Errorf("%s moved by %d, want %d: %v", name, b[name], want, b)
		}
	}
}

// A native XDP program on a veth drops before there is a packet: only the driver tells.
func TestXDP(t *testing.T) {
	w := newBed(t, 1, false)
	drop := program(t, unix.BPF_PROG_TYPE_XDP, 1) // XDP_DROP
	pass := program(t, unix.BPF_PROG_TYPE_XDP, 2)
	const native = 4 // XDP_FLAGS_DRV_MODE
	w.b.do(t, "attach XDP", func() error { return netlink.LinkSetXdpFdWithFlags(w.b.link, drop, native) })
	w.a.do(t, "attach XDP", func() error { return netlink.LinkSetXdpFdWithFlags(w.a.link, pass, native) })
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	a, b, _ := w.moved(t, func() { send(t, out, unix.AF_INET, w.b.at(testPort), some, payload) })
	w.a.same(t, a, w.a.sent(some))
	w.b.same(t, b, counts{"ethtool.b0.rx_queue_0_xdp_drops": some, "dev.b0.rx_packets": some})
}

// The neighbour table counts for the whole host, in a file of the first namespace.
func TestUnresolvedNeighbour(t *testing.T) {
	w := newBed(t, 1, false)
	w.a.do(t, "shorten the neighbour queue", func() error {
		return os.WriteFile("/proc/sys/net/ipv4/neigh/a0/unres_qlen_bytes", []byte("2000"), 0)
	})
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	_, _, host := w.moved(t, func() { send(t, out, unix.AF_INET, netip.MustParseAddrPort("10.99.0.50:9"), some, payload) })
	if n := host["arp_cache.unresolved_discards"]; n < some-20 {
		t.Errorf("%d discards of %d packets", n, some)
	}
}
