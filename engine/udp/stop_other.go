//go:build !linux

package udp

import (
	"time"

	"pelt/engine"
)

// alarm is not needed: all threads wait on channels.
type alarm struct{}

func newAlarm() (alarm, error) { return alarm{}, nil }

func (alarm) raise() {}
func (alarm) close() {}

// waiter is one thread's way to wait for a time or the stop signal.
type waiter struct {
	stop  *stopSignal
	clock engine.Clock
	timer *time.Timer
}

func newWaiter(s *stopSignal, c engine.Clock) *waiter {
	return &waiter{stop: s, clock: c, timer: time.NewTimer(time.Hour)}
}

// spinNanos is how long before a deadline a thread stops sleeping: Go's timers
// are about a millisecond late on some systems.
const (
	spinNanos = 1_500_000
	leastNap  = spinNanos
)

func (w *waiter) nap(d time.Duration) {
	w.timer.Reset(d)
	select {
	case <-w.timer.C:
	case <-w.stop.done:
	}
}

func ownThread(int) error { return nil }

// sendWaits says whether a call to send may wait for room.
const sendWaits = true

// threadTimes knows nothing on this system.
type threadTimes struct{ behind engine.LateTime }

func (*threadTimes) begin(int64)      {}
func (*threadTimes) onTime(int64)     {}
func (*threadTimes) fellBehind(int64) {}
func (*threadTimes) end()             {}
