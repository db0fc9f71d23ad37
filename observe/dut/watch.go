package dut

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/finding"
	"pelt/model"
	"pelt/observe/counters"
)

// patience is how long a moment waits for the router: what comes later tells of
// another moment. A router at its limit may take long; the trial must not.
const patience = 2 * time.Second

// Watch samples a router during one trial. Its methods may be called concurrently.
type Watch struct {
	r      *Router
	life   context.Context // ends with the watch
	end    context.CancelFunc
	asking sync.WaitGroup

	// All below is guarded by the Router's mu.
	snapshots counters.Snapshots
	missed    map[model.Moment]model.Reason // why a moment that was asked for has no snapshot
	readings  []reading
	begun     time.Time // from which the periodic samples are counted
	asked     time.Time // when the last sample was asked for
	measure   time.Time // zero until the measured part begins
	toward    []destination
	halted    map[netip.Addr]model.Route // when all was sent
	ended     bool                       // nothing is asked for any more but moments
	unsettled bool
}

// reading is a sample, when this host asked for it and had it, and in which life of the router.
type reading struct {
	sample
	sent, came time.Time
	session    *session
	boots      int
}

// destination is where a flow goes.
type destination struct {
	flow string
	to   netip.Addr
}

// maxToward bounds the flows whose routes a router is asked for.
const maxToward = 16

// Toward says where a flow goes: at the end of the trial the router is asked for its route. The first word on a flow
// counts, and those on more flows than a router should be asked for do not.
func (w *Watch) Toward(flow string, to netip.Addr) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	told := func(d destination) bool { return d.flow == flow }
	if to = plain(to); to.IsValid() && len(w.toward) < maxToward && !slices.ContainsFunc(w.toward, told) {
		w.toward = append(w.toward, destination{flow, to})
	}
}

// destinations are the arguments of a request for routes, each with a blank ahead. mu is held.
func (w *Watch) destinations() (words string) {
	told := map[netip.Addr]bool{}
	for _, d := range w.toward {
		if !told[d.to] {
			told[d.to] = true
			words += " " + d.to.String()
		}
	}
	return words
}

// maxReadings bounds the samples of a trial: a day and a half, at one a second.
const maxReadings = 1 << 17

// Begin opens the watch of one trial. Close must be called.
func (r *Router) Begin() *Watch {
	life, end := context.WithCancel(context.Background())
	w := &Watch{
		r: r, life: life, end: end, missed: map[model.Moment]model.Reason{}, begun: time.Now(),
	}
	w.asking.Go(w.loop)
	return w
}

// loop asks for a sample in each period, but for none ahead of an answer that is owed.
func (w *Watch) loop() {
	timer := time.NewTimer(w.next())
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if w.due() {
				w.sample(w.life, "")
			}
		case <-w.life.Done():
			return
		}
		timer.Reset(w.next())
	}
}

// next is how long it is to the next whole period since begun.
func (w *Watch) next() time.Duration {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	return w.r.period - time.Since(w.begun)%w.r.period
}

// due reports whether a periodic sample is wanted: that of a moment shortly before does for it, and the periods may
// have begun anew.
func (w *Watch) due() bool {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	half := w.r.period / 2
	return !w.ended && time.Since(w.asked) >= half && time.Since(w.begun)%w.r.period < half
}

// deadAfter is when a connection that answers nothing is given up; ssh's own
// ServerAlive ends it about then as well.
const deadAfter = time.Minute

// sample asks for one sample, of a moment or of none, and waits for it.
func (w *Watch) sample(ctx context.Context, name model.Moment) {
	r := w.r
	r.mu.Lock()
	session := r.current()
	w.asked = time.Now()
	to := w.destinations()
	r.mu.Unlock()
	var a reply
	err := errClosed
	what := askSample
	if name != "" {
		what = askMoment + " " + string(name) + to
	}
	within := session.momentPatience()
	if session != nil {
		if name != "" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, within)
			defer cancel()
		}
		a, err = session.exchange(ctx, what, deadAfter)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		if err = w.answered(session, name, a); err != nil {
			r.note(model.GapGarbled, finding.ReasonOf(err))
		}
	case errors.Is(err, errLong):
		r.note(model.GapGarbled, finding.ReasonOf(err))
	case ctx.Err() != nil:
		err = finding.NewFault(model.RouterSilent, "within_s", within.Seconds())
	}
	if err != nil && name != "" {
		w.missed[name] = finding.ReasonOf(err)
	}
}

