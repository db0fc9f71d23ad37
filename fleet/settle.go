package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/model"
)

// settle learns what the senders attempted and lets the receivers drain.
func (t *trial) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settlePatience+observePatience+t.order.Timing.Drain()+t.order.Timing.Patience())
	defer cancel()
	var mu sync.Mutex
	finish := map[string]finishOrder{}
	err := t.all(t.with(engine.Send), func(id string, m member) error {
		r, err := t.fetch(ctx, m, false)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range t.ends {
			if e.agent != id || e.Order.Role != engine.Send {
				continue
			}
			report, ok := r.Ends[e.End]
			if !ok || report.Send == nil {
				return &cutError{fmt.Sprintf("%s: flow %s: the sender did not end in time", m.name, e.Order.Flow.Name)}
			}
			if _, ok := finish[e.Peer]; !ok {
				finish[e.Peer] = finishOrder{t.session(t.c.members[e.Peer].link), map[int][]uint64{}, map[int]uint64{}}
			}
			finish[e.Peer].Attempted[e.End^1] = report.Send.Streams
			finish[e.Peer].Unsent[e.End^1] = report.Send.Attempted - min(report.Send.Accepted, report.Send.Attempted)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var lost bool
	err = t.all(slices.Collect(maps.Keys(finish)), func(id string, m member) error {
		a, err := order[finishAnswer](ctx, m, verbFinish, finish[id])
		mu.Lock()
		defer mu.Unlock()
		for n, streams := range finish[id].Attempted {
			lost = lost || a.Received[n] < engine.Left(streams, finish[id].Unsent[n])
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.observe(ctx, model.MomentEnd, lost)
}

// observe lets the observations along the path read their counters, and all
// agents if drops are watched.
func (t *trial) observe(ctx context.Context, m model.Moment, lost bool) error {
	var along sync.WaitGroup
	for _, o := range t.order.Along {
		along.Go(func() { lead(ctx, o, snapshotOrder{Moment: m, IdleNanos: t.order.Idle.Nanoseconds(), Lost: lost}) })
	}
	defer along.Wait()
	if t.order.Drops == "" {
		return nil
	}
	return t.all(t.agents, func(_ string, a member) error {
		_, err := order[struct{}](ctx, a, verbSnapshot, snapshotOrder{t.session(a.link), m, t.order.Idle.Nanoseconds(), lost})
		return err
	})
}

// track tells the observations along the path the flows' ports on either side: NAT
// between the ends may change them. What they cannot do stands in their reports.
func (t *trial) track(tuples map[int][]model.Tuple) {
	var along sync.WaitGroup
	for _, o := range t.order.Along {
		along.Go(func() {
			for _, n := range slices.Sorted(maps.Keys(tuples)) {
				_ = o.Track(t.ends[n].Order.Flow, tuples[n])
			}
		})
	}
	along.Wait()
}

func (t *trial) with(role engine.Role) []string {
	var ids []string
	for _, e := range t.ends {
		if e.Order.Role == role && !slices.Contains(ids, e.agent) {
			ids = append(ids, e.agent)
		}
	}
	return ids
}

// fetch gets all parts of an agent's report.
func (t *trial) fetch(ctx context.Context, m member, final bool) (sessionReport, error) {
	return fetchPlain[sessionReport](ctx, m, verbReport, func(part int) any { return reportOrder{t.session(m.link), final, part} })
}

// collect gathers the reports of whoever is reachable. after is what ended the
// trial early, or nil.
func (t *trial) collect(ctx, run context.Context, after error) Outcome {
	out := Outcome{Flows: make([]FlowOutcome, len(t.order.Flows)), Watch: map[string]Watched{}, Observed: map[string]model.Observation{}}
	patience := settlePatience + t.order.Timing.Patience()
	if after != nil {
		if cut := ctxCut(run); cut != nil {
			after = cut // the reason rather than its consequence
		}
		out.Cut = after.Error()
		patience = salvagePatience
		t.stop(out.Cut)
	} else {
		ctx = run
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if after == nil { // a host lost only now must not be waited for
		defer context.AfterFunc(run, cancel)()
	}
	var mu sync.Mutex
	err := t.salvage(limit, func(ctx context.Context, id string, m member) error {
		r, err := t.fetch(ctx, m, true)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		t.enterReport(&out, id, r)
		return nil
	})
	t.interrupted(time.Now()) // one may have ended since the last beat
	t.mu.Lock()
	out.Gaps = slices.Clone(t.gaps.all)
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
		out.Cut = err.Error()
		if cut := ctxCut(run); cut != nil {
			out.Cut = cut.Error()
		}
	}
	return out
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
	ctx, cancel := context.WithTimeout(context.Background(), salvagePatience)
	defer cancel()
	_ = t.salvage(ctx, func(ctx context.Context, _ string, m member) error {
		_, err := order[struct{}](ctx, m, verbStop, stopOrder{t.session(m.link), why})
		return err
	})
}

// release lets every agent close the session. Nothing can be done about one
// that does not answer, and it will miss the beats.
func (t *trial) release() {
	ctx, cancel := context.WithTimeout(context.Background(), salvagePatience+closePatience)
	defer cancel()
	_ = t.salvage(ctx, func(ctx context.Context, _ string, m member) error {
		_, err := order[struct{}](ctx, m, verbRelease, sessionOrder{t.session(m.link)})
		return err
	})
}
