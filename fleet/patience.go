package fleet

import (
	"net"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	redialEvery    = 250 * time.Millisecond
	redialPatience = 2 * time.Second
	// regreetPatience is for the greetings on a connection that was made anew; a hub that
	// slows down wrong codes may take longer, and is tried again.
	regreetPatience = 3 * time.Second
	// gapAfter without anything over a connection, and it is made anew: TCP itself would
	// wait twice as long each time, and try the last time long before a minute is over.
	gapAfter = 3 * time.Second
)

// heardEpoch is what links count from.
var heardEpoch = time.Now()

// hears notes that something came over the link.
func (l *link) hears(now time.Time) { l.heard.Store(int64(now.Sub(heardEpoch))) }

// silence is how long nothing has come over the link.
func (l *link) silence(now time.Time) time.Duration {
	return now.Sub(heardEpoch) - time.Duration(l.heard.Load())
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
func (l *link) hold(patience time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.patience = patience
	l.hears(time.Now())
	if patience == 0 && l.overdue != nil {
		l.overdue.Reset(0)
	}
}

func (l *link) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.patience > 0
}

// renewed returns what is closed when the link is connected again, and whether it
// would be.
func (l *link) renewed() (again <-chan struct{}, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again, l.patience > 0
}

func (l *link) broke(nc *nats.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.patience == 0 || l.closing.Load() {
		go nc.Close() // calls back, so not from here
		return
	}
	if l.overdue == nil {
		l.overdue = time.AfterFunc(l.patience, nc.Close)
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

// Gap is a time in which nothing came over a control connection that was waited for.
type Gap struct {
	Nodes    []string      // that were not heard
	From, To time.Duration // since the measured part began; below 0 in the warm-up
}

// gaps are those of a trial's connections; guarded by its lock.
type gaps struct {
	begun time.Time // when the measured part began; zero until all are told to start
	open  map[*link]time.Time
	tried map[*link]time.Time
	all   []Gap
}

// interrupted notes connections over which nothing comes, and has them made anew.
// Until the trial runs it does nothing: the orders before are given once, and a host
// that works on one for long may say nothing meanwhile.
func (t *trial) interrupted(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gaps.begun.IsZero() {
		return
	}
	for _, l := range t.c.links {
		if l.socket(nil) == nil || !l.holds() {
			continue
		}
		from, open := t.gaps.open[l]
		switch silence := l.silence(now); {
		case silence >= gapAfter:
			if !open {
				t.gaps.open[l] = now.Add(-silence)
			}
			if now.Sub(t.gaps.tried[l]) >= gapAfter {
				t.gaps.tried[l] = now
				go l.renew() // may wait for a writer
			}
		case open:
			t.close(l, from, now.Add(-silence))
		}
	}
}

// close notes a gap that is over; the caller holds the lock.
func (t *trial) close(l *link, from, to time.Time) {
	delete(t.gaps.open, l)
	g := Gap{From: from.Sub(t.gaps.begun), To: to.Sub(t.gaps.begun)}
	for _, id := range t.agents {
		if m := t.c.members[id]; m.link == l && !t.isLocal(id) {
			g.Nodes = append(g.Nodes, m.info.Node)
		}
	}
	t.gaps.all = append(t.gaps.all, g)
}
