package fleet

import (
	"net"
	"net/netip"
	"runtime"
	"slices"
	"syscall"

	"pelt/internal/icmp"
	"pelt/model"
	"pelt/observe/counters"
	"pelt/words"
)

// noWay says in one line why packets of this host do not reach an address, by the ICMP error that came, or else by the
// route that the system chooses, over a device if one is named; nil if these tell nothing. err is what became of the
// connection, bound that the user chose its address.
func noWay(to netip.AddrPort, bound bool, device string, said icmp.Error, err error) error {
	if said.From.IsValid() && !isOwn(said.From) {
		return refusal(said, to)
	}
	var route model.Route
	if !bound { // another route may be that one's
		route = counters.RouteTo(func(look func() error) error { return look() }, to.Addr(), device)
	}
	switch {
	case device != "" && isErrno(err, syscall.ENETUNREACH, 0) && runtime.GOOS == "linux":
		return words.Errorf("this host has no route there over %s: see `ip route get %v oif %[1]s`", device,
			to.Addr().WithZone(""))
	case route.Refuses():
		return words.Errorf("a route of this host refuses that address: see `ip route get %v`", to.Addr())
	case isErrno(err, syscall.ENETUNREACH, 0) && runtime.GOOS == "linux":
		return noRoute()
	case route.NoCarrier:
		return words.Errorf("%s of this host has no link: check its cable, and the device at the other end", route.At)
	case route.NoAnswer && route.Gateway:
		return words.Errorf("the gateway %v does not answer on %s: check the gateway's address in this host's routes, "+
			"and whether it is up", route.Silent, route.At)
	case route.NoAnswer && route.Silent != to.Addr().WithZone(""):
		return words.Errorf("%v, the far end of this host's tunnel %s, does not answer on %s: "+
			"it is down, or has another address", route.Silent, route.Interface, route.At)
	case route.NoAnswer:
		return words.Errorf("that host does not answer on %s: it is down, or has another address", route.At)
	case said.From.IsValid() && !isOwn(to.Addr()):
		return words.Errorf("this host's own firewall refuses the connection (%s): let TCP port %d out", said.What,
			to.Port())
	}
	return nil
}

// refusal says what an ICMP error of another host means for a connection.
func refusal(e icmp.Error, to netip.AddrPort) error {
	switch {
	case e.From == to.Addr().WithZone(""):
		return words.Errorf("its own firewall refuses the connection (%s): let TCP port %d in there", e.What, to.Port())
	case e.What == icmp.NetworkUnreachable:
		return words.Errorf("the router %v has no route to that host: check the address, and the routes there", e.From)
	case e.What == icmp.HostUnreachable:
		return words.Errorf("the router %v cannot reach that host: it is down, has another address, "+
			"or a rule there refuses it", e.From)
	case e.What == icmp.TimeExceeded:
		return words.Errorf("the packets go round in a circle at the router %v: check the routes on the way", e.From)
	}
	return words.Errorf("a firewall or router at %v refuses the connection (%s): let TCP port %d through there",
		e.From, e.What, to.Port())
}

// noRoute says what this host lacks to have a route.
func noRoute() error {
	all, _ := net.Interfaces()
	for _, i := range all {
		if has, _ := i.Addrs(); i.Flags&(net.FlagUp|net.FlagLoopback) == 0 && len(has) > 0 {
			return words.Errorf("this host has no route there, and its interface %s is down: ip link set %[1]s up", i.Name)
		}
	}
	return words.Errorf("this host has no route there: add one, or a default route (ip route add default via GATEWAY)")
}

// isOwn reports whether this host has an address.
func isOwn(a netip.Addr) bool {
	return slices.ContainsFunc(ownPrefixes(), func(p netip.Prefix) bool { return p.Addr() == a.WithZone("") })
}
