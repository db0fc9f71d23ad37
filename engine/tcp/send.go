package tcp

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/model"
	"pelt/pace"
)

// send writes on all streams until the order is fulfilled.
func (e *end) send() error {
	if e.order.Timing.Warmup() == 0 {
		e.each((*stream).beginMeasured)
	}
	e.origin.Store(int64(time.Since(e.clock.Began)))
	write := e.transfer
	if e.paced() {
		write = e.writePaced
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
	if e.stopped.Err() != nil {
		return nil
	}
	early, why := 0, errStopped
	for _, s := range slices.Backward(e.streams) {
		if s.done.Load() == 0 { // always so of a stream that has no number of bytes to send
			early++
		}
		why = cmp.Or(s.ended, why)
	}
	return &engine.Fault{Why: model.NewReason(model.StreamsEnded, "early", float64(early),
		"streams", float64(len(e.streams)), "text", why), Cause: why}
}

// unlessStopped returns err, but nil for a passed deadline: that is how Stop and a phase's end end a stream.
func unlessStopped(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// everything is more writes than any trial has: a stream that breaks books all that it was still to write, due or not.
const everything = 1 << 48

// blockedTime tells a write that waited for TCP from one that did not.
const blockedTime = time.Millisecond

// writePaced makes each write when it is due.
func (e *end) writePaced(s *stream) error {
	warmup, measured := &s.phases[0].Pacer, &s.phases[1].Pacer
	defer func() {
		late, held := measured.GivenUp()
		s.late.Add(late)
		s.heldBack.Add(held)
	}()
	whole, err := e.writeSlots(s, 0, warmup, false)
	if whole {
		whole, err = e.writeSlots(s, e.order.Timing.Warmup(), measured, true)
	} else if err != nil {
		measured.Hold(everything)
	}
	if !whole {
		return err
	}
	// The last write is due before the measured part is over.
	select {
	case <-e.over:
	case <-e.stopped.Done():
	}
	return nil
}

// writeSlots makes the writes of one part of a trial, which begins at a time after the origin;
// whole is false if it was stopped or the stream broke.
func (e *end) writeSlots(s *stream, start time.Duration, p *pace.Pacer, measured bool) (whole bool, err error) {
	origin := e.clock.At(time.Duration(e.origin.Load()) + start)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for at, ok := p.Next(); ok; at, ok = p.Next() {
		if !e.waitExactly(timer, origin+at) {
			return false, nil
		}
		n, first := p.Take(e.clock.Now() - origin)
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
				due := p.Planned(e.clock.Now() - origin)
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

// spinTime is the part of a wait that is spent looking at the clock: a sleeping thread wakes 50 to 100 us late.
const spinTime = 150 * time.Microsecond

// waitExactly waits until a time, and spins for the end of the wait; false means Stop. There are more streams than
// cores, so while it waits others run.
func (e *end) waitExactly(timer *time.Timer, until int64) bool {
	if d := time.Duration(until-e.clock.Now()) - spinTime; d > 0 {
		timer.Reset(d)
		select {
		case <-timer.C:
		case <-e.stopped.Done():
		}
	}
	for e.clock.Now() < until && e.stopped.Err() == nil {
		runtime.Gosched()
	}
	return e.stopped.Err() == nil
}

// streamError returns the errno name and the sentence of why a stream ended early.
func streamError(err error) (name, text string) {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return engine.ErrnoName(errno), errno.Error()
	}
	return err.Error(), err.Error()
}
