package netbed

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"pelt/internal/checksum"
	"pelt/internal/netns"
	"pelt/internal/testenv"
)

// NFT changes the namespace's rules.
func (n *Node) NFT(change func(c *nftables.Conn)) {
	n.T.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(int(n.File().Fd())))
	if err == nil {
		change(c)
		err = c.Flush()
	}
	testenv.Must(n.T, err)
}

// HookChain adds a chain at a hook, in a table of its own.
func HookChain(c *nftables.Conn, name string, hook *nftables.ChainHook) *nftables.Chain {
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: name})
	return c.AddChain(&nftables.Chain{Name: fmt.Sprint("hook", *hook), Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: hook, Priority: nftables.ChainPriorityRaw})
}

// Rule adds a rule at a hook of the namespace: nft.inet.fault.hookN.M.2.packets to package counters, if it counts. undo
// takes all rules of the hook away.
func (n *Node) Rule(hook *nftables.ChainHook, exprs ...expr.Any) (undo func()) {
	n.T.Helper()
	n.NFT(func(c *nftables.Conn) {
		chain := HookChain(c, "fault", hook)
		c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: exprs})
	})
	return func() { n.NFT(func(c *nftables.Conn) { c.FlushChain(HookChain(c, "fault", hook)) }) }
}

// Of has a rule take packets of one protocol.
func Of(protocol byte, then ...expr.Any) []expr.Any {
	return append([]expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}}}, then...)
}

// OfPort has a rule take packets of one protocol by one of their ports; mask picks bits of it. at is 0 for the source's
// port, 2 for the destination's.
func OfPort(protocol byte, at uint32, mask, port uint16) []expr.Any {
	return Of(protocol, &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: at, Len: 2},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 2, Mask: binaryutil.BigEndian.PutUint16(mask),
			Xor: make([]byte, 2)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)})
}

// DropFourth drops every fourth sequence at a hook, told by its last byte: 8 B of UDP header and 10 B in.
func (n *Node) DropFourth(hook *nftables.ChainHook) (undo func()) {
	n.T.Helper()
	return n.Rule(hook,
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 17, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{3}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0}},
		&expr.Counter{},
		&expr.Verdict{Kind: expr.VerdictDrop})
}

// TBF puts a token bucket at a device's output. At the parent netlink.HANDLE_ROOT its handle is 1:.
func (n *Node) TBF(name string, parent uint32, bytesPerSecond uint64, limit uint32) (undo func()) {
	n.T.Helper()
	handle := netlink.MakeHandle(1, 0)
	if parent != netlink.HANDLE_ROOT {
		handle = netlink.MakeHandle(0x20+uint16(parent), 0)
	}
	return n.Qdisc(name, &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{Handle: handle, Parent: parent},
		// psched ticks are 64 ns
		Rate: bytesPerSecond, Limit: limit, Buffer: 2000 * uint32(1e9/64/bytesPerSecond),
	})
}

// Qdisc adds one to a device.
func (n *Node) Qdisc(name string, q netlink.Qdisc) (undo func()) {
	n.T.Helper()
	q.Attrs().LinkIndex = n.Index(name)
	n.Must(func() error { return netlink.QdiscAdd(q) })
	return func() { n.Must(func() error { return netlink.QdiscDel(q) }) }
}

// Down switches an interface off. undo switches it on, and gives it back what went with it.
func (n *Node) Down(name string) (undo func()) {
	n.T.Helper()
	restore := n.keep(name)
	n.Link(name, netlink.LinkSetDown)
	return func() {
		n.Link(name, netlink.LinkSetUp)
		restore()
	}
}

// MTU sets how long an interface's packets may be. Below 1280 B the kernel takes its IPv6 away; undo gives it back.
func (n *Node) MTU(name string, mtu int) (undo func()) {
	n.T.Helper()
	restore, before := n.keep(name), 0
	n.Link(name, func(l netlink.Link) error {
		before = l.Attrs().MTU
		return netlink.LinkSetMTU(l, mtu)
	})
	return func() {
		n.Link(name, func(l netlink.Link) error { return netlink.LinkSetMTU(l, before) })
		restore()
	}
}

// keep notes the IPv6 addresses, the routes and the neighbours of an interface. restore gives them back.
func (n *Node) keep(name string) (restore func()) {
	n.T.Helper()
	var routes []netlink.Route
	var addresses []netlink.Addr
	var neighbours []netlink.Neigh
	n.Link(name, func(l netlink.Link) (err error) {
		if addresses, err = netlink.AddrList(l, netlink.FAMILY_V6); err == nil {
			routes, err = netlink.RouteList(l, netlink.FAMILY_ALL)
		}
		if err == nil {
			neighbours, err = netlink.NeighList(l.Attrs().Index, netlink.FAMILY_ALL)
		}
		return err
	})
	return func() {
		n.Link(name, func(l netlink.Link) (err error) {
			for _, a := range addresses {
				if a.Scope == unix.RT_SCOPE_UNIVERSE {
					a.Flags |= unix.IFA_F_NODAD
					err = cmp.Or(err, netlink.AddrReplace(l, &a))
				}
			}
			for _, r := range routes {
				if r.Protocol != unix.RTPROT_KERNEL {
					err = cmp.Or(err, netlink.RouteReplace(&r))
				}
			}
			for _, a := range neighbours {
				if a.State == unix.NUD_PERMANENT {
					err = cmp.Or(err, netlink.NeighSet(&a))
				}
			}
			return err
		})
		n.settle(name)
	}
}

