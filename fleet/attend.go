package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/model"
)

// enter begins to beat and to hear.
func (t *trial) enter() error {
	c := t.c
	t.hearing.expect(time.Now(), t.agents...)
	for _, id := range t.agents {
		if t.isLocal(id) {
			continue
		}
		hub := c.members[id].link
		sub, err := hub.subscribe(sessionSubject(t.session(hub), id), func(m *nats.Msg) {
			if b, err := decode[beat](plain(m.Data)); err == nil {
				hub.hears(time.Now())
				t.relay(hub, id, b.Number)
				t.heard(id, b)
			}
		})
		if err != nil {
			t.drop()
			return err
		}
		t.subs = append(t.subs, sub)
	}
	c.mu.Lock()
	c.trials[t.name] = t
	c.mu.Unlock()
	for _, l := range c.links {
		if l.socket(nil) != nil {
			l.hold(t.order.Timing.Patience())
		}
	}
	t.beating.Go(t.beat)
	for _, l := range c.links {
		t.beating.Go(func() { t.guard(l) })
	}
	return nil
}

func (t *trial) leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
	for _, timer := range t.timers {
		timer.Stop()
	}
	close(t.over)
	t.beating.Wait()
	for _, l := range t.c.links {
		l.hold(0)
	}
	t.c.mu.Lock()
	delete(t.c.trials, t.name)
	t.c.mu.Unlock()
	t.drop()
}

func (t *trial) drop() {
	for _, s := range t.subs {
		_ = s.Unsubscribe() // fails only if the connection is gone
	}
}

func (t *trial) isLocal(id string) bool { return t.c.local != nil && id == t.c.local.cfg.ID }

// beat counts from enter to leave, even when the trial was cut, because agents
// that report must know that somebody listens. It cuts the trial when an agent
// is silent.
func (t *trial) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		t.say(n)
		select {
		case <-tick.C:
		case <-t.over:
			return
		}
		now := time.Now()
		t.interrupted(now)
		if !t.hearing.tick(now) {
			continue
		}
		if who, silent := t.hearing.silent(now); silent {
			t.giveUp(who)
			t.cancel(&cutError{fmt.Sprintf("%s has not answered for %v", t.c.members[who].name, t.hearing.after)})
		}
	}
}

// guard cuts the trial when the connection to a hub is gone.
func (t *trial) guard(l *link) {
	select {
	case <-l.lost:
	case <-t.over:
		return
	}
	for _, id := range t.agents {
		if !t.isLocal(id) && t.c.members[id].link == l {
			t.giveUp(id)
		}
	}
	t.cancel(&cutError{"the connection to " + l.far + " was lost"})
}

// said tells whether a number may come back: who says a greater one made it up, and
// would count in the controller's stead.
func (t *trial) said(number uint64) bool { return number <= t.counted.Load() }

// relay tells those on other hubs how far an agent has come, whom they cannot
// hear there.
func (t *trial) relay(from *link, id string, number uint64) {
	if !t.said(number) {
		return
	}
	for _, l := range t.c.links {
		if l != from {
			t.post(l, id, number)
		}
	}
}

func (t *trial) post(l *link, who string, number uint64) {
	data, err := json.Marshal(beat{Number: number})
	if err != nil { // a number always marshals
		return
	}
	l.post(sessionSubject(t.session(l), who), data)
}

// say sends one beat to all agents; the one of this host hears it directly.
func (t *trial) say(n uint64) {
	t.counted.Store(n)
	t.hearing.hear(controllerName, n, time.Now())
	for _, l := range t.c.links {
		t.post(l, controllerName, n)
	}
	if local := t.c.local; local != nil {
		if s := local.find(t.session(local.link)); s != nil {
			s.hearing.hear(controllerName, n, time.Now())
		}
	}
}

