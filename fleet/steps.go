package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/model"
)

const (
	prepareTimeout = 15 * time.Second
	drainTimeout   = 30 * time.Second // an order right after a flood may wait for TCP to recover
	cutTimeout     = 3 * time.Second  // for what is left of a cut trial
	gateMargin     = 50 * time.Millisecond
)

// gather asks several agents at once and returns the answers that came. It stops waiting for
// an agent as soon as that is given up. The error is the first by time.
func gather[A any](ctx context.Context, parties []*party, ask func(context.Context, *party) (A, error),
) (map[*party]A, error) {
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
	})
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
		if err != nil {
			cancel()
		}
		return a, err
	})
}

// sessionOnly makes an order that names the session and nothing else.
func sessionOnly(p *party) any { return p.about() }

// present are the agents that have not been given up.
func (t *trial) present() []*party {
	return slices.DeleteFunc(slices.Clone(t.parties), func(p *party) bool { return p.present.Err() != nil })
}

// start lets all ends begin: prepare, connect, observe, arm, start. met is false, and nothing begins after connect, if
// no flow has a stream on which its ends met.
func (t *trial) start(ctx context.Context) (met bool, err error) {
	var along sync.WaitGroup
	along.Go(t.meet)
	err = t.prepare(ctx)
	along.Wait()
	if err != nil {
		return false, err
	}
	limit, cancel := context.WithTimeout(ctx, connectTimeout+prepareTimeout+t.order.Idle)
	defer cancel()
	if err := t.connect(limit); err != nil {
		return false, err
	}
	for n := range 2 * len(t.order.Flows) {
		met = met || t.ends[n].lives()
	}
	if !met {
		return false, nil
	}
	t.track()
	if err := t.observe(limit, model.MomentStart, false); err != nil {
		return true, err
	}
	return true, t.arm(limit)
}

