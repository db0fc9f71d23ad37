package fleet

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	redialEvery   = 250 * time.Millisecond
	redialAtMost  = 10 * time.Second
	redialTimeout = 2 * time.Second
	// regreetTimeout is for the greetings on a connection that was made anew; a hub that
	// slows down wrong codes may take longer, and is tried again.
	regreetTimeout = 3 * time.Second
	// gapAfter without anything over a connection, and it is made anew: TCP itself would
	// wait twice as long each time, and try the last time long before a minute is over.
	gapAfter = 3 * time.Second
)

// noteHeard notes that something came over the link.
func (l *link) noteHeard(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = now
}

// reconnecting are the options of a link that may be held.
func (l *link) reconnecting() []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(l.redialDelay),
		nats.DisconnectErrHandler(func(nc *nats.Conn, _ error) { l.onDisconnect(nc) }),
		nats.ReconnectHandler(func(*nats.Conn) { l.onReconnect() }),
	}
}

// redialDelay is the wait before another try. The hosts of a fleet, which lose their hub together, come back one by
// one.
func (l *link) redialDelay(tries int) time.Duration {
	if !l.stays {
		return redialEvery
	}
	longest := min(redialEvery<<min(tries, 8), redialAtMost)
	return redialEvery + rand.N(longest)
}

// hold sets for how long a broken link is redialed; 0 ends that. A link that stays is redialed anyway: for it, a
// window only makes gaps count.
func (l *link) hold(window time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.raw == nil && !l.stays { // it does not leave the process
		return
	}
	l.window, l.heard, l.silent = window, time.Now(), time.Time{}
	if window == 0 && l.overdue != nil {
		l.overdue.Reset(0)
	}
}

// reconnection returns a channel that is closed at the next connection of the link. held is false if a broken link is
// not redialed.
func (l *link) reconnection() (again <-chan struct{}, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again, l.window > 0 || l.stays
}

func (l *link) onDisconnect(nc *nats.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing.Load(), l.window == 0 && !l.stays:
		go nc.Close() // calls back, so not from here
		return
	case l.stays:
		l.told(false)
		return
	}
	if l.overdue == nil {
		l.overdue = time.AfterFunc(l.window, nc.Close)
	}
}

func (l *link) onReconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.overdue != nil {
		l.overdue.Stop()
		l.overdue = nil
	}
	close(l.again)
	l.again = make(chan struct{})
	if l.stays {
		l.told(true)
	}
}

// forceReconnect gives up the connection, because nothing comes over it, and dials anew.
func (l *link) forceReconnect() {
	if l.nc.IsConnected() {
		_ = l.nc.ForceReconnect() // fails only if it is closed
	}
}

// socket returns the link's.
func (l *link) socket() net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.raw
}

// replace notes the socket of a new connection, and the address from which the hub sees it come.
func (l *link) replace(now net.Conn, seen netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raw, l.seen = now, seen
}

// quiet reports whether nothing has come for gapAfter over a link that is held.
func (l *link) quiet(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.window > 0 && now.Sub(l.heard) >= gapAfter
}

// gap has a link that is held made anew while nothing comes over it, and tells when such a
// time is over.
func (l *link) gap(now time.Time) (from, to time.Time, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.window == 0:
	case now.Sub(l.heard) >= gapAfter: // as quiet has it
		l.silent = l.heard
		if now.Sub(l.tried) >= gapAfter {
			l.tried = now
			go l.forceReconnect() // may wait for a writer
		}
	case !l.silent.IsZero():
		from, to, over = l.silent, l.heard, true
		l.silent = time.Time{}
	}
	return from, to, over
}
