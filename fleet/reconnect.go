package fleet

import (
	"net"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	redialEvery   = 250 * time.Millisecond
	redialTimeout = 2 * time.Second
	// regreetTimeout is for the greetings on a connection that was made anew; a hub that
	// slows down wrong codes may take longer, and is tried again.
	regreetTimeout = 3 * time.Second
	// gapAfter without anything over a connection, and it is made anew: TCP itself would
	// wait twice as long each time, and try the last time long before a minute is over.
	gapAfter = 3 * time.Second
)

// hears notes that something came over the link.
func (l *link) hears(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = now
}

// reconnecting are the options of a link that may be held.
func (l *link) reconnecting() []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(redialEvery), nats.ReconnectJitter(0, 0),
		nats.DisconnectErrHandler(func(nc *nats.Conn, _ error) { l.broke(nc) }),
		nats.ReconnectHandler(func(*nats.Conn) { l.returned() }),
	}
}

// hold has the link made anew when it breaks, for so long; 0 ends that.
func (l *link) hold(window time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.raw == nil { // it does not leave the process
		return
	}
	l.window, l.heard, l.silent = window, time.Now(), time.Time{}
	if window == 0 && l.overdue != nil {
		l.overdue.Reset(0)
	}
}

func (l *link) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.window > 0
}

// renewed returns what is closed when the link is connected again, and whether it
// would be.
func (l *link) renewed() (again <-chan struct{}, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again, l.window > 0
}

func (l *link) broke(nc *nats.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window == 0 || l.closing.Load() {
		go nc.Close() // calls back, so not from here
		return
	}
	if l.overdue == nil {
		l.overdue = time.AfterFunc(l.window, nc.Close)
	}
}

func (l *link) returned() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.overdue != nil {
		l.overdue.Stop()
		l.overdue = nil
	}
	close(l.again)
	l.again = make(chan struct{})
}

// renew gives up a connection over which nothing comes.
func (l *link) renew() {
	if l.nc.IsConnected() {
		_ = l.nc.ForceReconnect() // fails only if it is closed
	}
}

// socket returns the link's, and puts another in its place if there is one.
func (l *link) socket(now net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now != nil {
		l.raw = now
	}
	return l.raw
}

// gap has a link that is held made anew while nothing comes over it, and tells when such a
// time is over.
func (l *link) gap(now time.Time) (from, to time.Time, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.window == 0:
	case now.Sub(l.heard) >= gapAfter:
		l.silent = l.heard
		if now.Sub(l.tried) >= gapAfter {
			l.tried = now
			go l.renew() // may wait for a writer
		}
	case !l.silent.IsZero():
		from, to, over = l.silent, l.heard, true
		l.silent = time.Time{}
	}
	return from, to, over
}
