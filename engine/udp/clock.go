package udp

import "time"

// clock reads the host's monotonic clock in nanoseconds: CLOCK_MONOTONIC on
// Linux, so that all processes of a host agree. It makes no system call.
type clock struct {
	base   time.Time
	atBase int64
}

func newClock() clock {
	// The smallest of several differences has the least delay between the two readings.
	best, c := time.Duration(1<<62), clock{}
	for range 16 {
		before := time.Now()
		at := monotonic(before)
		if d := time.Since(before); d < best {
			best, c = d, clock{base: before, atBase: at - int64(d)/2}
		}
	}
	return c
}

func (c clock) now() int64 { return c.atBase + int64(time.Since(c.base)) }

// sinceWall returns the time, and what to add to a wall clock time to get it. A thread
// that has to wait between the readings of both clocks finds too much to add; it
// hardly has to twice in a row.
func (c clock) sinceWall() (toMonotonic, now int64) {
	first, second := time.Now(), time.Now()
	now = c.atBase + int64(second.Sub(c.base))
	earlier := c.atBase + int64(first.Sub(c.base))
	return min(earlier-first.UnixNano(), now-second.UnixNano()), now
}
