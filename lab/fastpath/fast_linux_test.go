//go:build amd64 || arm64

package fastpath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/checksum"
	"pelt/internal/netns"
	"pelt/internal/testenv"
)

// router is a namespace with two cables that lead nowhere, and a fast path whose
// programs are run one frame at a time:
//
//	198.18.0.1 -- lan 198.18.0.2 [router] 198.19.0.1 wan -- 198.19.0.2
type router struct {
	t         *testing.T
	ns        *netns.Handle
	path      *Path
	lan, wan  int
	addresses map[int][2][6]byte // of each interface, and of the neighbour there
}

const wanMTU = 1300

func newRouter(t *testing.T) *router {
	t.Helper()
	testenv.Root(t)
	ns, err := netns.New()
	testenv.Must(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	r := &router{t: t, ns: ns, addresses: map[int][2][6]byte{}}
	r.do(func() error {
		for _, name := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
			if err := os.WriteFile("/proc/sys/"+name, []byte("1"), 0); err != nil {
				return err
			}
		}
		r.lan = r.cable("lan", 2, "198.18.0.2/16", "2001:2::2/64", 1500, "198.18.0.1", "2001:2::1")
		r.wan = r.cable("wan", 3, "198.19.0.1/16", "2001:2:0:1::1/64", wanMTU, "198.19.0.2", "2001:2:0:1::2")
		return nil
	})
	var ports [2]Port
	for i, index := range []int{r.lan, r.wan} {
		ports[i] = Port{Index: index, Address: r.addresses[index][0]}
	}
	r.path, err = Load(ports, Timeouts{UDP: 1000 * time.Second, UDPStream: 2000 * time.Second, TCP: 3000 * time.Second})
	testenv.Must(t, err)
	t.Cleanup(func() {
		if err := r.path.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *router) do(f func() error) {
	r.t.Helper()
	testenv.Must(r.t, r.ns.Do(f))
}

// cable makes one in the calling thread's namespace.
func (r *router) cable(name string, number byte, four, six string, mtu int, neighbours ...string) int {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = name, mtu, net.HardwareAddr{2, 0, 0, 0, 0, number}
	pair := netlink.NewVeth(attrs)
	pair.PeerName = name + "-end"
	check := func(err error) {
		if err != nil {
			r.t.Error(fmt.Errorf("%s: %w", name, err))
		}
	}
	check(netlink.LinkAdd(pair))
	link, err := netlink.LinkByName(name)
	check(err)
	index := link.Attrs().Index
	far := [6]byte{2, 0, 0, 0, 1, number}
	r.addresses[index] = [2][6]byte{[6]byte(link.Attrs().HardwareAddr), far}
	other, err := netlink.LinkByName(pair.PeerName)
	check(err)
	check(netlink.LinkSetUp(link))
	check(netlink.LinkSetUp(other))
	for _, text := range []string{four, six} {
		a, err := netlink.ParseAddr(text)
		check(err)
		if a.IP.To4() == nil {
			a.Flags = unix.IFA_F_NODAD
		}
		check(netlink.AddrAdd(link, a))
	}
	for _, text := range neighbours {
		check(netlink.NeighSet(&netlink.Neigh{LinkIndex: index, State: netlink.NUD_PERMANENT, IP: net.ParseIP(text),
			HardwareAddr: far[:]}))
	}
	return index
}

// track lets the kernel know a masqueraded connection. A TCP state of 0 is UDP's.
func (r *router) track(inside, server, outside netip.AddrPort, tcpState uint8) {
	r.t.Helper()
	ip := func(a netip.AddrPort) net.IP { return a.Addr().AsSlice() }
	f := &netlink.ConntrackFlow{FamilyType: unix.AF_INET, TimeOut: 20}
	if inside.Addr().Is6() {
		f.FamilyType = unix.AF_INET6
	}
	protocol := uint8(protocolUDP)
	if tcpState != 0 {
		protocol, f.ProtoInfo = protocolTCP, &netlink.ProtoInfoTCP{State: tcpState}
	}
	f.Forward = netlink.IPTuple{Protocol: protocol, SrcIP: ip(inside), DstIP: ip(server), SrcPort: inside.Port(),
		DstPort: server.Port()}
	f.Reverse = netlink.IPTuple{Protocol: protocol, SrcIP: ip(server), DstIP: ip(outside), SrcPort: server.Port(),
		DstPort: outside.Port()}
	r.do(func() error {
		return netlink.ConntrackCreate(netlink.ConntrackTable, netlink.InetFamily(f.FamilyType), f)
	})
}

// timeout is after how many seconds the kernel forgets the one tracked UDP flow from a port.
func (r *router) timeout(port uint16) (seconds uint32) {
	r.t.Helper()
	r.do(func() error {
		flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
		for _, f := range flows {
			if f.Forward.SrcPort == port && f.Forward.Protocol == protocolUDP {
				seconds = f.TimeOut
			}
		}
		return err
	})
	return seconds
}

// context is struct xdp_md.
type context struct{ Data, DataEnd, DataMeta, IngressIfindex, RxQueueIndex, EgressIfindex uint32 }

const (
	xdpPass     = 2
	xdpRedirect = 4
)

// run has a program see a frame that came in, and tells what it left of it.
func (r *router) run(p *ebpf.Program, index int, frame []byte) (verdict uint32, out []byte) {
	r.t.Helper()
	r.do(func() (err error) {
		o := &ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256),
			Context: context{DataEnd: uint32(len(frame)), IngressIfindex: uint32(index)}}
		verdict, err = p.Run(o)
		out = o.DataOut
		return err
	})
	return verdict, out
}