// answered takes in an answer. mu is held.
func (w *Watch) answered(session *session, name model.Moment, a reply) error {
	r := w.r
	s, err := parseSample(a.body)
	if err != nil {
		return err
	}
	restarted := r.boot != s.boot && r.boot != "" && s.boot != "" || s.up < r.up-uptimeStep
	if restarted { // its counters began anew
		r.boots++
		for earlier := range w.snapshots.Moments() {
			w.missed[earlier] = model.Reason{Code: model.RouterRestarted}
		}
		w.snapshots = counters.Snapshots{}
	}
	r.boot, r.up = s.boot, s.up
	if n := len(w.readings); n > 0 && w.readings[n-1].session == session && !restarted {
		r.addCost(w.readings[n-1].sample, s)
	}
	if name != "" || a.came.Sub(w.snapshots.At("").Taken) >= counters.WidenEvery {
		machine := counters.Machine{LongBits: longBits(r.machine.machine), Hardware: r.machine.hardware}
		w.snapshots.Take(name, machine.Parse(a.came, s.texts))
		delete(w.missed, name)
	}
	s.texts = nil // the bulk of it
	if len(w.readings) == maxReadings {
		r.note(model.GapLong)
		return nil
	}
	w.readings = append(w.readings, reading{s, a.sent, a.came, session, r.boots})
	return nil
}

// uptimeStep is more than the step of /proc/uptime.
const uptimeStep = 0.05

// Snapshot samples the router. It waits for the answer, but at the begin of the
// measured part, when packets are under way already and the answer finds its place
// by its own time.
func (w *Watch) Snapshot(name model.Moment) {
	w.r.mu.Lock()
	switch name {
	case model.MomentMeasure:
		w.measure = time.Now()
		w.begun = w.measure
	case model.MomentEnd:
		w.ended = true
	}
	w.r.mu.Unlock()
	asked := make(chan struct{})
	w.asking.Go(func() {
		defer close(asked)
		w.sample(w.life, name)
	})
	if name != model.MomentMeasure {
		<-asked
	}
}

// Halt asks for the flows' routes when all packets are sent: what a kernel knows of a next hop that does not answer, it
// may forget soon after.
func (w *Watch) Halt(ctx context.Context) {
	w.r.mu.Lock()
	session, to := w.r.current(), w.destinations()
	w.r.mu.Unlock()
	if session == nil || to == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, session.momentPatience())
	defer cancel()
	a, err := session.exchange(ctx, askRoute+to, deadAfter)
	if err != nil {
		return // the end tells
	}
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.halted = counters.ParseRoutes(a.body)
}

// plain is an address as a request has it.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// stillFor is seldom: each answer costs the router something.
const stillFor = 200 * time.Millisecond

// Settle waits until the router's counters stand still, as far as it answers. lost
// says that packets are missing, so that ports that tell their figures seldom are
// worth waiting for.
func (w *Watch) Settle(ctx context.Context, lost bool) {
	last := counters.Snapshot{}
	settled := counters.Settle(ctx, stillFor, lost, func() (counters.Snapshot, bool) {
		w.Snapshot(model.MomentEnd)
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		now := w.snapshots.At(model.MomentEnd)
		answered := now.Taken.After(last.Taken)
		last = now
		return now, answered
	})
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.unsettled = !settled
}

// Cores is the busy share of each core between the newest two samples; none if a later one is owed, or the router
// restarted.
func (w *Watch) Cores() map[int]float64 {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	n := len(w.readings)
	if n < 2 {
		return nil
	}
	from, to := w.readings[n-2], w.readings[n-1]
	if from.boots != to.boots || time.Since(to.came) > 2*w.r.period {
		return nil
	}
	return to.Busy(from.Processors)
}

// Report returns what the router's kernel counted, under the same names as an end's
// counters. A router that restarted meanwhile has counted from zero, so nothing of
// it is told.
func (w *Watch) Report() (o model.Observation) {
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	defer o.Clamp(nil) // the names are the router's
	o = model.Observation{
		Mode: model.DropsOff, Why: model.Reasons{{Code: model.ByCounters}},
		Boot: r.boot, Namespace: r.machine.namespace, Unsettled: w.unsettled,
		Queues: w.snapshots.Queues(),
	}
	for _, d := range w.toward {
		route := counters.Surer(w.halted[d.to], w.snapshots.At(model.MomentEnd).Route(d.to))
		if route.Flow = d.flow; route.Kind != "" {
			o.Routes = append(o.Routes, route)
		}
	}
	for _, m := range []model.Moment{model.MomentIdle, model.MomentStart, model.MomentMeasure, model.MomentEnd} {
		if why, missed := w.missed[m]; missed {
			o.Unread = append(o.Unread, model.Reason{Code: model.Unread, Name: string(m), Of: model.Reasons{why}})
		}
	}
	if !w.snapshots.Describe(&o) {
		o.Unread = append(o.Unread, model.Reason{Code: model.NotObserved})
		return o
	}
	if w.snapshots.At(model.MomentMeasure).Taken.IsZero() && !w.measure.IsZero() {
		o.Unread = append(o.Unread, model.Reason{Code: model.WarmupCounted})
	}
	if len(o.Counters) == 0 {
		o.Unread = append(o.Unread, model.Reason{Code: model.NoCounters})
	}
	return o
}

// Close ends the watch; it may be called more than once.
func (w *Watch) Close() error {
	w.end()
	w.asking.Wait()
	return nil
}
