package counters

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// refusals are what the kernel answers in place of a route (net/ipv4/fib_semantics.c, fib_props).
var refusals = map[unix.Errno]model.RouteKind{
	unix.EINVAL: model.RouteBlackhole, unix.EACCES: model.RouteProhibit, unix.EHOSTUNREACH: model.RouteUnreachable,
}

// RouteTo returns the route to an address from the namespace that do runs functions in; its Kind is "" if it is not
// known.
func RouteTo(do func(func() error) error, to netip.Addr) (r model.Route) {
	_ = do(func() error { // what cannot be read stays unknown
		routes, err := netlink.RouteGet(to.Unmap().AsSlice())
		var errno unix.Errno
		switch {
		case errors.As(err, &errno):
			r.Kind = refusals[errno]
			return nil
		case err != nil || len(routes) == 0:
			return err
		}
		switch route := routes[0]; route.Type { // IPv6 tells of such a route in a route
		case unix.RTN_BLACKHOLE:
			r.Kind = model.RouteBlackhole
		case unix.RTN_PROHIBIT:
			r.Kind = model.RouteProhibit
		case unix.RTN_UNREACHABLE:
			r.Kind = model.RouteUnreachable
		default:
			r.Kind = model.RouteUsable
			return addHop(&r, route, to)
		}
		return nil
	})
	return r
}

// addHop adds the route's interface and what is wrong with the way to its next hop.
func addHop(r *model.Route, route netlink.Route, to netip.Addr) error {
	l, err := netlink.LinkByIndex(route.LinkIndex)
	if err != nil {
		return err
	}
	r.Interface = l.Attrs().Name
	r.NoCarrier = l.Attrs().RawFlags&unix.IFF_UP != 0 && l.Attrs().RawFlags&unix.IFF_LOWER_UP == 0
	hop, family := route.Gw, netlink.FAMILY_V4
	if hop == nil {
		hop = to.Unmap().AsSlice()
	}
	if to.Unmap().Is6() {
		family = netlink.FAMILY_V6
	}
	all, err := netlink.NeighList(route.LinkIndex, family)
	for _, n := range all {
		if n.IP.Equal(hop) {
			r.NoAnswer = n.State&(unix.NUD_FAILED|unix.NUD_INCOMPLETE) != 0
		}
	}
	return err
}
