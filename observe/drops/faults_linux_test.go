//go:build amd64 || arm64

package drops

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// run sends packets over a bed and holds the verdicts against what did not come.
type run struct {
	six     bool
	payload int
	packets uint64
	listen  []func(fd int) error // the receiver's socket
	send    []func(fd int) error // the sender's socket
	before  func(b *bed)         // makes the fault
	during  func(b *bed, from, to socket)
	after   func(b *bed, to socket) // when all is sent, before the receiver reads
	options TrackOptions
	quiet   bool   // no receiver
	socket  bool   // its socket tells the namespace, which kernels before 6.11 may keep to themselves
	keeps   uint64 // of the first packets, so many stay on the way

	reason, function string // regular expressions that each verdict meets
	space            func(b *bed) uint64
	iface            string
	received         bool
	least            uint64 // packets lost, or the fault was none
}

func inSender(b *bed) uint64   { return inode(b.t, b.sender) }
func unknown(*bed) uint64      { return 0 }
func inReceiver(b *bed) uint64 { return inode(b.t, b.receiver) }

func (r run) test(t *testing.T) {
	if r.payload == 0 {
		r.payload = 64
	}
	if r.packets == 0 {
		r.packets = 1000
	}
	if r.listen == nil {
		r.listen = []func(int) error{wide}
	}
	r.once(t)
}

// named wants a verdict on each of the lost packets, but for those that this machine may hide.
func named(t *testing.T, lost, unseen uint64) {
	t.Helper()
	if unseen > 0 {
		t.Logf("%d of %d lost packets without a verdict", unseen, lost)
	}
	if unseen > hidden {
		t.Errorf("%d of %d lost packets have no verdict; want at most %d", unseen, lost, hidden)
	}
}

func (r run) once(t *testing.T) {
	b := newBed(t)
	b.six = r.six
	to := socket{fd: -1, port: testPort}
	if !r.quiet {
		to = open(t, b.receiver, r.six, append(slices.Clip(r.listen), bound(netip.AddrPortFrom(address(r.six, 2), testPort)))...)
	}
	from := open(t, b.sender, r.six, append(slices.Clip(r.send), connected(netip.AddrPortFrom(address(r.six, 2), testPort)))...)
	m := machine(t)
	track(t, m, testTrial, "up", r.options, model.Tuple{From: from.port, To: testPort})
	if r.before != nil {
		r.before(b)
	}
	if r.during != nil {
		r.during(b, from, to)
	} else {
		send(t, from, testTrial, 0, r.packets, r.payload)
	}
	if r.after != nil {
		r.after(b, to)
	}
	got := b.early
	if got == nil {
		got = map[uint64]int{}
	}
	for q := range r.keeps {
		got[q] = 1
	}
	if !r.quiet {
		to.drain(t, testTrial, got)
	}
	d := collect(t, m, testTrial)
	r.check(t, b, d, got)
}

// check wants a right verdict on each missing packet and none on others.
func (r run) check(t *testing.T, b *bed, d model.Drops, got map[uint64]int) {
	t.Helper()
	said := verdicts(t, d, "up", 0)
	var lost, wrong, unseen uint64
	for q := range r.packets {
		site, named := said[q]
		switch arrived := got[q] > 0; {
		case arrived && named:
			wrong++
		case !arrived && !named:
			unseen++
		}
		if got[q] == 0 {
			lost++
		}
		if named && !r.expected(b, site) {
			t.Errorf("sequence %d: %+v", q, site)
			break
		}
	}
	named(t, lost, unseen)
	if wrong > 0 || lost < r.least || lost == 0 {
		t.Errorf("%d lost of %d; %d verdicts about packets that came; want at least %d lost", lost, r.packets, wrong, r.least)
	}
	if d.Overwritten+d.SitesLost+d.Unreadable > 0 {
		t.Errorf("not accounted for: %+v", d)
	}
	if sum := total(d, "up").Packets; sum+unseen < lost {
		t.Errorf("tallies of %d packets, but %d are lost", sum, lost)
	}
	if t.Failed() {
		t.Logf("sites %+v\ncounts %+v\nexits %v", d.Sites, d.Flows[0].Counts, exits(t, machine(t)))
	}
}

func (r run) expected(b *bed, s model.Site) bool {
	want := r.space(b)
	if r.socket && s.Namespace == 0 && !machine(b.t).kernel.rxSock {
		want, r.iface = 0, ""
	}
	return matches(r.reason, s.Reason) && matches(r.function, s.Function) && s.Namespace == want &&
		s.Interface == r.iface && s.Received == r.received
}

