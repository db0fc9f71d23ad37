package fleet

import (
	"sync"
	"time"
)

const (
	beatEvery   = 250 * time.Millisecond
	silentAfter = 2500 * time.Millisecond // with one beat's delay this stays below 3 s
	// calmAfter is for times in which nothing is sent. Then no packet shows that the other side lives, and TCP on a
	// path that loses much may be silent for as long as its time-outs grow.
	calmAfter = 8 * time.Second
)

// controllerName is what the controller is called beside agents' IDs.
const controllerName = "controller"

// liveness knows when parties were heard last: the controller by an agent, the agents by the controller.
type liveness struct {
	window time.Duration // such a silence is allowed at any time: for reconnecting, or until a trial has begun

	mu     sync.Mutex
	after  time.Duration // so long a silence is too long
	ticked time.Time     // last tick
	from   map[string]*heard
}

type heard struct {
	at   time.Time
	late time.Duration // that this process itself was held up since
}

func newLiveness(now time.Time, window time.Duration) *liveness {
	return &liveness{window: window, after: max(silentAfter, window), ticked: now, from: map[string]*heard{}}
}

// expect begins to wait for signs of life of a party.
func (l *liveness) expect(who string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from[who] = &heard{at: now}
}

// forget ends that: the party may be silent.
func (l *liveness) forget(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.from, who)
}

// allow sets the reconnect window, which counts from the next calm on.
func (l *liveness) allow(window time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window = window
}

// calm(true) allows longer silences, for times in which nobody sends; calm(false) ends that. Silences then count from
// now on, because all parties took an order just now.
func (l *liveness) calm(on bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.after
	if l.after = max(silentAfter, l.window); on {
		l.after = max(calmAfter, l.window)
	}
	if l.after >= was {
		return
	}
	for _, e := range l.from {
		e.at, e.late = now, 0
	}
}

// shorten lowers the reconnect window to a tenth of the measured time when the senders' time is over: a test of 10 s
// should not wait a minute for its account.
func (l *liveness) shorten(measured time.Duration, now time.Time) {
	l.allow(min(l.window, measured/10))
	l.calm(true, now)
}

// queued is how long test packets that come may have waited on the way: a flood fills the queues, and goes on coming
// out of them when its sender is gone.
const queued = time.Second

// note records a sign of life that a party gave at some time.
func (l *liveness) note(who string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.from[who]; e != nil && at.After(e.at) {
		e.at, e.late = at, 0
	}
}

// tick is called once each beatEvery. While this process gets no processor time it hears
// nothing, so that time, up to maxForgiven, does not count as others' silence; a late tick that
// the next one makes up for is no such time. judge is false after a long pause: heartbeats
// that came meanwhile are heard first.
func (l *liveness) tick(now time.Time) (judge bool) {
	const maxForgiven, longPause = 2 * time.Second, time.Second
	l.mu.Lock()
	defer l.mu.Unlock()
	late := now.Sub(l.ticked) - beatEvery
	l.ticked = now
	for _, e := range l.from {
		e.late = min(max(e.late+late, 0), maxForgiven)
	}
	return late < longPause
}

// silent names a party not heard for too long.
func (l *liveness) silent(now time.Time) (who string, after time.Duration, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w, e := range l.from {
		if now.Sub(e.at)-e.late >= l.after {
			return w, l.after, true
		}
	}
	return "", l.after, false
}
