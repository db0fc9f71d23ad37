package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/icmp"
)

// smallSegment is the most that a segment carries where large packets may not pass: what every IPv4 host takes (RFC
// 9293).
const smallSegment = 536

// smallSegments has a socket send and take only small segments. Where a system lacks the option, large ones stay.
func smallSegments(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, smallSegment)
	})
}

// noWay says in one line why packets of this host do not reach an address, by the ICMP error that came, or else by this
// host's routes, interfaces and neighbours; "" if these tell nothing.
func noWay(ctx context.Context, to netip.AddrPort, from netip.Addr, said icmp.Error) string {
	if said.From.IsValid() && !isOwn(said.From) {
		return refusal(said, to)
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
	switch silent := isSilent(ctx, route.LinkIndex, hop); {
	case silent && gateway:
		return fmt.Sprintf("the gateway %v does not answer on %s: check the gateway's address in this host's routes, "+
			"and whether it is up", hop, name)
	case silent:
		return fmt.Sprintf("that host does not answer on %s: it is down, or has another address", name)
	case said.From.IsValid() && !isOwn(to.Addr()):
		return fmt.Sprintf("this host's own firewall refuses the connection (%s): let TCP port %d out", said.What,
			to.Port())
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
		return fmt.Sprintf("this host has no route there, and its interface %s is down: ip link set %s up",
			strings.Join(down, ", "), down[0])
	}
	if routes, err := netlink.RouteListFiltered(family, &netlink.Route{}, netlink.RT_FILTER_DST); err == nil &&
		len(routes) == 0 {
		return fmt.Sprintf("this host has no default route of %s, nor one to that address: "+
			"add one (ip route add default via GATEWAY)", what)
	}
	return "this host has no route there: see `ip route`"
}

const (
	// askedFor is how long the kernel asks for a hardware address: three times, a second apart.
	askedFor  = 3500 * time.Millisecond
	lookEvery = 50 * time.Millisecond
)

// isSilent reports whether a neighbour was asked for its hardware address, and did not answer. While the kernel asks it
// waits.
func isSilent(ctx context.Context, link int, hop netip.Addr) bool {
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	for {
		switch state := stateOf(link, hop); {
		case state&netlink.NUD_INCOMPLETE == 0:
			return state&netlink.NUD_FAILED != 0
		case ctx.Err() != nil:
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// stateOf is the state of a neighbour; 0 of an unknown one.
func stateOf(link int, hop netip.Addr) int {
	list, _ := netlink.NeighList(link, netlink.FAMILY_ALL)
	for _, n := range list {
		if a, _ := netip.AddrFromSlice(n.IP); a.Unmap() == hop.WithZone("") {
			return n.State
		}
	}
	return 0
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
