package fleet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// smallSegment is the most that a segment carries where large packets may not pass: what every IPv4 host takes (RFC 9293).
const smallSegment = 536

// dialed is a socket that connects. It keeps a descriptor of its own: the ICMP error that refuses a connection is read
// after the dialer has closed its one.
type dialed struct {
	small bool
	six   bool
	fd    int // -1 for none
}

func newDialed(small bool) *dialed { return &dialed{small: small, fd: -1} }

// control prepares the socket. Where a system lacks an option, less is known of a failure.
func (d *dialed) control(network, _ string, c syscall.RawConn) error {
	d.six = network == "tcp6"
	return c.Control(func(fd uintptr) {
		if d.small {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, smallSegment)
		}
		d.fd, _ = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		d.tellErrors(1)
	})
}

func (d *dialed) tellErrors(on int) {
	if d.six {
		_ = unix.SetsockoptInt(d.fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, on)
	} else {
		_ = unix.SetsockoptInt(d.fd, unix.IPPROTO_IP, unix.IP_RECVERR, on)
	}
}

// close gives the descriptor up, and returns the ICMP error of the connection, if there was one.
func (d *dialed) close() (said icmpError) {
	if d.fd < 0 {
		return said
	}
	oob := make([]byte, 512)
	if _, n, _, _, err := unix.Recvmsg(d.fd, make([]byte, 128), oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT); err == nil {
		said = readICMP(oob[:n])
	}
	d.tellErrors(0) // else such an error would end a connection that is open
	_ = unix.Close(d.fd)
	return said
}

// readICMP finds struct sock_extended_err and the address of its sender among control messages
// (include/uapi/linux/errqueue.h).
func readICMP(control []byte) (said icmpError) {
	list, _ := unix.ParseSocketControlMessage(control) // what cannot be read is not known
	for _, m := range list {
		const errBytes = 16
		if len(m.Data) < errBytes {
			continue
		}
		origin, kind, code, from := m.Data[4], m.Data[5], m.Data[6], m.Data[errBytes:]
		switch {
		case origin == unix.SO_EE_ORIGIN_ICMP && kind == 3 && len(from) >= 8:
			said.from, said.what = netip.AddrFrom4([4]byte(from[4:8])), cmp.Or(icmpWords[code], unknownICMP)
		case origin == unix.SO_EE_ORIGIN_ICMP6 && kind == 1 && len(from) >= 24:
			said.from, said.what = netip.AddrFrom16([16]byte(from[8:24])).Unmap(), cmp.Or(icmp6Words[code], unknownICMP)
			if index := binary.NativeEndian.Uint32(from[24:]); said.from.IsLinkLocalUnicast() && len(from) >= 28 && index > 0 {
				said.from = said.from.WithZone(nameOf(int(index)))
			}
		}
	}
	return said
}

// The codes of a destination that cannot be reached (RFC 792, RFC 1812 section 5.2.7.1, RFC 4443).
var (
	icmpWords = map[byte]string{0: netUnreachable, 1: hostUnreachable, 2: "protocol unreachable", 3: "port unreachable", 6: netUnreachable,
		7: hostUnreachable, 9: "network prohibited", 10: "host prohibited", 13: "administratively prohibited"}
	icmp6Words = map[byte]string{0: netUnreachable, 1: "administratively prohibited", 3: hostUnreachable, 4: "port unreachable",
		5: "source address prohibited", 6: "route rejected"}
)

