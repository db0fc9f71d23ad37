package faults

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
)

// Hooks of the packet filter.
var (
	prerouting, input, forward  = nftables.ChainHookPrerouting, nftables.ChainHookInput, nftables.ChainHookForward
	output, postrouting         = nftables.ChainHookOutput, nftables.ChainHookPostrouting
	toSender, toReceiver, their = "to-sender", "to-receiver", "eth0" // interfaces of the router, and of the ends
)

// ofUDP has a rule take UDP only.
func ofUDP(then ...expr.Any) []expr.Any { return netbed.Of(unix.IPPROTO_UDP, then...) }

// write changes bytes of each UDP packet at a hook, with the checksums that cover them.
func write(n *netbed.Node, hook *nftables.ChainHook, base expr.PayloadBase, at uint32, value ...byte) (undo func()) {
	p := &expr.Payload{OperationType: expr.PayloadWrite, SourceRegister: 1, Base: base, Offset: at,
		Len: uint32(len(value))}
	if base == expr.PayloadBaseNetworkHeader && at < 20 {
		p.CsumType, p.CsumOffset = expr.CsumTypeInet, 10
		if at >= 12 {
			p.CsumFlags = unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR
		}
	}
	return n.Rule(hook, ofUDP(&expr.Immediate{Register: 1, Data: value}, p)...)
}

// timeToLive has packets come to the router with a last hop.
func timeToLive(c *chain) (undo func()) {
	return write(c.router, prerouting, expr.PayloadBaseNetworkHeader, map[bool]uint32{false: 8, true: 7}[c.six], 1)
}

// from has packets leave a node's hook with another IPv4 source.
func from(n *netbed.Node, hook *nftables.ChainHook, source string) (undo func()) {
	a := netip.MustParseAddr(source).As4()
	return write(n, hook, expr.PayloadBaseNetworkHeader, 12, a[:]...)
}

// linkLocal has IPv6 packets come to the router from an address that is valid on their link only.
func linkLocal(c *chain) (undo func()) {
	a := netip.MustParseAddr("fe80::9").As16()
	return write(c.router, prerouting, expr.PayloadBaseNetworkHeader, 8, a[:]...)
}

// toPort has the router send packets to another port.
func toPort(c *chain) (undo func()) {
	return write(c.router, prerouting, expr.PayloadBaseTransportHeader, 2, binary.BigEndian.AppendUint16(nil, 9)...)
}

// others is how many packets that are none of the test's others send.
const others = 1500

// discard is a port where nobody listens.
const discard = 9

// toNobody has others send packets to it.
func toNobody(from, to *netbed.Node) {
	from.Must(func() error {
		conn, err := net.ListenPacket("udp4", ":0")
		if err != nil {
			return err
		}
		defer conn.Close()
		at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.IP(false), discard))
		for range others {
			_, sent := conn.WriteTo(make([]byte, 64), at)
			err = cmp.Or(err, sent)
		}
		return err
	})
}

// othersDropped has the router's filter drop those.
func othersDropped(c *chain) (undo func()) {
	port := binary.BigEndian.AppendUint16(nil, discard)
	return c.router.Rule(forward, ofUDP(&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2,
		Len: 2}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: port}, &expr.Counter{},
		&expr.Verdict{Kind: expr.VerdictDrop})...)
}

// prohibited has a rule of the router's routes refuse what comes from the sender.
func prohibited(c *chain) (undo func()) {
	rule := netlink.NewRule()
	rule.Family, rule.Priority, rule.Type = netlink.FAMILY_V4, 10, unix.FR_ACT_PROHIBIT
	rule.IifName = toSender
	c.router.Must(func() error { return netlink.RuleAdd(rule) })
	return func() { c.router.Must(func() error { return netlink.RuleDel(rule) }) }
}

// policy has a chain without rules drop all.
func policy(n *netbed.Node, hook *nftables.ChainHook) (undo func()) {
	set := func(p nftables.ChainPolicy) {
		n.NFT(func(c *nftables.Conn) {
			chain := netbed.HookChain(c, "closed", hook)
			chain.Policy = &p
			c.AddChain(chain)
		})
	}
	set(nftables.ChainPolicyDrop)
	return func() { set(nftables.ChainPolicyAccept) }
}

