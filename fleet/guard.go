package fleet

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// guard bounds guesses: handshakes that were begun and did not end with the right code. A guess is taken from the
// allowance of its source and from that of all sources together, and both grow again with time. A right answer gives
// it back.
type guard struct {
	mu      sync.Mutex
	sources map[netip.Prefix]*allowance // that have used some
	all     allowance
}

// allowance counts uses. It forgets them with time, see available.
type allowance struct {
	used float64
	at   time.Time
}

// A code is one of some 7.6 million. At 20 guesses a minute, a day's are 0.4 % of these.
const (
	allGuesses    = 20
	allAgain      = 3 * time.Second
	sourceGuesses = 5
	sourceAgain   = time.Minute
)

// available reports whether one more use is allowed, of so many at most. It gives one use back for each time `again`
// that passed.
func (a *allowance) available(most int, again time.Duration, now time.Time) bool {
	a.used = max(0, a.used-float64(now.Sub(a.at))/float64(again))
	a.at = now
	return a.used <= float64(most-1)
}

// SourceOf is what counts as one source: an IPv4 address, or what a site has of IPv6, a /48. The zero address gives
// the zero prefix, a source like others.
func SourceOf(from netip.Addr) netip.Prefix {
	bits := 32
	if from = from.Unmap().WithZone(""); from.Is6() {
		bits = 48
	}
	p, _ := from.Prefix(bits)
	return p
}

// Private reports whether an address is of no public network: private, of a link or of this host.
func Private(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast()
}

// OwnNetwork reports whether an address is private, or in a network that an interface of this host is in.
// A route without a gateway would not do: a VPN's default route has none.
func OwnNetwork(a netip.Addr) bool {
	if Private(a) {
		return true
	}
	return slices.ContainsFunc(OwnPrefixes(), func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// OwnPrefixes are this host's addresses, with their networks.
func OwnPrefixes() (all []netip.Prefix) {
	list, _ := net.InterfaceAddrs() // what is not known is not own
	for _, one := range list {
		if p, err := netip.ParsePrefix(one.String()); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// IsOwn reports whether an address is one of this host's.
func IsOwn(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || slices.ContainsFunc(OwnPrefixes(), func(p netip.Prefix) bool { return p.Addr() == a })
}

// begin takes a guess for a handshake; nil: there is none left. The total is asked first, so that a source that is
// refused is not remembered.
func (g *guard) begin(from netip.Addr, now time.Time) (guess *allowance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.all.available(allGuesses, allAgain, now) {
		return nil
	}
	maps.DeleteFunc(g.sources, func(_ netip.Prefix, a *allowance) bool {
		a.available(sourceGuesses, sourceAgain, now)
		return a.used == 0
	})
	source := g.sources[SourceOf(from)]
	if source == nil {
		source = &allowance{at: now}
		g.sources[SourceOf(from)] = source
	}
	if !source.available(sourceGuesses, sourceAgain, now) {
		return nil
	}
	source.used++
	g.all.used++
	return source
}

// giveBack undoes a guess whose answer was right.
func (g *guard) giveBack(guess *allowance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range []*allowance{guess, &g.all} {
		a.used = max(0, a.used-1)
	}
}
