package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/model"
)

const (
	connectTimeout = 8 * time.Second  // for the ends to find each other where packets are lost
	stepTimeout    = 30 * time.Second // a session may idle so long between two orders
	overtime       = 3 * time.Second  // a sender may run so long past its order
	stopTimeout    = 2 * time.Second  // for the traffic of an end to end once it was stopped
	closeTimeout   = 5 * time.Second
)

// steps are the orders that take a session on, and phases where it is before the first of
// them, and after each.
var (
	steps  = []string{verbConnect, verbArm, verbStart}
	phases = []string{"not connected", "connected", "armed", "running"}
)

// session is one trial at one agent, or one run at an agent that only watches. Its orders follow in this file as they
// come: prepare, connect, arm, start (then gate), drain, report, release. What may come in between: stop, or giveUp by the
// heartbeat.
type session struct {
	id          string
	agent       *Agent
	from        netip.Prefix // whose it is; guarded by the agent's lock
	first       engine.Order // of its ends, for what all have in common; zero of a watcher
	drops       model.DropMode
	live        bool // somebody watches
	watcher     bool // it has no ends
	liveness    *liveness
	probed      time.Time       // when packets of the probe last came; the heartbeat's
	ctx         context.Context // ends when the session is closed
	cancel      context.CancelFunc
	sending     context.Context // ends when no sender is on any more: the trial is cut, or its report asked for
	sendingOver context.CancelFunc
	calling     context.Context // ends when no end that calls is left, so that those which listen wait for none
	callingOver context.CancelFunc
	wake        chan struct{} // send a heartbeat now
	work        sync.WaitGroup
	sub         *nats.Subscription // to the controller's heartbeat
	observed    observed

	mu        sync.Mutex
	ends      map[int]*sessionEnd
	phase     int       // of phases
	measured  time.Time // when the measured part begins; zero before the gate
	closed    bool
	cut       string           // why traffic was stopped; "" if it was not
	recording engine.Recording // nil if nothing is recorded
	watch     engine.Watch     // of the host, in the measured part; nil outside
	watched   *Watched
	watching  chan struct{} // closed when the watch is over; nil before the gate
	parts     [][]byte      // of what was asked for last
}