// connect has all ends seek their peers, and takes down on which streams both have met.
func (t *trial) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var met [2]map[*party]meetingsAnswer // of those that call, and that listen
	sides := [2][]*party{
		t.having(func(e trialEnd) bool { return !e.Order.Listen }), t.having(func(e trialEnd) bool { return e.Order.Listen })}
	err := each([]int{0, 1}, func(side int) (err error) {
		defer func() {
			if err != nil {
				cancel()
			}
		}()
		met[side], err = command[meetingsAnswer](ctx, sides[side], verbConnect, func(p *party) any {
			return connectOrder{sessionOrder: p.about(), Listen: side == 1}
		})
		if side == 1 || err != nil || t.called(met[0]) {
			return err
		}
		_, err = command[none](ctx, sides[1], verbConnect, func(p *party) any { // which wait in vain
			return connectOrder{sessionOrder: p.about(), Listen: true, Over: true}
		})
		return err
	})
	if err != nil {
		return err
	}
	for n := range t.ends {
		e, side := &t.ends[n], 0
		if e.Order.Listen {
			side = 1
		}
		if e.met, err = met[side][e.party][n].meeting(e.Order.Flow.Streams); err != nil {
			return fmt.Errorf("%s: flow %s: %w", e.name, e.Order.Flow.Name, err)
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

// called reports whether all ends that call have met their peers on all streams.
func (t *trial) called(met map[*party]meetingsAnswer) bool {
	for _, ends := range met {
		for _, m := range ends {
			if len(m.Unmet) > 0 {
				return false
			}
		}
	}
	return true
}

// meeting is that of a flow, by the number of its first end.
func (t *trial) meeting(n int) Meeting {
	calls, listens := &t.ends[n], &t.ends[n+1]
	if calls.Order.Listen {
		calls, listens = listens, calls
	}
	return Meeting{calls.met, listens.met, calls.dead, !calls.lives()}
}

// arm tells everybody which streams live, and has the receivers read.
func (t *trial) arm(ctx context.Context) error {
	dead := map[*party]map[int][]int{}
	for n, e := range t.ends {
		if len(e.dead) == 0 {
			continue
		}
		if dead[e.party] == nil {
			dead[e.party] = map[int][]int{}
		}
		for i := range e.Order.Flow.Streams {
			if !e.lives() || slices.Contains(e.dead, i) {
				dead[e.party][n] = append(dead[e.party][n], i)
			}
		}
	}
	armed, err := command[armAnswer](ctx, t.parties, verbArm, func(p *party) any { return armOrder{p.about(), dead[p]} })
	if err != nil {
		return err
	}
	for p, a := range armed {
		p.took.Store(max(p.took.Load()-a.HeldNanos, 0))
	}
	return t.gate(ctx)
}

// prepare opens the listening ends, then the dialing ones, which learn the ports.
func (t *trial) prepare(ctx context.Context) error {
	for _, listening := range []bool{true, false} {
		ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
		defer cancel()
		ends := map[*party][]endOrder{}
		for _, e := range t.ends {
			if e.Order.Listen == listening {
				ends[e.party] = append(ends[e.party], e.endOrder)
			}
		}
		opened, err := command[portsAnswer](ctx, slices.Collect(maps.Keys(ends)), verbPrepare, func(p *party) any {
			return prepareOrder{p.about(), ends[p], t.order.Drops, t.order.Live}
		})
		if err != nil {
			return err
		}
		for p := range ends {
			t.liveness.expect(p.info.ID, time.Now(), true)
			for _, e := range ends[p] {
				t.ends[e.End^1].Order.Ports = opened[p][e.End] // a listening one needs none
			}
		}
	}
	return nil
}

// gate tells everybody to start at the same moment: half a round trip counts
// for the way there. The answers are in before traffic can drown them.
func (t *trial) gate(ctx context.Context) error {
	wait := gateMargin
	for _, p := range t.parties {
		wait = max(wait, time.Duration(p.took.Load())+gateMargin)
	}
	wait = min(wait, maxGateWait)
	warmup := t.order.Timing.Warmup()
	before := wait + t.order.Timing.Lead() + warmup
	for _, l := range t.c.links {
		l.hold(t.order.Timing.Patience())
	}
	begun := time.Now().Add(before)
	t.measured = time.AfterFunc(before, func() { t.measure(warmup > 0) })
	took := map[*party]time.Duration{}
	for _, p := range t.parties {
		took[p] = time.Duration(p.took.Load())
	}
	_, err := command[none](ctx, t.parties, verbStart, func(p *party) any {
		return startOrder{p.about(), (wait - min(took[p], maxGateWait)/2).Nanoseconds()}
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun = begun; len(t.sending) > 0 { // the senders may have ended by now
		t.liveness.calm(false, time.Now())
	}
	return err
}

// measure tells that the measured part begins. close waits for whom it tells.
func (t *trial) measure(warmedUp bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left { // the caller may have closed its observations
		return
	}
	if warmedUp {
		for _, o := range t.order.Along {
			t.beating.Go(func() { o.Snapshot(model.MomentMeasure) })
		}
	}
	if t.order.Begun != nil {
		t.beating.Go(t.order.Begun)
	}
}

// awaited is how long the hosts of a trial that was cut are waited for: their accounts are still there when the path is
// back within the reconnect window.
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
			if ctx.Err() != nil && p.link.quiet(time.Now()) {
				t.giveUp(p)
			}
		}
	}()
	_, err := command[none](ctx, t.senders(), verbStop, func(p *party) any {
		return stopOrder{sessionOrder: p.about(), Senders: true}
	})
	if err == nil {
		_ = t.drain(ctx) // what failed is seen in the reports
	}
}

// senders are the agents that send.
func (t *trial) senders() []*party {
	return t.having(func(e trialEnd) bool { return e.Order.Role == engine.Send && e.lives() })
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

// drain learns what the senders attempted and lets the receivers drain.
func (t *trial) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout+observeTimeout+t.order.Timing.Drain()+t.order.Timing.Patience())
	defer cancel()
	reports, err := t.reports(ctx, t.senders(), false)
	if err != nil {
		return err
	}
	orders, left := map[*party]drainOrder{}, map[int]uint64{}
	for n, e := range t.ends {
		if e.Order.Role != engine.Send || !e.lives() {
			continue
		}
		report := reports[e.party].Ends[n].Send
		if report == nil {
			return &cutError{why: fmt.Sprintf("%s: flow %s: the sender did not end in time", e.name, e.Order.Flow.Name)}
		}
		sent := engine.Sent{Streams: report.Streams, Unsent: report.Attempted - min(report.Accepted, report.Attempted)}
		far := t.ends[n^1]
		if _, ok := orders[far.party]; !ok {
			orders[far.party] = drainOrder{far.about(), map[int][]uint64{}, map[int]uint64{}}
		}
		orders[far.party].Attempted[n^1], orders[far.party].Unsent[n^1] = sent.Streams, sent.Unsent
		left[n^1] = sent.Left()
	}
	receivers := slices.Collect(maps.Keys(orders))
	drained, err := command[receivedAnswer](ctx, receivers, verbDrain, func(p *party) any { return orders[p] })
	if err != nil {
		return err
	}
	lost := false
	for n, packets := range left {
		lost = lost || drained[t.ends[n].party][n] < packets
	}
	return t.observe(ctx, model.MomentEnd, lost)
}