// counted runs and returns the reason whose count moved by one, alone.
func (r *router) counted(p *ebpf.Program, index int, frame []byte) (verdict uint32, out []byte, reason string) {
	r.t.Helper()
	read := func() []Count {
		list, err := r.path.Counts()
		testenv.Must(r.t, err)
		return list
	}
	before := read()
	verdict, out = r.run(p, index, frame)
	for i, c := range read() {
		for range c.Frames - before[i].Frames {
			reason += c.Reason
		}
	}
	return verdict, out, reason
}

var (
	inside4, server4, outside4 = netip.MustParseAddrPort("198.18.0.1:5000"), netip.MustParseAddrPort("198.19.0.2:53"), netip.MustParseAddrPort("198.19.0.1:6000")
	inside6, server6, outside6 = netip.MustParseAddrPort("[2001:2::1]:5000"), netip.MustParseAddrPort("[2001:2:0:1::2]:53"), netip.MustParseAddrPort("[2001:2:0:1::1]:6000")
)

// up is a packet from the inside, and as it must leave.
func (r *router) up(inside, server, outside netip.AddrPort, tcp bool, payload []byte) (in, out packet) {
	lan, wan := r.addresses[r.lan], r.addresses[r.wan]
	in = packet{target: lan[0], source: lan[1], from: inside, to: server, tcp: tcp, payload: payload}
	out = packet{target: wan[1], source: wan[0], from: outside, to: server, tcp: tcp, payload: payload, hops: 63}
	return in, out
}

// down is the answer to it.
func (r *router) down(inside, server, outside netip.AddrPort, tcp bool, payload []byte) (in, out packet) {
	lan, wan := r.addresses[r.lan], r.addresses[r.wan]
	in = packet{target: wan[0], source: wan[1], from: server, to: outside, tcp: tcp, payload: payload}
	out = packet{target: lan[1], source: lan[0], from: server, to: inside, tcp: tcp, payload: payload, hops: 63}
	return in, out
}

