package fleet

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// door lets clients in by NATS's nkey challenge with a key made from the code.
type door struct {
	public string // key of the code; "" lets everybody in
	guard  *guard
	events func(text string)
	closed chan struct{} // with the hub
}

var hexName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Check is called by the server on the goroutine of the one connection, so a
// wait here delays nobody else.
func (d *door) Check(c server.ClientAuthentication) bool {
	tcp, ok := c.RemoteAddress().(*net.TCPAddr)
	if !ok { // a pipe of this process
		return true
	}
	from, client := tcp.AddrPort().Addr().Unmap(), c.GetOpts().Name
	if d.public != "" && !d.admits(c, from) || !hexName.MatchString(client) {
		return false
	}
	// A client speaks to agents and hears only what is meant for it.
	c.RegisterUser(&server.User{Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{
			Allow: []string{helloSubject, "pelt.agent.>", "pelt.session." + client + ".>"}},
		Subscribe: &server.SubjectPermission{
			Allow: []string{"pelt.inbox." + client + ".>", "pelt.session." + client + ".>"}},
	}})
	d.events(fmt.Sprintf("client connected from %v", from))
	return true
}

// admits finds out whether a client knows the code, and answers no sooner than the guard allows.
func (d *door) admits(c server.ClientAuthentication, from netip.Addr) bool {
	source, wait := d.guard.admit(from, time.Now())
	if source == nil {
		return false
	}
	right := d.knows(c)
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-d.closed:
		}
	}
	d.guard.answered(source, right)
	if !right {
		d.events(fmt.Sprintf("wrong code from %v", from))
	}
	return right
}

// knows checks the signature over the nonce of this very connection.
func (d *door) knows(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if len(c.GetNonce()) == 0 || subtle.ConstantTimeCompare([]byte(o.Nkey), []byte(d.public)) != 1 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(d.public)
	return err == nil && key.Verify(c.GetNonce(), signature) == nil
}

// guard slows whoever guesses codes. Each source address (an IPv6 /64 counts
// as one) may be wrong a few times for free; then its answers come one after
// the other, each later than the one before, right or wrong alike, so that
// neither hanging up early nor many connections at once buy more guesses. A
// source that would wait too long is refused without looking at its code.
type guard struct {
	firstDelay, maxDelay time.Duration

	mu      sync.Mutex
	sources map[netip.Prefix]*source
	waiting int // answers under way, of all sources
	wrongs  float64
	drained time.Time // when wrongs was last brought up to date
}

type source struct {
	wrong, pending int
	next           time.Time // the last answer promised to this source
}

const (
	freeGuesses   = 3
	maxQueue      = 10 * time.Second // longest wait for an answer; clients wait longer
	maxSources    = 4096
	maxWaiting    = 64
	manyWrongs    = 60               // undelayed wrong answers of all sources in one go ...
	wrongsRecover = 10 * time.Second // ... and one more each time this has passed
	crowdedDelay  = time.Second
)

func newGuard() *guard {
	return &guard{firstDelay: 250 * time.Millisecond, maxDelay: 3 * time.Second, sources: map[netip.Prefix]*source{}}
}

// admit promises an answer after wait; s is nil if the source asks too
// much. Each admitted question must be answered.
func (g *guard) admit(from netip.Addr, now time.Time) (s *source, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s = g.source(from, now)
	delay := time.Duration(0)
	if n := s.wrong + s.pending - freeGuesses; n >= 0 {
		delay = min(g.firstDelay<<min(n, 16), g.maxDelay)
	}
	g.wrongs = max(0, g.wrongs-float64(now.Sub(g.drained))/float64(wrongsRecover))
	g.drained = now
	if g.wrongs >= manyWrongs {
		delay = max(delay, min(crowdedDelay, g.maxDelay))
	}
	answer := now
	if delay > 0 {
		if s.next.After(now) {
			answer = s.next
		}
		answer = answer.Add(delay)
	}
	wait = answer.Sub(now)
	if wait > maxQueue || wait > 0 && g.waiting >= maxWaiting {
		return nil, 0
	}
	s.next = answer
	s.pending++
	g.waiting++
	return s, wait
}

// answered tells how a question that was admitted for a source ended.
func (g *guard) answered(s *source, right bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.pending--
	g.waiting--
	if right {
		s.wrong = 0
		return
	}
	s.wrong++
	g.wrongs++
}

// sourceOf is what counts as one source: an IPv4 address or an IPv6 /64. The
// zero address gives the zero prefix, a source like others.
func sourceOf(from netip.Addr) netip.Prefix {
	length := 32
	if from = from.Unmap(); from.Is6() {
		length = 64
	}
	key, _ := from.WithZone("").Prefix(length)
	return key
}

func (g *guard) source(from netip.Addr, now time.Time) *source {
	key := sourceOf(from)
	s := g.sources[key]
	if s == nil {
		if len(g.sources) >= maxSources {
			g.forget()
		}
		s = &source{next: now}
		g.sources[key] = s
	}
	return s
}

// forget makes room: the source that was answered longest ago may guess anew, which
// under many guesses still waits like every new one. Sources whose answers are under
// way stay; they are fewer than the connections of a hub.
func (g *guard) forget() {
	var oldest netip.Prefix
	var at *source
	for k, s := range g.sources {
		if s.pending == 0 && (at == nil || s.next.Before(at.next)) {
			oldest, at = k, s
		}
	}
	delete(g.sources, oldest)
}
