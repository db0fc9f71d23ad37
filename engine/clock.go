package engine

import (
	"context"
	"time"
)

// Clock reads the host's monotonic clock in nanoseconds: CLOCK_MONOTONIC on
// Linux, so that all processes of a host agree. It makes no system call.
type Clock struct {
	Began   time.Time
	atBegin int64
}

// NewClock makes a clock.
func NewClock() Clock {
	// The smallest of several differences has the least delay between the two readings.
	best, c := time.Duration(1<<62), Clock{}
	for range 16 {
		before := time.Now()
		at := monotonic(before)
		if d := time.Since(before); d < best {
			best, c = d, Clock{Began: before, atBegin: at - int64(d)/2}
		}
	}
	return c
}

// Now is the time.
func (c Clock) Now() int64 { return c.At(time.Since(c.Began)) }

// At is the time so long after the clock began.
func (c Clock) At(after time.Duration) int64 { return c.atBegin + int64(after) }

// longestNap bounds how long a thread does not see that its work is to end.
const longestNap = 20 * time.Millisecond

// Until waits until a time, exactly: it sleeps, but for the end of the wait. It returns the time, which is earlier if
// ctx ends.
func (c Clock) Until(ctx context.Context, at int64) (now int64) {
	for now = c.Now(); now < at && ctx.Err() == nil; now = c.Now() {
		if left := at - now; left > SpinNanos+LeastNap {
			Nap(min(time.Duration(left-SpinNanos), longestNap))
		}
	}
	return now
}

// SinceWall returns the time, and what to add to a wall clock time to get it. A thread that must wait between the
// readings of the two clocks gets too large a number; that hardly happens twice in a row.
func (c Clock) SinceWall() (toMonotonic, now int64) {
	first, second := time.Now(), time.Now()
	now = c.At(second.Sub(c.Began))
	earlier := c.At(first.Sub(c.Began))
	return min(earlier-first.UnixNano(), now-second.UnixNano()), now
}

// ThreadUse is the processor time that a thread uses from some moment on.
type ThreadUse struct{ since, before int64 }

// NewThreadUse begins it for the calling thread.
func NewThreadUse(now int64) *ThreadUse {
	before, _ := threadNanos()
	return &ThreadUse{now, before}
}

// Share is the share of a core that the calling thread, which began it, has used; 0 of nil, or where it is not known.
func (u *ThreadUse) Share(now int64) float64 {
	used, ok := threadNanos()
	if u == nil || !ok || now <= u.since {
		return 0
	}
	return min(float64(used-u.before)/float64(now-u.since), 1)
}
