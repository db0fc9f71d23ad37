package fleet

import (
	"net"
	"net/netip"
	"runtime"
	"syscall"

	"pelt/internal/icmp"
	"pelt/model"
	"pelt/observe/counters"
)

// noWay is why packets of this host do not reach an address, by the ICMP error that came, or else by the route that the
// system chooses, over a device if one is named; without a code these tell nothing. err is what became of the
// connection, bound that the user chose its address.
func noWay(to netip.AddrPort, bound bool, device string, said icmp.Error, err error) model.Reason {
	if said.From.IsValid() && !IsOwn(said.From) {
		return refusal(said, to)
	}
	var route model.Route
	if !bound { // another route may be that one's
		route = counters.RouteTo(func(look func() error) error { return look() }, to.Addr(), device)
	}
	address := to.Addr().WithZone("")
	switch {
	case device != "" && isErrno(err, syscall.ENETUNREACH, 0) && runtime.GOOS == "linux":
		return model.NewReason(model.NoRouteOver, "interface", device, "address", address)
	case route.Refuses():
		return model.NewReason(model.RouteRefuses, "address", to.Addr())
	case isErrno(err, syscall.ENETUNREACH, 0) && runtime.GOOS == "linux":
		return noRoute()
	case route.NoCarrier:
		return model.NewReason(model.NoCarrier, "interface", route.At)
	case route.NoAnswer && route.Gateway:
		return model.NewReason(model.GatewaySilent, "gateway", route.Silent, "interface", route.At)
	case route.NoAnswer && route.Silent != address:
		return model.NewReason(model.TunnelSilent, "far", route.Silent, "tunnel", route.Interface,
			"interface", route.At)
	case route.NoAnswer:
		return model.NewReason(model.NeighbourSilent, "interface", route.At)
	case said.From.IsValid() && !IsOwn(to.Addr()):
		return model.NewReason(model.OwnFirewall, "icmp", said.What, "port", to.Port())
	}
	return model.Reason{}
}

// refusal is what an ICMP error of another host means for a connection.
func refusal(e icmp.Error, to netip.AddrPort) model.Reason {
	switch {
	case e.From == to.Addr().WithZone("") && (e.What == icmp.HostUnreachable || e.What == icmp.NetworkUnreachable):
		return model.NewReason(model.FarFirewall, "icmp", e.What, "port", to.Port(), "forwards", "yes")
	case e.From == to.Addr().WithZone(""):
		return model.NewReason(model.FarFirewall, "icmp", e.What, "port", to.Port())
	case e.What == icmp.NetworkUnreachable:
		return model.NewReason(model.RouterNoRoute, "router", e.From)
	case e.What == icmp.HostUnreachable:
		return model.NewReason(model.RouterUnreached, "router", e.From)
	case e.What == icmp.TimeExceeded:
		return model.NewReason(model.RouteCircle, "router", e.From)
	}
	return model.NewReason(model.WayRefuses, "router", e.From, "icmp", e.What, "port", to.Port())
}

// noRoute is what this host lacks to have a route.
func noRoute() model.Reason {
	all, _ := net.Interfaces()
	for _, i := range all {
		if has, _ := i.Addrs(); i.Flags&(net.FlagUp|net.FlagLoopback) == 0 && len(has) > 0 {
			return model.NewReason(model.NoRoute, "interface", i.Name)
		}
	}
	return model.Reason{Code: model.NoRoute}
}