// openSession starts the heartbeat; the caller holds the agent's lock.
func openSession(a *Agent, p prepareOrder) (*session, error) {
	s := &session{id: p.Session, agent: a, drops: p.Drops, live: p.Live, watcher: len(p.Ends) == 0,
		wake: make(chan struct{}, 1), ends: map[int]*sessionEnd{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.sending, s.sendingOver = context.WithCancel(s.ctx)
	s.calling, s.callingOver = context.WithCancel(s.ctx)
	window := routerWindow
	if !s.watcher {
		s.first = p.Ends[0].Order
		window = s.first.Timing.Patience()
	}
	s.liveness = newLiveness(time.Now(), window)
	if !s.watcher {
		s.liveness.calm(true, time.Now())
		context.AfterFunc(s.sending, func() { s.liveness.calm(s.why() == "", time.Now()) })
	}
	err := s.reserve(p.Ends)
	if err == nil {
		err = s.listen()
	}
	if err != nil {
		s.cancel()
		return nil, err
	}
	if !s.watcher {
		s.observed.open(a.cfg.Observe, s.first.Trial, p.Drops)
	}
	s.work.Go(s.heartbeat)
	return s, nil
}

// length is the time a sender is on.
func (s *session) length() time.Duration { return s.first.Timing.Warmup() + s.first.Timing.Measure() }

func (s *session) orders() (all []endOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ends {
		all = append(all, e.order)
	}
	return all
}

// reserve makes room for further ends, before any is opened.
func (s *session) reserve(ends []endOrder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := len(s.ends) + len(ends); {
	case s.closed || s.phase > 0 || s.cut != "":
		return errors.New("the session takes no more ends")
	case n > maxEnds:
		return fmt.Errorf("ends: want at most %d, not %d", maxEnds, n)
	}
	for _, e := range ends {
		switch {
		case s.ends[e.End] != nil:
			return fmt.Errorf("end %d is prepared already", e.End)
		case e.Order.Timing != s.first.Timing || e.Order.Trial != s.first.Trial:
			return errors.New("all ends of a trial have one number and one timing")
		}
	}
	for _, e := range ends {
		s.liveness.expect(e.Peer, time.Now(), false)
		s.ends[e.End] = &sessionEnd{order: e}
	}
	return nil
}

// prepare opens what reserve made room for. If one end fails, the whole
// session is given up: a trial with half its ends is none.
func (s *session) prepare(ctx context.Context, ends []endOrder) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, routerOpenTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	answer := portsAnswer{}
	if s.watcher {
		return answer, s.openRouter(ctx)
	}
	for _, e := range ends {
		if o := e.Order; o.Traffic() && o.Flow.Protocol == model.UDP {
			s.observed.meet(o.Flow, o.Tag)
		}
		end, err := engine.Prepare(ctx, s.agent.cfg.Engines[e.Engine], s.agent.cfg.Host, s.tapped(e.Order))
		if err == nil {
			err = s.install(e, end)
		}
		if err != nil {
			err = fmt.Errorf("flow %s: %s: %w", e.Order.Flow.Name, e.Order.Role, err)
			_ = s.close(err.Error()) // the reason is what the controller needs
			return nil, err
		}
		answer[e.End] = end.Ports()
	}
	if now := s.observed.current(); now != nil { // no other moment comes if no flow finds a way
		now.Snapshot(model.MomentStart)
	}
	return answer, nil
}

func (s *session) install(e endOrder, end *engine.End) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = end.Close()
		return errClosedMeanwhile
	}
	s.ends[e.End].end = end
	return nil
}

var errClosedMeanwhile = errors.New("the session was closed meanwhile")

// advance takes the session one phase further, unless an order comes out of turn.
func (s *session) advance(verb string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ends {
		if e.end == nil {
			return fmt.Errorf("%s: an end is still being opened", verb)
		}
	}
	switch {
	case s.closed || s.cut != "":
		return fmt.Errorf("%s: the session has ended", verb)
	case verb == verbConnect && s.phase == 1: // of the other ends
		return nil
	case s.phase != slices.Index(steps, verb):
		return fmt.Errorf("%s: the session is %s", verb, phases[s.phase])
	}
	s.phase++
	return nil
}

