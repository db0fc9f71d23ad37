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

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// wire is a bed while a run goes on.
type wire struct {
	*netbed.Bed
	six    bool
	unread netbed.Socket  // that a fault closes
	early  map[uint64]int // packets that were read while the fault went on
}

// run sends packets over a bed and holds the verdicts against what did not come.
type run struct {
	six     bool
	payload int
	packets uint64
	listen  []netbed.Option // the receiver's socket
	send    []netbed.Option // the sender's socket
	before  func(b *wire)   // makes the fault
	during  func(b *wire, from, to netbed.Socket)
	after   func(b *wire, to netbed.Socket) // when all is sent, before the receiver reads
	options TrackOptions
	quiet   bool   // no receiver
	socket  bool   // its socket tells the namespace, which kernels before 6.11 may keep to themselves
	keeps   uint64 // of the first packets, so many stay on the way

	reason, function string // regular expressions that each verdict meets
	space            func(b *wire) uint64
	iface            string
	received         bool
	least            uint64 // packets lost, or the fault was none

	// Which counters moved over IPv4, and no other: see counted_linux_test.go. Over IPv6 only UDP's are looked at.
	sender, receiver string
}

func inSender(b *wire) uint64   { return b.Sender.ID() }
func unknown(*wire) uint64      { return 0 }
func inReceiver(b *wire) uint64 { return b.Receiver.ID() }

func (r run) test(t *testing.T) {
	if r.payload == 0 {
		r.payload = 64
	}
	if r.packets == 0 {
		r.packets = 1000
	}
	if r.listen == nil {
		r.listen = []netbed.Option{wide}
	}
	r.once(t)
}

// named wants a verdict on each of the lost packets, but for those that this machine may hide.
func named(t *testing.T, lost, unseen uint64) {
	t.Helper()
	if unseen > 0 {
		t.Logf("%d of %d lost packets without a verdict", unseen, lost)
	}
	if most := min(hidden, lost/3); unseen > most {
		t.Errorf("%d of %d lost packets have no verdict; want at most %d", unseen, lost, most)
	}
}

func (r run) once(t *testing.T) {
	b := &wire{Bed: netbed.New(t, 1, r.six), six: r.six}
	to := netbed.Socket{FD: -1, Port: testPort}
	if !r.quiet {
		to = b.Receiver.Open(r.six, append(slices.Clip(r.listen), netbed.Bound(netip.AddrPortFrom(netbed.Address(r.six, 2), testPort)))...)
	}
	from := b.Sender.Open(r.six, append(slices.Clip(r.send), netbed.Connected(netip.AddrPortFrom(netbed.Address(r.six, 2), testPort)))...)
	m := machine(t)
	track(t, m, testTrial, "up", r.options, model.Tuple{From: from.Port, To: testPort})
	if r.before != nil {
		r.before(b)
	}
	before := snapshots(t, b.Bed)
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
		drain(t, to, testTrial, got)
	}
	d := collect(t, m, testTrial)
	r.check(t, b, d, got)
	if after := snapshots(t, b.Bed); r.sender+r.receiver != "" {
		if r.six {
			r.sender, r.receiver = ofUDP6(r.sender), ofUDP6(r.receiver)
		}
		quantities := map[string]uint64{"n": r.packets, "got": uint64(len(got)), "lost": r.packets - uint64(len(got))}
		moved(t, "sender", before[0], after[0], r.sender, quantities)
		moved(t, "receiver", before[1], after[1], r.receiver, quantities)
	}
}