// compiled holds each pattern's expression: to compile it takes long on an emulated machine.
var compiled sync.Map

func matches(pattern, s string) bool {
	e, ok := compiled.Load(pattern)
	if !ok {
		e, _ = compiled.LoadOrStore(pattern, regexp.MustCompile("^("+pattern+")$"))
	}
	return e.(*regexp.Regexp).MatchString(s)
}

// slowReader keeps a tenth of what is sent in its socket.
var slowReader = []func(int) error{option(unix.SOL_SOCKET, unix.SO_RCVBUF, 20_000)}

// wide is a socket that any test's packets have room in.
var wide = option(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)

// Each fault alone, each at the place of its own. What a kernel before 6.18 calls
// otherwise stands behind a bar.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		both bool // over IPv6, too
		run
	}{
		{"receive buffer", true, run{listen: slowReader, socket: true,
			reason: "SOCKET_RCVBUFF", function: ".*udp.*", space: inReceiver, iface: "vb", received: true, least: 900}},
		{"socket filter", true, run{listen: []func(int) error{wide, refuseAll}, least: 1000,
			reason: "SOCKET_FILTER", function: ".*udp.*", space: inReceiver, iface: "vb", received: true}},
		{"no port", true, run{quiet: true, least: 1000,
			reason: "NO_SOCKET", function: "__udp[46]_lib_rcv", space: inReceiver, iface: "vb", received: true}},
		{"close unread", true, run{quiet: true, before: unreadSocket, after: closeUnread, least: 1000,
			reason: "NOT_SPECIFIED|SOCKET_CLOSE", function: ".*udp.*destruct.*|inet_sock_destruct", space: unknown, received: true}},
		{"nft prerouting", true, run{before: func(b *bed) { b.dropFourth(b.receiver, nftables.ChainHookPrerouting) }, least: 250,
			reason: "NETFILTER_DROP", function: "nft_do_chain|nf_hook_slow", space: inReceiver, iface: "vb", received: true}},
		{"nft input", true, run{before: func(b *bed) { b.dropFourth(b.receiver, nftables.ChainHookInput) }, least: 250,
			reason: "NETFILTER_DROP", function: "nft_do_chain|nf_hook_slow", space: inReceiver, iface: "vb", received: true}},
		{"nft output", true, run{before: func(b *bed) { b.dropFourth(b.sender, nftables.ChainHookOutput) }, least: 250,
			reason: "NETFILTER_DROP", function: "nft_do_chain|nf_hook_slow", space: inSender}},
		{"qdisc", true, run{before: func(b *bed) { b.tbf(b.sender, "va", 6_250, 3000) }, least: 900, // of a slow sender, too
			reason: "QDISC_DROP|QDISC_OVERLIMIT|QDISC_DROP_.*", function: "__dev_queue_xmit|.*tbf.*|__dev_xmit_skb|kfree_skb_list_reason", space: inSender, iface: "va"}},
		{"tc egress", true, run{before: func(b *bed) { b.shot(b.sender, "va", netlink.HANDLE_MIN_EGRESS) }, least: 1000,
			reason: "TC_EGRESS", function: "__dev_queue_xmit|sch_handle_egress", space: inSender, iface: "va"}},
		{"tc ingress", true, run{before: func(b *bed) { b.shot(b.receiver, "vb", netlink.HANDLE_MIN_INGRESS) }, least: 1000,
			reason: "TC_INGRESS", function: "__netif_receive_skb_core|sch_handle_ingress", space: inReceiver, iface: "vb", received: true}},
		{"XDP generic", true, run{before: func(b *bed) { b.xdp(b.receiver, "vb", nl.XDP_FLAGS_SKB_MODE) }, least: 1000,
			reason: "NOT_SPECIFIED|XDP", function: "do_xdp_generic", space: inReceiver, iface: "vb", received: true}},
		{"XDP in veth", true, run{before: func(b *bed) { b.xdp(b.receiver, "vb", nl.XDP_FLAGS_DRV_MODE) }, packets: 200, least: 200, // its ring holds 255
			reason: "NOT_SPECIFIED|XDP", function: "veth_xdp_rcv.*", space: inReceiver, iface: "vb"}},
		{"wrong MAC", true, run{before: func(b *bed) { b.neighbour(b.sender, "va", 2, net.HardwareAddr{2, 0, 0, 0, 0, 9}) }, least: 1000,
			reason: "OTHERHOST", function: "ip6?_rcv_core", space: inReceiver, iface: "vb", received: true}},
		{"not its address", false, run{before: noAddress, least: 1000,
			reason: "IP_INADDRERRORS", function: "ip_error", space: inReceiver, iface: "vb", received: true}},
		{"reverse path", false, run{before: foreignSource, during: fromForeign, least: 1000,
			reason: "IP_RPFILTER", function: "ip_rcv_finish_core.*", space: inReceiver, iface: "vb", received: true}},
		{"backlog", true, run{before: slowBacklog, during: flood, packets: 8000, least: 1000,
			reason: "CPU_BACKLOG", function: "enqueue_to_backlog", space: inReceiver, iface: "vb"}},
		{"bridge port closed", true, run{before: closedPort, least: 1000,
			reason: "BRIDGE_INGRESS_STP_STATE|NOT_SPECIFIED", function: "br_handle_frame", space: inReceiver, iface: "vb", received: true}},
		{"neighbour", true, run{before: noNeighbour, after: neighbourFailed, least: 1000,
			reason: "NEIGH_QUEUEFULL|NEIGH_FAILED|NOT_SPECIFIED", function: "__neigh_event_send|neigh_invalidate", space: inSender, iface: "va"}},
		{"no carrier", true, run{before: noCarrier, least: 1000,
			reason: "QDISC_DROP", function: "__dev_queue_xmit|kfree_skb_list_reason", space: inSender, iface: "va"}},
		{"checksum, short", false, run{during: badChecksum(64), least: 1000,
			reason: "UDP_CSUM", function: "__udp4_lib_rcv", space: inReceiver, iface: "vb", received: true}},
		{"checksum, long", false, run{during: badChecksum(300), least: 1000,
			reason: "UDP_CSUM|NOT_SPECIFIED", function: "udp_recvmsg|__skb_recv_udp|.*first_packet_length", space: unknown, received: true}},
		{"reassembly", false, run{before: func(b *bed) { b.sysctl(b.receiver, "net/ipv4/ipfrag_time", "1") }, during: firstFragments, packets: 50, least: 50,
			after:  func(b *bed, _ socket) { awaitVerdicts(b.t, 50) },
			reason: "FRAG_REASM_TIMEOUT|NOT_SPECIFIED", function: "ip_expire|inet_frag.*", space: inReceiver, iface: "vb", received: true}},
		{"TUN", false, run{before: func(b *bed) { b.tun(b.sender, 20) }, during: intoTUN, quiet: true, keeps: 20, least: 980,
			reason: "FULL_RING", function: "tun_net_xmit", space: inSender, iface: "tun0"}},
	} {
		t.Run(c.name, c.test)
		if c.both {
			c.six = true
			t.Run(c.name+" over IPv6", c.test)
		}
	}
}

