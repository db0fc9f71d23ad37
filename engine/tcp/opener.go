package tcp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
)

const (
	// answerTime is how long an attempt may take. The kernel repeats a SYN after a
	// second (RFC 6298 section 2), so one that is lost costs no connection. It is
	// less than a sender may run past its order, so every attempt ends in time.
	answerTime = 2 * time.Second
	// maxUnderWay bounds the attempts of a flow under way; the listener drops the
	// oldest of maxGreeted callers that have not proved themselves.
	maxUnderWay = maxGreeted / 2
	// expireEvery is how often a thread looks for attempts that took too long.
	expireEvery = 10 * time.Millisecond
)

// opener is the sender's account of a flow of connections.
type opener struct {
	e    *end
	keep bool
	most int64 // that all ends may keep

	begun       time.Time // of the warm-up
	attempted   []count   // by stream, in the measured part
	refused     count     // of them: not taken by this host's kernel
	established count     // of them
	broken      count
	opened      atomic.Int64 // established and not ended yet
	underWay    atomic.Int64
	openMax     atomic.Int64
	perStep     []count
	sentStep    []count
	setUp       *measure.Histogram

	mu      sync.Mutex
	failed  map[string]uint64
	ended   string
	host    bool // ended by this host's limits
	enough  chan struct{}
	endOnce sync.Once
}

func newOpener(e *end) *opener {
	o := &opener{e: e, keep: e.order.Flow.Connections == model.ConnectionKeep,
		attempted: make([]count, e.order.Flow.Streams),
		perStep:   make([]count, len(e.stepSegments)), sentStep: make([]count, len(e.stepSegments)),
		failed: map[string]uint64{}, enough: make(chan struct{}), setUp: measure.NewHistogram(e.order.Flow.Streams)}
	return o
}

// openConnections makes connections until the order is fulfilled. Each stream has a thread, which opens its share of
// them.
func (e *end) openConnections() error {
	o := e.opener
	o.most, _ = mostOpen(e.held.Load())
	o.begun = time.Now()
	e.origin.Store(int64(o.begun.Sub(e.clock.Began)))
	e.runAll(func(i int, s *stream) {
		s.ended = e.host.Do(func() (err error) { // on a thread of the host's, which is the one to pin
			e.onThread(i, func() { err = o.work(s) })
			return err
		})
	})
	span := e.measure()
	close(e.over)
	<-e.idle
	stopped := e.stopped.Err() != nil
	o.mu.Lock()
	// One that was kept until no more could be opened has done what was ordered.
	span.complete = span.complete || o.ended != "" && !stopped
	o.mu.Unlock()
	e.span = span
	for _, s := range e.streams {
		if s.ended != nil {
			return fmt.Errorf("open connections: %w", s.ended)
		}
	}
	if span.complete {
		e.each(func(s *stream) { s.conn.CloseWrite() })
	}
	return nil
}

// at tells in which step of the measured part a moment lies; ok is false before it.
// What comes after it counts to the last step: it was begun in time.
func (o *opener) at(now time.Time) (step int, ok bool) {
	t := now.Sub(o.begun) - o.e.order.Timing.Warmup()
	return min(int(t/engine.StepNanos), len(o.perStep)-1), t >= 0
}

// countOpen adds one that is established.
func (o *opener) countOpen() {
	n := o.opened.Add(1)
	for m := o.openMax.Load(); n > m && !o.openMax.CompareAndSwap(m, n); m = o.openMax.Load() {
	}
}

// endAttempt counts one attempt less under way, and one connection less of the host's limit if the flow keeps them.
func (o *opener) endAttempt() {
	o.underWay.Add(-1)
	if o.keep {
		o.e.held.Add(-1)
	}
}

// fail counts a failed attempt. It ends a flow that keeps its connections. host: this host was the cause; counts: it
// belongs to the measured part.
func (o *opener) fail(name, text string, host, counts bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if counts {
		o.failed[name]++
	}
	if o.keep && o.ended == "" {
		o.end(text, host)
	}
}

// end says why no more are opened; the caller holds the lock.
func (o *opener) end(text string, host bool) {
	o.ended, o.host = text, host
	o.endOnce.Do(func() { close(o.enough) })
}

// over reports whether no more attempts are begun.
func (o *opener) over() bool {
	select {
	case <-o.e.over:
	case <-o.e.stopped.Done():
	case <-o.enough:
	default:
		return false
	}
	return true
}

func (o *opener) report(span span) *engine.SendReport {
	r := &engine.SendReport{DurationNanos: int64(span.ended - span.begun), PerStep: load(o.sentStep)}
	for i := range o.attempted {
		n := o.attempted[i].Load()
		r.Streams, r.Attempted = append(r.Streams, n), r.Attempted+n
	}
	r.Planned, r.Accepted = r.Attempted, r.Attempted-min(o.refused.Load(), r.Attempted)
	if o.e.paced() && span.complete && !o.keep {
		r.Planned = max(r.Attempted, o.e.due())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &model.ConnectionFacts{Mode: o.e.order.Flow.Connections, Established: o.established.Load(),
		PerSecond: load(o.perStep), Failed: o.failed,
		OpenMax: uint64(o.openMax.Load()), Broken: o.broken.Load(), Ended: o.ended, HostLimit: o.host}
	c.SetUp = o.setUp.Percentiles()
	r.Connections = c
	return r
}
