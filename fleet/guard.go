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
//
// A source has few guesses, and all sources have few together, so that many of them try no more codes than a few. Who
// knew the code before is not held to that total, nor do public addresses use up that of private ones: strangers cannot
// keep the owner out.
type guard struct {
	mu              sync.Mutex
	sources         map[netip.Prefix]*allowance
	public, private allowance // of all sources together that have not known the code yet
}

// allowance is how much of it is used, as far as that is not forgotten, and by whom.
type allowance struct {
	used  float64
	at    time.Time
	known bool // a right answer came from this source
}

// A code is one of some 7.6 million. At 20 guesses a minute, a day's are 0.4 % of these.
const (
	totalGuesses  = 20
	totalAgain    = 3 * time.Second
	sourceGuesses = 5
	sourceAgain   = time.Minute
	maxSources    = 8192
)

func newGuard() *guard { return &guard{sources: map[netip.Prefix]*allowance{}} }

// left forgets what is old, and reports whether there is one guess more.
func (a *allowance) left(most int, again time.Duration, now time.Time) bool {
	a.used = max(0, a.used-float64(now.Sub(a.at))/float64(again))
	a.at = now
	return a.used <= float64(most-1)
}

// sourceOf is what counts as one source: an IPv4 address, or what a site has of IPv6, a /48. The zero address gives
// the zero prefix, a source like others.
func sourceOf(from netip.Addr) netip.Prefix {
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

// begin takes a guess for a handshake; nil: there is none left. The last allowance is the source's. The total is
// asked first, so that who is refused is not remembered.
func (g *guard) begin(from netip.Addr, now time.Time) (guess []*allowance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.sources[sourceOf(from)]; a == nil || !a.known {
		total := &g.public
		if Private(from) {
			total = &g.private
		}
		if !total.left(totalGuesses, totalAgain, now) {
			return nil
		}
		guess = append(guess, total)
	}
	source := g.source(sourceOf(from))
	if !source.left(sourceGuesses, sourceAgain, now) {
		return nil
	}
	guess = append(guess, source)
	for _, a := range guess {
		a.used++
	}
	return guess
}

// giveBack undoes a guess whose answer was right.
func (g *guard) giveBack(guess []*allowance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range guess {
		a.used = max(0, a.used-1)
	}
	guess[len(guess)-1].known = true
}

// knows reports whether a right answer came from a source.
func (g *guard) knows(source netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.sources[source]
	return a != nil && a.known
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
