package faults

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/model"
	"pelt/unit"
)

// row is one way to lose packets.
type row struct {
	name    string
	six     bool
	bridged bool              // the router is a bridge
	needs   need              // nil: nothing that a kernel may lack
	before  func(c *chain)    // made before the ends meet; it spoils the chain
	flow    func(*model.Flow) // changes the usual flow
	// make makes the fault once the receiver reads; nil: the flow is the fault. Without an undo the chain is spoilt.
	make  func(c *chain) (undo func())
	from  func(c *chain) *netbed.Node // others send packets from there to a port of the receiver's where nobody listens
	stall bool                        // the receiver does not read meanwhile
	want  answers
	facts string // of the answer's line, in all modes: settings and levels with their values; "" asks for none
}

// answers are what the accounts of the modes should say, as regular expressions: kernels name some differently.
type answers [modes]string

// each is the same in each mode.
func each(a string) answers { return answers{a, a, a} }

// memory is each(a) of what a socket refused, but before Linux 5.11, where nothing tells its filter from the limit of
// memory: the kernel did not count MemErrors.
func memory(a string) answers {
	if counted, err := os.ReadFile("/proc/net/snmp"); err == nil && !bytes.Contains(counted, []byte(" MemErrors")) {
		a = "receiver-udp/SOCKET_FILTER_OR_MEMORY"
	}
	return each(a)
}

// otherHostCounted is what counters tell of frames for another host's card: before Linux 5.19 none is for them.
func otherHostCounted() string {
	if atLeast(5, 19) {
		return "receiver-ip/OTHERHOST"
	}
	return "receiver-tc/between-device-and-ip"
}

// floods is the cause where no port of a bridge leads there. Linux 6.1 leaves br_flood by a jump, so that its caller is
// seen, which drops for other reasons, too.
func floods() string {
	if inGuest() {
		return "network/(NO_TX_TARGET|BRIDGE_PORT)"
	}
	return "network/NO_TX_TARGET"
}

// unread is how segments are told that lie outside of a buffer's linear part: Linux reads them from 6.12 on.
const unread = "( by a counter)?"

func segments(a string) answers { return answers{a + unread, a, a} }

// What is true where no counter tells more: the filter or IP dropped it, or it was lost inside of the router.
const (
	filter = "network/NETFILTER_DROP"
	gap    = "network/IP_GAP"
	inside = `network/inside \(by elimination\)`
	// A tcx program counts nowhere, and no command of most routers shows it.
	beforeIP = "network/between-device-and-ip"
)

const unanswered = "NEIGH_(QUEUEFULL|FAILED)"

// martian is the reason of a source that cannot be; kernels before 6.13 give none.
const martian = "receiver-ip/(IP_LOCALNET|NOT_SPECIFIED)"

// wrongTunnel is the reason of a VXLAN packet that no device waits for; kernels before 6.13 give none.
const wrongTunnel = "receiver-ip/(VXLAN_VNI_NOT_FOUND|TUNNEL_SHUT)"

// forbiddenByRule is told by send(), but not whose rule it is.
var forbiddenByRule = answers{"send-call/NETFILTER_DROP", "send-call/EPERM", "send-call/NETFILTER_DROP"}

// queueOfSender is told by send() where nobody watches.
var queueOfSender = answers{"sender-qdisc/QDISC_DROP", "sender-qdisc/ENOBUFS", "sender-qdisc/QDISC_DROP"}

// mostly is what an account leaves open between two places, in either order.
func mostly(a, b string) string {
	return fmt.Sprintf("possibly (%s, possibly %s|%[2]s, possibly %[1]s)", a, b)
}

func unfragmented(f *model.Flow) { f.PayloadBytes, f.DontFragment = 1400, true }
func fragmented(f *model.Flow)   { f.PayloadBytes = 3000 }

