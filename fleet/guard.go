package fleet

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// guard bounds guesses: handshakes that were begun and did not end with the right code. A guess is taken from
// each allowance that it counts for, and these grow again with time. A right answer gives it back.
type guard struct {
	mu        sync.Mutex
	sources   map[netip.Prefix]*allowance
	strangers allowance // of all networks together
	wrong     int       // answers of all sources, since the code was made
}

// allowance is how much of it is used, as far as that is not forgotten, and by whom.
type allowance struct {
	used  float64
	at    time.Time
	known bool // a right answer came from this address
	wrong bool // a wrong one came after it
}

// A code is one of some 7.6 million. At 20 guesses a minute, a day's are 0.4 % of these.
const (
	codeGuesses    = 20 // of strangers together; so many wrong ones of all, and the code is renewed
	codeAgain      = 3 * time.Second
	networkGuesses = 3 // of strangers of an IPv4 /16 or IPv6 /32, when those of all are used up
	networkAgain   = time.Hour
	siteGuesses    = 20 // of an IPv6 /48
	siteAgain      = 15 * time.Second
	addressGuesses = 5 // of an IPv4 address or an IPv6 /64
	addressAgain   = time.Minute
	maxSources     = 8192
)

func newGuard() *guard { return &guard{sources: map[netip.Prefix]*allowance{}} }

// left forgets what is old, and reports whether there is one guess more.
func (a *allowance) left(most int, again time.Duration, now time.Time) bool {
	a.used = max(0, a.used-float64(now.Sub(a.at))/float64(again))
	a.at = now
	return a.used <= float64(most-1)
}

// sourceOf is what counts as one source: an IPv4 address or an IPv6 /64. The zero address gives
// the zero prefix, a source like others.
func sourceOf(from netip.Addr) netip.Prefix { return networkOf(from, 32, 64) }

// networkOf is the network of an address, of so many bits in IPv4 and IPv6.
func networkOf(a netip.Addr, four, six int) netip.Prefix {
	if a = a.Unmap().WithZone(""); a.Is6() {
		four = six
	}
	p, _ := a.Prefix(four)
	return p
}

// Private reports whether an address is of no public network: private, of a link or of this host.
func Private(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast()
}

// ownNetwork reports whether an address is private, or in a network that an interface of this host is in.
// A route without a gateway would not do: a VPN's default route has none.
func ownNetwork(a netip.Addr) bool {
	if Private(a) {
		return true
	}
	list, _ := net.InterfaceAddrs() // what is not known is not own
	return slices.ContainsFunc(list, func(one net.Addr) bool {
		n, ok := one.(*net.IPNet)
		return ok && a.IsValid() && n.Contains(a.Unmap().AsSlice())
	})
}

// begin takes a guess for a handshake; nil: there is none left. The last allowance is the address's. Wide ones
// are asked first, so that who is refused is not remembered.
func (g *guard) begin(from netip.Addr, now time.Time) (guess []*allowance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.sources[sourceOf(from)]; !Private(from) && (a == nil || !a.known) {
		all := &g.strangers
		if !all.left(codeGuesses, codeAgain, now) {
			all = g.source(networkOf(from, 16, 32))
			if !all.left(networkGuesses, networkAgain, now) {
				return nil
			}
		}
		guess = append(guess, all)
	}
	if from.Unmap().Is6() {
		site := g.source(networkOf(from, 48, 48))
		if !site.left(siteGuesses, siteAgain, now) {
			return nil
		}
		guess = append(guess, site)
	}
	address := g.source(sourceOf(from))
	if !address.left(addressGuesses, addressAgain, now) {
		return nil
	}
	guess = append(guess, address)
	for _, a := range guess {
		a.used++
	}
	return guess
}

// giveBack undoes a guess whose answer was right, or did not come before this side ended the handshake.
func (g *guard) giveBack(guess []*allowance, right bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range guess {
		a.used = max(0, a.used-1)
	}
	if address := guess[len(guess)-1]; right {
		address.known, address.wrong = true, false
	}
}

// fail ends a guess that was wrong; renew says that the code has been tried often enough.
func (g *guard) fail(guess []*allowance) (renew bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	guess[len(guess)-1].wrong = true
	g.wrong = (g.wrong + 1) % codeGuesses
	return g.wrong == 0
}

// suspect reports whether the last answer of a source was wrong.
func (g *guard) suspect(source netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.sources[source]
	return a != nil && a.wrong
}

// source finds what is known of a source. Of a few others the one seen longest ago makes room.
func (g *guard) source(p netip.Prefix) *allowance {
	if s := g.sources[p]; s != nil {
		return s
	}
	if len(g.sources) >= maxSources {
		var oldest netip.Prefix
		few := 8
		for p, s := range g.sources { // Go begins anywhere
			if at := g.sources[oldest]; at == nil || !s.known && (at.known || s.at.Before(at.at)) {
				oldest = p
			}
			if few--; few == 0 {
				break
			}
		}
		delete(g.sources, oldest)
	}
	s := &allowance{}
	g.sources[p] = s
	return s
}