// Refuse adds a route to an address that takes no packets: kind is unix.RTN_BLACKHOLE, _PROHIBIT, _UNREACHABLE or
// _THROW.
func (n *Node) Refuse(to netip.Addr, kind int) (undo func()) {
	n.T.Helper()
	r := &netlink.Route{Dst: ipNet(netip.PrefixFrom(to, to.BitLen())), Type: kind}
	n.Must(func() error { return netlink.RouteAdd(r) })
	return func() { n.Must(func() error { return netlink.RouteDel(r) }) }
}

// Translate makes a rule for what leaves the node, behind its routes, in place of the one before. undo takes it away.
func (n *Node) Translate(exprs ...expr.Any) (undo func()) {
	n.T.Helper()
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: "nat"}
	n.NFT(func(c *nftables.Conn) {
		chain := c.AddChain(&nftables.Chain{Name: "post", Table: c.AddTable(table), Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
		c.FlushChain(chain)
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
	})
	return func() { n.NFT(func(c *nftables.Conn) { c.DelTable(table) }) }
}

// Masquerade hides what leaves by an interface behind the node's address there.
func (n *Node) Masquerade(name string) (undo func()) {
	n.T.Helper()
	return n.Translate(&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: append([]byte(name), 0)}, &expr.Masq{})
}

// ToSource translates a source to an IPv4 address and a port.
func ToSource(a netip.AddrPort) []expr.Any { return ToSources(a, a.Port()) }

// ToSources translates a source to an IPv4 address and one of several ports, from that of least to most.
func ToSources(least netip.AddrPort, most uint16) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: least.Addr().AsSlice()},
		&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(least.Port())},
		&expr.Immediate{Register: 3, Data: binaryutil.BigEndian.PutUint16(most)},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegAddrMax: 1,
			RegProtoMin: 2, RegProtoMax: 3,
			Specified: true},
	}
}

// ForgetConnections removes the node's connections over IPv4, each of them once. The kernel's own way to empty the
// table may also remove one that has come anew meanwhile.
func (n *Node) ForgetConnections() {
	n.T.Helper()
	n.Must(func() error {
		_, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.FAMILY_V4, anyConnection{})
		return err
	})
}

type anyConnection struct{}

func (anyConnection) MatchConntrackFlow(*netlink.ConntrackFlow) bool { return true }

// AwaitSent waits until no packet is left in the queue of a device's output.
func (n *Node) AwaitSent(name string) {
	n.T.Helper()
	testenv.Await(n.T, "the queue of "+name, func() (empty bool) {
		n.Link(name, func(l netlink.Link) error {
			queues, err := netlink.QdiscList(l)
			empty = !slices.ContainsFunc(queues, func(q netlink.Qdisc) bool {
				s := q.Attrs().Statistics
				return s != nil && s.Queue != nil && s.Queue.Qlen > 0
			})
			return err
		})
		return empty
	})
}

// Program is a BPF program that returns one value.
func Program(t testing.TB, kind ebpf.ProgramType, value int32) *ebpf.Program {
	t.Helper()
	return load(t, kind, asm.Instructions{asm.Mov.Imm(asm.R0, value), asm.Return()})
}

func load(t testing.TB, kind ebpf.ProgramType, code asm.Instructions) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: kind, License: "GPL", Instructions: code})
	testenv.Must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// Shot drops all at one end of a device: parent is netlink.HANDLE_MIN_INGRESS or _EGRESS.
func (n *Node) Shot(name string, parent uint32) (undo func()) {
	n.T.Helper()
	return n.filter(name, parent, Program(n.T, ebpf.SchedCLS, 2)) // TC_ACT_SHOT
}

// Tagged puts all that leaves a device into a VLAN.
func (n *Node) Tagged(name string, vlan int32) (undo func()) {
	n.T.Helper()
	return n.filter(name, netlink.HANDLE_MIN_EGRESS, load(n.T, ebpf.SchedCLS, asm.Instructions{
		asm.Mov.Imm(asm.R2, 0), // 802.1Q
		asm.Mov.Imm(asm.R3, vlan),
		asm.FnSkbVlanPush.Call(),
		asm.Mov.Imm(asm.R0, 0), // TC_ACT_OK
		asm.Return(),
	}))
}

