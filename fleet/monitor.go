package fleet

import (
	"context"
	"errors"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// open begins to send and to hear heartbeats.
func (t *trial) open() {
	t.liveness.calm(true, time.Now())
	t.c.lead(t, true)
	t.beating.Go(t.heartbeat)
}

func (t *trial) close() {
	close(t.over)
	t.beating.Wait()
	t.c.lead(t, false)
}

// hear takes a message of an agent about the trial.
func (t *trial) hear(l *link, agent string, data []byte) {
	p := t.party(agent)
	if p == nil || p.link != l {
		return
	}
	if b, err := decode[beat](data); err == nil {
		l.noteHeard(time.Now())
		t.takeBeat(p, b)
	}
}

// heartbeat counts from open to close, even when the trial was cut, because agents
// that report must know that somebody listens. It cuts the trial when an agent
// is silent.
func (t *trial) heartbeat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		for _, l := range t.c.links {
			l.post(sessionSubject(l.client+"."+t.name, controllerName), beat{Number: n})
		}
		select {
		case <-tick.C:
		case <-t.over:
			return
		}
		t.look(time.Now())
	}
}

// look finds out who is silent, each beatEvery.
func (t *trial) look(now time.Time) {
	t.findLost(now)
	if !t.liveness.tick(now) {
		return
	}
	t.findGaps(now)
	if id, after, silent := t.liveness.silent(now); silent {
		p := t.party(id)
		t.cut(p, model.NewReason(model.HostSilent, "node", p.info.Node, "name", p.at, "after_s", after.Seconds()))
		t.giveUp(p) // after the reason: whoever waits for it returns at once
	}
}

// findLost cuts the trial when a hub is away for longer than a silence, or the reconnect window once it is measured.
func (t *trial) findLost(now time.Time) {
	most := silentAfter
	if t.hasBegun() {
		most = max(most, t.order.Timing.Patience())
	}
	for _, p := range t.present() {
		if p.link.away(now) >= most {
			t.cut(p, p.link.lostReason(p))
			t.giveUp(p)
		}
	}
}

func (t *trial) cut(p *party, why model.Reason) {
	t.cancel(&cutError{Fault: &finding.Fault{Reason: why}, host: p.info.ID})
}

// lostReason is that the connection to an agent is lost, or to the hub that it is on.
func (l *link) lostReason(p *party) model.Reason {
	if l.fleet {
		return model.Reason{Code: model.HubLost}
	}
	return model.NewReason(model.ConnectionLost, "node", p.info.Node, "name", p.at)
}

// giveUp gives an agent up: nobody waits for it any more, and its silence does not count.
func (t *trial) giveUp(p *party) {
	t.liveness.forget(p.info.ID)
	p.giveUp()
}

// takeBeat takes the heartbeat of an agent, which also tells whom the agent hears.
func (t *trial) takeBeat(p *party, b beat) {
	now := time.Now()
	t.liveness.note(p.info.ID, now)
	for _, peer := range b.Alive {
		t.liveness.note(peer, now.Add(-queued))
	}
	for _, s := range b.Samples {
		if t.takeSample(p, s) {
			t.mu.Lock()
			t.watchLoss(s)
			t.mu.Unlock()
		}
	}
	if clampCores(b.Cores); t.order.Live && len(b.Cores) > 0 && t.within(b.AtS) &&
		(!t.order.OneClock || p == t.parties[0]) {
		t.sample(Progress{Agent: p.info.ID, Cores: b.Cores, AtS: b.AtS})
	}
	if b.Counts != nil {
		b.Counts.Clamp(t.flows())
		t.sample(Progress{Agent: p.info.ID, Counts: b.Counts})
	}
	if b.Cut.Code != "" {
		t.cut(p, (&HostError{p.info.ID, p.info.Node, p.at, &finding.Fault{Reason: clipReason(b.Cut)}}).Because())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range b.Ended {
		if t.sending[n] && t.end(n, p) != nil {
			if delete(t.sending, n); len(t.sending) == 0 {
				t.liveness.calm(true, now)
				close(t.sent)
			}
		}
	}
}

// takeSample hands on what an end counted, if it is of this trial.
func (t *trial) takeSample(p *party, s sample) bool {
	e := t.end(s.End, p)
	if e == nil || !t.within(s.AtS) {
		return false
	}
	t.sample(Progress{Flow: e.Order.Flow.Name, Role: e.Order.Role, Agent: p.info.ID, Packets: s.Packets, Bytes: s.Bytes,
		Reach: s.Reach, AtS: s.AtS, Silent: min(max(s.Silent, 0), e.Order.Flow.Streams)})
	return true
}

// within reports whether a time since the measured part began can be one of this trial.
func (t *trial) within(atS float64) bool {
	return atS < t.order.Timing.MeasureSeconds+engine.OvertimeSeconds
}

// sample hands a sample on, or counts it as missed.
func (t *trial) sample(p Progress) {
	select {
	case t.samples <- p:
	default:
		t.missed.Add(1)
	}
}

// wait returns when the senders have ended, and passes samples on until then.
func (t *trial) wait(ctx context.Context, progress func(Progress)) error {
	overdue := time.NewTimer(t.order.Timing.Lead() + t.order.Timing.Warmup() + t.order.Timing.Measure() + overtime +
		2*time.Second)
	defer overdue.Stop()
	for ended := false; ; {
		select {
		case p := <-t.samples:
			progress(p)
			continue
		default:
			if ended {
				return ctxCut(ctx)
			}
		}
		select {
		case p := <-t.samples:
			progress(p)
		case <-ctx.Done():
			return ctxCut(ctx)
		case <-t.sent:
			ended = true
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
		return &cutError{Fault: finding.NewFault(model.OutOfTime)}
	}
	return &cutError{Fault: finding.NewFault(model.Interrupted)}
}

// Gap is a time in which nothing came over a control connection that was waited for.
type Gap struct {
	Nodes    []string      // that were not heard
	From, To time.Duration // since the measured part began; below 0 in the warm-up
}

// findGaps notes connections over which nothing comes, and has them made anew, where a trial has a reconnect window.
// Until the trial runs it does nothing: the orders before are given once, and a host
// that works on one for long may say nothing meanwhile.
func (t *trial) findGaps(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun.IsZero() || t.order.Timing.PatienceSeconds == 0 {
		return
	}
	for _, l := range t.c.links {
		heard, long := l.silence(now)
		since, silent := t.silent[l]
		switch {
		case long:
			t.silent[l] = heard
			l.forceReconnect(now)
		case silent:
			delete(t.silent, l)
			g := Gap{From: since.Sub(t.begun), To: heard.Sub(t.begun)}
			for _, p := range t.parties {
				if p.link == l {
					g.Nodes = append(g.Nodes, p.info.Node)
				}
			}
			t.gaps = append(t.gaps, g)
		}
	}
}
