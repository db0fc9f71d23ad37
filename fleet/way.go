package fleet

import (
	"fmt"
	"net/netip"
	"slices"

	"pelt/internal/icmp"
)

// refusal says what an ICMP error of another host means for a connection.
func refusal(e icmp.Error, to netip.AddrPort) string {
	switch {
	case e.From == to.Addr().WithZone(""):
		return fmt.Sprintf("its own firewall refuses the connection (%s): let TCP port %d in there", e.What, to.Port())
	case e.What == icmp.NetworkUnreachable:
		return fmt.Sprintf("the router %v has no route to that host: check the address, and the routes there", e.From)
	case e.What == icmp.HostUnreachable:
		return fmt.Sprintf("the router %v cannot reach that host: it is down, has another address, "+
			"or a rule there refuses it", e.From)
	case e.What == icmp.TimeExceeded:
		return fmt.Sprintf("the packets go round in a circle at the router %v: check the routes on the way", e.From)
	}
	return fmt.Sprintf("a firewall or router at %v refuses the connection (%s): let TCP port %d through there",
		e.From, e.What, to.Port())
}

// isOwn reports whether this host has an address.
func isOwn(a netip.Addr) bool {
	return slices.ContainsFunc(ownPrefixes(), func(p netip.Prefix) bool { return p.Addr() == a.WithZone("") })
}
