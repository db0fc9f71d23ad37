package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"pelt/finding"
	"pelt/model"
)

// A name has a few seconds to be resolved. The question is asked twice, since the answer to the first may be lost.
const (
	resolveAgain = 2 * time.Second
	resolveMost  = 5 * time.Second
	maxAddresses = 8 // of a name that are used
)

// lookup asks the resolver of this host.
var lookup = func(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return new(net.Resolver).LookupNetIP(ctx, network, host) // a new one: others share the answer of a question
}

// Resolve turns a host name or address into its addresses of the asked family (4, 6, or 0 for any), in the order in
// which they are tried: families take turns, and the one that this host prefers comes first.
func Resolve(ctx context.Context, host string, family int) ([]netip.Addr, error) {
	network := "ip"
	if family != 0 {
		network = fmt.Sprint("ip", family)
	}
	address, err := netip.ParseAddr(host)
	if zone := address.Zone(); zone != "" {
		_, number := strconv.Atoi(zone)
		if _, name := net.InterfaceByName(zone); name != nil && number != nil {
			return nil, finding.NewFault(model.ZoneUnknown, "host", host, "interface", zone)
		}
	}
	found := []netip.Addr{address}
	if err != nil { // the resolver would drop the zone of an address
		found, err = ask(ctx, network, host)
	}
	if found = inTurn(found, family); len(found) > 0 {
		return found, nil
	}
	var dns *net.DNSError
	var none *net.AddrError // the name has no address of the family
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil, errors.As(err, &dns) && dns.IsNotFound, errors.As(err, &none):
		named := []any{"host", host}
		if family != 0 {
			named = append(named, "family", family)
		}
		return nil, finding.NewFault(model.HostUnknown, named...)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &dns) && dns.IsTimeout:
		return nil, finding.NewFault(model.NameUnanswered, "host", host, "within_s", resolveMost.Seconds())
	}
	return nil, finding.NewFault(model.NameUnresolved, "host", host, "text", err).From(err)
}

// ask returns the first answer of two questions.
func ask(ctx context.Context, network, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveMost)
	defer cancel()
	type answer struct {
		found []netip.Addr
		err   error
	}
	answers := make(chan answer, 2)
	question := func() {
		found, err := lookup(ctx, network, host)
		answers <- answer{found, err}
	}
	go question()
	again := time.AfterFunc(resolveAgain, question)
	defer again.Stop()
	select {
	case a := <-answers:
		return a.found, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inTurn returns the addresses of a family, 0 for any, with those of both families in turns.
func inTurn(found []netip.Addr, family int) (all []netip.Addr) {
	var kinds [2][]netip.Addr // the family of the first, and the other
	for _, a := range found {
		if a = a.Unmap(); a.IsValid() && (family == 0 || a.Is4() == (family == 4)) {
			kind := 0
			if len(kinds[0]) > 0 && a.Is4() != kinds[0][0].Is4() {
				kind = 1
			}
			kinds[kind] = append(kinds[kind], a)
		}
	}
	for i := range max(len(kinds[0]), len(kinds[1])) {
		for _, kind := range kinds {
			if i < len(kind) && len(all) < maxAddresses {
				all = append(all, kind[i])
			}
		}
	}
	return all
}
