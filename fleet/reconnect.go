package fleet

import (
	"math"
	"math/rand/v2"
	"net"
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

func (l *link) noteHeard(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = now
}

// reconnecting are the options of a link to another host.
func (l *link) reconnecting() []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(l.redialDelay),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { l.setConnected(false) }),
		nats.ReconnectHandler(func(*nats.Conn) { l.setConnected(true) }),
	}
}

// redialDelay is the wait before another try. The agents of a fleet, which lose their hub together, come back one by
// one.
func (l *link) redialDelay(tries int) time.Duration {
	if l.agent == "" {
		return redialEvery
	}
	longest := min(redialEvery<<min(tries, 8), redialAtMost)
	return redialEvery + rand.N(longest)
}

// reconnection returns a channel that is closed at the next connection of the link.
func (l *link) reconnection() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again
}

// setConnected notes that the connection broke, or is back.
func (l *link) setConnected(connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Load() {
		return
	}
	now := time.Now()
	l.broke = now
	if connected {
		l.broke, l.tried = time.Time{}, now // nothing can have come over it yet
		close(l.again)
		l.again = make(chan struct{})
	}
	l.told(connected)
}

// away is for how long the link has not been connected; for ever if it is lost.
func (l *link) away(now time.Time) time.Duration {
	select {
	case <-l.lost: // the client would not say so before it has dialed
		return math.MaxInt64
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broke.IsZero() {
		return 0
	}
	return now.Sub(l.broke)
}

func (l *link) socket() net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.raw
}

// silence is since when nothing has come over the link, if that is long.
func (l *link) silence(now time.Time) (since time.Time, long bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard, now.Sub(l.heard) >= gapAfter
}

// forceReconnect gives up the connection, because nothing comes over it, and dials anew.
func (l *link) forceReconnect(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isDialed := !l.broke.IsZero(); isDialed || now.Sub(l.tried) < gapAfter {
		return
	}
	l.tried = now
	go func() { // the client's lock may be held by a writer, or by one that dials
		if l.nc.Opts.AllowReconnect && l.nc.IsConnected() && l.lastTried().Equal(now) {
			_ = l.nc.ForceReconnect() // fails only if it is closed
		}
	}()
}

// lastTried is when the connection was made anew last, or is to be.
func (l *link) lastTried() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried
}
