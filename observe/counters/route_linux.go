package counters

import (
	"cmp"
	"errors"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// refusals are what the kernel answers in place of a route (net/ipv4/fib_semantics.c, fib_props).
var refusals = map[unix.Errno]model.RouteKind{
	unix.EINVAL: model.RouteBlackhole, unix.EACCES: model.RouteProhibit, unix.EHOSTUNREACH: model.RouteUnreachable,
}

// maxTunnels is how many tunnels, one inside another, a route is followed through.
const maxTunnels = 4

// RouteTo returns the route to an address from the namespace that do runs functions in, over a device if one is named;
// its Kind is "" if it is not known.
func RouteTo(do func(func() error) error, to netip.Addr, device string) (r model.Route) {
	_ = do(func() error { // what cannot be read stays unknown
		for range maxTunnels {
			kind, route, err := lookUp(to, device)
			r.Kind = cmp.Or(r.Kind, kind)
			if err != nil || kind != model.RouteUsable {
				return err
			}
			if to, err = addHop(&r, route, to); err != nil || !to.IsValid() {
				return err
			}
			device = "" // a tunnel's own packets are bound to nothing
		}
		return nil
	})
	return r
}

// lookUp asks the kernel for a route. The kind is "" if it tells none, the route is that of a usable one.
func lookUp(to netip.Addr, device string) (kind model.RouteKind, route netlink.Route, err error) {
	routes, err := netlink.RouteGetWithOptions(to.Unmap().AsSlice(), &netlink.RouteGetOptions{Oif: device})
	var errno unix.Errno
	switch {
	case errors.As(err, &errno):
		return refusals[errno], route, nil
	case err != nil || len(routes) == 0:
		return "", route, err
	}
	switch route = routes[0]; route.Type { // IPv6 tells of such a route in a route
	case unix.RTN_BLACKHOLE:
		kind = model.RouteBlackhole
	case unix.RTN_PROHIBIT:
		kind = model.RouteProhibit
	case unix.RTN_UNREACHABLE:
		kind = model.RouteUnreachable
	default:
		kind = model.RouteUsable
	}
	return kind, route, nil
}

// addHop adds the route's interface, if none is known yet, and what is wrong with the way to its next hop. far is the
// other end of the tunnel that the interface is; it is invalid of another interface.
func addHop(r *model.Route, route netlink.Route, to netip.Addr) (far netip.Addr, err error) {
	l, err := netlink.LinkByIndex(route.LinkIndex)
	if err != nil {
		return far, err
	}
	if r.Interface == "" {
		r.Interface, r.Device, r.MTU = l.Attrs().Name, l.Type(), l.Attrs().MTU
	}
	if flags := l.Attrs().RawFlags; flags&unix.IFF_UP != 0 && flags&unix.IFF_LOWER_UP == 0 {
		r.NoCarrier, r.At = true, l.Attrs().Name
	}
	hop, gateway := nextHop(route, to)
	all, err := netlink.NeighList(route.LinkIndex, netlink.FAMILY_ALL)
	for _, n := range all {
		if n.State&(unix.NUD_FAILED|unix.NUD_INCOMPLETE) != 0 && n.IP.Equal(hop.AsSlice()) {
			r.NoAnswer, r.At, r.Silent, r.Gateway = true, l.Attrs().Name, hop, gateway
		}
	}
	return farEnd(l), err
}

// nextHop is whom a route has packets for an address given to: a gateway, or the address itself.
func nextHop(route netlink.Route, to netip.Addr) (hop netip.Addr, gateway bool) {
	at := route.Gw
	if via, ok := route.Via.(*netlink.Via); ok && at == nil { // of the other family
		at = via.Addr
	}
	if hop, gateway = netip.AddrFromSlice(at); !gateway {
		hop = to.WithZone("")
	}
	return hop.Unmap(), gateway
}

// farEnd is where a tunnel sends all its packets; invalid if the interface is none, or has several far ends.
func farEnd(l netlink.Link) netip.Addr {
	var ip net.IP
	switch t := l.(type) {
	case *netlink.Vxlan:
		ip = t.Group
	case *netlink.Geneve:
		ip = t.Remote
	case *netlink.Gretun:
		ip = t.Remote
	case *netlink.Gretap:
		ip = t.Remote
	case *netlink.Iptun:
		ip = t.Remote
	case *netlink.Ip6tnl:
		ip = t.Remote
	case *netlink.Sittun:
		ip = t.Remote
	}
	far, _ := netip.AddrFromSlice(ip)
	if far.IsUnspecified() || far.IsMulticast() {
		return netip.Addr{}
	}
	return far.Unmap()
}
