//go:build amd64 || arm64

package drops

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"pelt/internal/netns"
)

// rule adds a rule at a hook of the namespace, in a table of its own.
func (b *bed) rule(h *netns.Handle, hook *nftables.ChainHook, exprs ...expr.Any) {
	b.t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(int(h.File().Fd())))
	if err != nil {
		b.t.Fatal(err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "fault"})
	chain := c.AddChain(&nftables.Chain{Name: fmt.Sprint("hook", *hook), Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook,
		Priority: nftables.ChainPriorityRaw})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
	if err := c.Flush(); err != nil {
		b.t.Fatal(err)
	}
}

// fourth matches every fourth sequence by its last byte: 8 B of UDP header and 10 B in.
var fourth = []expr.Any{
	&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 17, Len: 1},
	&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{3}, Xor: []byte{0}},
	&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0}},
	&expr.Verdict{Kind: expr.VerdictDrop},
}

func (b *bed) dropFourth(h *netns.Handle, hook *nftables.ChainHook) {
	b.t.Helper()
	b.rule(h, hook, fourth...)
}

// slow makes each packet at the hook pass n rules.
func (b *bed) slow(h *netns.Handle, hook *nftables.ChainHook, n int) {
	b.t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(int(h.File().Fd())))
	if err != nil {
		b.t.Fatal(err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "slow"})
	chain := c.AddChain(&nftables.Chain{Name: "slow", Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityRaw})
	for i := range n {
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.BigEndian.PutUint16(1)},
			&expr.Counter{},
		}})
		if i%50 == 49 {
			if err := c.Flush(); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	if err := c.Flush(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) link(h *netns.Handle, name string, f func(netlink.Link) error) {
	b.t.Helper()
	b.do(h, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return f(l)
	})
}

func (b *bed) tbf(h *netns.Handle, name string, bytesPerSecond uint64, limit uint32) {
	b.t.Helper()
	b.link(h, name, func(l netlink.Link) error {
		return netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       bytesPerSecond, Limit: limit, Buffer: 2000 * uint32(1e9/64/bytesPerSecond), // psched ticks are 64 ns
		})
	})
}

// program is a BPF program that returns one value.
func program(t testing.TB, kind ebpf.ProgramType, value int32) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: kind, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, value), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// shot drops all at one end of a device: parent is netlink.HANDLE_MIN_INGRESS or _EGRESS.
func (b *bed) shot(h *netns.Handle, name string, parent uint32) {
	b.t.Helper()
	b.filter(h, name, parent, program(b.t, ebpf.SchedCLS, 2)) // TC_ACT_SHOT
}

// fragmentShot drops the second fragment of every second IPv4 datagram at the
// sender's device.
func (b *bed) fragmentShot() {
	b.t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
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
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = p.Close() })
	b.filter(b.sender, "va", netlink.HANDLE_MIN_EGRESS, p)
}

func (b *bed) filter(h *netns.Handle, name string, parent uint32, p *ebpf.Program) {
	b.t.Helper()
	b.link(h, name, func(l netlink.Link) error {
		q := &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
		if err := netlink.QdiscAdd(q); err != nil {
			return err
		}
		return netlink.FilterAdd(&netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: l.Attrs().Index, Parent: parent, Handle: 1,
			Protocol: unix.ETH_P_ALL, Priority: 1}, Fd: p.FD(), Name: "shot", DirectAction: true})
	})
}

func (b *bed) xdp(h *netns.Handle, name string, flags int) {
	b.t.Helper()
	p := program(b.t, ebpf.XDP, 1) // XDP_DROP
	b.link(h, name, func(l netlink.Link) error { return netlink.LinkSetXdpFdWithFlags(l, p.FD(), flags) })
}

// bridge puts a device into a new bridge.
func (b *bed) bridge(h *netns.Handle, name string) {
	b.t.Helper()
	b.link(h, name, func(l netlink.Link) error {
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br"}}
		if err := netlink.LinkAdd(br); err != nil {
			return err
		}
		if err := netlink.LinkSetMaster(l, br); err != nil {
			return err
		}
		return netlink.LinkSetUp(br)
	})
}

