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

// liveness knows how far each party of a session has come, in numbers that only
// the controller counts.
type liveness struct {
	window time.Duration // for reconnecting: such a silence is allowed at any time

	mu      sync.Mutex
	after   time.Duration // so long a silence is too long
	opened  time.Time
	counted uint64    // the newest number; 0 unless this process is the controller
	ticked  time.Time // last tick
	from    map[string]*heard
}

type heard struct {
	number uint64
	at     time.Time     // when it last advanced
	late   time.Duration // that this process itself was held up since
	counts bool          // its silence does
}

func newLiveness(now time.Time, window time.Duration) *liveness {
	return &liveness{window: window, after: max(silentAfter, window), opened: now, ticked: now,
		from: map[string]*heard{controllerName: {at: now, counts: true}}}
}

// expect begins to wait for signs of life of a party. counts: the trial ends when the party is silent for too long.
func (l *liveness) expect(who string, now time.Time, counts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from[who] == nil {
		l.from[who] = &heard{}
	}
	e := l.from[who]
	e.at, e.late, e.counts = now, 0, counts
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
	l.mu.Lock()
	l.window = min(l.window, measured/10)
	l.mu.Unlock()
	l.calm(true, now)
}

// count notes the number that this process, the controller, made last: no greater one can be true.
func (l *liveness) count(number uint64, now time.Time) {
	l.mu.Lock()
	l.counted = number
	l.mu.Unlock()
	l.noteNumber(controllerName, number, now)
}

// noteBeat records the numbers in a heartbeat: its sender's, and those of the parties that its sender heard.
func (l *liveness) noteBeat(who string, b beat, now time.Time) {
	l.noteNumber(who, b.Number, now)
	for peer, n := range b.Heard {
		l.noteNumber(peer, n, now)
	}
}

// noteNumber records that a party has heard of a number. Only the controller makes numbers, so a greater one is also
// a sign of the controller. A number that the controller cannot have reached is dropped: accepting it would hide
// every later heartbeat.
func (l *liveness) noteNumber(who string, number uint64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const slack = 512 // numbers counted before this session was opened here
	most := uint64(now.Sub(l.opened)/beatEvery)*2 + slack
	if l.counted > 0 {
		most = l.counted
	}
	if number > most {
		return
	}
	for _, w := range []string{who, controllerName} {
		if e := l.from[w]; e != nil && number > e.number {
			e.number, e.at, e.late = number, now, 0
		}
	}
}

// queued is how long what comes may have waited on the way: a flood fills the
// queues, and goes on coming out of them when its sender is gone.
const queued = time.Second

// notePackets records that packets of a flow came from a party.
func (l *liveness) notePackets(who string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.from[who]; e != nil && now.Add(-queued).After(e.at) {
		e.at, e.late = now.Add(-queued), 0
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

// highest is the number to pass on.
func (l *liveness) highest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from[controllerName].number
}

// numbers returns how far each party but the controller has come.
func (l *liveness) numbers() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]uint64{}
	for w, e := range l.from {
		if w != controllerName {
			out[w] = e.number
		}
	}
	return out
}

// silenceOf returns for how long a party has not been heard, and whether its silence counts.
func (l *liveness) silenceOf(who string, now time.Time) (since time.Duration, counts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.from[who]
	return now.Sub(e.at) - e.late, e.counts
}

// silent names a party not heard for too long, the controller first.
func (l *liveness) silent(now time.Time) (who string, after time.Duration, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w, e := range l.from {
		if e.counts && now.Sub(e.at)-e.late >= l.after && (!found || w == controllerName) {
			who, found = w, true
		}
	}
	return who, l.after, found
}
