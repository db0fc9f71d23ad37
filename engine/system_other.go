//go:build !linux

package engine

import (
	"errors"
	"syscall"
	"time"
)

// monotonic reads a clock that all engines of a process share. It only has to
// start somewhere: the wall clock's time then.
func monotonic(at time.Time) int64 { return at.UnixNano() }

// asleep is not known here.
func asleep() time.Duration { return 0 }

// SpinNanos is how long before a deadline a thread stops sleeping: Go's timers
// are about a millisecond late on some systems.
const (
	SpinNanos = 1_500_000
	LeastNap  = SpinNanos
)

// Nap has the calling goroutine sleep.
func Nap(d time.Duration) { time.Sleep(d) }

// OwnThread prepares no thread here.
func OwnThread(core int) error { return Pin(core) }

// Pin ties the calling thread to a core, which no thread can be here; -1 leaves it free.
func Pin(core int) error {
	if core < 0 {
		return nil
	}
	return errors.ErrUnsupported
}

// threadNanos knows no thread's processor time here.
func threadNanos() (nanos int64, ok bool) { return 0, false }

// ErrnoName names a system error in this system's words.
func ErrnoName(errno syscall.Errno) string { return errno.Error() }
