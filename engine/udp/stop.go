package udp

import (
	"sync"
	"time"
)

// stopSignal ends the waiting of an end's threads. It is set once.
type stopSignal struct {
	alarm
	done chan struct{}
	once sync.Once
}

func newStopSignal() (*stopSignal, error) {
	a, err := newAlarm()
	return &stopSignal{alarm: a, done: make(chan struct{})}, err
}

func (s *stopSignal) isSet() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *stopSignal) set() {
	s.once.Do(func() {
		close(s.done)
		s.raise()
	})
}

// until waits until the deadline on the monotonic clock, or the stop signal; it
// returns the time, and false if it is stopped.
func (w *waiter) until(deadline int64) (now int64, ok bool) {
	for {
		now = w.clock.Now()
		if left := deadline - now; left <= 0 {
			return now, !w.stop.isSet()
		} else if left > spinNanos+leastNap {
			w.nap(time.Duration(left - spinNanos))
		}
		if w.stop.isSet() {
			return now, false
		}
	}
}
