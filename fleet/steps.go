package fleet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

const (
	makeTimeout  = 15 * time.Second
	drainTimeout = 30 * time.Second // an order right after a flood may wait for TCP to recover
	cutTimeout   = 3 * time.Second  // for what is left of a cut trial
	gateMargin   = 50 * time.Millisecond
)

// gather asks several agents at once and returns the answers that came. It stops waiting for
// an agent as soon as that is given up. The error is the first by time.
func gather[A any](ctx context.Context, parties []*party, ask func(context.Context, *party) (A, error),
	failed ...func()) (map[*party]A, error) {
	var mu sync.Mutex
	answers := map[*party]A{}
	err := each(parties, func(p *party) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.present, cancel)()
		a, err := ask(ctx, p)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answers[p] = a
		return nil
	}, failed...)
	return answers, err
}

// command gives each of several agents an order. Once one has failed it does not wait for the
// others: the trial is over.
func command[A any](ctx context.Context, parties []*party, verb string, order func(*party) any) (map[*party]A, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return gather(ctx, parties, func(ctx context.Context, p *party) (A, error) {
		began := time.Now()
		a, err := give[A](ctx, p.member, verb, order(p))
		p.took.Store(int64(time.Since(began)))
		return a, err
	}, cancel)
}

// present are the agents that have not been given up.
func (t *trial) present() []*party {
	return slices.DeleteFunc(slices.Clone(t.parties), func(p *party) bool { return p.present.Err() != nil })
}

// do has agents carry out a step, each by an order of its own.
func (t *trial) do(ctx context.Context, step engine.Step, parties []*party,
	order func(*party) doOrder) (map[*party]doAnswer, error) {
	answers, err := command[doAnswer](ctx, parties, verbDo, func(p *party) any {
		o := order(p)
		o.sessionOrder, o.Step = p.about(), step
		return o
	})
	for p, a := range answers {
		p.took.Store(max(p.took.Load()-a.HeldNanos, 0))
	}
	return answers, err
}

// stepAlong has the parts along the path carry out a step. What they cannot do stands in their accounts.
func (t *trial) stepAlong(ctx context.Context, step engine.Step, k engine.Known) {
	_ = each(t.order.Along, func(p engine.Part) error { _, err := p.Do(ctx, step, k); return err })
}

// start takes all parts to the gate. met is false, and nothing begins, if no flow has a stream on which its ends met.
func (t *trial) start(ctx context.Context) (met bool, err error) {
	var along sync.WaitGroup
	along.Go(func() { t.stepAlong(ctx, engine.Open, engine.Known{Flows: t.flowsToWatch(false)}) })
	err = t.prepare(ctx)
	along.Wait()
	if err != nil {
		return false, err
	}
	for _, p := range t.parties {
		t.slowest = max(t.slowest, time.Duration(p.took.Load()))
	}
	limit, cancel := context.WithTimeout(ctx, connectTimeout+makeTimeout+t.order.Idle)
	defer cancel()
	if err := t.meet(limit); err != nil {
		return false, err
	}
	for n := range 2 * len(t.order.Flows) {
		met = met || t.ends[n].lives()
	}
	if !met {
		return false, nil
	}
	return true, t.readyAndGo(limit)
}

// prepare makes all parts, and opens those that listen; then those that call, which learn the ports.
func (t *trial) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*makeTimeout)
	defer cancel()
	ends := map[*party][]endOrder{}
	for _, e := range t.ends {
		ends[e.party] = append(ends[e.party], e.endOrder)
	}
	made, err := command[doAnswer](ctx, t.parties, verbMake, func(p *party) any {
		return makeOrder{sessionOrder: p.about(), Ends: ends[p], Trial: t.order.Number, Drops: t.order.Drops,
			Live: t.order.Live}
	})
	if err != nil {
		return err
	}
	for _, p := range t.present() { // from now on it beats; before, only its answer is waited for
		t.liveness.expect(p.info.ID, time.Now())
	}
	calls := func(e trialEnd) bool { return !e.Order.Listen }
	_, err = t.do(ctx, engine.Open, t.having(calls), func(p *party) doOrder {
		o := doOrder{Ends: map[int]engine.Known{}}
		for n, e := range t.ends {
			if e.party == p && calls(e) {
				o.Ends[n] = engine.Known{Ports: made[t.ends[n^1].party].Ends[n^1].Ports}
			}
		}
		return o
	})
	return err
}

