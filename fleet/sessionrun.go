package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pelt/engine"
	"pelt/model"
)

// run starts the receiving half and waits until it reads, or starts the sending half
// after the gate's wait.
func (s *session) run(o runOrder) (a runAnswer, err error) {
	wait := time.Duration(o.WaitNanos)
	if wait < 0 || wait > maxGateWait {
		return a, fmt.Errorf("run: a wait of %v; want 0 to %v", wait, maxGateWait)
	}
	s.mu.Lock()
	if s.closed || !s.connected || s.gated || s.cut != "" {
		s.mu.Unlock()
		return a, errors.New("run: not connected, or running already")
	}
	s.gated = o.Gate
	if o.Gate {
		s.watching = make(chan struct{})
		s.work.Go(func() { // under the lock: close waits for it
			defer close(s.watching)
			s.open(wait)
		})
	}
	s.mu.Unlock()
	if o.Gate {
		return a, nil
	}
	var peers []string
	for _, p := range s.places(engine.Receive, engine.Echo) {
		t := s.first.Ends[0].Order.Timing
		s.start(p, stepPatience+s.length()+t.Drain()+t.Patience()+stepPatience)
	}
	for _, p := range s.places() {
		peers = append(peers, p.order.Peer)
	}
	s.hearing.await(time.Now(), peers...)
	began := time.Now()
	for _, p := range s.places(engine.Receive) {
		s.reads(p)
	}
	a.HeldNanos = time.Since(began).Nanoseconds()
	return a, nil
}

// reads waits until a receiver that was started reads, or never will.
func (s *session) reads(p *place) {
	r, ok := p.end.(engine.Reader)
	if !ok || r.Reading() == nil || !p.isStarted(s) {
		return
	}
	select {
	case <-r.Reading():
	case <-p.ended:
	case <-s.ctx.Done():
	}
}

// length is the time a sender is on.
func (s *session) length() time.Duration {
	t := s.first.Ends[0].Order.Timing
	return t.Warmup() + t.Measure()
}

// open is the start gate: it lets the senders go and watches the host during
// the measured part.
func (s *session) open(wait time.Duration) {
	if !sleep(s.ctx, wait) {
		return
	}
	for _, p := range s.places(engine.Probe) {
		t := s.first.Ends[0].Order.Timing
		s.start(p, s.length()+t.Drain()+t.Patience()+stepPatience)
	}
	for _, p := range s.places(engine.Send) {
		s.start(p, s.length()+overtime)
	}
	t := s.first.Ends[0].Order.Timing
	if !sleep(s.ctx, t.Warmup()) || s.why() != "" {
		return
	}
	if t.Warmup() > 0 {
		s.observed.at(model.MomentMeasure)
	}
	if s.agent.cfg.Watch == nil || s.first.Ends[0].Order.Survey {
		return
	}
	w := s.agent.cfg.Watch()
	end := time.NewTimer(t.Measure())
	defer end.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for on := s.why() == ""; on; {
		select {
		case <-look.C:
			on = s.why() == ""
		case <-end.C:
			on = false
		case <-s.measured: // the senders of a number of packets may end long before the time is over
			on = false
		case <-s.ctx.Done():
			on = false
		}
	}
	cpu, series := w.Stop()
	s.mu.Lock()
	s.watched = &Watched{CPU: cpu, Series: series}
	s.mu.Unlock()
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (s *session) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// start runs one end, for at most limit whatever anybody says.
func (s *session) start(p *place, limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.started || s.closed || s.cut != "" {
		return
	}
	p.started = true
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, limit)
		defer cancel()
		p.err = p.end.Run(ctx)
		failed := p.err != nil && ctx.Err() == nil && s.why() == ""
		close(p.ended)
		if failed {
			s.halt(fmt.Sprintf("%s: %v", p.name(), p.err))
		}
		s.wake()
	})
}

func (s *session) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// over ends the watch of the measured part.
func (s *session) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.measured:
	default:
		close(s.measured)
	}
}

// finish drains receivers: each is told what its sender attempted.
func (s *session) finish(ctx context.Context, attempted map[int][]uint64, unsent map[int]uint64) (any, error) {
	s.over()
	var places []*place
	for _, p := range s.places(engine.Receive) {
		if counts, ok := attempted[p.order.End]; ok && p.isStarted(s) {
			if len(counts) != p.order.Order.Flow.Streams {
				return nil, fmt.Errorf("finish: end %d has %d streams, not %d", p.order.End, p.order.Order.Flow.Streams, len(counts))
			}
			places = append(places, p)
		}
	}
	if len(places) != len(attempted) {
		return nil, errors.New("finish: names an end that is no running receiver")
	}
	ctx, cancel := context.WithTimeout(ctx, s.first.Ends[0].Order.Timing.Drain()+stopPatience)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := each(places, func(p *place) error {
		if p.over() {
			return nil // it was stopped, or reached its own time limit
		}
		if err := p.end.Finish(ctx, attempted[p.order.End], unsent[p.order.End]); err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
		return p.wait(ctx)
	})
	if err != nil {
		return nil, err
	}
	answer := finishAnswer{map[int]uint64{}}
	for _, p := range places {
		answer.Received[p.order.End], _ = p.end.Sample()
	}
	return answer, nil
}

func (p *place) isStarted(s *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.started
}

// halt stops all traffic but keeps the account; the first reason stays.
func (s *session) halt(why string) {
	s.mu.Lock()
	if s.cut == "" {
		s.cut = why
	}
	s.mu.Unlock()
	for _, p := range s.places() {
		p.end.Stop()
	}
	s.wake()
}
