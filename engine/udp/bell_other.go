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