// meet has all ends seek their peers, and takes down on which streams both have met.
func (t *trial) meet(ctx context.Context) error {
	var answers [2]map[*party]doAnswer
	over := false // those that call have given up some streams
	for i, step := range []engine.Step{engine.Meet, engine.Met} {
		var err error
		order := doOrder{Known: engine.Known{Over: over}}
		answers[i], err = t.do(ctx, step, t.parties, func(*party) doOrder { return order })
		if err != nil {
			return err
		}
		for _, a := range answers[i] {
			for _, e := range a.Ends {
				over = over || e.Met != nil && len(e.Met.Unmet) > 0
			}
		}
	}
	for n := range t.ends {
		e, step := &t.ends[n], 0
		if e.Order.Listen {
			step = 1
		}
		met := cmp.Or(answers[step][e.party].Ends[n].Met, &meetingAnswer{})
		var err error
		if e.met, err = met.meeting(e.Order.Flow.Streams); err != nil {
			return e.fault(finding.ReasonOf(err))
		}
	}
	for n := range t.ends {
		e := &t.ends[n]
		for i, s := range e.met.Streams {
			if !s.Met || !t.ends[n^1].met.Streams[i].Met {
				e.dead = append(e.dead, i)
			}
		}
		if !e.lives() {
			t.mu.Lock()
			delete(t.sending, n)
			t.mu.Unlock()
		}
	}
	return nil
}

// fault says which flow at which host a reason is about.
func (e *trialEnd) fault(why model.Reason) *finding.Fault {
	of := model.Reason{Code: model.OfFlow, Flow: e.Order.Flow.Name, Of: model.Reasons{why}}
	return &finding.Fault{Reason: model.Reason{Code: model.AtHost, Node: e.info.Node, Name: e.at,
		Of: model.Reasons{of}}}
}

// meeting is that of a flow, by the number of its first end.
func (t *trial) meeting(n int) Meeting {
	calls, listens := &t.ends[n], &t.ends[n+1]
	if calls.Order.Listen {
		calls, listens = listens, calls
	}
	return Meeting{calls.met, listens.met, calls.dead, !calls.lives()}
}

// flowsToWatch are the flows that parts along the path know by their packets: by tags before the ends have met, then
// by the ports on both sides, since NAT between the ends may change them.
func (t *trial) flowsToWatch(met bool) (all []engine.WatchedFlow) {
	for n, e := range t.ends {
		if !trackable(e.Order) || met && !e.lives() || !met && n%2 > 0 {
			continue
		}
		f := watched(e.Order)
		if met {
			f.Tuples = e.met.Tuples(e.Order.Role)
			// Where the receiver calls, its own address is where packets go.
			if to := t.ends[n|1]; !to.Order.Listen && len(to.met.Streams) > 0 {
				f.To = to.met.Streams[0].Local.Addr()
			}
		}
		all = append(all, f)
	}
	return all
}

// readyAndGo tells everybody which streams live, has the receivers read and the counters be read, and opens the gate.
func (t *trial) readyAndGo(ctx context.Context) error {
	window := min(t.order.Idle, maxIdle)
	var flows []engine.WatchedFlow
	if t.order.Drops != "" {
		flows = t.flowsToWatch(true)
	}
	var along sync.WaitGroup
	along.Go(func() { t.stepAlong(ctx, engine.Ready, engine.Known{Flows: flows, Window: window}) })
	_, err := t.do(ctx, engine.Ready, t.parties, func(p *party) doOrder {
		o := doOrder{Ends: map[int]engine.Known{}, Known: engine.Known{Window: window}}
		for n, e := range t.ends {
			if e.party == p && len(e.dead) > 0 {
				o.Ends[n] = engine.Known{Living: e.living()}
			}
		}
		return o
	})
	along.Wait()
	if err != nil {
		return err
	}
	return t.gate(ctx)
}