// awaitUp waits until the kernel has told everyone of an interface's carrier.
func (b *bed) awaitUp(h *netns.Handle, name string) {
	b.t.Helper()
	for over := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var state netlink.LinkOperState
		b.link(h, name, func(l netlink.Link) error {
			state = l.Attrs().OperState
			return nil
		})
		if state == netlink.OperUp {
			return
		}
		if time.Now().After(over) {
			b.t.Fatalf("%s is %v after 10 s; want it up", name, state)
		}
	}
}

// portState sets the STP state of a bridge's port; 0 is disabled.
func (b *bed) portState(h *netns.Handle, name string, state byte) {
	b.t.Helper()
	b.link(h, name, func(l netlink.Link) error {
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
}

// nat gives what leaves a namespace from one port another source port.
func nat(b *bed, h *netns.Handle, from, to uint16) {
	b.t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(int(h.File().Fd())))
	if err != nil {
		b.t.Fatal(err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "nat"})
	chain := c.AddChain(&nftables.Chain{Name: "post", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(from)},
		&expr.Immediate{Register: 1, Data: []byte{10, 77, 0, 1}},
		&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(to)},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2},
	}})
	if err := c.Flush(); err != nil {
		b.t.Fatal(err)
	}
}

// ethtool switches a feature by the old ioctls, include/uapi/linux/ethtool.h.
func (b *bed) ethtool(h *netns.Handle, name string, command, value uint32) {
	b.t.Helper()
	b.do(h, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return ethtoolValue(fd, name, command, value)
	})
}

// steer has another processor do the receiving of a device's packets (RPS). Its
// setting is in sysfs, which shows the namespace it was mounted in.
func (b *bed) steer(h *netns.Handle, name, mask string) {
	b.t.Helper()
	dir := b.t.TempDir()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its mounts
		done <- func() error {
			if err := h.EnterForGood(); err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := unix.Mount("sysfs", dir, "sysfs", 0, ""); err != nil {
				return err
			}
			return os.WriteFile(dir+"/class/net/"+name+"/queues/rx-0/rps_cpus", []byte(mask), 0o644)
		}()
	}()
	if err := <-done; err != nil {
		b.t.Fatal(err)
	}
}

// raw is a socket that sends whole IPv4 packets.
func (b *bed) raw(h *netns.Handle) int {
	b.t.Helper()
	fd := -1
	b.do(h, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	})
	b.t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// datagram is an IPv4 packet from .1 to .2 with a UDP datagram; the kernel fills
// in lengths, identification and checksum of its IP header.
func datagram(from, to, checksum uint16, flags uint16, payload []byte) []byte {
	p := make([]byte, 28+len(payload))
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(p[6:], flags)
	copy(p[12:], []byte{10, 77, 0, 1})
	copy(p[16:], []byte{10, 77, 0, 2})
	binary.BigEndian.PutUint16(p[20:], from)
	binary.BigEndian.PutUint16(p[22:], to)
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(payload)))
	binary.BigEndian.PutUint16(p[26:], checksum)
	copy(p[28:], payload)
	return p
}

func (b *bed) sendRaw(fd int, packet []byte) {
	b.t.Helper()
	if err := unix.Sendto(fd, packet, 0, sockaddr(netip.AddrPortFrom(address(false, 2), 0))); err != nil {
		b.t.Fatal(err)
	}
}

// pinned runs f on a thread of one processor.
func pinned(cpu int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends
		var set unix.CPUSet
		set.Set(cpu)
		_ = unix.SchedSetaffinity(0, &set)
		f()
	}()
	<-done
}

// tun makes a device that nobody reads, with a route to 10.88.0.0/24.
func (b *bed) tun(h *netns.Handle, queue int) {
	b.t.Helper()
	b.sysctl(h, "net/ipv6/conf/default/disable_ipv6", "1") // which would queue packets of its own
	b.do(h, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		b.t.Cleanup(func() { _ = unix.Close(fd) })
		r, err := unix.NewIfreq("tun0")
		if err != nil {
			return err
		}
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
			return err
		}
		l, err := netlink.LinkByName("tun0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetTxQLen(l, queue); err != nil {
			return err
		}
		if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 88, 0, 1), Mask: net.CIDRMask(24, 32)}}); err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
}

// until waits for something that the kernel does in its own time.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}
