package udp

import "time"

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