// both undoes two faults.
func both(a, b func()) (undo func()) {
	return func() {
		a()
		b()
	}
}

// tooLong has an interface of the router take short packets only, and none of the ICMP that says so. The ends may have
// heard some.
func tooLong(c *chain, mtu int) (undo func()) {
	policy(c.router, output)
	c.router.MTU(toReceiver, mtu)
	return nil
}

// reject refuses all UDP at a hook with an ICMP message.
func reject(n *netbed.Node, hook *nftables.ChainHook) (undo func()) {
	return n.Rule(hook, ofUDP(&expr.Counter{},
		&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED})...)
}

// police lets ten packets a second pass.
func police(n *netbed.Node, hook *nftables.ChainHook) (undo func()) {
	over := &expr.Limit{Type: expr.LimitTypePkts, Rate: 10, Unit: expr.LimitTimeSecond, Burst: 5, Over: true}
	return n.Rule(hook, ofUDP(over, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})...)
}

// bridgeRule drops all UDP that a bridge forwards.
func bridgeRule(n *netbed.Node) (undo func()) {
	n.NFT(func(c *nftables.Conn) {
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: "fault"})
		chain := c.AddChain(&nftables.Chain{Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: forward, Priority: nftables.ChainPriorityFilter})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain,
			Exprs: ofUDP(&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})})
	})
	return nil
}

// onePort translates the source of all UDP that the router forwards to one port.
func onePort(c *chain) (undo func()) {
	c.router.Translate(ofUDP(netbed.ToSource(netip.MustParseAddrPort("10.77.1.1:5000"))...)...)
	// Somebody else has it.
	other := c.sender.Open(false, netbed.Connected(netip.AddrPortFrom(c.receiver.IP(false), c.port)))
	if _, err := unix.Write(other.FD, []byte{0}); err != nil {
		c.Fatal(err)
	}
	return nil
}

// noRoute takes the routes that lead out of an interface away.
func noRoute(c *chain, n *netbed.Node, name string) (undo func()) {
	n.Link(name, func(l netlink.Link) error {
		routes, err := netlink.RouteList(l, map[bool]int{false: netlink.FAMILY_V4, true: netlink.FAMILY_V6}[c.six])
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Type == unix.RTN_UNICAST && (r.Dst == nil || !r.Dst.IP.IsLinkLocalUnicast()) {
				if err := netlink.RouteDel(&r); err != nil {
					return fmt.Errorf("route %v: %w", r, err)
				}
			}
		}
		return nil
	})
	return nil
}

