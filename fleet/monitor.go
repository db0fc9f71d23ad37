package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
)

// enter begins to beat and to hear.
func (t *trial) enter() error {
	c := t.c
	t.liveness.expect(time.Now(), t.agents...)
	for _, id := range t.agents {
		hub := c.members[id].link
		sub, err := hub.subscribe(sessionSubject(t.session(hub), id), func(m *nats.Msg) {
			if b, err := decode[beat](m.Data); err == nil {
				hub.hears(time.Now())
				t.heard(id, b)
			}
		})
		if err != nil {
			t.drop()
			return err
		}
		t.subs = append(t.subs, sub)
	}
	for _, l := range c.links {
		l.hold(t.order.Timing.Patience())
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
	if t.measured != nil {
		t.measured.Stop()
	}
	close(t.over)
	t.beating.Wait()
	for _, l := range t.c.links {
		l.hold(0)
	}
	t.drop()
}

func (t *trial) drop() {
	for _, s := range t.subs {
		_ = s.Unsubscribe() // fails only if the connection is gone
	}
}

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
		if !t.liveness.tick(now) {
			continue
		}
		if who, silent := t.liveness.silent(now); silent {
			t.lose(who)
			t.cancel(&cutError{fmt.Sprintf("%s has not answered for %v", t.c.members[who].name, t.liveness.after)})
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
		if t.c.members[id].link == l {
			t.lose(id)
		}
	}
	t.cancel(&cutError{"the connection to " + l.far + " was lost"})
}

// say sends one heartbeat to all agents, with how far each of them has come.
func (t *trial) say(n uint64) {
	t.liveness.count(n, time.Now())
	b := beat{Number: n, Heard: t.liveness.numbers()}
	data, err := json.Marshal(b)
	if err != nil { // numbers always marshal
		return
	}
	for _, l := range t.c.links {
		l.post(sessionSubject(t.session(l), controllerName), data)
	}
}

// heard takes the beat of an agent, which also tells whom the agent hears.
func (t *trial) heard(id string, b beat) {
	now := time.Now()
	t.liveness.hear(id, b, now)
	for _, peer := range b.Alive {
		if peer != controllerName { // nobody but the controller can tell that
			t.liveness.packets(peer, now)
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
		t.samples = append(t.samples, Progress{Flow: o.Flow.Name, Role: o.Role, Agent: id,
			Packets: s.Packets, Bytes: s.Bytes, Reach: s.Reach})
	}
	switch {
	case b.Counts == nil:
	case len(t.samples) >= maxSamples:
		t.missed++
	default:
		b.Counts.Clamp(t.flows())
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

// lose gives an agent up: nobody waits for it any more, and its silence does not count.
func (t *trial) lose(id string) {
	t.liveness.forget(id)
	if giveUp := t.giveUp[id]; giveUp != nil {
		giveUp()
	}
}

func (t *trial) isGone(id string) bool { return t.there[id].Err() != nil }

// monitor waits until the senders have ended, and passes samples on.
func (t *trial) monitor(ctx context.Context, progress func(Progress)) error {
	if progress == nil {
		progress = func(Progress) {}
	}
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
			return nil // its beats may be held up; drain asks it
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