// connect has the ends that call seek their peers, or those that listen wait for them. What became of each stream is
// in the answer.
func (s *session) connect(ctx context.Context, o connectOrder) (meetingsAnswer, error) {
	if o.Over {
		s.callingOver()
		return meetingsAnswer{}, nil
	}
	if err := s.advance(verbConnect); err != nil {
		return nil, err
	}
	within := connectTimeout
	if o.Listen { // until it is told that the others are done
		within += stepTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if o.Listen {
		defer context.AfterFunc(s.calling, cancel)()
	}
	var mu sync.Mutex
	answer := meetingsAnswer{}
	return answer, each(s.opened(), func(e *sessionEnd) error {
		if e.order.Order.Listen != o.Listen {
			return nil
		}
		var met engine.Meeting
		err := s.agent.call(e, func() (err error) {
			met, err = e.end.Connect(ctx)
			return err
		})
		if err != nil {
			cancel() // the other ends need not wait
			return fmt.Errorf("%s: %w", e.name(), err)
		}
		if err := s.agent.allowsCallers(s, met); err != nil {
			s.stopTraffic(err.Error())
			return err
		}
		if o := e.order.Order; o.Traffic() && o.Flow.Protocol == model.UDP { // TCP's segments have no number to be known by
			s.observed.track(o.Flow, met.Tuples(o.Role), o.Alone)
		}
		mu.Lock()
		defer mu.Unlock()
		answer[e.order.End] = answerOf(met)
		return nil
	})
}

// arm makes the ends ready for the streams that live, starts receivers and echoes, and waits until the receivers read.
func (s *session) arm(ctx context.Context, o armOrder) (a armAnswer, err error) {
	if err := s.advance(verbArm); err != nil {
		return a, err
	}
	began := time.Now()
	err = each(s.opened(), func(e *sessionEnd) error {
		s.liveness.expect(e.order.Peer, time.Now(), true)
		return s.settle(e, o.Dead[e.order.End])
	})
	if err != nil {
		return a, err
	}
	t := s.first.Timing
	_ = each(s.opened(engine.Receive, engine.Echo), func(e *sessionEnd) error {
		s.run(ctx, e, stepTimeout+t.Lead()+s.length()+t.Drain()+t.Patience()+stepTimeout)
		return nil
	})
	return armAnswer{time.Since(began).Nanoseconds()}, nil
}

// settle makes one end ready, unless it has no streams left.
func (s *session) settle(e *sessionEnd, dead []int) error {
	living := make([]bool, e.order.Order.Flow.Streams)
	lives := false
	for i := range living {
		living[i] = !slices.Contains(dead, i)
		lives = lives || living[i]
	}
	if !lives {
		s.mu.Lock()
		defer s.mu.Unlock()
		e.dead = true
		return nil
	}
	if err := e.end.Settle(living); err != nil {
		return fmt.Errorf("%s: %w", e.name(), err)
	}
	return nil
}

// start opens the gate after the ordered wait.
func (s *session) start(_ context.Context, o startOrder) (none, error) {
	if err := s.advance(verbStart); err != nil {
		return none{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return none{}, errClosedMeanwhile
	}
	s.liveness.calm(false, time.Now())
	watching, wait := make(chan struct{}), time.Duration(o.WaitNanos)
	s.watching, s.measured = watching, time.Now().Add(wait+s.first.Timing.Lead()+s.first.Timing.Warmup())
	s.work.Go(func() { // under the lock: close waits for it
		defer close(watching)
		s.gate(wait)
	})
	return none{}, nil
}

// gate lets the senders go and watches the host during the measured part.
func (s *session) gate(wait time.Duration) {
	if !sleep(s.ctx, wait) {
		return
	}
	t := s.first.Timing
	for _, e := range s.opened(engine.Probe) {
		s.run(s.ctx, e, t.Lead()+s.length()+t.Drain()+t.Patience()+stepTimeout)
	}
	if !sleep(s.ctx, t.Lead()) {
		return
	}
	for _, e := range s.opened(engine.Send) {
		s.run(s.ctx, e, s.length()+overtime)
	}
	if !sleep(s.ctx, t.Warmup()) || s.why() != "" {
		return
	}
	if t.Warmup() > 0 {
		if now := s.observed.current(); now != nil {
			now.Snapshot(model.MomentMeasure)
		}
	}
	if s.agent.cfg.Watch == nil || s.first.Survey {
		return
	}
	w := s.agent.cfg.Watch()
	s.mu.Lock()
	s.watch = w
	s.mu.Unlock()
	end := time.NewTimer(t.Measure())
	defer end.Stop()
	select {
	case <-end.C:
	case <-s.sending.Done(): // the senders of a number of packets may end long before the time is over
	}
	cpu, series := w.Stop()
	s.mu.Lock()
	s.watched, s.watch = &Watched{CPU: cpu, Series: series}, nil
	s.mu.Unlock()
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (s *session) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// drain lets receivers wait for what is on its way: each is told what its sender attempted.
func (s *session) drain(ctx context.Context, o drainOrder) (receivedAnswer, error) {
	s.sendingOver()
	answer := receivedAnswer{}
	var ends []*sessionEnd
	for _, e := range s.opened(engine.Receive) {
		if counts, ok := o.Attempted[e.order.End]; ok {
			if len(counts) != e.order.Order.Flow.Streams {
				return answer, fmt.Errorf("drain: end %d has %d streams, not %d",
					e.order.End, e.order.Order.Flow.Streams, len(counts))
			}
			ends = append(ends, e)
		}
	}
	if len(ends) != len(o.Attempted) {
		return answer, errors.New("drain: names an end that is no receiver")
	}
	ctx, cancel := context.WithTimeout(ctx, s.first.Timing.Drain()+stopTimeout)
	defer cancel()
	err := each(ends, func(e *sessionEnd) error {
		sent := engine.Sent{Streams: o.Attempted[e.order.End], Unsent: o.Unsent[e.order.End]}
		if err := e.end.Drain(ctx, sent); err != nil {
			return fmt.Errorf("%s: %w", e.name(), err)
		}
		return nil
	})
	for _, e := range ends {
		answer[e.order.End] = e.sample().Packets
	}
	return answer, err
}

func (s *session) stop(ctx context.Context, o stopOrder) (none, error) {
	if !o.Senders {
		s.stopTraffic(model.Clip(o.Why))
		return none{}, nil
	}
	s.sendingOver()
	return none{}, each(s.opened(engine.Send), func(e *sessionEnd) error { return e.finish(ctx) })
}

// stopTraffic stops all traffic but keeps the account; the first reason stays.
func (s *session) stopTraffic(why string) {
	s.mu.Lock()
	if s.cut == "" {
		s.cut = why
	}
	s.mu.Unlock()
	s.sendingOver()
	for _, e := range s.opened() {
		e.end.Stop()
	}
	s.beatSoon()
}

// report answers one part. Part 0 makes the report; a final one first ends
// whatever still runs.
func (s *session) report(ctx context.Context, o reportOrder) (partAnswer, error) {
	s.sendingOver()
	if o.Final && o.Part == 0 {
		s.finish(ctx)
	}
	return s.part(o.Part, func() (any, error) {
		r := sessionReport{Ends: map[int]engine.Report{}}
		if o.Final {
			r.Observed = s.observed.report()
		}
		s.mu.Lock()
		for n, e := range s.ends {
			if e.end != nil && e.over() {
				r.Ends[n], _ = e.end.Report() // why it failed has halted the session
			}
		}
		r.Watch = s.watched
		s.mu.Unlock()
		r.shrink(reportBytes)
		return &r, nil
	})
}

// finish waits for the watch of the measured part and ends all that still runs.
func (s *session) finish(ctx context.Context) {
	s.mu.Lock()
	watching := s.watching
	s.mu.Unlock()
	if watching != nil { // it ends now, or with the measured part
		select {
		case <-watching:
		case <-ctx.Done():
		}
	}
	_ = each(s.opened(), func(e *sessionEnd) error { return e.finish(ctx) }) // without its report it is seen to be missing
}

func (s *session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *session) release(context.Context, sessionOrder) (none, error) { return none{}, s.close("") }

// close frees everything and forgets the session; it may be called more than
// once. why is for the event, "" for a release.
func (s *session) close(why string) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	defer s.agent.forget(s) // last: until then no other client may begin a session here
	s.cancel()
	_ = s.sub.Unsubscribe() // fails only if the connection is gone
	err := each(s.opened(), func(e *sessionEnd) error {
		e.end.Stop()
		return e.end.Close()
	})
	err = errors.Join(err, s.observed.close())
	if r := s.recordingOf(); r != nil { // its receivers are closed
		r.Close()
	}
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(closeTimeout):
		err = errors.Join(err, errors.New("an end did not stop"))
	}
	if why == "" {
		why = s.why()
	}
	if !s.watcher {
		text := "trial ended"
		if why != "" {
			text += ": " + why
		}
		s.agent.cfg.events(s.id, text)
	}
	return err
}