// check wants a right verdict on each missing packet and none on others.
func (r run) check(t *testing.T, b *wire, d model.Drops, got map[uint64]int) {
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

func (r run) expected(b *wire, s model.Site) bool {
	want := r.space(b)
	if r.socket && s.Namespace == 0 && !machine(b.T).kernel.rxSock {
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
var slowReader = []netbed.Option{netbed.With(unix.SOL_SOCKET, unix.SO_RCVBUF, 20_000)}

// wide is a socket that any test's packets have room in.
var wide = netbed.With(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)

// Each fault alone, each at the place of its own. What a kernel before 6.18 calls
// otherwise stands behind a bar.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		both bool // over IPv6, too
		run
	}{
		{"receive buffer", true, run{listen: slowReader, socket: true,
			reason: "SOCKET_RCVBUFF", function: ".*udp.*", space: inReceiver, iface: "vb", received: true, least: 900,
			sender:   "sent:n",
			receiver: "arrived:n Udp.InDatagrams:got Udp.InErrors:lost Udp.RcvbufErrors:lost udp.9077.drops:lost"}},
		{"socket filter", true, run{listen: []netbed.Option{wide, refuseAll}, least: 1000,
			reason: "SOCKET_FILTER", function: ".*udp.*", space: inReceiver, iface: "vb", received: true,
			sender:   "sent:n",
			receiver: "arrived:n Udp.InErrors:n udp.9077.drops:n"}},
		{"no port", true, run{quiet: true, least: 1000,
			reason: "NO_SOCKET", function: "__udp[46]_lib_rcv", space: inReceiver, iface: "vb", received: true,
			sender:   "~sent:n",
			receiver: "~Udp.NoPorts:n Ip.InDelivers:n"}},
		{"close unread", true, run{quiet: true, before: unreadSocket, after: closeUnread, least: 1000,
			reason: "NOT_SPECIFIED|SOCKET_CLOSE", function: ".*udp.*destruct.*|inet_sock_destruct", space: unknown, received: true}},
		{"nft prerouting", true, run{before: func(b *wire) { b.Receiver.DropFourth(nftables.ChainHookPrerouting) }, least: 250,
			reason: "NETFILTER_DROP", function: "nft_do_chain|nf_hook_slow", space: inReceiver, iface: "vb", received: true,
			sender:   "sent:n",
			receiver: "dev.vb.rx_packets:n Ip.InReceives:n Ip.InDelivers:got Udp.InDatagrams:got nft.inet.fault.hook0.prerouting.2.packets:lost"}},
		{"nft input", true, run{before: func(b *wire) { b.Receiver.DropFourth(nftables.ChainHookInput) }, least: 250,
			reason: "NETFILTER_DROP", function: "nft_do_chain|nf_hook_slow", space: inReceiver, iface: "vb", received: true,
			sender:   "sent:n",
			receiver: "dev.vb.rx_packets:n Ip.InReceives:n Ip.InDelivers:got Udp.InDatagrams:got nft.inet.fault.hook1.input.2.packets:lost"}},
		{"nft output", true, run{before: func(b *wire) { b.Sender.DropFourth(nftables.ChainHookOutput) }, least: 250,
			reason: "NETFILTER_DROP", function: "nft_do_chain|nf_hook_slow", space: inSender,
			sender:   "sent:got Ip.OutRequests:lost Ip.OutDiscards:lost nft.inet.fault.hook3.output.2.packets:lost",
			receiver: "arrived:got Udp.InDatagrams:got"}},
		{"qdisc", true, run{before: func(b *wire) { b.Sender.TBF("va", netlink.HANDLE_ROOT, 6_250, 3000) }, least: 900, // of a slow sender, too
			after:  func(b *wire, _ netbed.Socket) { b.Sender.AwaitSent("va") },
			reason: "QDISC_DROP|QDISC_OVERLIMIT|QDISC_DROP_.*", function: "__dev_queue_xmit|.*tbf.*|__dev_xmit_skb|kfree_skb_list_reason", space: inSender, iface: "va",
			sender:   "~sent:got qdisc.va.tbf.1:.drops:lost Ip.OutDiscards:lost Udp.SndbufErrors:lost Ip.OutRequests:lost Ip.OutTransmits:lost",
			receiver: "arrived:got Udp.InDatagrams:got"}},
		{"tc egress", true, run{before: func(b *wire) { b.Sender.Shot("va", netlink.HANDLE_MIN_EGRESS) }, least: 1000,
			reason: "TC_EGRESS", function: "__dev_queue_xmit|sch_handle_egress", space: inSender, iface: "va",
			sender:   "qdisc.va.clsact.ffff:.drops:n Ip.OutDiscards:n Udp.SndbufErrors:n Ip.OutRequests:n Ip.OutTransmits:n",
			receiver: ""}},
		{"tc ingress", true, run{before: func(b *wire) { b.Receiver.Shot("vb", netlink.HANDLE_MIN_INGRESS) }, least: 1000,
			reason: "TC_INGRESS", function: "__netif_receive_skb_core|sch_handle_ingress", space: inReceiver, iface: "vb", received: true,
			sender:   "sent:n",
			receiver: "qdisc.vb.clsact.ffff:.drops:n dev.vb.rx_packets:n"}},
		{"XDP generic", true, run{before: func(b *wire) { b.Receiver.XDP("vb", 1, nl.XDP_FLAGS_SKB_MODE) }, least: 1000,
			reason: "NOT_SPECIFIED|XDP", function: "do_xdp_generic", space: inReceiver, iface: "vb", received: true,
			sender:   "sent:n",
			receiver: "dev.vb.rx_packets:n"}},
		{"XDP in veth", true, run{before: func(b *wire) { b.Receiver.XDP("vb", 1, nl.XDP_FLAGS_DRV_MODE) }, packets: 200, least: 200, // its ring holds 255
			reason: "NOT_SPECIFIED|XDP", function: "veth_xdp_rcv.*", space: inReceiver, iface: "vb",
			sender:   "sent:n",
			receiver: "ethtool.vb.rx_queue_0_xdp_drops:n dev.vb.rx_packets:n"}},
		{"wrong MAC", true, run{before: func(b *wire) { b.Sender.Neighbour("va", netbed.Address(b.six, 2), net.HardwareAddr{2, 0, 0, 0, 0, 9}) }, least: 1000,
			reason: "OTHERHOST", function: "ip6?_rcv_core", space: inReceiver, iface: "vb", received: true,
			sender:   "sent:n",
			receiver: "dev.vb.rx_otherhost_dropped:n dev.vb.rx_packets:n"}},
		{"not its address", false, run{before: noAddress, least: 1000,
			reason: "IP_INADDRERRORS", function: "ip_error", space: inReceiver, iface: "vb", received: true,
			sender:   "sent:n",
			receiver: "Ip.InAddrErrors:n dev.vb.rx_packets:n Ip.InReceives:n"}},
		{"reverse path", false, run{before: foreignSource, during: fromForeign, least: 1000,
			reason: "IP_RPFILTER", function: "ip_rcv_finish_core.*", space: inReceiver, iface: "vb", received: true,
			sender:   "sent:n",
			receiver: "TcpExt.IPReversePathFilter:n dev.vb.rx_packets:n Ip.InReceives:n"}},
		{"backlog", true, run{before: slowBacklog, during: flood, packets: 8000, least: 1000,
			reason: "CPU_BACKLOG", function: "enqueue_to_backlog", space: inReceiver, iface: "vb",
			sender:   "sent:got dev.va.tx_dropped:lost Ip.OutDiscards:lost Udp.SndbufErrors:lost Ip.OutRequests:lost Ip.OutTransmits:lost",
			receiver: "arrived:got Udp.InDatagrams:got dev.vb.rx_dropped:lost"}},
		{"bridge port closed", true, run{before: closedPort, least: 1000,
			reason: "BRIDGE_INGRESS_STP_STATE|NOT_SPECIFIED", function: "br_handle_frame", space: inReceiver, iface: "vb", received: true}},
		{"neighbour", true, run{before: noNeighbour, after: neighbourFailed, least: 1000,
			reason: "NEIGH_QUEUEFULL|NEIGH_FAILED|NOT_SPECIFIED", function: "__neigh_event_send|neigh_invalidate", space: inSender, iface: "va"}},
		{"no carrier", true, run{before: noCarrier, least: 1000,
			reason: "QDISC_DROP", function: "__dev_queue_xmit|kfree_skb_list_reason", space: inSender, iface: "va"}},
		{"checksum, short", false, run{during: badChecksum(64), least: 1000,
			reason: "UDP_CSUM", function: "__udp4_lib_rcv", space: inReceiver, iface: "vb", received: true,
			sender:   "~",
			receiver: "arrived:n Udp.InCsumErrors:n Udp.InErrors:n"}},
		{"checksum, long", false, run{during: badChecksum(300), least: 1000,
			reason: "UDP_CSUM|NOT_SPECIFIED", function: "udp_recvmsg|__skb_recv_udp|.*first_packet_length", space: unknown, received: true}},
		{"reassembly", false, run{before: func(b *wire) { b.Receiver.Sysctl("net/ipv4/ipfrag_time", "1") }, during: firstFragments, packets: 50, least: 50,
			after:  func(b *wire, _ netbed.Socket) { awaitVerdicts(b.T, 50) },
			reason: "FRAG_REASM_TIMEOUT|NOT_SPECIFIED", function: "ip_expire|inet_frag.*", space: inReceiver, iface: "vb", received: true,
			sender:   "~",
			receiver: "~Ip.ReasmReqds:n Ip.ReasmTimeout:n Ip.ReasmFails:n Ip.InReceives:n"}},
		{"TUN", false, run{before: func(b *wire) { b.Sender.TUN(20) }, during: intoTUN, quiet: true, keeps: 20, least: 980,
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
func unreadSocket(b *wire) {
	b.unread = b.Receiver.Open(b.six, wide, netbed.Bound(netip.AddrPortFrom(netbed.Address(b.six, 2), testPort)))
}

// closeUnread closes it in its namespace, as its program would.
func closeUnread(b *wire, _ netbed.Socket) {
	// All have come when their memory is that of 1000 equal buffers, and stays so.
	last, same := -1, 0
	testenv.Await(b.T, "1000 packets in the queue", func() bool {
		now := held(b.T, b.unread)
		if now != last {
			last, same = now, 0
		}
		same++
		return now%1000 == 0 && now/1000 > 256 && same > 10
	})
	b.Receiver.Must(func() error { return unix.Close(b.unread.FD) })
	awaitVerdicts(b.T, 1000)
}

// awaitVerdicts waits until the kernel has told of so many packets.
func awaitVerdicts(t testing.TB, n uint64) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("%d verdicts", n), func() bool {
		d, err := machine(t).Collect(testTrial, true)
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

func noAddress(b *wire) {
	b.Receiver.Sysctl("net/ipv4/ip_forward", "0")
	b.Receiver.Link("vb", func(l netlink.Link) error {
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

func foreignSource(b *wire) {
	b.Receiver.Sysctl("net/ipv4/conf/all/rp_filter", "1")
	b.Sender.Link("lo", func(l netlink.Link) error {
		return netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 99, 0, 1), Mask: net.CIDRMask(32, 32)}})
	})
}

func fromForeign(b *wire, from, _ netbed.Socket) {
	s := b.Sender.Open(false, netbed.With(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		netbed.Bound(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 99, 0, 1}), from.Port)), netbed.Connected(netip.AddrPortFrom(netbed.Address(false, 2), testPort)))
	send(b.T, s, testTrial, 0, 1000, 64)
}

func slowBacklog(b *wire) {
	b.Receiver.Slow(nftables.ChainHookPrerouting, 3000)
	b.Receiver.Setting("vb", "queues/rx-0/rps_cpus", "2")
}

func flood(b *wire, from, to netbed.Socket) {
	netbed.Pinned(0, func() { send(b.T, from, testTrial, 0, 8000, 64) })
	// The other processor is still at it.
	got := map[uint64]int{}
	drain(b.T, to, testTrial, got)
	b.early = got
}

func closedPort(b *wire) {
	b.Receiver.Bridge("br")
	b.Receiver.Master("vb", "br")
	b.Receiver.AwaitUp("vb") // the kernel opens a closed port when it learns late of its carrier
	b.Receiver.PortState("vb", 0)
}

func noNeighbour(b *wire) {
	family := map[bool]string{false: "ipv4", true: "ipv6"}[b.six]
	for name, value := range map[string]string{"mcast_solicit": "1", "retrans_time_ms": "100", "unres_qlen_bytes": "2000"} {
		b.Sender.Sysctl("net/"+family+"/neigh/va/"+name, value)
	}
	b.Sender.Link("va", func(l netlink.Link) error {
		return netlink.NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: netbed.Address(b.six, 2).AsSlice()})
	})
	b.Receiver.Link("vb", netlink.LinkSetARPOff)
}

func neighbourFailed(b *wire, _ netbed.Socket) { awaitVerdicts(b.T, 1000) }

func noCarrier(b *wire) {
	b.Receiver.Link("vb", netlink.LinkSetDown)
	testenv.Await(b.T, "the carrier to be gone", func() (gone bool) { // and the queue to be replaced
		b.Sender.Link("va", func(l netlink.Link) error {
			gone = l.Attrs().OperState != netlink.OperUp
			return nil
		})
		return gone
	})
}

func badChecksum(payload int) func(b *wire, from, to netbed.Socket) {
	return func(b *wire, from, _ netbed.Socket) {
		p := make([]byte, payload)
		for q := range uint64(1000) {
			header(p, testTrial, q)
			b.Sender.SendRaw(netbed.Spoilt(netbed.Datagram(from.Port, testPort, 0, p)))
		}
	}
}

func firstFragments(b *wire, from, _ netbed.Socket) {
	p := make([]byte, 64)
	for q := range uint64(50) {
		header(p, testTrial, q)
		packet := netbed.Datagram(from.Port, testPort, 0x2000, p)
		binary.BigEndian.PutUint16(packet[4:], uint16(q+1)) // identification
		b.Sender.SendRaw(packet)
	}
}

func intoTUN(b *wire, from, _ netbed.Socket) {
	s := b.Sender.Open(false, netbed.With(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), netbed.Connected(netip.MustParseAddrPort("10.88.0.2:9077")))
	track(b.T, machine(b.T), testTrial, "up", TrackOptions{}, model.Tuple{From: s.Port, To: testPort})
	send(b.T, s, testTrial, 0, 1000, 64)
}