// What the kernel tracks is carried: addresses, ports, hop limit and checksums
// are what they must be, and nothing else is changed.
func TestCarries(t *testing.T) {
	r := newRouter(t)
	const established = 3
	for _, state := range []uint8{0, established} {
		r.track(inside4, server4, outside4, state)
		r.track(inside6, server6, outside6, state)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name                    string
		inside, server, outside netip.AddrPort
		tcp, unsummed           bool
	}{
		{"UDP, IPv4", inside4, server4, outside4, false, false},
		{"UDP, IPv4, without a checksum", inside4, server4, outside4, false, true},
		{"UDP, IPv6", inside6, server6, outside6, false, false},
		{"TCP, IPv4", inside4, server4, outside4, true, false},
		{"TCP, IPv6", inside6, server6, outside6, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range 300 {
				payload := make([]byte, i)
				for j := range payload {
					payload[j] = byte(random.Uint32())
				}
				if i == 2 && !c.tcp { // whose checksum becomes 0, which UDP writes otherwise
					_, out := r.up(c.inside, c.server, c.outside, false, payload)
					binary.BigEndian.PutUint16(payload, 0)
					f := out.frame()
					binary.BigEndian.PutUint16(payload, binary.BigEndian.Uint16(f[len(f)-4:]))
				}
				for index, way := range map[int]func(netip.AddrPort, netip.AddrPort, netip.AddrPort, bool,
					[]byte) (packet, packet){r.lan: r.up, r.wan: r.down} {
					in, out := way(c.inside, c.server, c.outside, c.tcp, payload)
					in.unsummed, out.unsummed = c.unsummed, c.unsummed
					verdict, got, reason := r.counted(r.path.objects.Carry, index, in.frame())
					if verdict != xdpRedirect || reason != Carried || !bytes.Equal(got, out.frame()) {
						t.Fatalf("%d B of payload from %v to %v: verdict %d, %s,\n%x, want\n%x", i, in.from, in.to,
							verdict, reason, got, out.frame())
					}
				}
			}
		})
	}
	if s := r.timeout(inside4.Port()); s < 900 || s > 1000 {
		t.Errorf("the kernel will forget the connection in %d s; 1000 s were set", s)
	}
}

