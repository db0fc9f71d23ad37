package fleet

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// guard bounds guesses: handshakes that were begun and did not end with the right code. Each source has
// a few, and strangers have a few together; both get more with time. A right answer takes its guess back.
type guard struct {
	mu        sync.Mutex
	sources   map[netip.Prefix]*guesses
	strangers guesses
	wrong     int // of all sources, since the code was made
}

// guesses are how many were made, as far as they are not forgotten.
type guesses struct {
	made  float64
	at    time.Time
	known bool // the source has given a right answer
}

// A code is one of some 7.6 million. At 20 guesses a minute, a day's are 0.4 % of these.
const (
	codeGuesses    = 20 // wrong ones of all sources, and the code is renewed
	codeAgain      = 3 * time.Second
	addressGuesses = 5 // of an IPv4 address or an IPv6 /64
	addressAgain   = time.Minute
	networkGuesses = 20 // of an IPv6 /48
	networkAgain   = 15 * time.Second
	maxSources     = 8192
)

func newGuard() *guard { return &guard{sources: map[netip.Prefix]*guesses{}} }

// left forgets what is old, and reports whether there is one guess more.
func (g *guesses) left(most int, again time.Duration, now time.Time) bool {
	g.made = max(0, g.made-float64(now.Sub(g.at))/float64(again))
	g.at = now
	return g.made <= float64(most-1)
}

// sourceOf is what counts as one source: an IPv4 address or an IPv6 /64. The zero address gives
// the zero prefix, a source like others.
func sourceOf(from netip.Addr) netip.Prefix {
	length := 32
	if from = from.Unmap(); from.Is6() {
		length = 64
	}
	key, _ := from.WithZone("").Prefix(length)
	return key
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

// begin takes a guess for a handshake; false: there is none left for this source.
func (g *guard) begin(from netip.Addr, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	address := g.source(sourceOf(from))
	taken := []*guesses{address}
	may := address.left(addressGuesses, addressAgain, now)
	if from.Is6() {
		p, _ := from.WithZone("").Prefix(48)
		network := g.source(p)
		taken = append(taken, network)
		may = network.left(networkGuesses, networkAgain, now) && may
	}
	if !Private(from) && !address.known {
		taken = append(taken, &g.strangers)
		may = g.strangers.left(codeGuesses, codeAgain, now) && may
	}
	if may {
		for _, t := range taken {
			t.made++
		}
	}
	return may
}

// right takes back the guess of a handshake that ended with the right code.
func (g *guard) right(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	address := g.source(sourceOf(from))
	if !Private(from) && !address.known {
		g.strangers.made = max(0, g.strangers.made-1)
	}
	address.made, address.known = max(0, address.made-1), true
	if from.Is6() {
		p, _ := from.WithZone("").Prefix(48)
		network := g.source(p)
		network.made = max(0, network.made-1)
	}
}

// guessed counts a wrong guess; renew says that the code has been tried often enough.
func (g *guard) guessed() (renew bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrong++; g.wrong < codeGuesses {
		return false
	}
	g.wrong = 0
	return true
}

// suspect reports whether a source has made wrong guesses.
func (g *guard) suspect(from netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sources[sourceOf(from)]
	return s != nil && s.made >= 1
}

// source finds what is known of a source. Of a few others the one seen longest ago makes room.
func (g *guard) source(p netip.Prefix) *guesses {
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
	s := &guesses{}
	g.sources[p] = s
	return s
}
