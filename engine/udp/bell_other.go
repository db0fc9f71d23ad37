//go:build !linux

package udp

import (
	"sync"
	"syscall"
	"time"
)

// bell ends the waiting of an end's threads. It rings once.
type bell struct {
	rung chan struct{}
	once sync.Once
}

func newBell() (*bell, error) { return &bell{rung: make(chan struct{})}, nil }

func (b *bell) rang() bool {
	select {
	case <-b.rung:
		return true
	default:
		return false
	}
}

func (b *bell) ring()  { b.once.Do(func() { close(b.rung) }) }
func (b *bell) close() {}

// waiter is one thread's way to wait for a time or the bell.
type waiter struct {
	bell  *bell
	clock clock
	timer *time.Timer
}

func newWaiter(b *bell, c clock) *waiter {
	return &waiter{bell: b, clock: c, timer: time.NewTimer(time.Hour)}
}

// spinNanos is how long before a deadline a thread stops sleeping: Go's timers
// are about a millisecond late on some systems.
const spinNanos = 1_500_000

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

func (w *waiter) nap(d time.Duration) {
	w.timer.Reset(d)
	select {
	case <-w.timer.C:
	case <-w.bell.rung:
	}
}

// monotonic reads a clock that all engines of a process share. It only has to
// start somewhere: the wall clock's time then.
func monotonic(at time.Time) int64 { return at.UnixNano() }

func ownThread(int) error { return nil }

func threadNanos() (int64, bool) { return 0, false }

func errnoName(errno syscall.Errno) string { return errno.Error() }
