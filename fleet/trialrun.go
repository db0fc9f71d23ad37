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

// each gives orders to several agents at once, and stops waiting for one as soon as it is
// given up. The error is the first by time.
func (t *trial) each(ctx context.Context, ids []string, f func(ctx context.Context, id string, m member) error) error {
	return each(ids, func(id string) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(t.there[id], cancel)()
		return f(ctx, id, t.c.members[id])
	})
}

// present are the agents that are still there.
func (t *trial) present() []string { return slices.DeleteFunc(slices.Clone(t.agents), t.isGone) }

// gather gives one order to each of several agents at once and returns their answers.
// Once one has failed it does not wait for the others: the trial is over.
func gather[A any](ctx context.Context, t *trial, verb string, ids []string, q func(id string, m member) any) (map[string]A, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	answers := map[string]A{}
	err := t.each(ctx, ids, func(ctx context.Context, id string, m member) error {
		began := time.Now()
		a, err := give[A](ctx, m, verb, q(id, m))
		if err != nil {
			cancel()
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answers[id], t.took[id] = a, time.Since(began)
		return nil
	})
	return answers, err
}

// start lets all ends begin: prepare, connect, observe, arm, start.
func (t *trial) start(ctx context.Context) error {
	if err := t.prepareAll(ctx); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, connectTimeout+prepareTimeout+t.order.Idle)
	defer cancel()
	about := func(_ string, m member) any { return t.about(m) }
	began := time.Now()
	connected, err := gather[connectAnswer](limit, t, verbConnect, t.agents, about)
	if err != nil {
		return notMet(err, time.Since(began))
	}
	t.track(connected)
	if err := t.observe(limit, model.MomentStart, false); err != nil {
		return err
	}
	armed, err := gather[armAnswer](limit, t, verbArm, t.agents, about)
	if err != nil {
		return err
	}
	rtt := map[string]time.Duration{}
	for id, a := range armed {
		rtt[id] = max(t.took[id]-time.Duration(a.HeldNanos), 0)
	}
	return t.gate(limit, rtt)
}

// notMet tells an error of ends that waited for each other in vain from a refusal, which
// comes sooner.
func notMet(err error, waited time.Duration) error {
	if waited >= connectTimeout && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w%w", err, silent{ErrUnmet})
	}
	return err
}

// prepareAll opens the listening ends, then the dialing ones.
func (t *trial) prepareAll(ctx context.Context) error {
	if err := t.prepare(ctx, true); err != nil {
		return err
	}
	return t.prepare(ctx, false)
}

// prepare opens listening or dialing ends; dialing ones learn the ports.
func (t *trial) prepare(ctx context.Context, listening bool) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	ends := map[string][]endOrder{}
	for _, e := range t.ends {
		if e.Order.Listen == listening {
			ends[e.agent] = append(ends[e.agent], e.endOrder)
		}
	}
	ids := slices.Collect(maps.Keys(ends))
	opened, err := gather[prepareAnswer](ctx, t, verbPrepare, ids, func(id string, m member) any {
		return prepareOrder{t.c.self(), t.about(m), ends[id], t.order.Drops}
	})
	if err != nil {
		return err
	}
	for id, all := range ends {
		for _, e := range all {
			if listening {
				t.ends[e.End^1].Order.Ports = opened[id].Ports[e.End]
			}
		}
	}
	t.liveness.await(time.Now(), ids...)
	return nil
}

// gate tells everybody to start at the same moment: half a round trip counts
// for the way there. The answers are in before traffic can drown them.
func (t *trial) gate(ctx context.Context, rtt map[string]time.Duration) error {
	wait := min(slices.Max(slices.Collect(maps.Values(rtt)))+gateMargin, maxGateWait)
	warmup := t.order.Timing.Warmup()
	begun := time.Now().Add(wait + warmup)
	t.measured = time.AfterFunc(wait+warmup, func() {
		for _, o := range t.order.Along {
			if warmup > 0 {
				go o.Snapshot(model.MomentMeasure)
			}
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.order.Begun != nil && !t.left {
			t.order.Begun()
		}
	})
	_, err := gather[none](ctx, t, verbStart, t.agents, func(id string, m member) any {
		return startOrder{t.about(m), (wait - min(rtt[id], maxGateWait)/2).Nanoseconds()}
	})
	t.mu.Lock()
	t.begun = begun
	t.mu.Unlock()
	return err
}

// drain learns what the senders attempted and lets the receivers drain.
func (t *trial) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout+observeTimeout+t.order.Timing.Drain()+t.order.Timing.Patience())
	defer cancel()
	var senders []string
	for _, e := range t.ends {
		if e.Order.Role == engine.Send && !slices.Contains(senders, e.agent) {
			senders = append(senders, e.agent)
		}
	}
	reports, err := t.reports(ctx, senders, false)
	if err != nil {
		return err
	}
	drains, left := map[string]drainOrder{}, map[int]uint64{}
	for _, e := range t.ends {
		if e.Order.Role != engine.Send {
			continue
		}
		sent := reports[e.agent].Ends[e.End].Send
		if sent == nil {
			return &cutError{fmt.Sprintf("%s: flow %s: the sender did not end in time", t.c.members[e.agent].name, e.Order.Flow.Name)}
		}
		if _, ok := drains[e.Peer]; !ok {
			drains[e.Peer] = drainOrder{t.about(t.c.members[e.Peer]), map[int][]uint64{}, map[int]uint64{}}
		}
		peer := e.End ^ 1
		unsent := sent.Attempted - min(sent.Accepted, sent.Attempted)
		drains[e.Peer].Attempted[peer], drains[e.Peer].Unsent[peer] = sent.Streams, unsent
		left[peer] = engine.Sent{Streams: sent.Streams, Unsent: unsent}.Left()
	}
	ids := slices.Collect(maps.Keys(drains))
	drained, err := gather[drainAnswer](ctx, t, verbDrain, ids, func(id string, _ member) any { return drains[id] })
	if err != nil {
		return err
	}
	lost := false
	for n, packets := range left {
		lost = lost || drained[t.ends[n].agent].Received[n] < packets
	}
	return t.observe(ctx, model.MomentEnd, lost)
}

