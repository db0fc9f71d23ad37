package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Resolve turns a host name or address into the one address that control and
// data will use: the first of the asked family (4 or 6), or the first of any
// with family 0.
func Resolve(ctx context.Context, host string, family int) (netip.Addr, error) {
	network, kind := "ip", ""
	if family != 0 {
		network, kind = fmt.Sprint("ip", family), fmt.Sprintf(" with an IPv%d address", family)
	}
	address, err := netip.ParseAddr(host)
	if zone := address.Zone(); zone != "" {
		_, number := strconv.Atoi(zone)
		if _, name := net.InterfaceByName(zone); name != nil && number != nil {
			return netip.Addr{}, fmt.Errorf("%s: this host has no interface %s: want one of its own after the %%", host, zone)
		}
	}
	found := []netip.Addr{address}
	if err != nil { // the resolver would drop the zone of an address
		found, err = net.DefaultResolver.LookupNetIP(ctx, network, host)
	}
	for _, a := range found {
		if a = a.Unmap(); family == 0 || a.Is4() == (family == 4) {
			return a, nil
		}
	}
	var dns *net.DNSError
	if err == nil || errors.As(err, &dns) && dns.IsNotFound {
		return netip.Addr{}, fmt.Errorf("%s: no such host%s", host, kind)
	}
	return netip.Addr{}, fmt.Errorf("%s: the name cannot be resolved (%w); "+
		"give an address, or mend this host's DNS", host, err)
}