// observe lets the observations along the path read their counters, and all
// agents if drops are watched.
func (t *trial) observe(ctx context.Context, m model.Moment, lost bool) error {
	q := observeOrder{Moment: m, IdleNanos: min(t.order.Idle, maxIdle).Nanoseconds(), Lost: lost}
	var along sync.WaitGroup
	for _, o := range t.order.Along {
		along.Go(func() { readCounters(ctx, o, q) })
	}
	defer along.Wait()
	if t.order.Drops == "" {
		return nil
	}
	_, err := command[none](ctx, t.parties, verbObserve, func(p *party) any {
		q := q
		q.sessionOrder = p.about()
		return q
	})
	return err
}

// meet tells the observations along the path by what packets the ends of each flow will look for each other, and lets
// them read their counters: no other moment comes if no flow finds a way. What they cannot do stands in their reports.
func (t *trial) meet() {
	_ = each(t.order.Along, func(o engine.Observation) error {
		for n := range t.ends {
			if e := &t.ends[n].Order; e.Role == engine.Receive && e.Flow.Protocol == model.UDP { // its ports come meanwhile
				_ = o.Meet(e.Flow, e.Tag)
			}
		}
		o.Snapshot(model.MomentStart)
		return nil
	})
}

// track tells the observations along the path the flows' ports on either side: NAT
// between the ends may change them. What they cannot do stands in their reports.
func (t *trial) track() {
	_ = each(t.order.Along, func(o engine.Observation) error {
		for _, e := range t.ends {
			if t.order.Drops != "" && e.Order.Traffic() && e.Order.Flow.Protocol == model.UDP && e.lives() {
				_ = o.Track(e.Order.Flow, e.met.Tuples(e.Order.Role), e.Order.Alone)
			}
		}
		return nil
	})
}

// reports fetches the reports of several agents at once, as far as they come.
func (t *trial) reports(ctx context.Context, parties []*party, final bool) (map[*party]sessionReport, error) {
	room := roomFor(t.room)
	return gather(ctx, parties, func(ctx context.Context, p *party) (sessionReport, error) {
		r, err := fetch[sessionReport](ctx, p.member, verbReport, reportOrder{sessionOrder: p.about(), Final: final}, room)
		r.clamp(t.flows(), t.order.Timing)
		return r, err
	})
}

// collect gathers the reports of whoever is reachable. after is what ended the
// trial early, or nil.
func (t *trial) collect(ctx, run context.Context, after error) Outcome {
	out := Outcome{Flows: make([]FlowOutcome, len(t.order.Flows)), Watch: map[string]Watched{},
		Observed: map[string]model.Observation{}}
	t.mu.Lock()
	out.Begun = t.begun
	t.mu.Unlock()
	for i := range out.Flows {
		out.Flows[i].Meeting = t.meeting(2 * i)
	}
	within := drainTimeout + t.order.Timing.Patience()
	if after != nil {
		out.Cut = cmp.Or(ctxCut(run), after).Error() // the reason rather than its consequence
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
	reports, err := t.reports(limit, t.present(), true)
	for p, r := range reports {
		t.enterReport(&out, p, r)
	}
	t.findGaps(time.Now()) // one may have ended since the last beat
	t.mu.Lock()
	out.Gaps = slices.Clone(t.gaps)
	t.mu.Unlock()
	warn := func(n uint64, what string) {
		if n > 0 {
			out.Warnings = append(out.Warnings, fmt.Sprint(n, what))
		}
	}
	warn(t.missed.Load(), " progress samples were dropped, because they were not taken in time")
	for _, l := range t.c.links {
		warn(l.dropped.Swap(0), " heartbeats did not leave, because the control connection was stuck")
		warn(l.listener.overrun(), " heartbeats were dropped, because this process had no time for them")
	}
	if err != nil && out.Cut == "" {
		out.Cut = cmp.Or(ctxCut(run), err).Error()
	}
	return out
}

func (t *trial) enterReport(out *Outcome, p *party, r sessionReport) {
	if r.Watch != nil {
		out.Watch[p.info.ID] = *r.Watch
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
func (t *trial) stop(why string) {
	t.tell(cutTimeout, verbStop, func(p *party) any { return stopOrder{sessionOrder: p.about(), Why: why} })
}

// release lets every agent close the session. One that does not answer misses the beats.
func (t *trial) release() { t.tell(cutTimeout+closeTimeout, verbRelease, sessionOnly) }

// tell gives an order to every agent that is left. Nothing can be done about its errors.
func (t *trial) tell(within time.Duration, verb string, order func(*party) any) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_, _ = gather(ctx, t.present(), func(ctx context.Context, p *party) (none, error) {
		return give[none](ctx, p.member, verb, order(p))
	})
}