// unknown has a neighbour that nobody answers for.
func unknown(c *chain, n *netbed.Node, name string, beyond *netbed.Node, there string) (undo func()) {
	family := map[bool]string{false: "ipv4", true: "ipv6"}[c.six]
	for key, value := range map[string]string{"mcast_solicit": "1", "retrans_time_ms": "100",
		"unres_qlen_bytes": "2000"} {
		n.Sysctl("net/"+family+"/neigh/"+name+"/"+key, value)
	}
	beyond.Link(there, netlink.LinkSetARPOff)
	n.Link(name, func(l netlink.Link) error {
		all, err := netlink.NeighList(l.Attrs().Index,
			map[bool]int{false: netlink.FAMILY_V4, true: netlink.FAMILY_V6}[c.six])
		if err != nil {
			return err
		}
		for _, a := range all {
			if a.State == unix.NUD_PERMANENT {
				if err := netlink.NeighDel(&a); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return nil
}

// misled has a node send to a link address that nobody has.
func misled(n *netbed.Node, name string, beyond *netbed.Node, there string) (undo func()) {
	n.Neighbour(name, beyond.IP(false), net.HardwareAddr{2, 0, 0, 0, 0, 9})
	return func() { n.Neighbour(name, beyond.IP(false), beyond.Hardware(there)) }
}

// noCarrier switches the far end of a cable off, and waits until the near end has noticed.
func noCarrier(n *netbed.Node, name string, beyond *netbed.Node, there string) (undo func()) {
	beyond.Link(there, netlink.LinkSetDown)
	n.AwaitCarrier(name, false) // and the queue to be replaced
	return nil
}

// noAddress gives the receiver another address.
func noAddress(c *chain) (undo func()) {
	c.receiver.Sysctl("net/ipv4/ip_forward", "0")
	c.receiver.Link(their, func(l netlink.Link) error {
		list, err := netlink.AddrList(l, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, a := range list {
			if err := netlink.AddrDel(l, &a); err != nil {
				return err
			}
		}
		return nil
	})
	c.receiver.Give(their, netip.MustParsePrefix("10.77.1.3/24"))
	return nil
}

// tcx drops all that comes in at a device, by the newer kind of tc program.
func tcx(n *netbed.Node, name string) (undo func()) {
	program := netbed.Program(n.T, ebpf.SchedCLS, 2) // TC_ACT_SHOT
	var attached link.Link
	n.Link(name, func(l netlink.Link) (err error) {
		attached, err = link.AttachTCX(link.TCXOptions{Interface: l.Attrs().Index, Program: program,
			Attach: ebpf.AttachTCXIngress})
		return err
	})
	return func() { _ = attached.Close() }
}

// sockets calls f for the receiver's sockets on the flow's port.
func (c *chain) sockets(f func(fd int) error) {
	found := false
	for fd := range 4096 {
		name, err := unix.Getsockname(fd)
		if err != nil {
			continue
		}
		port := 0
		switch a := name.(type) {
		case *unix.SockaddrInet4:
			port = a.Port
		case *unix.SockaddrInet6:
			port = a.Port
		}
		if port == int(c.port) {
			testenv.Must(c, f(fd))
			found = true
		}
	}
	if !found {
		c.Fatalf("no socket is on port %d", c.port)
	}
}

// refuseAll has the receiver's sockets take no byte of any packet.
func refuseAll(c *chain) (undo func()) {
	c.sockets(func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}})
	})
	return func() {} // they are closed
}

// spoil has the sender make checksums itself, and the router make them wrong.
func spoil(c *chain) (undo func()) {
	offload := func(on bool) {
		c.sender.Must(func() error {
			e, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer e.Close()
			return e.Change(their, map[string]bool{"tx-checksum-ip-generic": on})
		})
	}
	offload(false)
	const payload = 24 // behind UDP's header and the test packet's
	return both(func() { offload(true) },
		write(c.router, prerouting, expr.PayloadBaseTransportHeader, payload, 0xaa, 0xbb, 0xcc, 0xdd))
}

// bucket holds no more than 1000 B.
func bucket(n *netbed.Node, name string) (undo func()) {
	return n.Qdisc(name, &netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{Handle: netlink.MakeHandle(1, 0),
		Parent: netlink.HANDLE_ROOT}, Rate: 125_000, Limit: 30_000, Buffer: 125_000}) // of 64 ns each
}

// policed lets 10 kB a second come in at a device.
func policed(n *netbed.Node, name string) (undo func()) {
	police := netlink.NewPoliceAction()
	police.Rate, police.Burst, police.Mtu = 10_000, 1000, 2000
	police.ExceedAction = netlink.TC_POLICE_SHOT
	return atInput(n, name, police)
}

// atInput has an action meet all that comes in at a device.
func atInput(n *netbed.Node, name string, action netlink.Action) (undo func()) {
	undo = n.Qdisc(name, &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{Handle: netlink.MakeHandle(0xffff, 0),
		Parent: netlink.HANDLE_CLSACT}})
	n.Link(name, func(l netlink.Link) error {
		return netlink.FilterAdd(&netlink.U32{Actions: []netlink.Action{action},
			FilterAttrs: netlink.FilterAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1,
				Protocol: unix.ETH_P_ALL}})
	})
	return undo
}

// changing has a queue come and go at a device, again and again. Each time the kernel takes the device out of use for a
// moment: net/sched/sch_api.c, qdisc_graft.
func changing(n *netbed.Node, name string) (undo func()) {
	begun, stop, changes := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	index := n.Index(name)
	go func() {
		changes <- n.Do(func() error {
			close(begun)
			for {
				q := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index,
					Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
				if err := cmp.Or(netlink.QdiscAdd(q), netlink.QdiscDel(q)); err != nil {
					return err
				}
				select {
				case <-stop:
					return nil
				default:
				}
			}
		})
	}()
	<-begun
	return func() {
		close(stop)
		if err := <-changes; err != nil {
			n.T.Error(err)
		}
	}
}

