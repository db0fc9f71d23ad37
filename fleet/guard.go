package fleet

import (
	"net/netip"
	"sync"
	"time"
)

// guard counts guesses: handshakes that were begun and did not end with the right code. A source has
// a few, and one more each time guessAgain has passed; a right answer takes its guess back.
type guard struct {
	mu      sync.Mutex
	sources map[netip.Prefix]*guesses
	wrong   int // of all sources, since the code was made
}

// guesses of one source: how many it has made, as far as they are not forgotten.
type guesses struct {
	made float64
	at   time.Time
}

const (
	addressGuesses = 5  // of an IPv4 address or an IPv6 /64
	networkGuesses = 20 // of an IPv6 /48
	guessAgain     = 10 * time.Minute
	codeGuesses    = 20 // wrong ones of all sources, and the code is renewed
	maxSources     = 8192
)

func newGuard() *guard { return &guard{sources: map[netip.Prefix]*guesses{}} }

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

// begin takes a guess for a handshake; false: the source has none left.
func (g *guard) begin(from netip.Addr, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	address, network := g.source(sourceOf(from), now), (*guesses)(nil)
	if a := from.Unmap(); a.Is6() {
		p, _ := a.WithZone("").Prefix(48)
		network = g.source(p, now)
	}
	if address.made > addressGuesses-1 || network != nil && network.made > networkGuesses-1 {
		return false
	}
	address.made++
	if network != nil {
		network.made++
	}
	return true
}

// right takes back the guess of a handshake that ended with the right code.
func (g *guard) right(from netip.Addr, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	prefixes := []netip.Prefix{sourceOf(from)}
	if a := from.Unmap(); a.Is6() {
		p, _ := a.WithZone("").Prefix(48)
		prefixes = append(prefixes, p)
	}
	for _, p := range prefixes {
		s := g.source(p, now)
		s.made = max(0, s.made-1)
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

func (g *guard) source(p netip.Prefix, now time.Time) *guesses {
	s := g.sources[p]
	if s == nil {
		if len(g.sources) >= maxSources {
			g.forget(now)
		}
		s = &guesses{at: now}
		g.sources[p] = s
	}
	s.made = max(0, s.made-float64(now.Sub(s.at))/float64(guessAgain))
	s.at = now
	return s
}

// forget drops sources whose guesses are forgotten, and if there is none, the one seen longest ago.
func (g *guard) forget(now time.Time) {
	var oldest netip.Prefix
	for p, s := range g.sources {
		if float64(now.Sub(s.at)) > s.made*float64(guessAgain) {
			delete(g.sources, p)
		} else if at := g.sources[oldest]; at == nil || s.at.Before(at.at) {
			oldest = p
		}
	}
	if len(g.sources) >= maxSources {
		delete(g.sources, oldest)
	}
}
