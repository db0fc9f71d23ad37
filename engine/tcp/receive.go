package tcp

import (
	"errors"
	"io"
	"time"

	"pelt/engine"
)

// A read takes at most what one socket delivers between two turns of the
// reader; all streams together stay within readTotal.
const (
	readMost  = 256 << 10
	readLeast = 64 << 10
	readTotal = 8 << 20
)

// receive reads all streams until their ends have come, or Stop.
func (e *end) receive() error {
	size := min(max(readTotal/len(e.streams), readLeast), readMost)
	read := e.read
	if e.order.Flow.HTTP {
		read = func(s *stream, buffer []byte) error {
			err := e.askHTTP(s, buffer)
			if errors.Is(err, io.ErrUnexpectedEOF) { // the sender's time was over, which ends a plain stream with EOF
				return nil
			}
			return unlessStopped(err)
		}
	}
	e.runOnThreads(func(s *stream) { s.ended = read(s, make([]byte, size)) })
	select {
	case <-e.first:
	case <-e.stopped.Done():
	case <-e.idle:
	}
	select {
	case <-e.first: // also where all came at once
		e.span = e.measure()
	default:
	}
	select {
	case <-e.idle:
	case <-e.stopped.Done():
		e.interrupt()
		<-e.idle
	}
	return nil
}

func (e *end) read(s *stream, buffer []byte) error {
	for {
		n, err := s.conn.Read(buffer)
		if n > 0 {
			e.account(s, n, time.Since(e.clock.Began))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unlessStopped(err)
		}
	}
}

// account books n bytes read at a moment after the clock's start.
func (e *end) account(s *stream, n int, now time.Duration) {
	e.firstOnce.Do(func() {
		e.origin.Store(int64(now))
		close(e.first)
	})
	e.arrived.Add(uint64(n))
	at := int64(now) - e.origin.Load() - int64(e.order.Timing.Warmup())
	if at < 0 || at >= int64(e.order.Timing.Measure()) {
		return
	}
	e.firstSeen.CompareAndSwap(0, int64(now)+1)
	for last := e.lastSeen.Load(); int64(now) > last; last = e.lastSeen.Load() {
		if e.lastSeen.CompareAndSwap(last, int64(now)) {
			break
		}
	}
	e.stepBytes[at/engine.StepNanos].Add(uint64(n))
	s.bytes.Add(uint64(n))
}