func ifb() netlink.Link { return &netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: "ifb0"}} }

// shapedInput has what comes in at a device pass a short queue first.
func shapedInput(n *netbed.Node, name string) (undo func()) {
	n.Must(func() error { return netlink.LinkAdd(ifb()) })
	n.Link("ifb0", netlink.LinkSetUp)
	n.TBF("ifb0", netlink.HANDLE_ROOT, 6_250, 3000)
	atInput(n, name, netlink.NewMirredAction(n.Index("ifb0")))
	return nil
}

// aside sends what comes in at a device to another one, which is down.
func aside(n *netbed.Node, name string) (undo func()) {
	n.Must(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "aside"}, PeerName: "far"})
	})
	return atInput(n, name, netlink.NewMirredAction(n.Index("aside")))
}

// htb gives all that leaves an interface little, in a queue of a kind. With options it is rare among libraries.
func htb(n *netbed.Node, name string, bytesPerSecond uint64, leaf netlink.Qdisc, options ...*nl.RtAttr) (undo func()) {
	n.Qdisc(name, func() netlink.Qdisc {
		q := netlink.NewHtb(netlink.QdiscAttrs{Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT})
		q.Defcls = 1
		return q
	}())
	n.Link(name, func(l netlink.Link) error {
		class := netlink.ClassAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 1),
			Parent: netlink.MakeHandle(1, 0)}
		rate := netlink.HtbClassAttrs{Rate: 8 * bytesPerSecond, Buffer: 2000}
		return cmp.Or(netlink.ClassAdd(netlink.NewHtbClass(class, rate)), netlink.LinkSetTxQLen(l, 20))
	})
	*leaf.Attrs() = netlink.QdiscAttrs{Handle: netlink.MakeHandle(2, 0), Parent: netlink.MakeHandle(1, 1)}
	if len(options) == 0 {
		n.Qdisc(name, leaf)
		return nil
	}
	n.Link(name, func(l netlink.Link) error {
		req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
		req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(l.Attrs().Index), Handle: leaf.Attrs().Handle,
			Parent: leaf.Attrs().Parent})
		req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(leaf.Type())))
		all := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
		for _, o := range options {
			all.AddChild(o)
		}
		req.AddData(all)
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
	return nil
}

func pfifo() netlink.Qdisc { return &netlink.GenericQdisc{QdiscType: "pfifo"} }

// red drops at random from half of a queue of 3000 B on.
func red(n *netbed.Node, name string) (undo func()) {
	parameters := binary.NativeEndian.AppendUint32(nil, 3000)
	parameters = binary.NativeEndian.AppendUint32(parameters, 1000)
	parameters = binary.NativeEndian.AppendUint32(parameters, 2000)
	parameters = append(parameters, 1, 1, 0, 0) // logarithms of weight, of probability and of the idle time's cells
	const parms, stab = 1, 2                    // TCA_RED_...
	return htb(n, name, 6_250, &netlink.GenericQdisc{QdiscType: "red"},
		nl.NewRtAttr(parms, parameters), nl.NewRtAttr(stab, make([]byte, 256)))
}

// cake has room for a few packets only.
func cake(n *netbed.Node, name string) (undo func()) {
	const memory = 10 // TCA_CAKE_...
	return htb(n, name, 6_250, &netlink.GenericQdisc{QdiscType: "cake"},
		nl.NewRtAttr(memory, binary.NativeEndian.AppendUint32(nil, 20_000)))
}

// isolate keeps a bridge's two ports from each other.
func isolate(c *chain) (undo func()) {
	for _, name := range []string{toSender, toReceiver} {
		c.router.Link(name, func(l netlink.Link) error { return netlink.LinkSetIsolated(l, true) })
	}
	return nil
}

// forgotten has a bridge learn nothing and flood nothing: no port leads to the receiver.
func forgotten(c *chain) (undo func()) {
	c.router.Link(toReceiver, func(l netlink.Link) error {
		if err := netlink.LinkSetLearning(l, false); err != nil {
			return err
		}
		return netlink.LinkSetFlood(l, false)
	})
	hardware := c.receiver.Hardware(their)
	c.router.Link(toReceiver, func(l netlink.Link) error {
		return netlink.NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, Family: unix.AF_BRIDGE,
			Flags:        netlink.NTF_MASTER,
			HardwareAddr: hardware})
	})
	return nil
}