// refuseAll is a filter that takes no byte of any packet.
func refuseAll(fd int) error {
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}})
}

// unread is the socket of the test that closes it.
func unreadSocket(b *bed) {
	b.unread = open(b.t, b.receiver, b.six, wide, bound(netip.AddrPortFrom(address(b.six, 2), testPort)))
}

// closeUnread closes it in its namespace, as its program would.
func closeUnread(b *bed, _ socket) {
	// All have come when their memory is that of 1000 equal buffers, and stays so.
	last, same := -1, 0
	until(b.t, "1000 packets in the queue", func() bool {
		now := b.unread.held(b.t)
		if now != last {
			last, same = now, 0
		}
		same++
		return now%1000 == 0 && now/1000 > 256 && same > 10
	})
	b.do(b.receiver, func() error { return unix.Close(b.unread.fd) })
	awaitVerdicts(b.t, 1000)
}

// awaitVerdicts waits until the kernel has told of so many packets.
func awaitVerdicts(t testing.TB, n uint64) {
	t.Helper()
	until(t, fmt.Sprintf("%d verdicts", n), func() bool {
		d, err := machine(t).Collect(testTrial)
		if err != nil {
			t.Fatal(err)
		}
		var sum uint64
		for _, c := range d.Flows[0].Counts {
			sum += c.Packets
		}
		return sum >= n
	})
}

func noAddress(b *bed) {
	b.sysctl(b.receiver, "net/ipv4/ip_forward", "0")
	b.link(b.receiver, "vb", func(l netlink.Link) error {
		list, err := netlink.AddrList(l, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, a := range list {
			if err := netlink.AddrDel(l, &a); err != nil {
				return err
			}
		}
		return netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 77, 0, 3), Mask: net.CIDRMask(24, 32)}})
	})
}

