package tcp

import (
	"runtime"
	"sync"
	"time"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/model"
)

// measure reads the counters of all streams at the beginning of the measured
// part, at each step and at its end. It returns at the end, or as soon as Stop
// is called or all streams have ended; the origin is set then.
func (e *end) measure() span {
	origin := e.clock.Began.Add(time.Duration(e.origin.Load()))
	s := span{}
	// Without a warm-up the counters of before the first byte are the base.
	if warmup := e.order.Timing.Warmup(); warmup > 0 {
		if !e.wait(origin.Add(warmup)) {
			return s
		}
		e.each((*stream).beginMeasured)
		s.begun = time.Since(origin)
		s.latest = s.begun - warmup
	}
	e.each((*stream).begin)
	// A beginning that came late does not move the end: the schedule of writes
	// and the account of bytes go by the clock, and the rates by s.
	begin, length := origin.Add(e.order.Timing.Warmup()), e.order.Timing.Measure()
	for k := range e.stepSegments {
		upTo := min(time.Duration(k+1)*engine.StepNanos, length)
		reached := e.wait(begin.Add(upTo))
		e.each(func(t *stream) { e.stepSegments[k].Add(t.step(e.order.Role)) })
		s.ended = time.Since(origin)
		if !reached {
			break
		}
		s.latest = max(s.latest, time.Since(begin.Add(upTo)))
		s.complete = upTo == length
	}
	e.each((*stream).finish)
	return s
}

// wait returns true at the moment, false if traffic ends first.
func (e *end) wait(until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.stopped.Done():
	case <-e.idle:
	case <-e.over:
	}
	return false
}

func (e *end) each(f func(*stream)) {
	for _, s := range e.streams {
		f(s)
	}
}

// beginMeasured begins the measured part of a stream's account; calls after the first do nothing.
func (s *stream) beginMeasured() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return
	}
	s.opened = true
	if s.known {
		s.last, s.known = readInfo(s.raw, false)
	}
	s.base = written{s.writes.Load(), s.bytes.Load()}
}

func (s *stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = true
}

// step reads the counters and returns the data segments since the reading before.
func (s *stream) step(role engine.Role) uint64 {
	now, ok := readInfo(s.raw, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = written{s.writes.Load() - s.base.writes, s.bytes.Load() - s.base.bytes}
	if !ok || !s.known {
		return 0
	}
	before := s.sum
	s.sum, s.last = s.sum.Plus(s.last, now), now
	if role == engine.Send {
		return s.sum[tcpinfo.SegmentsOut] - before[tcpinfo.SegmentsOut]
	}
	return s.sum[tcpinfo.SegmentsIn] - before[tcpinfo.SegmentsIn]
}

func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = false
}

// current returns the figures of the measured part up to now.
func (s *stream) current() tcpinfo.Sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active && s.known {
		if now, ok := readInfo(s.raw, false); ok {
			return s.sum.Plus(s.last, now)
		}
	}
	return s.sum
}

// runOnThreads runs f for each stream on a thread of its own, pinned if the order says so. It closes idle when all
// have ended.
func (e *end) runOnThreads(f func(*stream)) {
	e.runAll(func(i int, s *stream) { e.onThread(i, func() { f(s) }) })
}

// runAll runs f for each stream on a goroutine of its own, and closes idle when all have ended. It does not wait.
func (e *end) runAll(f func(int, *stream)) {
	var group sync.WaitGroup
	for i, s := range e.streams {
		group.Go(func() { f(i, s) })
	}
	go func() {
		group.Wait()
		close(e.idle)
	}()
}

func (e *end) onThread(i int, f func()) {
	runtime.LockOSThread()
	if e.order.CPU < 0 {
		defer runtime.UnlockOSThread()
	} else if err := engine.Pin(e.order.Core(i)); err != nil && i == 0 { // such a thread ends with its goroutine
		e.warn(model.Reason{Code: model.ThreadsUnpinned, Text: err.Error()})
	}
	use := engine.NewThreadUse(e.clock.Now())
	f()
	share := use.Share(e.clock.Now())
	e.mu.Lock()
	e.busiest = max(e.busiest, share)
	e.mu.Unlock()
}
