package udp

import "time"

// until waits until the deadline on the monotonic clock, or the bell; it
// returns the time, and false if the bell rang.
func (w *waiter) until(deadline int64) (now int64, ok bool) {
	for {
		now = w.clock.now()
		if left := deadline - now; left <= 0 {
			return now, !w.bell.rang()
		} else if left > 2*spinNanos {
			w.nap(time.Duration(left - spinNanos))
		}
		if w.bell.rang() {
			return now, false
		}
	}
}
