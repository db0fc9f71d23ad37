package tcp

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"pelt/unit"
)

// send writes on all streams until the order is fulfilled.
func (e *end) send() error {
	if e.order.Timing.Warmup() == 0 {
		e.each((*stream).open)
	}
	e.origin.Store(int64(time.Since(e.clock.begun)))
	write := e.writeFlat
	if pace, ok := e.newPace(); ok {
		write = func(s *stream) error { return e.writePaced(s, pace) }
	} else if e.order.Flow.Bytes > 0 {
		write = e.transfer
	}
	e.work(func(s *stream) {
		if e.begin(s) {
			s.ended = write(s)
		}
	})
	e.watching = e.watchInfo()
	span := e.measure()
	e.watching.stop()
	span.complete = span.complete || e.transferred()
	e.letGo()
	e.interrupt()
	<-e.idle
	e.mu.Lock()
	e.span = span
	e.mu.Unlock()
	if span.complete {
		// The peer's end of data; what is queued still goes out before it.
		e.each(func(s *stream) { s.conn.CloseWrite() })
		return nil
	}
	select {
	case <-e.quit:
		return nil
	default:
		early := 0
		for _, s := range e.streams {
			if s.done.Load() == 0 { // always so of a stream that has no number of bytes to send
				early++
			}
		}
		return fmt.Errorf("send tcp: %d of %d streams ended early: %w", early, len(e.streams), e.whyEnded())
	}
}

func (e *end) whyEnded() error {
	for _, s := range e.streams {
		if s.ended != nil {
			return s.ended
		}
	}
	return errStopped
}

// writeFlat writes as fast as TCP takes it.
func (e *end) writeFlat(s *stream) error {
	for {
		n, err := s.conn.Write(e.message)
		s.bytes.Add(uint64(n))
		if err != nil {
			return regular(err)
		}
		s.writes.Add(1)
	}
}

// regular drops the error of a stream that was told to end.
func regular(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// pace is the exact schedule of a flow's writes.
type pace struct {
	schedule    unit.Schedule
	first, last uint64 // writes first..last-1 are of the measured part
	streams     uint64
	burst       uint64 // of one stream
}

func (e *end) newPace() (p pace, ok bool) {
	f, t := e.order.Flow, e.order.Timing
	p.schedule, ok = f.Rate.Schedule(f.PayloadBytes)
	if !ok {
		return pace{}, false
	}
	p.first = p.schedule.Count(int64(t.Warmup()))
	p.last = p.schedule.Count(int64(t.Warmup() + t.Measure()))
	p.streams = uint64(f.Streams)
	p.burst = uint64(f.Burst)
	if p.burst == 0 {
		// What falls due in a millisecond: TCP smooths it, and a sender that
		// shares its core is seldom away for longer.
		p.burst = max(1, uint64(p.schedule.PPS()/1000)/p.streams)
	}
	return p, true
}

// due returns how many writes of the measured part were due before it ended.
func (p pace) due(s span) uint64 {
	n := p.last
	if !s.complete {
		n = min(n, p.schedule.Count(int64(s.ended)))
	}
	return n - min(n, p.first)
}

// overdue returns how many of a stream's writes from n on are due and beyond
// the burst that may make up for lateness.
func (p pace) overdue(n uint64, elapsed time.Duration) (beyond uint64) {
	due := p.schedule.Count(int64(elapsed))
	if due <= n {
		return 0
	}
	mine := (due-n-1)/p.streams + 1
	if mine <= p.burst {
		return 0
	}
	return mine - p.burst
}

// spinTime is the part of a wait that is spent looking at the clock: a sleeping
// thread wakes 50 to 100 us late.
const spinTime = 150 * time.Microsecond

// blockedTime tells a write that waited for TCP from one that did not.
const blockedTime = time.Millisecond

// writePaced makes each write when it is due, and gives up those that more
// than a burst of later ones have passed.
func (e *end) writePaced(s *stream, p pace) error {
	origin := e.clock.begun.Add(time.Duration(e.origin.Load()))
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	run, blocked, opened := 0, false, false
	for n := uint64(s.number); n < p.last; n += p.streams {
		elapsed := time.Since(origin)
		if beyond := p.overdue(n, elapsed); beyond > 0 {
			if blocked {
				s.heldBack.Add(p.counted(n, n+beyond*p.streams))
			}
			n += beyond * p.streams
		}
		if due := time.Duration(p.schedule.Due(n)); due > elapsed {
			run = 0
			if !e.rest(timer, origin.Add(due)) {
				return nil
			}
		}
		if n >= p.first && !opened {
			// Before the first write that counts, even if the timer is late.
			s.open()
			opened = true
		}
		if run++; run > s.burst {
			s.burst = run
		}
		before := time.Now()
		k, err := s.conn.Write(e.message)
		s.bytes.Add(uint64(k))
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			s.heldBack.Add(p.counted(n, p.last))
			return err
		default: // it was told to end
			if blocked || time.Since(before) > blockedTime {
				s.heldBack.Add(p.counted(n, p.schedule.Count(int64(time.Since(origin)))))
			}
			return nil
		}
		blocked = time.Since(before) > blockedTime
		s.writes.Add(1)
		if n >= p.first {
			s.made.Add(1)
		}
	}
	// The last write is due before the measured part is over.
	select {
	case <-e.over:
	case <-e.quit:
	}
	return nil
}

// counted returns how many writes of one stream from n on and below end are of
// the measured part.
func (p pace) counted(n, end uint64) uint64 {
	if n < p.first {
		n += (p.first - n + p.streams - 1) / p.streams * p.streams
	}
	if end = min(end, p.last); n >= end {
		return 0
	}
	return (end-n-1)/p.streams + 1
}

// rest waits until a moment; false means Stop.
func (e *end) rest(timer *time.Timer, until time.Time) bool {
	if d := time.Until(until) - spinTime; d > 0 {
		timer.Reset(d)
		select {
		case <-timer.C:
		case <-e.quit:
			return false
		}
	}
	for time.Now().Before(until) {
		runtime.Gosched()
	}
	return true
}

// streamError returns the errno name and the sentence of why a stream ended early.
func streamError(err error) (name, text string) {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errnoName(errno), errno.Error()
	}
	return err.Error(), err.Error()
}
