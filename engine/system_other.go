//go:build !linux

package engine

import (
	"errors"
	"net/netip"
	"syscall"
	"time"
)

// monotonic reads a clock that all engines of a process share. It only has to
// start somewhere: the wall clock's time then.
func monotonic(at time.Time) int64 { return at.UnixNano() }

// asleep is not known here.
func asleep() time.Duration { return 0 }

// linkStates looks at no interfaces here.
func linkStates() (state func(index int) (now link, there bool), free func(), err error) {
	return nil, nil, errors.ErrUnsupported
}

func holders(map[netip.Addr]bool) []int { return nil }

// Pin says that no thread can be tied to a core here.
func Pin(int) error { return errors.ErrUnsupported }

// ThreadNanos knows no thread's processor time here.
func ThreadNanos() (nanos int64, ok bool) { return 0, false }

// ErrnoName names a system error in this system's words.
func ErrnoName(errno syscall.Errno) string { return errno.Error() }
