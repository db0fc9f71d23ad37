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
	openTimeout    = 45 * time.Second // a slow router tells what it is
	connectTimeout = 8 * time.Second  // for the ends to find each other where packets are lost
	observeTimeout = 5 * time.Second  // for counters to stand still; some devices tell theirs every 2 s
	stepTimeout    = 30 * time.Second // for any other step
	overtime       = 3 * time.Second  // a sender may run so long past its order
	stopTimeout    = 2 * time.Second  // for the traffic of an end to end once it was stopped
	closeTimeout   = 5 * time.Second
)

// session is one trial at one agent, or one run at an agent that only watches: parts, which the controller's orders lead
// through the steps of package engine. What may come in between: stop, or giveUp by the heartbeat.
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
	step      int                 // the last of engine.Steps that was ordered; -1 before
	measured  time.Time           // when the measured part begins; zero before the gate
	closed    bool
	cut       string           // why traffic was stopped; "" if it was not
	recording engine.Recording // nil if nothing is recorded
	report    *sessionReport   // what watched, once it was asked for
	parts     [][]byte         // of what was asked for last
}

// openSession starts the heartbeat; the caller holds the agent's lock.
func openSession(a *Agent, p makeOrder) (*session, error) {
	s := &session{id: p.Session, agent: a, live: p.Live, watcher: len(p.Ends) == 0, step: -1,
		wake: make(chan struct{}, 1), ends: map[int]*sessionEnd{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.sending, s.sendingOver = context.WithCancel(s.ctx)
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
	for _, e := range p.Ends {
		s.liveness.expect(e.Peer, time.Now(), false)
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

// make opens what watches the host, and then the ends that listen. If one end fails, the whole session is given up: a
// trial with half its ends is none.
func (s *session) make(ctx context.Context, p makeOrder) (a doAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if s.watcher {
		return a, s.watchTrial(ctx, p)
	}
	var flows []engine.WatchedFlow
	for _, e := range p.Ends {
		if o := e.Order; o.Traffic() && o.Flow.Protocol == model.UDP { // TCP's segments have no number to be known by
			flows = append(flows, engine.WatchedFlow{Flow: o.Flow, Tag: o.Tag, Alone: o.Alone})
		}
	}
	if watch := s.agent.cfg.Watch; watch != nil {
		s.watch(watch(engine.WatchOrder{Trial: s.first.Trial, Drops: p.Drops, Timing: s.first.Timing}))
	}
	if err := s.lead(ctx, engine.Open, engine.Known{Flows: flows}); err != nil {
		return a, errors.Join(err, s.close(err.Error()))
	}
	a, err = s.open(ctx, func(e *sessionEnd) bool { return e.order.Order.Listen }, nil)
	if err != nil {
		_ = s.close(err.Error()) // the reason is what the controller needs
	}
	return a, err
}

// watch has the session lead what watches its host from now on, in place of what did.
func (s *session) watch(parts []engine.Part) {
	s.mu.Lock()
	before := s.watches
	s.watches = parts
	if s.report = nil; s.closed {
		before = append(before, parts...)
	}
	s.mu.Unlock()
	for _, p := range before {
		_ = p.Close() // the next trial is watched even if this fails
	}
}

// watchTrial opens the router that this host is, and begins to watch it during a trial.
func (s *session) watchTrial(ctx context.Context, p makeOrder) error {
	if p.Watch == nil {
		r, err := s.agent.cfg.Router(ctx)
		if err != nil {
			return errors.Join(err, s.close(err.Error()))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return errors.Join(errClosedMeanwhile, r.Close())
		}
		s.router = r
		return nil
	}
	s.mu.Lock()
	router := s.router
	s.step = -1
	s.mu.Unlock()
	if router == nil {
		return errClosedMeanwhile
	}
	s.watch([]engine.Part{router.Begin(engine.WatchOrder{Trial: p.Watch.Trial, Drops: p.Drops, Timing: p.Watch.Timing})})
	return s.lead(ctx, engine.Open, engine.Known{Flows: flowsOf(p.Watch.Flows)})
}

func flowsOf(told []watchedFlow) (all []engine.WatchedFlow) {
	for _, f := range told {
		all = append(all, f.flow())
	}
	return all
}

var errClosedMeanwhile = errors.New("the session was closed meanwhile")

// lead takes what watches the host through a step. What one cannot do stands in its account.
func (s *session) lead(ctx context.Context, step engine.Step, k engine.Known) error {
	s.mu.Lock()
	watches := slices.Clone(s.watches)
	s.mu.Unlock()
	return each(watches, func(p engine.Part) error { _, err := p.Do(ctx, step, k); return err })
}

// open opens ends.
func (s *session) open(ctx context.Context, which func(*sessionEnd) bool, told map[int]endKnown) (doAnswer, error) {
	return s.each(which, func(e *sessionEnd) (engine.Learned, error) {
		return e.part.Do(ctx, engine.Open, engine.Known{Ports: told[e.order.End].Ports})
	})
}

// each has ends do something at once, and gathers what they learn.
func (s *session) each(which func(*sessionEnd) bool, do func(*sessionEnd) (engine.Learned, error)) (doAnswer, error) {
	var mu sync.Mutex
	answer := doAnswer{Ends: map[int]endLearned{}}
	return answer, each(s.taking(which), func(e *sessionEnd) error {
		l, err := do(e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name(), err)
		}
		told := endLearned{Ports: l.Ports, Sent: l.Sent.Streams, Unsent: l.Sent.Unsent, Received: l.Received}
		if l.Met.Streams != nil {
			met := answerOf(l.Met)
			told.Met = &met
		}
		mu.Lock()
		defer mu.Unlock()
		answer.Ends[e.order.End] = told
		return nil
	})
}

// advance takes the session to a step, unless the order comes out of turn. A trial that is over can still be drained.
func (s *session) advance(step engine.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, going := slices.Index(engine.Steps, step), slices.Index(engine.Steps, engine.Go)
	switch {
	case s.closed || s.cut != "" && n <= going:
		return fmt.Errorf("%s: the session has ended", step)
	case n < s.step || n == s.step && n <= going:
		return fmt.Errorf("%s: the session was told to %s already", step, engine.Steps[s.step])
	}
	s.step = n
	return nil
}

// do has the parts of the session carry out a step.
func (s *session) do(ctx context.Context, o doOrder) (a doAnswer, err error) {
	if len(o.Flows) > 0 && !s.watcher {
		return a, errors.New("flows: this host knows those of its ends")
	}
	if err := s.advance(o.Step); err != nil {
		return a, err
	}
	began := time.Now()
	if ctx, cancel := context.WithTimeout(ctx, s.limit(o.Step)); o.Step == engine.Go {
		cancel()
		s.begin(time.Duration(o.GateNanos))
	} else {
		a, err = s.carryOut(ctx, o)
		cancel()
	}
	a.HeldNanos = time.Since(began).Nanoseconds()
	return a, err
}

// limit is how long a step may take.
func (s *session) limit(step engine.Step) time.Duration {
	switch step {
	case engine.Open:
		return openTimeout
	case engine.Meet:
		return connectTimeout
	case engine.Halt:
		return stopTimeout
	case engine.Drain:
		return s.first.Timing.Drain() + stopTimeout
	case engine.Still:
		return observeTimeout
	}
	return stepTimeout
}

// carryOut has the ends and then what watches them carry out a step: the counters are read when the ends are done.
func (s *session) carryOut(ctx context.Context, o doOrder) (a doAnswer, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := engine.Known{Window: time.Duration(o.WindowNanos), Lost: o.Lost, Flows: flowsOf(o.Flows)}
	told := func(e *sessionEnd) bool { _, ok := o.Ends[e.order.End]; return ok }
	living := func(e *sessionEnd) bool { return !e.dead }
	switch o.Step {
	case engine.Open:
		if a, err = s.open(ctx, told, o.Ends); err != nil {
			_ = s.close(err.Error())
		}
		return a, err // what watches the host is open
	case engine.Meet, engine.Met:
		a, err = s.each(living, func(e *sessionEnd) (engine.Learned, error) {
			l, err := s.seek(ctx, e, o)
			if err != nil {
				cancel() // the other ends need not wait
			}
			return l, err
		})
	case engine.Ready:
		for _, e := range s.taking(living) {
			s.settle(e, o.Ends[e.order.End].Dead)
		}
		a, err = s.each(living, func(e *sessionEnd) (engine.Learned, error) {
			s.liveness.expect(e.order.Peer, time.Now(), true)
			return e.part.Do(ctx, o.Step, engine.Known{Living: e.living})
		})
		k.Flows = append(k.Flows, s.met()...)
	case engine.Halt:
		s.sendingOver()
		a, err = s.each(living, func(e *sessionEnd) (engine.Learned, error) { return e.part.Do(ctx, o.Step, engine.Known{}) })
	case engine.Drain:
		s.sendingOver()
		a, err = s.each(told, func(e *sessionEnd) (engine.Learned, error) {
			sent := o.Ends[e.order.End]
			if streams := e.order.Order.Flow.Streams; len(sent.Sent) != streams {
				return engine.Learned{}, fmt.Errorf("drain: it has %d streams, not %d", streams, len(sent.Sent))
			}
			return e.part.Do(ctx, o.Step, engine.Known{Sent: engine.Sent{Streams: sent.Sent, Unsent: sent.Unsent}})
		})
		if err == nil && len(a.Ends) != len(o.Ends) {
			err = errors.New("drain: it names an end that is no receiver")
		}
	}
	if err == nil {
		err = s.lead(ctx, o.Step, k)
	}
	return a, err
}

// seek has one end seek its peer, or end its wait for it.
func (s *session) seek(ctx context.Context, e *sessionEnd, o doOrder) (l engine.Learned, err error) {
	err = s.agent.call(e, func() (answered bool, err error) {
		l, err = e.part.Do(ctx, o.Step, engine.Known{Over: o.Over})
		return slices.ContainsFunc(l.Met.Streams, func(m engine.MetStream) bool { return m.Met }), err
	})
	if err != nil || l.Met.Streams == nil {
		return l, err
	}
	s.mu.Lock()
	e.met = l.Met
	s.mu.Unlock()
	if err = s.agent.allowsCallers(s, l.Met); err != nil {
		s.stopTraffic(err.Error())
	}
	return l, err
}

// settle notes which streams of an end carry packets. Without any it takes no part any more.
func (s *session) settle(e *sessionEnd, dead []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.living = make([]bool, e.order.Order.Flow.Streams)
	e.dead = true
	for i := range e.living {
		e.living[i] = !slices.Contains(dead, i)
		e.dead = e.dead && !e.living[i]
	}
}

// met are the flows whose ends have met, with the ports of this host's side.
func (s *session) met() (all []engine.WatchedFlow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ends {
		if o := e.order.Order; o.Traffic() && o.Flow.Protocol == model.UDP && !e.dead {
			all = append(all, engine.WatchedFlow{Flow: o.Flow, Tag: o.Tag, Tuples: e.met.Tuples(o.Role), Alone: o.Alone})
		}
	}
	return all
}

// begin opens the gate after a while: each part begins then by its own clock.
func (s *session) begin(gate time.Duration) {
	sending := s.ctx
	if !s.watcher {
		sending = s.sending
		s.liveness.calm(false, time.Now())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	t := s.first.Timing
	s.measured = time.Now().Add(gate + t.Lead() + t.Warmup())
	k := engine.Known{Gate: gate}
	for _, e := range s.ends {
		if e.dead {
			continue
		}
		s.work.Go(func() { // under the lock: close waits for it
			_, err := e.part.Do(s.ctx, engine.Go, k)
			if err != nil && s.ctx.Err() == nil && s.why() == "" {
				s.stopTraffic(fmt.Sprintf("%s: %v", e.name(), err))
			}
			e.ended.Store(true)
			s.beatSoon()
		})
	}
	for _, p := range s.watches {
		s.work.Go(func() { _, _ = p.Do(sending, engine.Go, k) }) // what it cannot do stands in its account
	}
}

func (s *session) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

func (s *session) stop(_ context.Context, o stopOrder) (none, error) {
	s.stopTraffic(model.Clip(o.Why))
	return none{}, nil
}

// stopTraffic stops all traffic but keeps the account; the first reason stays.
func (s *session) stopTraffic(why string) {
	s.mu.Lock()
	if s.cut == "" {
		s.cut = why
	}
	s.mu.Unlock()
	s.sendingOver()
	for _, e := range s.ends {
		e.part.Stop()
	}
	s.beatSoon()
}

// account answers one part of an account. Part 0 makes it; a final one first ends whatever still runs.
func (s *session) account(ctx context.Context, o accountOrder) (partAnswer, error) {
	switch o.Of {
	case ofRecord:
		return s.fetchRecord(ctx, o)
	case ofRouter:
		return s.part(o.Part, func() (any, error) { return s.facts(ctx, o.Final) })
	case ofTrial:
		return s.part(o.Part, func() (any, error) {
			if o.Final {
				s.finish(ctx)
			}
			return s.tell(o.Final), nil
		})
	}
	return partAnswer{}, fmt.Errorf("account: there is none of %q", model.Clip(o.Of))
}

// tell makes the account of all parts; what watches the host tells a final one only.
func (s *session) tell(final bool) *sessionReport {
	r := &sessionReport{Ends: map[int]engine.Report{}}
	for n, e := range s.ends {
		if a := e.part.Account(); a.End != nil { // why it failed has halted the session
			r.Ends[n] = *a.End
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if final && s.report == nil {
		s.report = &sessionReport{}
		for _, p := range s.watches {
			if a := p.Account(); a.Observed != nil {
				s.report.Observed = a.Observed
			} else if a.Load != nil {
				s.report.Load = a.Load
			}
		}
	}
	if s.report != nil {
		r.Observed, r.Load = s.report.Observed, s.report.Load
	}
	r.shrink(reportBytes)
	return r
}

// facts are what the watched router is.
func (s *session) facts(ctx context.Context, final bool) (any, error) {
	s.mu.Lock()
	r := s.router
	s.mu.Unlock()
	switch {
	case r == nil:
		return nil, errors.New("no router is watched in this session")
	case final:
		return r.Finish(ctx), nil
	}
	return r.Facts(), nil
}

// finish ends all that still runs.
func (s *session) finish(ctx context.Context) {
	s.sendingOver()
	_ = each(s.taking(func(*sessionEnd) bool { return true }), func(e *sessionEnd) error {
		e.part.Stop()
		return e.part.Await(ctx) // without its report it is seen to be missing
	})
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
