package fleet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// make opens what watches the host, and then the ends that listen; one that only watches opens its router, or begins
// the next trial. If one end fails, the whole session is given up: a trial with half its ends is none.
func (s *session) make(ctx context.Context, p makeOrder) (a doAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if s.watcher {
		return a, s.watchTrial(ctx, p)
	}
	if watch := s.agent.cfg.Watch; watch != nil {
		s.setWatches(watch(engine.WatchOrder{Trial: p.Trial, Drops: p.Drops, Timing: s.first.Timing}))
	}
	s.stepWatches(ctx, engine.Open, engine.Known{Flows: s.flows(model.UDP)})
	a, err = s.open(ctx, func(e *sessionEnd) bool { return e.order.Order.Listen }, nil)
	if err != nil {
		_ = s.close(finding.ReasonOf(err)) // the reason is what the controller needs
	}
	return a, err
}

// setWatches has the session lead what watches its host from now on, in place of what did.
func (s *session) setWatches(parts []engine.Part) {
	s.mu.Lock()
	before := s.watches
	s.watches = parts
	if s.closed {
		before = append(before, parts...)
	}
	s.mu.Unlock()
	for _, p := range before {
		_ = p.Close() // the next trial is watched even if this fails
	}
}

// watchTrial opens the router that this host is, and begins to watch it during a trial.
func (s *session) watchTrial(ctx context.Context, p makeOrder) error {
	if !p.watches() {
		r, err := s.agent.cfg.Router(ctx)
		if err != nil {
			return errors.Join(err, s.close(finding.ReasonOf(err)))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return errors.Join(errNoSession, r.Close())
		}
		s.router = r
		return nil
	}
	s.mu.Lock()
	router := s.router
	s.step = -1
	s.mu.Unlock()
	if router == nil {
		return errNoSession
	}
	s.setWatches([]engine.Part{router.Begin(engine.WatchOrder{Trial: p.Trial, Drops: p.Drops, Timing: p.Timing})})
	s.stepWatches(ctx, engine.Open, engine.Known{Flows: p.Flows})
	return nil
}

func (s *session) watchParts() []engine.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.watches)
}

// stepWatches takes what watches the host through a step. What one cannot do stands in its account.
func (s *session) stepWatches(ctx context.Context, step engine.Step, k engine.Known) {
	_ = each(s.watchParts(), func(p engine.Part) error { _, err := p.Do(ctx, step, k); return err })
}

func (s *session) open(ctx context.Context, which func(*sessionEnd) bool, told map[int]engine.Known) (doAnswer, error) {
	return s.eachEnd(which, func(e *sessionEnd) (engine.Learned, error) {
		k := told[e.order.End]
		l, err := e.part.Do(ctx, engine.Open, k)
		ports := k.Ports
		if e.order.Order.Listen {
			ports = l.Ports
		}
		if len(ports) > 0 {
			s.mu.Lock()
			e.port = ports[0]
			s.mu.Unlock()
		}
		return l, err
	})
}

// eachEnd has ends do something at once, and gathers what they learn.
func (s *session) eachEnd(which func(*sessionEnd) bool,
	do func(*sessionEnd) (engine.Learned, error), failed ...func()) (doAnswer, error) {
	var mu sync.Mutex
	answer := doAnswer{Ends: map[int]endLearned{}}
	return answer, each(s.taking(which), func(e *sessionEnd) error {
		l, err := do(e)
		if err != nil {
			return e.fault(err)
		}
		told := endLearned{Ports: l.Ports, Sent: l.Sent, Received: l.Received}
		if l.Met.Streams != nil {
			met := answerOf(l.Met)
			told.Met = &met
		}
		mu.Lock()
		defer mu.Unlock()
		answer.Ends[e.order.End] = told
		return nil
	}, failed...)
}

// advance takes the session to a step, unless the order comes out of turn. A trial that is over can still be drained.
func (s *session) advance(step engine.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, going := slices.Index(engine.Steps, step), slices.Index(engine.Steps, engine.Go)
	switch {
	case s.closed || s.cut.Code != "" && n <= going:
		return errNoSession
	case n < s.step || n == s.step && n <= going:
		return finding.NewFault(model.StepAgain, "name", step, "after", engine.Steps[s.step])
	}
	s.step = n
	return nil
}

// do has the parts of the session carry out a step.
func (s *session) do(ctx context.Context, o doOrder) (a doAnswer, err error) {
	if len(o.Flows) > 0 && !s.watcher {
		return a, engine.WrongField("flows")
	}
	if err := s.advance(o.Step); err != nil {
		return a, err
	}
	began := time.Now()
	if o.Step == engine.Go {
		s.startParts(o.Gate)
	} else {
		ctx, cancel := context.WithTimeout(ctx, s.limit(o.Step))
		defer cancel()
		a, err = s.carryOut(ctx, o)
	}
	a.HeldNanos = time.Since(began).Nanoseconds()
	return a, err
}