// blockPolicy has IPsec's policy refuse what the router forwards.
func blockPolicy(c *chain) (undo func()) {
	all := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	p := &netlink.XfrmPolicy{Src: all, Dst: all, Dir: netlink.XFRM_DIR_FWD, Action: netlink.XFRM_POLICY_BLOCK}
	c.router.Must(func() error { return netlink.XfrmPolicyAdd(p) })
	return func() { c.router.Must(func() error { return netlink.XfrmPolicyDel(p) }) }
}

// into has a node send what is for the receiver into another device.
func into(c *chain, n *netbed.Node, device netlink.Link) (undo func()) {
	n.Must(func() error { return netlink.LinkAdd(device) })
	routeInto(c, n, device.Attrs().Name)
	if len(n.Hardware(device.Attrs().Name)) > 0 {
		n.Neighbour(device.Attrs().Name, c.receiver.IP(false), net.HardwareAddr{2, 0, 0, 0, 0, 9})
	}
	return func() { n.Must(func() error { return netlink.LinkDel(device) }) }
}

// routeInto switches a device on and has a node send into it what is for the receiver.
func routeInto(c *chain, n *netbed.Node, name string) {
	n.Link(name, func(l netlink.Link) error {
		to := &net.IPNet{IP: c.receiver.IP(false).AsSlice(), Mask: net.CIDRMask(32, 32)}
		route := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: to, Scope: netlink.SCOPE_LINK}
		return cmp.Or(netlink.LinkSetUp(l), netlink.RouteAdd(route))
	})
}

// unknownProtocol has the router send frames with a type for experiments (IEEE 802).
func unknownProtocol(c *chain) (undo func()) {
	c.router.NFT(func(n *nftables.Conn) {
		table := n.AddTable(&nftables.Table{Family: nftables.TableFamilyNetdev, Name: "fault"})
		chain := n.AddChain(&nftables.Chain{Name: "egress", Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookEgress, Priority: nftables.ChainPriorityFilter, Device: toReceiver})
		n.AddRule(&nftables.Rule{Table: table, Chain: chain,
			Exprs: ofUDP(&expr.Immediate{Register: 1, Data: []byte{0x88, 0xb5}},
				&expr.Payload{OperationType: expr.PayloadWrite, SourceRegister: 1, Base: expr.PayloadBaseLLHeader,
					Offset: 12, Len: 2})})
	})
	return nil
}

func wireguard() netlink.Link {
	return &netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: "wg0"}}
}

func bond() netlink.Link {
	b := netlink.NewLinkBond(netlink.LinkAttrs{Name: "bond9"})
	b.Mode = netlink.BOND_MODE_ACTIVE_BACKUP
	return b
}

func vxlan(network int, to netip.Addr) netlink.Link {
	return &netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "vx0"}, VxlanId: network, Group: to.AsSlice(), Port: 4789}
}

// otherNetwork has the receiver know another VXLAN than the router's.
func otherNetwork(c *chain) (undo func()) {
	underlay := netip.MustParseAddr("10.77.1.9")
	c.receiver.Give(their, netip.PrefixFrom(underlay, 24))
	c.router.Neighbour(toReceiver, underlay, c.receiver.Hardware(their))
	c.receiver.Must(func() error { return netlink.LinkAdd(vxlan(8, c.router.IP(false))) })
	c.receiver.Link("vx0", netlink.LinkSetUp)
	into(c, c.router, vxlan(7, underlay))
	return nil
}

// queued hands all UDP to a program that does not run.
func queued(n *netbed.Node, hook *nftables.ChainHook) (undo func()) {
	return n.Rule(hook, ofUDP(&expr.Counter{}, &expr.Queue{Num: 5})...)
}

// track has a node know the connections of what passes a hook.
func track(n *netbed.Node, hook *nftables.ChainHook) (undo func()) {
	return n.Rule(hook, &expr.Ct{Register: 1, Key: expr.CtKeySTATE}, &expr.Counter{})
}

