package fleet

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

const (
	openTimeout    = 45 * time.Second // a slow router tells what it is
	connectTimeout = 8 * time.Second  // for the ends to find each other where packets are lost
	observeTimeout = 5 * time.Second  // for counters to stand still; some devices tell theirs every 2 s
	stepTimeout    = 30 * time.Second // for any other step
	overtime       = 3 * time.Second  // a sender may run so long past its order
	stopTimeout    = 2 * time.Second  // for the traffic of an end to end once it was stopped
	closeTimeout   = 5 * time.Second
)

// session is one trial at one agent, or one run at an agent that only watches: parts, which the controller's orders
// lead through the steps of package engine. What may come in between: stop, or the heartbeat, which
// ends a session that hears no controller.
type session struct {
	id          string
	agent       *Agent
	from        netip.Prefix // whose it is; guarded by the agent's lock
	first       engine.Order // of its ends, for what all have in common; zero of a watcher
	live        bool         // somebody watches
	watcher     bool         // it has no ends
	liveness    *liveness
	probed      time.Time       // when packets of the probe last came; the heartbeat's
	ctx         context.Context // ends when the session is closed
	cancel      context.CancelFunc
	sending     context.Context // ends when no sender is on any more: the trial is cut, or its senders were halted
	sendingOver context.CancelFunc
	wake        chan struct{} // send a heartbeat now
	work        sync.WaitGroup
	sub         *nats.Subscription // to the controller's heartbeat

	mu        sync.Mutex
	ends      map[int]*sessionEnd // all that were ordered; never changes
	watches   []engine.Part       // of the host
	router    Router              // of a watcher; nil without
	number    uint64              // the controller's highest that is known here
	step      int                 // the last of engine.Steps that was ordered; -1 before
	measured  time.Time           // when the measured part begins; zero before the gate
	closed    bool
	gone      chan struct{}    // closed once everything is freed
	cut       model.Reason     // why traffic was stopped; without a code it was not
	recording engine.Recording // nil if nothing is recorded
	told      []byte           // the account that was asked for last
}

// openSession starts the heartbeat; the caller holds the agent's lock.
func openSession(a *Agent, p makeOrder) (*session, error) {
	s := &session{id: p.Session, agent: a, live: p.Live, watcher: len(p.Ends) == 0, step: -1,
		wake: make(chan struct{}, 1), gone: make(chan struct{}), ends: map[int]*sessionEnd{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.sending, s.sendingOver = context.WithCancel(s.ctx)
	window := routerWindow
	if !s.watcher {
		s.first = p.Ends[0].Order
		window = s.first.Timing.Patience()
	}
	s.liveness = newLiveness(time.Now(), window)
	s.liveness.expect(controllerName, time.Now())
	if !s.watcher {
		s.liveness.calm(true, time.Now())
		context.AfterFunc(s.sending, func() { s.liveness.calm(s.why().Code == "", time.Now()) })
	}
	for _, e := range p.Ends {
		s.ends[e.End] = &sessionEnd{order: e, part: engine.New(a.cfg.Engines[e.Engine], a.cfg.Host, s.tapped(e.Order))}
	}
	if err := s.listen(); err != nil {
		s.cancel()
		return nil, err
	}
	s.work.Go(s.heartbeat)
	return s, nil
}

func (s *session) orders() (all []endOrder) {
	for _, e := range s.ends {
		all = append(all, e.order)
	}
	return all
}

func (s *session) why() model.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

func (s *session) stop(_ context.Context, o stopOrder) (none, error) {
	s.stopTraffic(clipReason(o.Why))
	return none{}, nil
}

// stopTraffic stops all traffic but keeps the account; the first reason stays. It is told at once: the session may be
// closed before the heartbeat comes to its turn.
func (s *session) stopTraffic(why model.Reason) {
	s.mu.Lock()
	if s.cut.Code == "" {
		s.cut = why
	}
	s.mu.Unlock()
	s.sendingOver()
	for _, e := range s.ends {
		e.part.Stop()
	}
	s.sendBeat(nil, nil)
}

func (s *session) account(ctx context.Context, o accountOrder) (accountAnswer, error) {
	switch o.Of {
	case ofRecord:
		return s.fetchRecord(ctx, o)
	case ofRouter:
		return s.part(o.From, func() (any, error) { return s.facts(ctx, o.Final) })
	case ofTrial:
		return s.part(o.From, func() (any, error) { return s.finish(ctx), nil })
	}
	return accountAnswer{}, engine.WrongField("of", "value", model.Clip(o.Of))
}

// finish ends all that still runs, and makes the account of all parts.
func (s *session) finish(ctx context.Context) *sessionReport {
	s.sendingOver()
	_ = each(s.taking(func(*sessionEnd) bool { return true }), func(e *sessionEnd) error {
		e.part.Stop()
		return e.part.Await(ctx) // without its report it is seen to be missing
	})
	r := &sessionReport{Ends: map[int]engine.Report{}}
	for n, e := range s.ends {
		if a := e.part.Account(); a.End != nil { // why it failed has halted the session
			r.Ends[n] = *a.End
		}
	}
	for _, p := range s.watchParts() {
		if a := p.Account(); a.Observed != nil {
			r.Observed = a.Observed
		} else if a.Load != nil {
			r.Load = a.Load
		}
	}
	r.shrink(reportBytes)
	return r
}

func (s *session) facts(ctx context.Context, final bool) (any, error) {
	s.mu.Lock()
	r := s.router
	s.mu.Unlock()
	switch {
	case r == nil:
		return nil, finding.NewFault(model.NoRouterWatched)
	case final:
		return r.Finish(ctx), nil
	}
	return r.Facts(), nil
}

func (s *session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *session) release(context.Context, sessionOrder) (none, error) {
	return none{}, s.close(model.Reason{})
}

// close frees everything and forgets the session; it may be called more than
// once. why is for the event, without a code for a release.
func (s *session) close(why model.Reason) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	defer close(s.gone)
	defer s.agent.forget(s) // late: until then no other client may begin a session here
	s.cancel()
	_ = s.sub.Unsubscribe() // fails only if the connection is gone
	err := each(s.taking(func(*sessionEnd) bool { return true }), func(e *sessionEnd) error { return e.part.Close() })
	s.mu.Lock()
	watches, router, recording := s.watches, s.router, s.recording
	s.router = nil
	s.mu.Unlock()
	for _, p := range watches {
		err = errors.Join(err, p.Close())
	}
	if router != nil {
		err = errors.Join(err, router.Close())
	}
	if recording != nil { // its receivers are closed
		recording.Close()
	}
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(closeTimeout):
		err = errors.Join(err, finding.NewFault(model.EndStays))
	}
	if why = model.FirstReason(why, s.why()); why.Code != "" && !s.watcher {
		s.agent.cfg.events(s.id, words.Errorf("trial ended: %w", &finding.Fault{Reason: why}))
	}
	return err
}