// heard takes the beat of an agent, which also tells whom the agent hears.
func (t *trial) heard(id string, b beat) {
	now := time.Now()
	if t.said(b.Number) {
		t.hearing.hear(id, b.Number, now)
	}
	for peer, n := range b.Heard {
		if t.said(n) {
			t.hearing.hear(peer, n, now)
		}
	}
	for _, peer := range b.Alive {
		if peer != controllerName { // nobody but the controller can tell that
			t.hearing.alive(peer, now)
		}
	}
	t.mu.Lock()
	for _, n := range b.Ended {
		if n >= 0 && n < len(t.ends) && t.ends[n].agent == id {
			t.ended[n] = true
		}
	}
	for _, s := range b.Samples {
		if s.End < 0 || s.End >= len(t.ends) || t.ends[s.End].agent != id {
			continue
		}
		if len(t.samples) >= maxSamples {
			t.missed++
			continue
		}
		o := t.ends[s.End].Order
		t.samples = append(t.samples, Progress{Flow: o.Flow.Name, Role: o.Role, Agent: id, Packets: s.Packets, Bytes: s.Bytes, Reach: s.Reach})
	}
	if c := b.Counts; c != nil && c.Drops != nil && len(c.Drops.Sites) > maxToldSites { // no agent of ours tells of more
		c.Drops = nil
	}
	switch {
	case b.Counts == nil:
	case len(t.samples) >= maxSamples:
		t.missed++
	default:
		t.samples = append(t.samples, Progress{Agent: id, Counts: b.Counts})
	}
	t.mu.Unlock()
	if b.Cut != "" {
		t.cancel(&cutError{t.c.members[id].name + ": " + b.Cut})
	}
	select {
	case t.news <- struct{}{}:
	default:
	}
}

func (t *trial) giveUp(id string) {
	t.hearing.mu.Lock()
	if h := t.hearing.from[id]; h != nil {
		h.exempt = true
	}
	t.hearing.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if ch := t.gone[id]; ch != nil && !t.isGone(id) {
		close(ch)
	}
}

func (t *trial) isGone(id string) bool {
	select {
	case <-t.gone[id]:
		return true
	default:
		return false
	}
}

// salvage gives orders to all agents that are still there, and stops waiting
// for one as soon as it is given up.
func (t *trial) salvage(ctx context.Context, f func(ctx context.Context, id string, m member) error) error {
	ids := slices.DeleteFunc(slices.Clone(t.agents), t.isGone)
	return t.all(ids, func(id string, m member) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- f(ctx, id, m) }()
		select {
		case err := <-done:
			return err
		case <-t.gone[id]:
			cancel()
			return <-done
		}
	})
}

// together gives orders to all agents at once, and does not wait for the
// others once one has failed: release will stop them.
func (t *trial) together(ctx context.Context, f func(ctx context.Context, id string, m member) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return t.all(t.agents, func(id string, m member) error {
		err := f(ctx, id, m)
		if err != nil {
			cancel()
		}
		return err
	})
}