var table = []row{
	{name: "sender: output filter", want: forbiddenByRule,
		make: func(c *chain) func() { return c.sender.DropFourth(output) }},
	{name: "sender: output filter, IPv6", six: true, want: forbiddenByRule,
		make: func(c *chain) func() { return c.sender.DropFourth(output) }},
	{name: "sender: postrouting filter", want: forbiddenByRule,
		make: func(c *chain) func() { return c.sender.DropFourth(postrouting) }},
	{name: "sender: route is a blackhole", want: each("send-call/ROUTE_BLACKHOLE"),
		make: func(c *chain) func() { return c.sender.Refuse(c.receiver.IP(false), unix.RTN_BLACKHOLE) }},
	{name: "sender: route is prohibited", want: each("send-call/ROUTE_PROHIBIT"),
		make: func(c *chain) func() { return c.sender.Refuse(c.receiver.IP(false), unix.RTN_PROHIBIT) }},
	{name: "sender: no route", want: each("send-call/ENETUNREACH"),
		make: func(c *chain) func() { return noRoute(c, c.sender, their) }},
	{name: "sender: longer than the MTU", flow: unfragmented, want: each("send-call/EMSGSIZE"),
		make: func(c *chain) func() { return c.sender.MTU(their, 1300) }},
	{name: "sender: interface down", want: each("send-call/ENETUNREACH"),
		make: func(c *chain) func() { return c.sender.Down(their) }},
	{name: "sender: tbf", want: queueOfSender, facts: `qdisc\.eth0\.tbf\.1:\.limit=3000 B`,
		make: func(c *chain) func() { return c.sender.TBF(their, netlink.HANDLE_ROOT, 6_250, 3000) }},
	{name: "sender: longer than the bucket of tbf", flow: unfragmented, want: each("sender-qdisc/TBF_BURST"),
		facts: `qdisc\.eth0\.tbf\.1:\.burst=1000 B, packet=1442 B`,
		make:  func(c *chain) func() { return bucket(c.sender, their) }},
	{name: "sender: htb and pfifo", want: queueOfSender, facts: `qdisc\.eth0\.pfifo\.2:\.limit=20 skb`,
		make: func(c *chain) func() { return htb(c.sender, their, 6_250, pfifo()) }},
	{name: "sender: filter of htb", want: each("sender-qdisc/TC_EGRESS"),
		make: func(c *chain) func() {
			htb(c.sender, their, 6_250_000, pfifo())
			c.sender.Shot(their, netlink.MakeHandle(1, 0))
			return nil
		}},
	{name: "sender: tbf, segments",
		want: answers{"sender-qdisc/(QDISC_DROP|SKB_GSO_SEG)" + unread, "sender-qdisc/ENOBUFS",
			"sender-qdisc/(QDISC_DROP|SKB_GSO_SEG)"},
		flow: func(f *model.Flow) { f.Segments, f.PayloadBytes = 10, 100 },
		make: func(c *chain) func() { return c.sender.TBF(their, netlink.HANDLE_ROOT, 6_250, 3000) }},
	{name: "sender: its queue is changed",
		want: answers{"sender-qdisc/QUEUE_PURGE",
			"sender-device/tx-dropped|unattributed", "sender-qdisc/QUEUE_PURGE"}, // not counted before Linux 6.2
		flow: func(f *model.Flow) { f.Packets, f.Rate = 6000, unit.PacketRate(5_000) }, // while it changes often
		make: func(c *chain) func() { return changing(c.sender, their) }},
	{name: "sender: group of processes", needs: cgroup2, before: grouped,
		want: answers{"send-call/(EPERM|BPF_CGROUP_EGRESS)", "send-call/EPERM", "send-call/(EPERM|BPF_CGROUP_EGRESS)"},
		make: func(c *chain) func() { return forbidden(c, ebpf.AttachCGroupInetEgress) }},
	{name: "sender: connection table full", needs: guest, want: each("send-call/CONNTRACK_FULL"),
		make: func(c *chain) func() { return tracked(c, c.sender, output) }},
	{name: "sender: WireGuard without a peer", needs: device(wireguard()), want: each("send-call/TUNNEL_NO_PEER"),
		make: func(c *chain) func() { return into(c, c.sender, wireguard()) }},
	{name: "sender: tc egress", want: each("sender-qdisc/TC_EGRESS"),
		make: func(c *chain) func() { return c.sender.Shot(their, netlink.HANDLE_MIN_EGRESS) }},
	{name: "sender: no carrier", want: each("sender-device/NO_CARRIER"),
		make: func(c *chain) func() { return noCarrier(c.sender, their, c.router, toSender) }},
	{name: "sender: neighbour does not answer", want: each("sender-device/" + unanswered),
		make: func(c *chain) func() { return unknown(c, c.sender, their, c.router, toSender) }},
	{name: "sender: neighbour does not answer, IPv6", six: true, want: each("sender-device/" + unanswered),
		make: func(c *chain) func() { return unknown(c, c.sender, their, c.router, toSender) }},

	{name: "router: wrong link address", want: each("network/OTHERHOST"),
		make: func(c *chain) func() { return misled(c.sender, their, c.router, toSender) }},
	{name: "router: XDP, generic", want: each("network/XDP"),
		make: func(c *chain) func() { return c.router.XDP(toSender, 1, generic) }},
	{name: "router: XDP, in the driver", want: each("network/XDP"),
		flow: func(f *model.Flow) { f.Packets = 200 }, // the ring of veth holds 255
		make: func(c *chain) func() { return c.router.XDP(toSender, 1, native) }},
	{name: "router: tc ingress", want: each("network/TC_INGRESS"),
		make: func(c *chain) func() { return c.router.Shot(toSender, netlink.HANDLE_MIN_INGRESS) }},
	{name: "router: tcx ingress", needs: linux(6, 6), want: answers{"network/TC_INGRESS", beforeIP, beforeIP},
		make: func(c *chain) func() { return tcx(c.router, toSender) }},
	{name: "router: prerouting filter", want: each(filter),
		make: func(c *chain) func() { return c.router.DropFourth(prerouting) }},
	{name: "router: forward filter", want: each(filter),
		make: func(c *chain) func() { return c.router.DropFourth(forward) }},
	{name: "router: forward filter, IPv6", six: true, want: each(filter),
		make: func(c *chain) func() { return c.router.DropFourth(forward) }},
	{name: "router: postrouting filter", want: each(filter),
		make: func(c *chain) func() { return c.router.DropFourth(postrouting) }},
	{name: "router: chain policy", want: answers{filter, gap, gap},
		make: func(c *chain) func() { return policy(c.router, forward) }},
	{name: "router: reject", want: each(filter),
		make: func(c *chain) func() { return reject(c.router, forward) }},
	{name: "router: rate limit", want: each(filter),
		make: func(c *chain) func() { return police(c.router, forward) }},
	{name: "router: forward filter, behind translation", want: each(filter),
		before: func(c *chain) { c.router.Masquerade(toReceiver) },
		make:   func(c *chain) func() { return c.router.DropFourth(forward) }},
	{name: "router: policer", needs: policer, want: each("network/POLICER"),
		facts: `police\.\d+\.rate_bps=80000 bit/s, police\.\d+\.burst_bytes=1000 B`,
		make:  func(c *chain) func() { return policed(c.router, toSender) }},
	{name: "router: redirect to an interface that is down", want: each("network/REDIRECT"),
		make: func(c *chain) func() { return aside(c.router, toSender) }},
	{name: "router: queued at the input, by an ifb", needs: device(ifb()), want: each("network/QDISC_DROP"),
		facts: `qdisc\.ifb0\.tbf\.1:\.limit=(3000|29\d\d|30\d\d) B`,
		make:  func(c *chain) func() { return shapedInput(c.router, toSender) }},
	{name: "router: nobody reads the filter's queue", needs: nfqueue, want: each("network/NFQUEUE_UNHEARD"),
		facts: `nfqueue\.5\.unheard=\d+ skb`,
		make:  func(c *chain) func() { return queued(c.router, forward) }},
	{name: "router: connection table full", needs: guest, want: each("network/CONNTRACK_FULL"),
		facts: `net\.netfilter\.nf_conntrack_count=1 connection, net\.netfilter\.nf_conntrack_max=1 connection`,
		make:  func(c *chain) func() { return tracked(c, c.router, forward) }},
	{name: "router: buckets of the connection table full", needs: boundedChains, want: each("network/CONNTRACK_CHAIN"),
		before: crowd, make: func(c *chain) func() { return track(c.router, forward) }},
	{name: "router: WireGuard without a peer", needs: device(wireguard()), want: each("network/TUNNEL_NO_PEER"),
		make: func(c *chain) func() { return into(c, c.router, wireguard()) }},
	{name: "router: bond without a port", needs: device(bond()), want: each("network/NO_CARRIER"),
		make: func(c *chain) func() { return into(c, c.router, bond()) }},
	{name: "router: VXLAN, nobody at the other end", needs: device(vxlan(7, netip.Addr{})),
		want: each("network/" + unanswered),
		make: func(c *chain) func() {
			into(c, c.router, vxlan(7, netip.MustParseAddr("10.77.1.9")))
			return unknown(c, c.router, toReceiver, c.receiver, their)
		}},
	{name: "router: no port left to translate to", want: each("network/CONNTRACK_INSERT"),
		make: onePort},
	{name: "router: no port left to translate to, four streams", flow: func(f *model.Flow) { f.Streams = 4 },
		want: answers{"network/CONNTRACK_INSERT by a counter", "network/CONNTRACK_INSERT",
			"network/CONNTRACK_INSERT"},
		make: onePort},
	{name: "router: forwarding off", want: each("network/FORWARDING_OFF"),
		make: func(c *chain) func() { return c.router.Sysctl("net/ipv4/ip_forward", "0") }},
	{name: "router: forwarding off, IPv6", six: true, want: each("network/FORWARDING_OFF"),
		make: func(c *chain) func() { return c.router.Sysctl("net/ipv6/conf/all/forwarding", "0") }},
	{name: "router: link-local source, IPv6", six: true, want: each("network/LINK_LOCAL_SOURCE"), make: linkLocal},
	{name: "router: route is a blackhole", want: each("network/ROUTE_BLACKHOLE"),
		make: func(c *chain) func() { return c.router.Refuse(c.receiver.IP(false), unix.RTN_BLACKHOLE) }},
	{name: "router: route is a blackhole, IPv6", six: true, want: each("network/ROUTE_BLACKHOLE"),
		make: func(c *chain) func() { return c.router.Refuse(c.receiver.IP(true), unix.RTN_BLACKHOLE) }},
	{name: "router: route is prohibited", want: each("network/ROUTE_PROHIBIT"),
		make: func(c *chain) func() { return c.router.Refuse(c.receiver.IP(false), unix.RTN_PROHIBIT) }},
	{name: "router: route is prohibited, IPv6", six: true, want: each("network/ROUTE_PROHIBIT"),
		make: func(c *chain) func() { return c.router.Refuse(c.receiver.IP(true), unix.RTN_PROHIBIT) }},
	{name: "router: a rule prohibits", want: answers{"network/ROUTE_REFUSED", gap, gap},
		make: func(c *chain) func() { return prohibited(c) }},
	{name: "router: route is unreachable", want: each("network/ROUTE_UNREACHABLE"),
		make: func(c *chain) func() { return c.router.Refuse(c.receiver.IP(false), unix.RTN_UNREACHABLE) }},
	{name: "router: no route", want: each("network/IP_INNOROUTES"),
		make: func(c *chain) func() { return noRoute(c, c.router, toReceiver) }},
	{name: "router: no route, IPv6", six: true, want: each("network/IP_INNOROUTES"),
		make: func(c *chain) func() { return noRoute(c, c.router, toReceiver) }},
	{name: "router: interface down", want: each("network/IP_INNOROUTES"),
		make: func(c *chain) func() { return c.router.Down(toReceiver) }},
	{name: "router: time to live", want: each("network/TTL_EXPIRED"),
		make: timeToLive},
	{name: "router: hop limit, IPv6", six: true, want: each("network/TTL_EXPIRED"),
		make: timeToLive},
	{name: "router: longer than the MTU", flow: unfragmented, want: each("network/PKT_TOO_BIG"),
		facts: `dev\.to-receiver\.mtu=1300 B`,
		make:  func(c *chain) func() { return tooLong(c, 1300) }},
	{name: "router: longer than the MTU, IPv6", six: true, flow: unfragmented, want: each("network/PKT_TOO_BIG"),
		make: func(c *chain) func() { return tooLong(c, 1300) }},
	{name: "router: reverse path", want: each("network/IP_RPFILTER"),
		make: func(c *chain) func() {
			return both(c.router.Sysctl("net/ipv4/conf/all/rp_filter", "1"), from(c.router, prerouting, "10.99.0.1"))
		}},
	{name: "router: martian source", want: answers{"network/(IP_LOCALNET|NOT_SPECIFIED)", gap, gap},
		make: func(c *chain) func() { return from(c.router, prerouting, "127.0.0.1") }},
	{name: "router: IPsec policy", want: answers{"network/XFRM_POLICY", gap, gap},
		make: blockPolicy},
	{name: "router: tbf", want: each("network/QDISC_DROP"),
		facts: `qdisc\.to-receiver\.tbf\.1:\.limit=(3000|29\d\d|30\d\d) B`, // tc rounds
		make:  func(c *chain) func() { return c.router.TBF(toReceiver, netlink.HANDLE_ROOT, 6_250, 3000) }},
	{name: "router: tbf, IPv6", six: true, want: each("network/QDISC_DROP"),
		make: func(c *chain) func() { return c.router.TBF(toReceiver, netlink.HANDLE_ROOT, 6_250, 3000) }},
	{name: "router: longer than the bucket of tbf", flow: unfragmented, want: each("network/TBF_BURST"),
		facts: `qdisc\.to-receiver\.tbf\.1:\.burst=1000 B, packet=1442 B`,
		make:  func(c *chain) func() { return bucket(c.router, toReceiver) }},
	{name: "router: htb and pfifo", want: each("network/QDISC_DROP"),
		facts: `qdisc\.to-receiver\.pfifo\.2:\.limit=20 skb`,
		make:  func(c *chain) func() { return htb(c.router, toReceiver, 6_250, pfifo()) }},
	{name: "router: fq_codel full", needs: queue("fq_codel"), want: each("network/QDISC_(DROP|OVERLIMIT)"),
		facts: `qdisc\.to-receiver\.fq_codel\.2:\.limit=20 skb`,
		make:  func(c *chain) func() { return htb(c.router, toReceiver, 6_250, &netlink.FqCodel{Limit: 20}) }},
	{name: "router: fq_codel late", needs: queue("fq_codel"), want: each("network/QDISC_CONGESTED"),
		facts: `qdisc\.to-receiver\.fq_codel\.2:\.early_drops=\d+ skb`,
		make: func(c *chain) func() {
			return htb(c.router, toReceiver, 62_500, &netlink.FqCodel{Target: 1000, Interval: 1000})
		}},
	{name: "router: cake", needs: queue("cake"), want: each("network/QDISC_(DROP|OVERLIMIT)"),
		facts: `qdisc\.to-receiver\.cake\.2:\.limit=20000 B`,
		make:  func(c *chain) func() { return cake(c.router, toReceiver) }},
	{name: "router: red", needs: queue("red"), want: each("network/QDISC_(DROP|CONGESTED)"),
		make: func(c *chain) func() { return red(c.router, toReceiver) }},
	{name: "router: sfq", needs: queue("sfq"), want: each("network/QDISC_(DROP|OVERLIMIT)"),
		make: func(c *chain) func() { return htb(c.router, toReceiver, 6_250, &netlink.Sfq{Limit: 20}) }},
	{name: "router: netem", needs: queue("netem"), want: each("network/NETEM_LOSS"),
		make: func(c *chain) func() {
			root := netlink.QdiscAttrs{Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
			return c.router.Qdisc(toReceiver, netlink.NewNetem(root, netlink.NetemQdiscAttrs{Loss: 30}))
		}},
	{name: "router: tc egress", want: each("network/TC_EGRESS"),
		make: func(c *chain) func() { return c.router.Shot(toReceiver, netlink.HANDLE_MIN_EGRESS) }},
	{name: "router: neighbour does not answer", want: each("network/" + unanswered),
		make: func(c *chain) func() { return unknown(c, c.router, toReceiver, c.receiver, their) }},
	{name: "router: neighbour does not answer, IPv6", six: true, want: each("network/" + unanswered),
		make: func(c *chain) func() { return unknown(c, c.router, toReceiver, c.receiver, their) }},
	{name: "router: no carrier", want: each("network/NO_CARRIER"),
		make: func(c *chain) func() { return noCarrier(c.router, toReceiver, c.receiver, their) }},
	{name: "router: device without a reader",
		want: answers{"network/FULL_RING", "network/tx-dropped", "network/tx-dropped"},
		make: intoTUN},

	{name: "bridge: port disabled", bridged: true, want: each("network/BRIDGE_INGRESS_STP_STATE"),
		make: func(c *chain) func() { return c.router.PortState(toSender, 0) }},
	{name: "bridge: port isolated", bridged: true, want: each("network/BRIDGE_ISOLATED"),
		make: isolate},
	{name: "bridge: no port leads there", bridged: true, want: answers{floods(), inside, inside}, make: forgotten},
	{name: "bridge: VLAN of no port", bridged: true, needs: vlanFilter,
		want: answers{"network/VLAN_FILTER", inside, inside},
		make: noVLAN},
	{name: "bridge: filter", bridged: true, want: each(filter),
		make: func(c *chain) func() { return bridgeRule(c.router) }},
	{name: "bridge: longer than the port's MTU", bridged: true, flow: unfragmented,
		want: each("network/PKT_TOO_BIG"), // without br_netfilter, which guests lack, nothing counts it
		make: func(c *chain) func() { return c.router.MTU(toReceiver, 1300) }},

	{name: "receiver: wrong link address",
		want: answers{"receiver-ip/OTHERHOST", otherHostCounted(), "receiver-ip/OTHERHOST"},
		make: func(c *chain) func() { return misled(c.router, toReceiver, c.receiver, their) }},
	{name: "receiver: VLAN of none of its interfaces",
		want: answers{"receiver-ip/OTHERHOST", otherHostCounted(), "receiver-ip/OTHERHOST"},
		make: func(c *chain) func() { return c.router.Tagged(toReceiver, 7) }},
	{name: "receiver: unknown protocol", needs: linux(5, 18),
		want: answers{"receiver-ip/UNHANDLED_PROTO", "receiver-ring/rx-dropped", "receiver-ip/UNHANDLED_PROTO"},
		make: unknownProtocol},
	// Counters of a whole host, which others' packets move as well.
	{name: "receiver: wrong link address, others' packets to a port without a socket", needs: linux(6, 1),
		from: func(c *chain) *netbed.Node { return c.receiver },
		want: answers{"receiver-ip/OTHERHOST",
			"unattributed, " + mostly("receiver-ip/OTHERHOST", "receiver-udp/NO_SOCKET"), "receiver-ip/OTHERHOST"},
		make: func(c *chain) func() { return misled(c.router, toReceiver, c.receiver, their) }},
	{name: "receiver: wrong link address, others' packets that the router's filter drops", needs: linux(6, 1),
		from: func(c *chain) *netbed.Node { return c.sender },
		want: answers{"receiver-ip/OTHERHOST",
			"unattributed, " + mostly("network/NETFILTER_DROP", "receiver-ip/OTHERHOST"), "receiver-ip/OTHERHOST"},
		make: func(c *chain) func() {
			return both(misled(c.router, toReceiver, c.receiver, their), othersDropped(c))
		}},
	{name: "receiver: tcx ingress, others' packets that the router's filter drops", needs: linux(6, 6),
		from: func(c *chain) *netbed.Node { return c.sender },
		want: answers{"receiver-tc/TC_INGRESS", "unattributed, possibly network/NETFILTER_DROP",
			"receiver-tc/TC_INGRESS"},
		make: func(c *chain) func() { return both(tcx(c.receiver, their), othersDropped(c)) }},
	{name: "receiver: XDP, generic", want: each("receiver-xdp/XDP"),
		make: func(c *chain) func() { return c.receiver.XDP(their, 1, generic) }},
	{name: "receiver: XDP, in the driver", want: each("receiver-xdp/XDP"),
		flow: func(f *model.Flow) { f.Packets = 200 },
		make: func(c *chain) func() { return c.receiver.XDP(their, 1, native) }},
	{name: "receiver: tc ingress", want: each("receiver-tc/TC_INGRESS"),
		make: func(c *chain) func() { return c.receiver.Shot(their, netlink.HANDLE_MIN_INGRESS) }},
	{name: "receiver: tcx ingress", needs: linux(6, 6),
		want: answers{"receiver-tc/TC_INGRESS", "receiver-tc/between-device-and-ip", "receiver-tc/TC_INGRESS"},
		make: func(c *chain) func() { return tcx(c.receiver, their) }},
	{name: "receiver: VXLAN of another network", needs: device(vxlan(7, netip.Addr{})),
		want: answers{wrongTunnel, "unattributed", wrongTunnel}, make: otherNetwork}, // no counter moves but UDP's
	{name: "receiver: prerouting filter", want: each("receiver-filter/NETFILTER_DROP"),
		make: func(c *chain) func() { return c.receiver.DropFourth(prerouting) }},
	{name: "receiver: input filter", want: each("receiver-filter/NETFILTER_DROP"),
		make: func(c *chain) func() { return c.receiver.DropFourth(input) }},
	{name: "receiver: input filter, segments", want: segments("receiver-filter/NETFILTER_DROP"),
		flow: func(f *model.Flow) { f.Segments, f.PayloadBytes = 10, 100 },
		make: func(c *chain) func() { return c.receiver.DropFourth(input) }},
	{name: "receiver: input filter, IPv6", six: true, want: each("receiver-filter/NETFILTER_DROP"),
		make: func(c *chain) func() { return c.receiver.DropFourth(input) }},
	{name: "receiver: chain policy",
		want: answers{"receiver-filter/NETFILTER_DROP", "receiver-ip/IP_GAP", "receiver-filter/NETFILTER_DROP"},
		make: func(c *chain) func() { return policy(c.receiver, input) }},
	{name: "receiver: reject", want: each("receiver-filter/NETFILTER_DROP"),
		make: func(c *chain) func() { return reject(c.receiver, input) }},
	{name: "receiver: not its address", want: each("receiver-ip/IP_INADDRERRORS"), make: noAddress},
	{name: "receiver: reverse path", want: each("receiver-ip/IP_RPFILTER"),
		make: func(c *chain) func() {
			noRoute(c, c.receiver, their)
			c.receiver.Sysctl("net/ipv4/conf/all/rp_filter", "1")
			from(c.router, forward, "10.99.0.1")
			return nil
		}},
	{name: "receiver: martian source",
		want: answers{martian, "receiver-ip/IP_GAP", martian},
		make: func(c *chain) func() { return from(c.router, forward, "127.0.0.1") }},
	{name: "receiver: no socket on the port", want: each("receiver-udp/NO_SOCKET"),
		make: toPort},
	{name: "receiver: checksum", want: each("receiver-udp/UDP_CSUM"), make: spoil},
	{name: "receiver: checksum, long", want: each("receiver-udp/UDP_CSUM"),
		flow: func(f *model.Flow) { f.PayloadBytes = 300 }, make: spoil},
	{name: "receiver: group of processes", needs: cgroup2, want: memory("receiver-udp/SOCKET_FILTER"), before: grouped,
		make: func(c *chain) func() { return forbidden(c, ebpf.AttachCGroupInetIngress) }},
	{name: "receiver: memory for UDP", needs: guest, stall: true, want: memory("receiver-memory/PROTO_MEM"),
		// each processor may take 1 MiB uncounted
		flow: func(f *model.Flow) { f.Packets, f.ReceiveBuffer = 8000, 64<<20 },
		make: func(c *chain) func() { machine(c, "net/ipv4/udp_mem", "0 0 0"); return nil }},
	{name: "receiver: memory for fragments", flow: fragmented,
		want: answers{"receiver-ip/FRAG_MEMORY", "receiver-ip/FRAG_FAILED", "receiver-ip/FRAG_MEMORY"},
		make: func(c *chain) func() { return noRoomForFragments(c.receiver) }},
	{name: "receiver: socket filter", want: memory("receiver-udp/SOCKET_FILTER"), make: refuseAll},
	{name: "receiver: socket buffer", stall: true, want: each("receiver-buffer/SOCKET_RCVBUFF"),
		flow: func(f *model.Flow) { f.ReceiveBuffer = 4608 }},
	{name: "receiver: socket buffer, IPv6", six: true, stall: true, want: each("receiver-buffer/SOCKET_RCVBUFF"),
		flow: func(f *model.Flow) { f.ReceiveBuffer = 4608 }},
	{name: "receiver: socket buffer, segments", stall: true, want: segments("receiver-buffer/SOCKET_RCVBUFF"),
		flow: func(f *model.Flow) { f.ReceiveBuffer, f.Segments, f.PayloadBytes = 4608, 10, 100 }},
	{name: "receiver: fragments", flow: fragmented, want: each("network/TC_EGRESS"),
		make: func(c *chain) func() { return c.router.FragmentShot(toReceiver) }},
}