func (s *session) limit(step engine.Step) time.Duration {
	switch step {
	case engine.Open:
		return openTimeout
	case engine.Meet:
		return connectTimeout
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
	k := o.Known
	told := func(e *sessionEnd) bool { _, ok := o.Ends[e.order.End]; return ok }
	living := func(e *sessionEnd) bool { return !e.dead }
	switch o.Step {
	case engine.Open:
		if a, err = s.open(ctx, told, o.Ends); err != nil {
			_ = s.close(finding.ReasonOf(err))
		}
		return a, err // what watches the host is open
	case engine.Meet, engine.Met:
		s.stepWatches(ctx, o.Step, engine.Known{Flows: s.flows(model.TCP)})
		seeking := func(e *sessionEnd) bool { return o.Step == engine.Meet || e.order.Order.Listen }
		a, err = s.eachEnd(seeking, func(e *sessionEnd) (engine.Learned, error) {
			return s.meetPeer(ctx, e, o)
		}, cancel) // the other ends need not wait
	case engine.Ready:
		for _, e := range s.taking(living) {
			if err := s.noteLiving(e, o.Ends[e.order.End].Living); err != nil {
				return a, err
			}
		}
		a, err = s.eachEnd(living, func(e *sessionEnd) (engine.Learned, error) {
			return e.part.Do(ctx, o.Step, engine.Known{Living: e.living})
		})
		k.Flows = append(k.Flows, s.flows("")...)
	case engine.Halt:
		s.sendingOver()
		a, err = s.eachEnd(living, func(e *sessionEnd) (engine.Learned, error) {
			return e.part.Do(ctx, o.Step, engine.Known{})
		})
	case engine.Drain:
		s.sendingOver()
		a, err = s.eachEnd(told, func(e *sessionEnd) (engine.Learned, error) {
			k := o.Ends[e.order.End]
			if streams := e.order.Order.Flow.Streams; len(k.Sent.Streams) != streams {
				return engine.Learned{}, streamsDiffer(o.Step, streams, len(k.Sent.Streams))
			}
			return e.part.Do(ctx, o.Step, k)
		})
		if err == nil && len(a.Ends) != len(o.Ends) {
			err = finding.NewFault(model.EndsDiffer, "name", o.Step)
		}
	}
	if err == nil {
		s.stepWatches(ctx, o.Step, k)
	}
	return a, err
}

// meetPeer has one end seek its peer, or end its wait for it.
func (s *session) meetPeer(ctx context.Context, e *sessionEnd, o doOrder) (l engine.Learned, err error) {
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
		s.stopTraffic(finding.ReasonOf(err))
	}
	return l, err
}

// streamsDiffer is the fault of a step that tells of another number of streams than the flow has.
func streamsDiffer(step engine.Step, streams, told int) error {
	return finding.NewFault(model.StreamsDiffer, "name", step, "streams", streams, "value", told)
}

// noteLiving notes which streams of an end carry packets: all, unless it is told. Without any the end takes no part any
// more.
func (s *session) noteLiving(e *sessionEnd, living []bool) error {
	streams := e.order.Order.Flow.Streams
	if living == nil {
		living = slices.Repeat([]bool{true}, streams)
	}
	if len(living) != streams {
		return e.fault(streamsDiffer(engine.Ready, streams, len(living)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.living, e.dead = living, !slices.Contains(living, true)
	return nil
}

// watched is the flow of an end for what watches it.
func watched(o engine.Order) engine.WatchedFlow {
	return engine.WatchedFlow{Name: o.Flow.Name, Protocol: o.Flow.Protocol, PayloadBytes: o.Flow.PayloadBytes,
		Packets: o.Flow.Packets, To: o.Flow.Address, Number: o.Trial, Tag: o.Tag}
}

// trackable reports whether the packets of an end can be known by their ports: not those of connections by the
// thousand.
func trackable(o engine.Order) bool { return o.Traffic() && o.Flow.Connections == "" }

// flows are those of a protocol, "" for all, without dead ones. Ends of TCP find each other by the port where
// connections are awaited; once ends have met, the ports of this host's side are known.
func (s *session) flows(of model.Protocol) (all []engine.WatchedFlow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ends {
		o := e.order.Order
		if !trackable(o) || e.dead || of != "" && o.Flow.Protocol != of {
			continue
		}
		f := watched(o)
		f.Awaited = netip.AddrPortFrom(o.Peer, e.port)
		if e.living != nil {
			f.Tuples = e.met.Tuples(o.Role)
		}
		all = append(all, f)
	}
	return all
}

// startParts starts every part; each waits for the gate by its own clock.
func (s *session) startParts(gate time.Duration) {
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
			if err != nil && s.ctx.Err() == nil && s.why().Code == "" {
				s.stopTraffic(finding.ReasonOf(e.fault(err)))
			}
			e.ended.Store(true)
			s.beatSoon()
		})
	}
	for _, p := range s.watches {
		s.work.Go(func() { _, _ = p.Do(sending, engine.Go, k) }) // what it cannot do stands in its account
	}
}