// What is not a plain packet of an established connection stays as it is.
func TestLeavesToTheKernel(t *testing.T) {
	r := newRouter(t)
	const established, finishing = 3, 4
	r.track(inside4, server4, outside4, 0)
	r.track(inside4, server4, outside4, established)
	r.track(inside6, server6, outside6, 0)
	closing := netip.AddrPortFrom(inside4.Addr(), 7000)
	r.track(closing, server4, netip.AddrPortFrom(outside4.Addr(), 7000), finishing)
	nowhere, lost := netip.MustParseAddrPort("198.19.0.9:53"), netip.AddrPortFrom(inside4.Addr(), 7001)
	r.track(lost, nowhere, netip.AddrPortFrom(outside4.Addr(), 7001), 0)
	udp, _ := r.up(inside4, server4, outside4, false, make([]byte, 18))
	udp6, _ := r.up(inside6, server6, outside6, false, make([]byte, 18))
	tcp, _ := r.up(inside4, server4, outside4, true, nil)
	change := func(p packet, f func(*packet)) []byte {
		f(&p)
		return p.frame()
	}
	edit := func(p packet, f func([]byte)) []byte {
		b := p.frame()
		f(b)
		return b
	}
	for _, c := range []struct {
		name, want string
		frame      []byte
	}{
		{"another's Ethernet address", "foreign", change(udp, func(p *packet) { p.target[5]++ })},
		{"ARP", "foreign", edit(udp, func(b []byte) { b[13] = 6 })},
		{"an IPv4 packet that says it is IPv6", "foreign", edit(udp, func(b []byte) { b[12], b[13] = 0x86, 0xdd })},
		{"no whole header", "cut", udp.frame()[:30]},
		{"less than its length says", "cut", udp.frame()[:50]},
		{"less than its length says, IPv6", "cut", udp6.frame()[:70]},
		{"options", "options", edit(udp, func(b []byte) { b[14] = 0x46 })},
		{"a header between IPv6 and UDP", "options", edit(udp6, func(b []byte) { b[20] = 60 })},
		{"a first fragment", "fragment", edit(udp, func(b []byte) { b[20] |= 0x20 })},
		{"a last fragment", "fragment", edit(udp, func(b []byte) { b[21] = 9 })},
		{"a fragment, IPv6", "fragment", edit(udp6, func(b []byte) { b[20] = 44 })},
		{"a last hop", "hop-limit", change(udp, func(p *packet) { p.hops = 1 })},
		{"a last hop, IPv6", "hop-limit", change(udp6, func(p *packet) { p.hops = 1 })},
		{"a damaged header", "damaged", edit(udp, func(b []byte) { b[18] ^= 1 })},
		{"ICMPv6", "protocol", edit(udp6, func(b []byte) { b[20] = 58 })},
		{"a connection's beginning", "opening", change(tcp, func(p *packet) { p.flags = 2 })},
		{"a connection's end", "opening", change(tcp, func(p *packet) { p.flags = 0x11 })},
		{"a connection's reset", "opening", change(tcp, func(p *packet) { p.flags = 4 })},
		{"a connection that ends", "unsettled", change(tcp, func(p *packet) { p.from = closing })},
		{"a flow nobody knows", "unknown", change(udp,
			func(p *packet) { p.from = netip.AddrPortFrom(inside4.Addr(), 9) })},
		{"a flow nobody knows, IPv6", "unknown",
			change(udp6, func(p *packet) { p.to = netip.AddrPortFrom(server6.Addr(), 9) })},
		{"no neighbour", "no-route", change(udp, func(p *packet) { p.from, p.to = lost, nowhere })},
		{"longer than the way's MTU", "too-long", change(udp, func(p *packet) { p.payload = make([]byte, wanMTU) })},
		{"longer than the way's MTU, IPv6", "too-long",
			change(udp6, func(p *packet) { p.payload = make([]byte, wanMTU) })},
		{"a checksum left to hardware", "unsummed", edit(udp, func(b []byte) {
			pseudo := append(append([]byte{}, b[26:34]...), 0, protocolUDP, 0, 26)
			binary.BigEndian.PutUint16(b[40:], checksum.Fold(checksum.Words(pseudo)))
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "unsummed" { // only asked of a flow that is not known
				key := fastKey{Ports: uint32(inside4.Port()>>8|inside4.Port()<<8) | uint32(server4.Port()>>8|server4.Port()<<8)<<16,
					Protocol: protocolUDP, Family: unix.AF_INET}
				key.From[0] = binary.NativeEndian.Uint32(inside4.Addr().AsSlice())
				key.To[0] = binary.NativeEndian.Uint32(server4.Addr().AsSlice())
				r.path.objects.Flows.Delete(key)
			}
			verdict, out, reason := r.counted(r.path.objects.Carry, r.lan, c.frame)
			if verdict != xdpPass || reason != c.want || !bytes.Equal(out, c.frame) {
				t.Errorf("verdict %d, %q, want %q;\n%.80x, was\n%.80x", verdict, reason, c.want, out, c.frame)
			}
		})
	}
	if verdict, out, reason := r.counted(r.path.objects.Pass, r.lan, udp.frame()); verdict != xdpPass ||
		reason != "off" || !bytes.Equal(out, udp.frame()) {
		t.Errorf("turned off: verdict %d, %q", verdict, reason)
	}
	// An inside address that comes from the outside would go back where it came from.
	spoofed := udp
	spoofed.target = r.addresses[r.wan][0]
	if verdict, _, reason := r.counted(r.path.objects.Carry, r.wan, spoofed.frame()); verdict != xdpPass ||
		reason != "no-route" {
		t.Errorf("spoofed: verdict %d, %q, want no-route", verdict, reason)
	}
}

// A flow that the kernel forgets is the kernel's again within a second or so.
func TestForgets(t *testing.T) {
	r := newRouter(t)
	r.track(inside4, server4, outside4, 0)
	in, _ := r.up(inside4, server4, outside4, false, make([]byte, 18))
	began := time.Now() // before the flow is asked for
	if _, _, reason := r.counted(r.path.objects.Carry, r.lan, in.frame()); reason != Carried {
		t.Fatalf("%s, want %s", reason, Carried)
	}
	r.do(func() error { return netlink.ConntrackTableFlush(netlink.ConntrackTable) })
	testenv.Await(t, "the kernel to have the flow again", func() bool {
		_, _, reason := r.counted(r.path.objects.Carry, r.lan, in.frame())
		if past := time.Since(began); reason != Carried && (reason != "unknown" || past < 900*time.Millisecond) {
			t.Fatalf("after %v: %s", past, reason)
		}
		return reason == "unknown"
	})
}