// gate tells everybody to start at the same moment: half a round trip counts
// for the way there. The answers are in before traffic can drown them.
func (t *trial) gate(ctx context.Context) error {
	wait, took := gateMargin, map[*party]time.Duration{} // the next order overwrites it
	for _, p := range t.parties {
		took[p] = time.Duration(p.took.Load())
		wait = max(wait, took[p]+gateMargin)
	}
	wait = min(wait, maxGateWait)
	begun := time.Now().Add(wait + t.order.Timing.Lead() + t.order.Timing.Warmup())
	running, stop := context.WithCancel(context.Background())
	t.beating.Go(func() { <-t.over; stop() })
	t.beating.Go(func() { t.stepAlong(running, engine.Go, engine.Known{Gate: wait}) })
	_, err := t.do(ctx, engine.Go, t.parties, func(p *party) doOrder {
		return doOrder{Known: engine.Known{Gate: wait - min(took[p], maxGateWait)/2}}
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.liveness.allow(t.order.Timing.Patience())
	if t.begun = begun; len(t.sending) > 0 { // the senders may have ended by now
		t.liveness.calm(false, time.Now())
	}
	return err
}

// hasBegun reports whether all were told to start.
func (t *trial) hasBegun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.begun.IsZero()
}

// awaited is how long the hosts of a trial that was cut are waited for: their accounts are still there when the path is
// back within the reconnect window, at most until the measured part would have ended.
func (t *trial) awaited() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(t.order.Timing.Patience(), time.Until(t.begun.Add(t.order.Timing.Measure())))
}

// drainCut ends a trial early as it would have ended by itself: what is on its way is not lost. A trial whose hosts do
// not answer in time is cut as it stands, and who was not heard lately is given up.
func (t *trial) drainCut(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, max(within, cutTimeout+t.order.Timing.Drain()))
	defer cancel()
	defer func() {
		for _, p := range t.parties {
			if _, long := p.link.silence(time.Now()); ctx.Err() != nil && long {
				t.giveUp(p)
			}
		}
	}()
	_ = t.drain(ctx) // what failed is seen in the reports
}

// having are the agents that have ends of a kind.
func (t *trial) having(kind func(trialEnd) bool) []*party {
	all := map[*party]bool{}
	for _, e := range t.ends {
		if kind(e) {
			all[e.party] = true
		}
	}
	return slices.Collect(maps.Keys(all))
}

// drain learns what the senders attempted, lets the receivers drain, and then has all counters read for the last time.
func (t *trial) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx,
		drainTimeout+observeTimeout+t.order.Timing.Drain()+t.order.Timing.Patience())
	defer cancel()
	var along sync.WaitGroup
	along.Go(func() { t.stepAlong(ctx, engine.Halt, engine.Known{}) })
	defer along.Wait()
	sends := func(e trialEnd) bool { return e.Order.Role == engine.Send && e.lives() }
	halted, err := t.do(ctx, engine.Halt, t.having(sends), func(*party) doOrder { return doOrder{} })
	if err != nil {
		return err
	}
	orders, left := map[*party]doOrder{}, map[int]uint64{}
	for n, e := range t.ends {
		if !sends(e) {
			continue
		}
		a := halted[e.party].Ends[n]
		if len(a.Sent.Streams) != e.Order.Flow.Streams {
			return &cutError{Fault: e.fault(model.Reason{Code: model.SenderUntold})}
		}
		far := t.ends[n^1]
		if _, ok := orders[far.party]; !ok {
			orders[far.party] = doOrder{Ends: map[int]engine.Known{}}
		}
		orders[far.party].Ends[n^1], left[n^1] = engine.Known{Sent: a.Sent}, a.Sent.Left()
	}
	drained, err := t.do(ctx, engine.Drain, slices.Collect(maps.Keys(orders)),
		func(p *party) doOrder { return orders[p] })
	if err != nil {
		return err
	}
	lost := false
	for n, packets := range left {
		lost = lost || drained[t.ends[n].party].Ends[n].Received < packets
	}
	along.Wait()
	return t.readLast(ctx, lost)
}

// readLast has all counters along the path read for the last time.
func (t *trial) readLast(ctx context.Context, lost bool) error {
	var along sync.WaitGroup
	along.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		t.stepAlong(ctx, engine.Still, engine.Known{Lost: lost})
	})
	defer along.Wait()
	if t.order.Drops == "" {
		return nil
	}
	order := doOrder{Known: engine.Known{Lost: lost}}
	_, err := t.do(ctx, engine.Still, t.parties, func(*party) doOrder { return order })
	return err
}

