package fleet

import (
	"sync"
	"time"
)

const (
	beatEvery   = 250 * time.Millisecond
	silentAfter = 2500 * time.Millisecond // with one beat's delay this stays below 3 s
)

// controllerName is what the controller is called beside agents' IDs.
const controllerName = "controller"

// hearing knows how far each party of a session has come, in numbers that only
// the controller counts.
type hearing struct {
	after  time.Duration // so long a silence is too long
	mu     sync.Mutex
	opened time.Time
	ticked time.Time // last tick
	from   map[string]*heard
}

type heard struct {
	number uint64
	at     time.Time     // when it last advanced
	late   time.Duration // that this process itself was held up since
	exempt bool          // its silence does not count yet
}

func newHearing(now time.Time, patience time.Duration) *hearing {
	return &hearing{after: max(silentAfter, patience), opened: now, ticked: now, from: map[string]*heard{controllerName: {at: now}}}
}

// await makes the silence of these parties count from now on.
func (h *hearing) await(now time.Time, who ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range who {
		if h.from[w] == nil {
			h.from[w] = &heard{}
		}
		h.from[w].at, h.from[w].late, h.from[w].exempt = now, 0, false
	}
}

// expect lets a party be heard without counting its silence.
func (h *hearing) expect(now time.Time, who ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range who {
		if h.from[w] == nil {
			h.from[w] = &heard{at: now, exempt: true}
		}
	}
}

// hear records that who has come as far as number. That is a sign of the
// controller too, for it alone can have made the number. A number the
// controller cannot have reached is dropped: it would deafen us for good.
func (h *hearing) hear(who string, number uint64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	const slack = 512 // numbers counted before this session was opened here
	if number > uint64(now.Sub(h.opened)/beatEvery)*2+slack {
		return
	}
	for _, w := range []string{who, controllerName} {
		if e := h.from[w]; e != nil && number > e.number {
			e.number, e.at, e.late = number, now, 0
		}
	}
}

// queued is how long what comes may have waited on the way: a flood fills the
// queues, and goes on coming out of them when its sender is gone.
const queued = time.Second

// alive records that something else than a number came from who.
func (h *hearing) alive(who string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.from[who]; e != nil && now.Add(-queued).After(e.at) {
		e.at, e.late = now.Add(-queued), 0
	}
}

// tick is called once each beatEvery. A process that got no processor time
// could neither hear nor be at fault, so that time does not count as others'
// silence, up to maxForgiven; a tick that is late and the next that comes the sooner for
// it are none of it. judge is false after a long pause: beats that
// came meanwhile are heard first.
func (h *hearing) tick(now time.Time) (judge bool) {
	const maxForgiven, longPause = 2 * time.Second, time.Second
	h.mu.Lock()
	defer h.mu.Unlock()
	late := now.Sub(h.ticked) - beatEvery
	h.ticked = now
	for _, e := range h.from {
		e.late = min(max(e.late+late, 0), maxForgiven)
	}
	return late < longPause
}

// highest is the number to pass on.
func (h *hearing) highest() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.from[controllerName].number
}

// numbers returns how far each party but the controller has come.
func (h *hearing) numbers() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]uint64{}
	for w, e := range h.from {
		if w != controllerName {
			out[w] = e.number
		}
	}
	return out
}

// silent names a party not heard for too long, the controller first.
func (h *hearing) silent(now time.Time) (who string, found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w, e := range h.from {
		if !e.exempt && now.Sub(e.at)-e.late >= h.after && (!found || w == controllerName) {
			who, found = w, true
		}
	}
	return who, found
}
