package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"pelt/engine"
)

// gatherFor is how long news wait for more: a hundred flows end at one time, and
// a hundred peers hear each beat.
const gatherFor = 5 * time.Millisecond

// live beats for the session and ends it when nobody it needs is heard.
func (s *session) live() {
	t := time.NewTicker(beatEvery)
	defer t.Stop()
	var soon <-chan time.Time // of a beat between the ticks
	for n := 1; ; n++ {
		select {
		case <-s.ctx.Done():
			return
		case <-s.kick:
			if soon == nil {
				soon = time.After(gatherFor)
			}
			n--
			continue
		case <-soon:
			soon = nil
			s.sendBeat(nil, false)
			n--
			continue
		case <-t.C:
		}
		now := time.Now()
		judge := s.hearing.tick(now)
		s.exchangePulses(now)
		s.sendBeat(s.listenToPeers(now), n%sampleBeats == 0)
		if judge && s.giveUp(now) {
			return
		}
	}
}

// giveUp stops a session that is alone or overdue. Without its controller
// nobody will ask for the report, so then it is closed too; that runs on its
// own because closing waits for this very goroutine.
func (s *session) giveUp(now time.Time) bool {
	who, silent := s.hearing.silent(now)
	switch {
	case silent && who == controllerName:
		s.end(fmt.Sprintf("the controlling host has not been heard for %v", s.hearing.after))
		return true
	case s.overdue(now):
		s.end("the trial took far longer than ordered")
		return true
	case silent && s.why() == "":
		s.halt(fmt.Sprintf("%s has not been heard for %v", who, s.hearing.after))
	}
	return false
}

func (s *session) end(why string) {
	s.halt(why)
	s.sendBeat(nil, false)
	a := s.agent
	a.orders.Add(1) // the agent waits for it; this goroutine's own work keeps that legal
	go func() {
		defer a.orders.Done()
		_ = s.close(why) // errors are in the log
	}()
}

// exchangePulses lets the probe's packets carry the number beside the beats.
func (s *session) exchangePulses(now time.Time) {
	for _, p := range s.places(engine.Probe, engine.Echo) {
		if pulse, ok := p.end.(engine.Pulse); ok {
			if n := pulse.PeerPulse(); n > 0 {
				s.hearing.hear(p.order.Peer, n, now)
			}
			pulse.SetPulse(s.hearing.highest())
		}
	}
}

// listenToPeers takes the flows themselves for signs of life, and names the
// peers they came from: a flood may leave no room for anything else. Those of a
// peer in the controller's own process are the controller's, too.
//
// Those of a peer that vouches are the controller's once no packet of the probe has
// come for as long as it may have waited on the way: one that does brings the number
// itself, and if that stands still the controller is gone.
func (s *session) listenToPeers(now time.Time) (alive []string) {
	vouched := false
	for _, p := range s.places() {
		h, ok := p.end.(engine.Hearer)
		if !ok || !p.isStarted(s) || p.over() {
			continue
		}
		n := h.Heard()
		if n == p.heard {
			continue
		}
		p.heard = n
		s.hearing.alive(p.order.Peer, now)
		if p.order.Home {
			s.hearing.alive(controllerName, now)
		}
		if role := p.order.Order.Role; role == engine.Probe || role == engine.Echo {
			s.probed = now
		} else {
			vouched = vouched || p.order.Vouch
		}
		if !slices.Contains(alive, p.order.Peer) {
			alive = append(alive, p.order.Peer)
		}
	}
	if vouched && now.Sub(s.probed) > queued {
		s.hearing.alive(controllerName, now)
	}
	return alive
}

func (s *session) sendBeat(alive []string, samples bool) {
	b := beat{Number: s.hearing.highest(), Heard: s.hearing.numbers(), Alive: alive, Cut: s.why()}
	for _, p := range s.places() {
		if p.over() {
			b.Ended = append(b.Ended, p.order.End)
		}
		role := p.order.Order.Role
		if samples && p.isStarted(s) && (role == engine.Send || role == engine.Receive) {
			packets, bytes := p.end.Sample()
			one := sample{End: p.order.End, Packets: packets, Bytes: bytes}
			if r, ok := p.end.(engine.Reacher); ok {
				one.Reach = r.Reach()
			}
			b.Samples = append(b.Samples, one)
		}
	}
	if samples && s.first.Ends[0].Order.Timing.PatienceSeconds > 0 { // a long trial
		b.Counts = s.observed.counts()
	}
	slices.Sort(b.Ended)
	slices.SortFunc(b.Samples, func(x, y sample) int { return x.End - y.End })
	data, err := json.Marshal(b)
	if err != nil {
		s.agent.cfg.Log("beat: %v", err)
		return
	}
	if l := s.agent.link; l != nil {
		l.post(sessionSubject(s.id, s.agent.cfg.ID), data)
	}
	if s.agent.direct != nil {
		s.agent.direct(s.id, b)
	}
}

// Bounds of one report, which holds a value a second and series.
const (
	partBytes = 512 << 10 // base64 of it fits a message
	maxParts  = 128
)

// report answers one part. Part 0 makes the report; a final one first ends
// whatever still runs.
func (s *session) report(ctx context.Context, o reportOrder) (any, error) {
	s.over()
	if o.Part == 0 {
		if err := s.compile(ctx, o.Final); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Part < 0 || o.Part >= len(s.parts) {
		return nil, fmt.Errorf("report: no part %d", o.Part)
	}
	return reportAnswer{Parts: len(s.parts), Data: s.parts[o.Part]}, nil
}

func (s *session) compile(ctx context.Context, final bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*stopPatience)
	defer cancel()
	r := sessionReport{Ends: map[int]engine.Report{}}
	s.mu.Lock()
	watching := s.watching
	s.mu.Unlock()
	if final && watching != nil { // it ends now, or with the measured part
		select {
		case <-watching:
		case <-ctx.Done():
		}
	}
	for _, p := range s.places() {
		if final && p.isStarted(s) && !p.over() {
			p.end.Stop()
			if err := p.wait(ctx); err != nil {
				s.agent.cfg.Log("report: %v", err)
			}
		}
	}
	for _, p := range s.places() {
		if !p.over() {
			continue
		}
		s.mu.Lock()
		if p.report == nil {
			report := p.end.Report()
			p.report = &report
		}
		r.Ends[p.order.End] = *p.report
		s.mu.Unlock()
	}
	if final {
		r.Observed = s.observed.report(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Watch, r.Cut = s.watched, s.cut
	lighten(&r)
	data, err := r.encode(reportBytes)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if len(data) > reportBytes {
		return errors.New("report: larger than 64 MiB")
	}
	s.parts = slices.Collect(slices.Chunk(data, partBytes))
	return nil
}
