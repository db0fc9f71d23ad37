package dut

import (
	"context"
	"fmt"
	"sync"
	"time"

	"pelt/model"
	"pelt/observe/counters"
)

// patience is how long a moment waits for the router: what comes later tells of
// another moment. A router at its limit may take long; the trial must not.
const patience = 2 * time.Second

// Watch samples a router during one trial. It satisfies engine.Observation; its
// methods may be called concurrently.
type Watch struct {
	r *Router

	// All below is guarded by the Router's mu.
	wanted  []*want // moments to be asked for, the first one next
	shots   map[model.Moment]shot
	unshot  []string // why a moment has no shot, a line each
	taken   []taken
	dropped int       // samples beyond maxTaken
	broken  []string  // what could not be read of samples, each once
	begun   time.Time // from which the periodic samples are counted
	asked   time.Time // when the last sample was asked for
	measure time.Time // zero until the measured part begins
	ended   bool      // nothing is asked for any more but what is wanted

	unsettled bool
	timer     *time.Timer
	quit      chan struct{}
	closing   sync.Once
	looped    chan struct{}
}

// taken is a sample, when this host asked for it and had it, and in which life and
// with which period of the router.
type taken struct {
	sample
	sent, came time.Time
	session    *session
	era        int
	period     time.Duration
}

// maxTaken bounds the samples of a trial: a day and a half, at one a second.
const maxTaken = 1 << 17

type want struct {
	moment    model.Moment
	since     time.Time
	done      chan struct{}
	abandoned bool
}

// shot is the counters of one moment.
type shot struct {
	counters counters.Snapshot
	up       float64
	boot     string
	era      int
}

// Begin opens the watch of one trial. Close must be called.
func (r *Router) Begin(trial uint16) *Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &Watch{
		r: r, shots: map[model.Moment]shot{}, begun: time.Now(),
		timer: time.NewTimer(r.period), quit: make(chan struct{}), looped: make(chan struct{}),
	}
	go w.loop()
	return w
}

func (w *Watch) loop() {
	defer close(w.looped)
	for {
		select {
		case <-w.timer.C:
			w.tick()
		case <-w.quit:
			return
		}
	}
}

// tick asks for the sample that is due. While the router owes an answer, or is
// away, the sample is counted as missed: none is asked for ahead.
func (w *Watch) tick() {
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	w.schedule(now)
	session := r.current()
	if session == nil {
		if !w.ended {
			r.outages.miss()
		}
		return
	}
	if since, ok := session.asking(); ok {
		if !w.ended && now.Sub(since) >= r.period/2 { // else the sample just under way does for it
			r.outages.begin(since, "the router did not answer in time", false)
			r.outages.miss()
		}
		if now.Sub(since) >= deadAfter {
			session.shell.Kill() // keep connects again
		}
		return
	}
	if len(w.wanted) > 0 {
		w.pump()
		return
	}
	if w.ended {
		return
	}
	if now.Sub(w.asked) >= r.period/2 { // else that of a moment does for it
		w.ask(nil)
	}
}

// deadAfter is when a connection that answers nothing is given up; ssh's own
// ServerAlive ends it about then as well.
const deadAfter = time.Minute

// schedule sets the timer to the next whole period since begun.
func (w *Watch) schedule(now time.Time) {
	period := w.r.period
	w.timer.Reset(period - now.Sub(w.begun)%period)
}

// ask sends a request, for a moment or for none.
func (w *Watch) ask(m *want) bool {
	s := w.r.current()
	ok := s != nil && s.ask("sample", func(a reply) { w.answered(s, m, a) })
	if ok {
		w.asked = time.Now()
	}
	return ok
}

// pump asks for what is wanted, if the router owes nothing.
func (w *Watch) pump() {
	for len(w.wanted) > 0 && w.r.current() != nil {
		m := w.wanted[0]
		if !m.abandoned && !w.ask(m) {
			return
		}
		w.wanted = w.wanted[1:]
		if !m.abandoned {
			return
		}
	}
}

func (w *Watch) answered(session *session, m *want, a reply) {
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	defer w.pump()
	if r.session == session {
		r.outages.end(a.came)
	}
	if m != nil {
		defer close(m.done)
	}
	s, err := session.talk.sample(a)
	if err != nil {
		w.note(err.Error())
		return
	}
	restarted := r.boot != s.boot && r.boot != "" && s.boot != "" || s.up < r.up-uptimeStep
	if restarted {
		r.era++
	}
	r.boot, r.up = s.boot, s.up
	t := taken{s, a.sent, a.came, session, r.era, r.period}
	if n := len(w.taken); n > 0 && w.taken[n-1].session == session && !restarted {
		before := r.period
		if r.period = r.account.add(w.taken[n-1].sample, s, a.came, r.period, r.maxCost); r.period != before {
			w.schedule(time.Now())
		}
	}
	if m != nil && !m.abandoned {
		if late := a.came.Sub(m.since); late > patience {
			w.unshot = append(w.unshot, fmt.Sprintf("%s: the router answered only after %.1f s", m.moment, late.Seconds()))
		} else {
			w.shots[m.moment] = w.shoot(t)
		}
	}
	t.texts = counters.Texts{} // the bulk of it
	if len(w.taken) == maxTaken {
		w.dropped++
		return
	}
	w.taken = append(w.taken, t)
}