func foreignSource(b *bed) {
	b.sysctl(b.receiver, "net/ipv4/conf/all/rp_filter", "1")
	b.link(b.sender, "lo", func(l netlink.Link) error {
		return netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 99, 0, 1), Mask: net.CIDRMask(32, 32)}})
	})
}

func fromForeign(b *bed, from, _ socket) {
	s := open(b.t, b.sender, false, option(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		bound(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 99, 0, 1}), from.port)), connected(netip.AddrPortFrom(address(false, 2), testPort)))
	send(b.t, s, testTrial, 0, 1000, 64)
}

func slowBacklog(b *bed) {
	b.slow(b.receiver, nftables.ChainHookPrerouting, 1000)
	b.steer(b.receiver, "vb", "2")
}

func flood(b *bed, from, to socket) {
	pinned(0, func() { send(b.t, from, testTrial, 0, 8000, 64) })
	// The other processor is still at it.
	got := map[uint64]int{}
	to.drain(b.t, testTrial, got)
	b.early = got
}

func closedPort(b *bed) {
	b.bridge(b.receiver, "vb")
	b.awaitUp(b.receiver, "vb") // the kernel opens a closed port when it learns late of its carrier
	b.portState(b.receiver, "vb", 0)
}

func noNeighbour(b *bed) {
	for _, f := range []string{"ipv4", "ipv6"} {
		b.sysctl(b.sender, "net/"+f+"/neigh/va/mcast_solicit", "1")
		b.sysctl(b.sender, "net/"+f+"/neigh/va/retrans_time_ms", "100")
		b.sysctl(b.sender, "net/"+f+"/neigh/va/unres_qlen_bytes", "2000")
	}
	b.link(b.sender, "va", func(l netlink.Link) error {
		for _, six := range []bool{false, true} {
			if err := netlink.NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: address(six, 2).AsSlice()}); err != nil {
				return err
			}
		}
		return nil
	})
	b.link(b.receiver, "vb", func(l netlink.Link) error { return netlink.LinkSetARPOff(l) })
}

func neighbourFailed(b *bed, _ socket) { awaitVerdicts(b.t, 1000) }

func noCarrier(b *bed) {
	b.link(b.receiver, "vb", netlink.LinkSetDown)
	until(b.t, "the carrier to be gone", func() (gone bool) { // and the queue to be replaced
		b.link(b.sender, "va", func(l netlink.Link) error {
			gone = l.Attrs().OperState != netlink.OperUp
			return nil
		})
		return gone
	})
}

func badChecksum(payload int) func(b *bed, from, to socket) {
	return func(b *bed, from, _ socket) {
		fd := b.raw(b.sender)
		p := make([]byte, payload)
		for q := range uint64(1000) {
			header(p, testTrial, q)
			b.sendRaw(fd, spoilt(datagram(from.port, testPort, 0, 0, p)))
		}
	}
}

// spoilt gives a datagram without options a wrong checksum (RFC 768). A fixed one
// would be right for one in 65536.
func spoilt(packet []byte) []byte {
	length := uint32(len(packet) - 20)
	sum := unix.IPPROTO_UDP + length
	for i := 12; i+1 < len(packet); i += 2 { // the addresses, and all behind them
		sum += uint32(binary.BigEndian.Uint16(packet[i:]))
	}
	if len(packet)%2 != 0 {
		sum += uint32(packet[len(packet)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	wrong := ^uint16(sum) ^ 0x0101
	if wrong == 0 { // says that there is none
		wrong = 0x0202
	}
	binary.BigEndian.PutUint16(packet[26:], wrong)
	return packet
}

func firstFragments(b *bed, from, _ socket) {
	fd := b.raw(b.sender)
	p := make([]byte, 64)
	for q := range uint64(50) {
		header(p, testTrial, q)
		packet := datagram(from.port, testPort, 0, 0x2000, p)
		binary.BigEndian.PutUint16(packet[4:], uint16(q+1)) // identification
		b.sendRaw(fd, packet)
	}
}

func intoTUN(b *bed, from, _ socket) {
	s := open(b.t, b.sender, false, option(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), connected(netip.MustParseAddrPort("10.88.0.2:9077")))
	track(b.t, machine(b.t), testTrial, "up", TrackOptions{}, model.Tuple{From: s.port, To: testPort})
	send(b.t, s, testTrial, 0, 1000, 64)
}
