package fleet

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// icmpError is the ICMP message that refused a connection; its sender is invalid if none came.
type icmpError struct {
	from netip.Addr
	what string // as "port unreachable"
}

const (
	netUnreachable  = "network unreachable"
	hostUnreachable = "host unreachable"
	unknownICMP     = "destination unreachable"
)

// refusal says what an ICMP error of another host means for a connection.
func (e icmpError) refusal(to netip.AddrPort) string {
	switch {
	case e.from == to.Addr():
		return fmt.Sprintf("its own firewall refuses the connection (%s): let TCP port %d in there", e.what, to.Port())
	case e.what == netUnreachable:
		return fmt.Sprintf("the router %v has no route to that host: check the address, and the routes there", e.from)
	case e.what == hostUnreachable:
		return fmt.Sprintf("the router %v cannot reach that host: it is down, has another address, or a rule there refuses it", e.from)
	}
	return fmt.Sprintf("a firewall or router at %v refuses the connection (%s): let TCP port %d through there", e.from, e.what, to.Port())
}

// isOwn reports whether this host has an address.
func isOwn(a netip.Addr) bool {
	list, _ := net.InterfaceAddrs() // what is not known is not own
	return slices.ContainsFunc(list, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr() == a.WithZone("")
	})
}