// uptimeStep is more than the step of /proc/uptime.
const uptimeStep = 0.05

func (w *Watch) shoot(t taken) shot {
	texts := t.texts
	texts.LongBits = longBits(w.r.machine.machine)
	texts.Hardware = func(name string) bool { return w.r.machine.hardware[name] }
	return shot{counters.Parse(t.came, texts), t.up, t.boot, t.era}
}

// note keeps a fault, a few of them, each once.
func (w *Watch) note(line string) {
	for _, known := range w.broken {
		if known == line {
			return
		}
	}
	if len(w.broken) < 8 {
		w.broken = append(w.broken, line)
	}
}

// Track does nothing: no flow ends on a router.
func (w *Watch) Track(model.Flow, []model.Tuple) error { return nil }

// Snapshot samples the router. It waits for the answer, but at the begin of the
// measured part, when packets are under way already and the answer finds its place
// by its own time.
func (w *Watch) Snapshot(moment model.Moment) {
	r := w.r
	r.mu.Lock()
	m := &want{moment: moment, since: time.Now(), done: make(chan struct{})}
	switch moment {
	case model.MomentMeasure:
		w.measure, w.begun = m.since, m.since
		w.schedule(m.since)
	case model.MomentEnd:
		w.ended = true
	}
	session := r.current()
	if session == nil {
		w.unshot = append(w.unshot, string(moment)+": the connection was closed")
		r.mu.Unlock()
		return
	}
	gone := session.done
	w.wanted = append(w.wanted, m)
	w.pump()
	r.mu.Unlock()
	if moment == model.MomentMeasure {
		return
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	why := ""
	select {
	case <-m.done:
		return
	case <-gone:
		why = "the connection was closed"
	case <-late.C:
		why = fmt.Sprintf("the router did not answer within %v", patience)
	case <-w.quit:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-m.done: // just then
		return
	default:
	}
	m.abandoned = true
	w.unshot = append(w.unshot, string(moment)+": "+why)
}

// What Settle waits for. It asks seldom: each answer costs the router something.
const (
	stillFor  = 200 * time.Millisecond
	stillPast = time.Second // when foreign traffic never lets the counters stand still
)

// Settle waits until the router's counters stand still, as far as it answers. lost
// says that packets are missing, so that ports that tell their figures seldom are
// worth waiting for.
func (w *Watch) Settle(ctx context.Context, lost bool) {
	w.Snapshot(model.MomentEnd)
	last, ok := w.last()
	if !ok {
		return
	}
	wait := stillFor
	if lost {
		wait = max(wait, last.counters.Settling())
	}
	for begun := time.Now().Add(wait); ; wait = stillFor {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		w.Snapshot(model.MomentEnd)
		now, _ := w.last()
		answered := !now.counters.Taken.Equal(last.counters.Taken)
		if answered && !counters.Moving(last.counters, now.counters) {
			return
		}
		if !answered || ctx.Err() != nil || time.Since(begun) > stillPast {
			w.r.mu.Lock()
			w.unsettled = true
			w.r.mu.Unlock()
			return
		}
		last = now
	}
}

func (w *Watch) last() (shot, bool) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	s, ok := w.shots[model.MomentEnd]
	return s, ok
}

// Report returns what the router's kernel counted, under the same names as an end's
// counters. A router that restarted meanwhile has counted from zero, so nothing of
// it is told.
func (w *Watch) Report() model.Observation {
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	o := model.Observation{
		Mode: model.DropsOff, Why: "a router under test is watched by its counters",
		Boot: r.boot, Namespace: r.machine.namespace, Unsettled: w.unsettled,
	}
	idle, start, measure, end := w.shots[model.MomentIdle], w.shots[model.MomentStart], w.shots[model.MomentMeasure], w.shots[model.MomentEnd]
	o.Unread = append(o.Unread, w.broken...)
	o.Unread = append(o.Unread, w.unshot...)
	_, started := w.shots[model.MomentStart]
	_, over := w.shots[model.MomentEnd]
	switch {
	case !started || !over:
		o.Unread = append(o.Unread, "no counters: the router was not observed at the begin and at the end")
		return o
	case start.era != end.era:
		o.Unread = append(o.Unread, "no counters: the router restarted during the trial")
		return o
	}
	if idle.era != start.era {
		idle = shot{}
	}
	if !idle.counters.Taken.IsZero() {
		o.IdleS = start.counters.Taken.Sub(idle.counters.Taken).Seconds()
	}
	if measure.counters.Taken.IsZero() && !w.measure.IsZero() {
		o.Unread = append(o.Unread, "the counters' figures hold the warm-up: the router was not observed when it was over")
	}
	o.Counters = counters.Diff(idle.counters, start.counters, measure.counters, end.counters, o.IdleS)
	o.Unread = append(o.Unread, end.counters.Unread...)
	if len(o.Counters) == 0 {
		o.Unread = append(o.Unread, "no counters: the router tells none")
	}
	return o
}

// Close ends the watch; it may be called more than once.
func (w *Watch) Close() error {
	w.closing.Do(func() {
		w.r.mu.Lock()
		w.ended, w.wanted = true, nil
		w.r.mu.Unlock()
		close(w.quit)
	})
	<-w.looped
	w.timer.Stop()
	return nil
}