// observe lets the observations along the path read their counters, and all
// agents if drops are watched.
func (t *trial) observe(ctx context.Context, m model.Moment, lost bool) error {
	q := observeOrder{Moment: m, IdleNanos: min(t.order.Idle, maxIdle).Nanoseconds(), Lost: lost}
	var along sync.WaitGroup
	for _, o := range t.order.Along {
		along.Go(func() { lead(ctx, o, q) })
	}
	defer along.Wait()
	if t.order.Drops == "" {
		return nil
	}
	_, err := gather[none](ctx, t, verbObserve, t.agents, func(_ string, m member) any {
		q := q
		q.sessionOrder = t.about(m)
		return q
	})
	return err
}

// track tells the observations along the path the flows' ports on either side: NAT
// between the ends may change them. What they cannot do stands in their reports.
func (t *trial) track(connected map[string]connectAnswer) {
	_ = each(t.order.Along, func(o engine.Observation) error {
		for n, e := range t.ends {
			if ports := connected[e.agent].Tuples[n]; ports != nil {
				_ = o.Track(e.Order.Flow, ports)
			}
		}
		return nil
	})
}

// reports fetches the reports of several agents at once, as far as they come.
func (t *trial) reports(ctx context.Context, ids []string, final bool) (map[string]sessionReport, error) {
	var mu sync.Mutex
	all := map[string]sessionReport{}
	err := t.each(ctx, ids, func(ctx context.Context, id string, m member) error {
		r, err := fetch[sessionReport](ctx, m, verbReport, false, func(part int) any {
			return reportOrder{sessionOrder: t.about(m), Final: final, Part: part}
		})
		if err != nil {
			return err
		}
		r.clamp(t.flows(), t.order.Timing)
		mu.Lock()
		defer mu.Unlock()
		all[id] = r
		return nil
	})
	return all, err
}

// collect gathers the reports of whoever is reachable. after is what ended the
// trial early, or nil.
func (t *trial) collect(ctx, run context.Context, after error) Outcome {
	out := Outcome{Flows: make([]FlowOutcome, len(t.order.Flows)), Watch: map[string]Watched{}, Observed: map[string]model.Observation{}}
	within := drainTimeout + t.order.Timing.Patience()
	if after != nil {
		out.Cut = cmp.Or(ctxCut(run), after).Error() // the reason rather than its consequence
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
	for id, r := range reports {
		t.enterReport(&out, id, r)
	}
	t.interrupted(time.Now()) // one may have ended since the last beat
	t.mu.Lock()
	out.Gaps = slices.Clone(t.gaps)
	if t.missed > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d progress samples were dropped, because they were not taken in time", t.missed))
	}
	t.mu.Unlock()
	dropped := uint64(0)
	for _, l := range t.c.links {
		dropped += l.dropped.Swap(0)
	}
	if dropped > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d beats did not leave, because the control connection was stuck", dropped))
	}
	if err != nil && out.Cut == "" {
		out.Cut = cmp.Or(ctxCut(run), err).Error()
	}
	return out
}

func (t *trial) flows() (all []model.Flow) {
	for _, f := range t.order.Flows {
		all = append(all, f.Flow)
	}
	return all
}

func (t *trial) enterReport(out *Outcome, id string, r sessionReport) {
	if r.Watch != nil {
		out.Watch[id] = *r.Watch
	}
	if r.Observed != nil {
		out.Observed[id] = *r.Observed
	}
	for n, report := range r.Ends {
		if n < 0 || n >= len(t.ends) || t.ends[n].agent != id {
			continue
		}
		switch e := t.ends[n]; e.Order.Role {
		case engine.Send:
			out.Flows[n/2].Send = &report
		case engine.Receive:
			out.Flows[n/2].Receive = &report
		case engine.Probe:
			if e.Order.Survey {
				out.Flows[n/2].Send = &report
			} else {
				out.Probe = report.Probe
			}
		}
	}
}

// stop ends all traffic; agents that cannot be told find out by themselves.
func (t *trial) stop(why string) {
	ctx, cancel := context.WithTimeout(context.Background(), cutTimeout)
	defer cancel()
	_ = t.each(ctx, t.present(), func(ctx context.Context, _ string, m member) error {
		_, err := give[none](ctx, m, verbStop, stopOrder{t.about(m), why})
		return err
	})
}

// release lets every agent close the session. Nothing can be done about one
// that does not answer, and it will miss the beats.
func (t *trial) release() {
	ctx, cancel := context.WithTimeout(context.Background(), cutTimeout+closeTimeout)
	defer cancel()
	_ = t.each(ctx, t.present(), func(ctx context.Context, _ string, m member) error {
		_, err := give[none](ctx, m, verbRelease, t.about(m))
		return err
	})
}
