package fleet

import (
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/model"
)

func (s *session) listen() (err error) {
	s.sub, err = s.agent.link.subscribe(sessionSubject(s.id, controllerName), func(m *nats.Msg) {
		if b, err := decode[beat](m.Data); err == nil {
			s.hear(b, time.Now())
		}
	})
	return err
}

func (s *session) hear(b beat, now time.Time) {
	s.liveness.note(controllerName, now)
	s.hearNumber(b.Number, now)
}

// hearNumber takes a number that a peer passed on. A higher one shows that the controller lives: nobody else counts.
func (s *session) hearNumber(number uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number > s.number {
		s.number = number
		s.liveness.note(controllerName, now)
	}
}

func sessionSubject(session, who string) string { return "pelt.session." + session + "." + who }

// heartbeat sends heartbeats and ends the session when the controller is silent.
func (s *session) heartbeat() {
	t := time.NewTicker(beatEvery)
	defer t.Stop()
	sampled := math.Inf(-1) // second
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
			s.sendBeat(nil, nil)
		case <-t.C:
			now := time.Now()
			judge := s.liveness.tick(now)
			var at *float64
			if elapsed, began := s.elapsed(now); began && math.Floor(elapsed) > sampled {
				at, sampled = &elapsed, math.Floor(elapsed)
			}
			s.sendBeat(s.hearPeers(now), at)
			if _, after, silent := s.liveness.silent(now); judge && silent {
				why := model.NewReason(model.ControllerSilent, "after_s", after.Seconds())
				s.stopTraffic(why)
				// Nobody will ask for the report. Closing waits for this very goroutine.
				s.agent.closing.Go(func() { _ = s.close(why) })
				return
			}
		}
	}
}

// hearPeers names the peers that packets came from, for the controller: a flood may leave no room for anything else. A
// probe's packets carry the controller's number.
//
// Packets of a peer that counts are the controller's sign too, unless packets of the probe
// came lately: those bring the number itself, and if it stands still the controller is gone.
func (s *session) hearPeers(now time.Time) (alive []string) {
	counts := false
	for _, e := range s.ends {
		if !e.hadPackets() {
			continue
		}
		if e.order.Order.Traffic() {
			counts = counts || e.order.Counts
		} else {
			s.probed = now
		}
		if !slices.Contains(alive, e.order.Peer) {
			alive = append(alive, e.order.Peer)
		}
	}
	s.mu.Lock()
	number := s.number
	s.mu.Unlock()
	for _, e := range s.taking((*sessionEnd).probes) {
		s.hearNumber(e.part.Pulse(number, slices.Contains(alive, e.order.Peer)), now)
	}
	if counts && now.Sub(s.probed) > queued {
		s.liveness.note(controllerName, now.Add(-queued))
	}
	return alive
}

// elapsed returns the seconds since the measured part began, once the gate's time is known.
func (s *session) elapsed(now time.Time) (seconds float64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.measured).Seconds(), !s.measured.IsZero()
}

// beatSoon has a heartbeat sent before its time.
func (s *session) beatSoon() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// sendBeat tells the controller how far this session has come. at is when, if the heartbeat has samples; nil if not.
func (s *session) sendBeat(alive []string, at *float64) {
	b := beat{Alive: alive}
	for _, e := range s.ends {
		if e.ended.Load() {
			b.Ended = append(b.Ended, e.order.End)
		}
	}
	if at != nil {
		b.Samples, b.AtS = s.samples(*at), *at
		if s.first.Timing.PatienceSeconds > 0 || s.live { // its account is asked for while it runs
			b.Counts, b.Cores = s.liveFigures(*at)
		}
	}
	b.Cut = s.why() // after the ends: one that failed is told with the reason
	slices.Sort(b.Ended)
	s.agent.link.post(sessionSubject(s.id, s.agent.cfg.ID), b)
}

// samples are of all ends that carry traffic.
func (s *session) samples(at float64) (all []sample) {
	for _, e := range s.taking(func(e *sessionEnd) bool { return !e.dead && e.order.Order.Traffic() }) {
		one := e.sample()
		one.AtS = at
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y sample) int { return x.End - y.End })
	return all
}

// maxCountedSites bounds the places that one heartbeat tells of.
const maxCountedSites = 64

// liveFigures are what the kernel has dropped by now, until its counters are read for the last time, and how busy the
// cores were in the last second, for somebody who watches.
func (s *session) liveFigures(at float64) (counts *model.Observation, cores map[int]float64) {
	s.mu.Lock()
	over := s.step >= slices.Index(engine.Steps, engine.Still)
	s.mu.Unlock()
	if over {
		return nil, nil
	}
	for _, p := range s.watchParts() {
		l := p.Live()
		if l.Counts != nil {
			if counts = l.Counts; counts.Drops != nil && len(counts.Drops.Sites) > maxCountedSites {
				counts.Drops = nil // they are in the report
			}
		}
		if s.live && at >= 1 && l.Cores != nil {
			cores = l.Cores
			clampCores(cores)
		}
	}
	return counts, cores
}