// noWay says in one line why packets of this host do not reach an address, by the ICMP error that came, or else by this
// host's routes, interfaces and neighbours; "" if these tell nothing.
func noWay(to netip.AddrPort, from netip.Addr, said icmpError) string {
	if said.from.IsValid() && !isOwn(said.from) {
		return said.refusal(to)
	}
	route, err := routeTo(to.Addr(), from)
	switch {
	case errors.Is(err, unix.ENETUNREACH):
		return noRoute(to.Addr())
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
		return fmt.Sprintf("a route of this host refuses that address: see `ip route get %v`", to.Addr())
	case err != nil:
		return ""
	}
	link, err := netlink.LinkByIndex(route.LinkIndex)
	if err != nil {
		return ""
	}
	name := link.Attrs().Name
	if link.Attrs().RawFlags&unix.IFF_LOWER_UP == 0 {
		return fmt.Sprintf("%s of this host has no link: check its cable, and the device at the other end", name)
	}
	hop, gateway := to.Addr(), false
	if a, ok := netip.AddrFromSlice(route.Gw); ok {
		hop, gateway = a.Unmap(), true
	} else if via, ok := route.Via.(*netlink.Via); ok {
		if a, ok := netip.AddrFromSlice(via.Addr); ok {
			hop, gateway = a.Unmap(), true
		}
	}
	switch silent := isSilent(route.LinkIndex, hop); {
	case silent && gateway:
		return fmt.Sprintf("the gateway %v does not answer on %s: check the gateway's address in this host's routes, and whether it is up", hop, name)
	case silent:
		return fmt.Sprintf("that host does not answer on %s: it is down, or has another address", name)
	case said.from.IsValid() && !isOwn(to.Addr()):
		return fmt.Sprintf("this host's own firewall refuses the connection (%s): let TCP port %d out", said.what, to.Port())
	}
	return ""
}

// routeTo asks the kernel for the way to an address.
func routeTo(to, from netip.Addr) (netlink.Route, error) {
	o := &netlink.RouteGetOptions{Oif: to.Zone()}
	if from.IsValid() {
		o.SrcAddr = net.IP(from.AsSlice())
	}
	list, err := netlink.RouteGetWithOptions(net.IP(to.AsSlice()), o)
	if err == nil && len(list) == 0 {
		err = errors.New("no answer")
	}
	if err != nil {
		return netlink.Route{}, err
	}
	return list[0], nil
}

// noRoute says what this host lacks to have a route to an address.
func noRoute(to netip.Addr) string {
	var down []string
	links, _ := netlink.LinkList()
	for _, l := range links {
		a := l.Attrs()
		addresses, _ := netlink.AddrList(l, netlink.FAMILY_ALL)
		if a.Flags&(net.FlagUp|net.FlagLoopback) == 0 && len(addresses) > 0 {
			down = append(down, a.Name)
		}
	}
	family, what := netlink.FAMILY_V4, "IPv4"
	if to.Is6() {
		family, what = netlink.FAMILY_V6, "IPv6"
	}
	if len(down) > 0 {
		return fmt.Sprintf("this host has no route there, and its interface %s is down: ip link set %s up", strings.Join(down, ", "), down[0])
	}
	if routes, err := netlink.RouteListFiltered(family, &netlink.Route{}, netlink.RT_FILTER_DST); err == nil && len(routes) == 0 {
		return fmt.Sprintf("this host has no default route of %s, nor one to that address: add one (ip route add default via GATEWAY)", what)
	}
	return "this host has no route there: see `ip route`"
}

// isSilent reports whether a neighbour was asked for its hardware address, and did not answer.
func isSilent(link int, hop netip.Addr) bool {
	list, _ := netlink.NeighList(link, netlink.FAMILY_ALL)
	for _, n := range list {
		if a, _ := netip.AddrFromSlice(n.IP); a.Unmap() == hop.WithZone("") {
			return n.State&(netlink.NUD_FAILED|netlink.NUD_INCOMPLETE) != 0
		}
	}
	return false
}

func nameOf(index int) string {
	i, err := net.InterfaceByIndex(index)
	if err != nil {
		return ""
	}
	return i.Name
}

// lost reports whether packets of a connection were sent again, or came out of order.
func lost(c net.Conn) bool {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	found := false
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		found = err == nil && (info.Total_retrans > 0 || info.Rcv_ooopack > 0)
	})
	return found
}