// all works on several agents at once; the error is the first by time.
func (t *trial) all(ids []string, f func(id string, m member) error) error {
	results := make(chan error, len(ids))
	for _, id := range ids {
		go func() { results <- f(id, t.c.members[id]) }()
	}
	var first error
	for range ids {
		if err := <-results; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// start brings all ends to the running state: prepare, connect, run, gate.
func (t *trial) start(ctx context.Context) error {
	if err := t.prepare(ctx, true); err != nil {
		return err
	}
	if err := t.prepare(ctx, false); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, connectPatience+preparePatience+t.order.Idle)
	defer cancel()
	var mu sync.Mutex
	tuples := map[int][]model.Tuple{}
	began := time.Now()
	err := t.together(limit, func(ctx context.Context, id string, m member) error {
		a, err := order[connectAnswer](ctx, m, verbConnect, sessionOrder{t.session(m.link)})
		mu.Lock()
		defer mu.Unlock()
		for n, ports := range a.Tuples {
			if n >= 0 && n < len(t.ends) && t.ends[n].agent == id {
				tuples[n] = ports
			}
		}
		return err
	})
	if err != nil {
		return notMet(err, time.Since(began))
	}
	t.track(tuples)
	if err := t.observe(limit, model.MomentStart, false); err != nil {
		return err
	}
	rtt := map[string]time.Duration{}
	err = t.together(limit, func(ctx context.Context, id string, m member) error {
		began := time.Now()
		a, err := order[runAnswer](ctx, m, verbRun, runOrder{Session: t.session(m.link)})
		mu.Lock()
		defer mu.Unlock()
		rtt[id] = max(time.Since(began)-time.Duration(a.HeldNanos), 0)
		return err
	})
	if err != nil {
		return err
	}
	return t.gate(limit, rtt)
}

// notMet tells an error of ends that waited for each other in vain from a refusal, which
// comes sooner.
func notMet(err error, waited time.Duration) error {
	if waited >= connectPatience && !errors.Is(err, context.Canceled) {
		return unmet{err}
	}
	return err
}

// prepare opens listening or dialing ends; dialing ones learn the ports.
func (t *trial) prepare(ctx context.Context, listening bool) error {
	ctx, cancel := context.WithTimeout(ctx, preparePatience)
	defer cancel()
	var mu sync.Mutex
	return t.together(ctx, func(ctx context.Context, id string, m member) error {
		p := prepareOrder{Protocol: ProtocolVersion, Version: t.c.version, Session: t.session(m.link), Drops: t.order.Drops}
		mu.Lock() // the answer of another agent may be adding ports
		for _, e := range t.ends {
			if e.agent == id && e.Order.Listen == listening {
				p.Ends = append(p.Ends, e.endOrder)
			}
		}
		mu.Unlock()
		if len(p.Ends) == 0 {
			return nil
		}
		a, err := order[prepareAnswer](ctx, m, verbPrepare, p)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range p.Ends {
			if listening {
				t.ends[e.End^1].Order.Ports = a.Ports[e.End]
			}
		}
		t.hearing.await(time.Now(), id)
		return nil
	})
}

// gate tells everybody to start at the same moment: half a round trip counts
// for the way there. The answers are in before traffic can drown them.
func (t *trial) gate(ctx context.Context, rtt map[string]time.Duration) error {
	longest := time.Duration(0)
	for _, d := range rtt {
		longest = max(longest, d)
	}
	if warm := t.order.Timing.Warmup(); warm > 0 {
		for _, o := range t.order.Along {
			timer := time.AfterFunc(min(longest+gateMargin, maxGateWait)+warm, func() { o.Snapshot(model.MomentMeasure) })
			t.timers = append(t.timers, timer)
		}
	}
	if f := t.order.Begun; f != nil {
		timer := time.AfterFunc(min(longest+gateMargin, maxGateWait)+t.order.Timing.Warmup(), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if !t.left {
				f()
			}
		})
		t.timers = append(t.timers, timer)
	}
	begun := time.Now().Add(min(longest+gateMargin, maxGateWait) + t.order.Timing.Warmup())
	err := t.together(ctx, func(ctx context.Context, id string, m member) error {
		wait := min(longest+gateMargin, maxGateWait) - min(rtt[id], maxGateWait)/2
		_, err := order[struct{}](ctx, m, verbRun, runOrder{Session: t.session(m.link), Gate: true, WaitNanos: wait.Nanoseconds()})
		return err
	})
	t.mu.Lock()
	t.gaps.begun = begun
	t.mu.Unlock()
	return err
}

// attend waits until the senders have ended, and passes samples on.
func (t *trial) attend(ctx context.Context, progress func(Progress)) error {
	length := t.order.Timing.Warmup() + t.order.Timing.Measure()
	overdue := time.NewTimer(length + overtime + 2*time.Second)
	defer overdue.Stop()
	for {
		t.mu.Lock()
		samples := t.samples
		t.samples = nil
		sending := 0
		for _, e := range t.ends {
			if (e.Order.Role == engine.Send || e.Order.Survey && e.Order.Role == engine.Probe) && !t.ended[e.End] {
				sending++
			}
		}
		t.mu.Unlock()
		for _, s := range samples {
			progress(s)
		}
		if sending == 0 {
			return ctxCut(ctx)
		}
		select {
		case <-ctx.Done():
			return ctxCut(ctx)
		case <-t.news:
		case <-overdue.C:
			return nil // its beats may be held up; settle asks it
		}
	}
}

// ctxCut is why the trial was cut, or nil.
func ctxCut(ctx context.Context) error {
	var cut *cutError
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.As(cause, &cut):
		return cut
	case errors.Is(cause, context.DeadlineExceeded):
		return &cutError{"out of time"}
	}
	return &cutError{"interrupted"}
}