// tracked has a node know the connections of what passes a hook, and the machine know no more than one of a namespace.
func tracked(c *chain, n *netbed.Node, hook *nftables.ChainHook) (undo func()) {
	track(n, hook)
	other := c.sender.Open(false, netbed.Connected(netip.AddrPortFrom(c.receiver.IP(false), c.port)))
	if _, err := unix.Write(other.FD, []byte{0}); err != nil {
		c.Fatal(err)
	}
	machine(c, "net/netfilter/nf_conntrack_max", "1")
	return nil
}

// crowd has the router know as many connections as its machine's table of the fewest buckets takes.
func crowd(c *chain) {
	machine(c, "net/netfilter/nf_conntrack_buckets", "1") // the kernel makes it a page of them
	machine(c, "net/netfilter/nf_conntrack_max", "1000000")
	c.router.Sysctl("net/netfilter/nf_conntrack_udp_timeout", "600")
	undo := track(c.router, output)
	c.router.Must(func() error {
		return netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "nowhere"}})
	})
	c.router.Give("nowhere", netip.MustParsePrefix("192.0.2.1/24"))
	c.router.Must(func() error {
		for range 2 {
			conn, err := net.ListenPacket("udp4", ":0")
			if err != nil {
				return err
			}
			for port := range 50_000 { // near the end the table takes one in thirty
				_, _ = conn.WriteTo([]byte{0}, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: port + 1})
			}
			conn.Close()
		}
		return nil
	})
	undo()
}

// machine sets what all namespaces share, for the time of a row.
func machine(c *chain, name, value string) {
	path := "/proc/sys/" + name
	before, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(value), 0)
	}
	testenv.Must(c, err)
	c.Cleanup(func() {
		if err := os.WriteFile(path, bytes.TrimSpace(before), 0); err != nil {
			c.Error(err)
		}
	})
}

// noVLAN takes the router's port out of the network of frames without a tag.
func noVLAN(c *chain) (undo func()) {
	c.router.Setting("switch", "bridge/vlan_filtering", "1")
	c.router.Link(toSender, func(l netlink.Link) error { return netlink.BridgeVlanDel(l, 1, true, true, false, true) })
	return nil
}

// noRoomForFragments has a node wait for no fragment.
func noRoomForFragments(n *netbed.Node) (undo func()) {
	low := n.Sysctl("net/ipv4/ipfrag_low_thresh", "0")
	return both(n.Sysctl("net/ipv4/ipfrag_high_thresh", "0"), low)
}

// groups is where the groups of processes are mounted.
func groups() (path string) {
	mounts, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); words[2] == "cgroup2" {
			return words[1]
		}
	}
	return ""
}

// grouped puts the process into a group of its own, whose sockets are those of the row.
func grouped(c *chain) {
	at := groups()
	own, err := os.MkdirTemp(at, "pelt-faults-")
	testenv.Must(c, err)
	c.group = own
	lines, err := os.ReadFile("/proc/self/cgroup")
	testenv.Must(c, err)
	_, before, _ := strings.Cut("\n"+string(lines), "\n0::")
	before, _, _ = strings.Cut(before, "\n")
	enter := func(group string) {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0); err != nil {
			c.Error(err)
		}
	}
	enter(own)
	c.Cleanup(func() {
		enter(filepath.Join(at, before))
		if err := os.Remove(own); err != nil {
			c.Error(err)
		}
	})
}

// forbidden has a program refuse what the process's group sends, or gets.
func forbidden(c *chain, what ebpf.AttachType) (undo func()) {
	l, err := link.AttachCgroup(link.CgroupOptions{Path: c.group, Attach: what,
		Program: netbed.Program(c.TB, ebpf.CGroupSKB, 0)})
	testenv.Must(c, err)
	return func() { _ = l.Close() }
}

// intoTUN has the router send packets into a device that nobody reads.
func intoTUN(c *chain) (undo func()) {
	c.router.TUN(20)
	routeInto(c, c.router, "tun0")
	return nil
}

// How an XDP program is attached.
const (
	generic = nl.XDP_FLAGS_SKB_MODE
	native  = nl.XDP_FLAGS_DRV_MODE
)
