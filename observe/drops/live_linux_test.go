//go:build amd64 || arm64

package drops

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
)

func watch(t testing.TB, ports ...uint16) *Live {
	t.Helper()
	testenv.Root(t)
	l, err := Watch(ports)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// read waits until no more is told of a namespace: a host delivers what is sent when it finds time.
func read(t testing.TB, l *Live, h *netbed.Node) LiveAccount {
	t.Helper()
	last := ^uint64(0)
	for same := 0; ; time.Sleep(10 * time.Millisecond) {
		a, err := l.Read()
		testenv.Must(t, err)
		a.Drops = slices.DeleteFunc(a.Drops, func(d LiveDrop) bool { return d.Site.Namespace != h.ID() })
		sum := a.Lost
		for _, d := range a.Drops {
			sum += d.Packets
		}
		if sum != last {
			last, same = sum, 0
		} else if same++; same >= 5 && !waiting(t) {
			return a
		}
	}
}

// The live watch tells any traffic by site and flow.
func TestLive(t *testing.T) {
	b, _, _ := pair(t, false, wide)
	l := watch(t)
	b.Receiver.Rule(nftables.ChainHookInput, &expr.Verdict{Kind: expr.VerdictDrop})
	for _, c := range []struct {
		name, protocol string
		six            bool
		send           func(to netip.AddrPort) (from uint16)
		packets        uint64
		icmp           uint16
	}{
		{"UDP", "udp", false, nil, 100, 0},
		{"UDP over IPv6", "udp", true, nil, 100, 0},
		{"UDP in super-packets", "udp", false, func(to netip.AddrPort) uint16 {
			s := b.Sender.Open(false, netbed.Connected(to))
			sendSegments(t, s, testTrial, 5, 7, 100)
			return s.Port
		}, 35, 0},
		{"TCP", "tcp", false, func(to netip.AddrPort) (from uint16) {
			b.Sender.Must(func() error {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				t.Cleanup(func() { _ = unix.Close(fd) })
				if err := unix.Connect(fd, netbed.Sockaddr(to)); err != unix.EINPROGRESS {
					return err
				}
				name, err := unix.Getsockname(fd)
				from = uint16(name.(*unix.SockaddrInet4).Port)
				return err
			})
			return from
		}, 1, 0},
		{"ICMP", "icmp", false, func(to netip.AddrPort) uint16 {
			b.Sender.Must(func() error {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
				if err != nil {
					return err
				}
				defer unix.Close(fd)
				return unix.Sendto(fd, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}, 0, netbed.Sockaddr(to))
			})
			return 0
		}, 1, 8 << 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := netip.AddrPortFrom(netbed.Address(c.six, 2), 7000)
			var from uint16
			if c.send != nil {
				from = c.send(to)
			} else {
				s := b.Sender.Open(c.six, netbed.Connected(to))
				for range c.packets {
					if _, err := unix.Write(s.FD, []byte("anything")); err != nil {
						t.Fatal(err)
					}
				}
				from = s.Port
			}
			if c.protocol == "icmp" {
				to = netip.AddrPortFrom(to.Addr(), 0)
			}
			a := read(t, l, b.Receiver)
			for _, d := range a.Drops {
				if d.From == netip.AddrPortFrom(netbed.Address(c.six, 1), from) && d.To == to &&
					d.Protocol == c.protocol && d.ICMP == c.icmp {
					s := d.Site
					if d.Packets < c.packets || d.Packets > c.packets && c.protocol != "tcp" { // which tries again
						t.Errorf("%d packets; want %d", d.Packets, c.packets)
					}
					if !because(s, "NETFILTER_DROP") || s.Interface != "vb" || s.Namespace != b.Receiver.ID() ||
						!s.Received || d.Bytes == 0 {
						t.Errorf("%+v", d)
					}
					return
				}
			}
			t.Errorf("not among %+v", a)
		})
	}
	if a := read(t, l, b.Receiver); a.Lost != 0 {
		t.Errorf("%d lost", a.Lost)
	}
}

// Ports that were not asked for are not told.
func TestLiveFilter(t *testing.T) {
	b, _, _ := pair(t, false, wide)
	ports := watch(t, 7001, 7002)
	b.Receiver.Rule(nftables.ChainHookInput, &expr.Verdict{Kind: expr.VerdictDrop})
	sent := map[uint16]uint64{7000: 3, 7001: 5, 7002: 7}
	for port, n := range sent {
		s := b.Sender.Open(false, netbed.Connected(netip.AddrPortFrom(netbed.Address(false, 2), port)))
		send(t, s, testTrial, 0, n, 64)
	}
	got := map[uint16]uint64{}
	for _, d := range read(t, ports, b.Receiver).Drops {
		got[d.To.Port()] += d.Packets
	}
	if got[7000] != 0 || got[7001] != 5 || got[7002] != 7 {
		t.Errorf("by port: %v; want 5 to 7001 and 7 to 7002", got)
	}
	if _, err := Watch(make([]uint16, 17)); err == nil {
		t.Error("17 ports: no error")
	}
}

// came is how many IPv4 packets a namespace has received.
func came(h *netbed.Node) (n uint64) {
	h.T.Helper()
	h.Must(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp") // Ip: Forwarding DefaultTTL InReceives ...
		if err != nil {
			return err
		}
		n, err = strconv.ParseUint(strings.Fields(strings.Split(string(text), "\n")[1])[3], 10, 64)
		return err
	})
	return n
}

// When the table of flows is full, packets are counted by site.
func TestLiveFull(t *testing.T) {
	b, _, _ := pair(t, false, wide)
	b.Receiver.Rule(nftables.ChainHookInput, &expr.Verdict{Kind: expr.VerdictDrop})
	l := watch(t)
	const flows = 18_000
	before := came(b.Receiver)
	s := b.Sender.Open(false)
	for i := range flows {
		if i%500 == 0 { // a slow host's backlog of 1000 would be full
			testenv.Await(t, "the packets to come", func() bool { return came(b.Receiver) >= before+uint64(i) })
		}
		if err := unix.Sendto(s.FD, []byte("x"), 0,
			netbed.Sockaddr(netip.AddrPortFrom(netbed.Address(false, 2), uint16(20_000+i)))); err != nil {
			t.Fatal(err)
		}
	}
	var sum, rest uint64
	a := read(t, l, b.Receiver)
	for _, d := range a.Drops {
		if !because(d.Site, "NETFILTER_DROP") {
			continue
		}
		sum += d.Packets
		if d.Rest {
			rest += d.Packets
		}
	}
	if sum != flows || rest < flows-uint64(bpfLimitsLIVE_FLOWS) || rest > flows/2 || a.Lost != 0 {
		t.Errorf("%d packets, %d of them without a flow, %d lost; want %d and at least %d", sum, rest, a.Lost, flows,
			flows-uint64(bpfLimitsLIVE_FLOWS))
	}
}

// A frame that is no IP is told by its type.
func TestLiveARP(t *testing.T) {
	b, _, _ := pair(t, false, wide)
	l := watch(t)
	va := b.Sender.Index("va")
	b.Sender.Must(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		frame := make([]byte, 60)
		copy(frame, net.HardwareAddr{2, 0, 0, 0, 0, 9}) // somebody else's
		frame[12], frame[13] = 0x12, 0x34
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: va, Halen: 6})
	})
	testenv.Await(t, "the frame", func() bool {
		for _, d := range read(t, l, b.Receiver).Drops {
			if d.Protocol == "ether-0x1234" && d.Packets == 1 && d.Site.Interface == "vb" && !d.From.IsValid() {
				return true
			}
		}
		return false
	})
}