// reports fetches the reports of several agents at once, as far as they come.
func (t *trial) reports(ctx context.Context, parties []*party) (map[*party]sessionReport, error) {
	room := roomFor(t.room)
	return gather(ctx, parties, func(ctx context.Context, p *party) (sessionReport, error) {
		r, err := fetch[sessionReport](ctx, p.member, accountOrder{sessionOrder: p.about(), Of: ofTrial},
			room)
		r.clamp(t.flows(), t.order.Timing)
		return r, err
	})
}

// collect gathers the reports of whoever is reachable. after is what ended the
// trial early, or nil.
func (t *trial) collect(ctx, run context.Context, after error) Outcome {
	out := Outcome{Flows: make([]FlowOutcome, len(t.order.Flows)), Slowest: t.slowest, Load: map[string]engine.Load{},
		Observed: map[string]model.Observation{}}
	t.mu.Lock()
	out.Begun = t.begun
	t.mu.Unlock()
	for i := range out.Flows {
		out.Flows[i].Meeting = t.meeting(2 * i)
	}
	within := drainTimeout + t.order.Timing.Patience()
	if after != nil {
		out.Cut = finding.ReasonOf(cmp.Or(ctxCut(run), after)) // the reason rather than its consequence
		var cut *cutError
		out.Final = errors.As(context.Cause(run), &cut) && cut.final
		within = cutTimeout
		t.stop(out.Cut)
	} else {
		ctx = run
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if after == nil { // a host lost only now must not be waited for
		defer context.AfterFunc(run, cancel)()
	}
	reports, err := t.reports(limit, t.present())
	for p, r := range reports {
		t.enterReport(&out, p, r)
	}
	t.findGaps(time.Now()) // one may have ended since the last beat
	t.mu.Lock()
	out.Gaps = slices.Clone(t.gaps)
	t.mu.Unlock()
	warn := func(code string, n uint64) {
		if n > 0 {
			out.Warnings = append(out.Warnings, model.NewReason(code, "messages", float64(n)))
		}
	}
	warn(model.SamplesDropped, t.missed.Load())
	for _, l := range t.c.links {
		warn(model.BeatsStuck, l.dropped.Swap(0))
		if now, err := l.beats.Dropped(); err == nil { // else the connection is gone, and the trial is cut
			warn(model.BeatsDropped, uint64(now)-l.missed.Swap(uint64(now)))
		}
	}
	if err != nil && out.Cut.Code == "" {
		out.Cut = finding.ReasonOf(cmp.Or(ctxCut(run), err))
	}
	return out
}

func (t *trial) enterReport(out *Outcome, p *party, r sessionReport) {
	if r.Load != nil {
		out.Load[p.info.ID] = *r.Load
	}
	if r.Observed != nil {
		out.Observed[p.info.ID] = *r.Observed
	}
	for n, report := range r.Ends {
		e := t.end(n, p)
		switch {
		case e == nil:
		case e.Order.Role == engine.Receive:
			out.Flows[n/2].Receive = &report
		case e.Order.Role == engine.Send || e.Order.Role == engine.Probe && e.Order.Survey:
			out.Flows[n/2].Send = &report
		case e.Order.Role == engine.Probe:
			out.Probe = report.Probe
		}
	}
}

// end is one that an agent has; nil without.
func (t *trial) end(n int, p *party) *trialEnd {
	if n < 0 || n >= len(t.ends) || t.ends[n].party != p {
		return nil
	}
	return &t.ends[n]
}

// stop ends all traffic; agents that cannot be told find out by themselves.
func (t *trial) stop(why model.Reason) {
	t.tell(cutTimeout, verbStop, func(p *party) any { return stopOrder{sessionOrder: p.about(), Why: why} })
}

// release lets every agent close the session. One that does not answer misses the beats.
func (t *trial) release() {
	t.tell(cutTimeout+closeTimeout, verbRelease, func(p *party) any { return p.about() })
}

// tell gives an order to every agent that is left. Nothing can be done about its errors.
func (t *trial) tell(within time.Duration, verb string, order func(*party) any) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_, _ = gather(ctx, t.present(), func(ctx context.Context, p *party) (none, error) {
		return give[none](ctx, p.member, verb, order(p))
	})
}
