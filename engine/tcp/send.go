package tcp

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/pace"
)

// send writes on all streams until the order is fulfilled.
func (e *end) send() error {
	if e.order.Timing.Warmup() == 0 {
		e.each((*stream).beginMeasured)
	}
	e.origin.Store(int64(time.Since(e.clock.Began)))
	write := e.writeFlat
	if e.paced() {
		write = e.writePaced
	} else if e.order.Flow.Bytes > 0 {
		write = e.transfer
	}
	e.runOnThreads(func(s *stream) {
		if e.begin(s) {
			s.ended = write(s)
		}
	})
	e.watching = e.watchInfo()
	span := e.measure()
	e.watching.stop()
	span.complete = span.complete || e.transferred()
	close(e.over)
	e.interrupt()
	<-e.idle
	e.span = span
	if span.complete && e.foreign {
		return nil
	}
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
			return unlessStopped(err)
		}
		s.writes.Add(1)
	}
}

// unlessStopped returns err, but nil for a passed deadline: that is how Stop and a phase's end end a stream.
func unlessStopped(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// spinTime is the part of a wait that is spent looking at the clock: a sleeping
// thread wakes 50 to 100 us late.
const spinTime = 150 * time.Microsecond

// everything is more writes than any trial has: a stream that breaks books all that it was still to write, due or not.
const everything = 1 << 48

// blockedTime tells a write that waited for TCP from one that did not.
const blockedTime = time.Millisecond

// writePaced makes each write when it is due.
func (e *end) writePaced(s *stream) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	warmup, measured := &s.phases[0].Pacer, &s.phases[1].Pacer
	defer func() {
		late, held := measured.GivenUp()
		s.late.Add(late)
		s.heldBack.Add(held)
	}()
	whole, err := e.writeSlots(s, timer, 0, warmup, false)
	if whole {
		whole, err = e.writeSlots(s, timer, int64(e.order.Timing.Warmup()), measured, true)
	} else if err != nil {
		measured.Hold(everything)
	}
	if !whole {
		return err
	}
	// The last write is due before the measured part is over.
	select {
	case <-e.over:
	case <-e.quit:
	}
	return nil
}

// writeSlots makes the writes of one part of a trial, which begins at a time after the origin;
// whole is false if it was stopped or the stream broke.
func (e *end) writeSlots(s *stream, timer *time.Timer, start int64, p *pace.Pacer, measured bool) (whole bool,
	err error) {
	origin := e.clock.Began.Add(time.Duration(e.origin.Load() + start))
	for at, ok := p.Next(); ok; at, ok = p.Next() {
		if !e.waitExactly(timer, origin.Add(time.Duration(at))) {
			return false, nil
		}
		n, first := p.Take(int64(time.Since(origin)))
		if measured && n > 0 {
			s.beginMeasured() // before the first write that counts, even if the timer is late
		}
		s.burst = max(s.burst, int(n))
		for slot := first; slot < first+n; slot++ {
			before := time.Now()
			k, err := s.conn.Write(e.message)
			s.bytes.Add(uint64(k))
			took := time.Since(before)
			if took > blockedTime {
				p.Blocked(took.Nanoseconds())
			}
			switch {
			case err == nil:
			case !errors.Is(err, os.ErrDeadlineExceeded):
				p.Hold(everything)
				return false, err
			case took > blockedTime: // it was told to end while TCP took no more
				due := p.Planned(int64(time.Since(origin)))
				p.Hold(due - min(due, slot))
				return false, nil
			default:
				return false, nil
			}
			s.writes.Add(1)
			if measured {
				s.made.Add(1)
			}
		}
	}
	return true, nil
}

// waitExactly waits until a moment and spins for the end of the wait; false means Stop.
func (e *end) waitExactly(timer *time.Timer, until time.Time) bool {
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
		return engine.ErrnoName(errno), errno.Error()
	}
	return err.Error(), err.Error()
}