// FragmentShot drops the second fragment of every second IPv4 datagram on its way out of a device.
func (n *Node) FragmentShot(name string) (undo func()) {
	n.T.Helper()
	return n.filter(name, netlink.HANDLE_MIN_EGRESS, load(n.T, ebpf.SchedCLS, asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadAbs(14+6, asm.Half), // flags and offset
		asm.And.Imm(asm.R0, 0x1fff),
		asm.JNE.Imm(asm.R0, 1480/8, "pass"),
		asm.LoadAbs(14+5, asm.Byte), // identification
		asm.And.Imm(asm.R0, 1),
		asm.JNE.Imm(asm.R0, 0, "pass"),
		asm.Mov.Imm(asm.R0, 2), // TC_ACT_SHOT
		asm.Return(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("pass"),
		asm.Return(),
	}))
}

func (n *Node) filter(name string, parent uint32, p *ebpf.Program) (undo func()) {
	n.T.Helper()
	undo = n.Qdisc(name, &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{Handle: netlink.MakeHandle(0xffff, 0),
		Parent: netlink.HANDLE_CLSACT}})
	n.Link(name, func(l netlink.Link) error {
		return netlink.FilterAdd(&netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: l.Attrs().Index,
			Parent: parent, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1}, Fd: p.FD(), Name: "shot", DirectAction: true})
	})
	return undo
}

// XDP attaches a program that returns one value.
func (n *Node) XDP(name string, value int32, flags int) (undo func()) {
	n.T.Helper()
	set := func(fd int) {
		n.Link(name, func(l netlink.Link) error { return netlink.LinkSetXdpFdWithFlags(l, fd, flags) })
	}
	set(Program(n.T, ebpf.XDP, value).FD())
	return func() { set(-1) }
}

// PortState sets the STP state of a bridge's port; 0 is disabled. undo has it forward.
func (n *Node) PortState(name string, state byte) (undo func()) {
	n.T.Helper()
	n.Link(name, func(l netlink.Link) error {
		req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
		m := nl.NewIfInfomsg(unix.AF_BRIDGE)
		m.Index = int32(l.Attrs().Index)
		req.AddData(m)
		port := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
		port.AddRtAttr(nl.IFLA_BRPORT_STATE, []byte{state})
		req.AddData(port)
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
	return func() { n.PortState(name, 3) }
}

// Setting sets one of a device in /sys.
func (n *Node) Setting(device, name, value string) {
	n.T.Helper()
	testenv.Must(n.T, n.SetAttribute(device, name, value))
}

// SendRaw sends whole IPv4 packets.
func (n *Node) SendRaw(packets ...[]byte) {
	n.T.Helper()
	n.Must(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, p := range packets {
			if err := unix.Sendto(fd, p, 0, Sockaddr(netip.AddrPortFrom(Address(false, 2), 0))); err != nil {
				return err
			}
		}
		return nil
	})
}

// Datagram is an IPv4 packet from .1 to .2 with a UDP datagram; the kernel fills
// in lengths, identification and checksum of its IP header.
func Datagram(from, to, flags uint16, payload []byte) []byte {
	p := make([]byte, 28+len(payload))
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(p[6:], flags)
	copy(p[12:], []byte{10, 77, 0, 1})
	copy(p[16:], []byte{10, 77, 0, 2})
	binary.BigEndian.PutUint16(p[20:], from)
	binary.BigEndian.PutUint16(p[22:], to)
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(payload)))
	copy(p[28:], payload)
	return p
}

// Spoilt gives such a packet a wrong checksum (RFC 768). A fixed one
// would be right for one in 65536.
func Spoilt(packet []byte) []byte {
	sum := unix.IPPROTO_UDP + uint32(len(packet)-20) + checksum.Words(packet[12:]) // the addresses, and all behind them
	wrong := ^checksum.Fold(sum) ^ 0x0101
	if wrong == 0 { // says that there is none
		wrong = 0x0202
	}
	binary.BigEndian.PutUint16(packet[26:], wrong)
	return packet
}

// Pinned runs f, which is short, on a thread of one processor that waits for no usual thread.
func Pinned(cpu int, f func()) {
	netns.OnOwnThread(func() {
		var set unix.CPUSet
		set.Set(cpu)
		_ = unix.SchedSetaffinity(0, &set)
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
		f()
	})
}

// TUN makes a device tun0 that nobody reads.
func (n *Node) TUN(queue int) {
	n.T.Helper()
	n.Sysctl("net/ipv6/conf/default/disable_ipv6", "1") // which would queue packets of its own
	n.Must(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		n.T.Cleanup(func() { _ = unix.Close(fd) })
		r, err := unix.NewIfreq("tun0")
		if err != nil {
			return err
		}
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	})
	n.Link("tun0", func(l netlink.Link) error { return netlink.LinkSetTxQLen(l, queue) })
}
