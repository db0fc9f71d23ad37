// Package pace says when the packets of a flow are due.
//
// A mean rate and a profile come in, a [Clock] comes out: a pure schedule that
// reads no time and has the same answers whenever and in whatever order it is
// asked. It knows no sockets, no streams' threads and no names of profiles
// (package model has those).
package pace

import (
	"math"
	"slices"

	"pelt/unit"
)

// Clock is the schedule of one flow, in nanoseconds after a phase began. Slots
// are numbered from 0 and are due in order, several perhaps in one nanosecond.
// Questions that go forward are cheap, and none allocates per packet; a clock has
// a place of its own in its schedule, so it must not be asked concurrently.
type Clock interface {
	// Due is when slot n is due; it saturates at the largest int64.
	Due(n uint64) int64
	// Count is how many slots are due before so many nanoseconds have passed: the
	// number of n with Due(n) < elapsed.
	Count(elapsedNanos int64) uint64
	// Slots is how many slots a phase of that length has. It is Count, but for
	// bursts, of which the end of the phase cuts the last.
	Slots(phaseNanos int64) uint64
	// End is how long a phase must be to have the first n slots, n > 0: their own time,
	// which runs to the next slot.
	End(n uint64) int64
}

// Apart returns the schedule of a clock that nobody asks meanwhile with a place of its
// own, so that it may be asked beside the other: the times of a trace are there once.
func Apart(c Clock) Clock {
	switch c := c.(type) {
	case *trace:
		other := *c
		return &other
	case *poisson:
		other := *c
		for i, w := range c.parts {
			other.parts[i].times = slices.Clone(w.times)
		}
		return &other
	case *randomOnOff:
		other := *c
		return &other
	}
	return c // the others have no place
}

// Gaps tells the times between consecutive slots of one stream of a flow, which
// owns every streams-th slot from the given one on and has so many of them. It
// tells all, or an even sample if they are more than most.
func Gaps(c Clock, stream, streams, own, most uint64, tell func(nanos int64)) {
	if own < 2 {
		return
	}
	gaps, parts := own-1, own-1
	if parts > most {
		parts = most
	}
	for i := range parts {
		n := i
		if gaps > parts { // one out of each of equal parts: a fixed step could beat with the profile
			low, high := share(i, gaps, parts), share(i+1, gaps, parts)
			n = low + mix(i)%(high-low)
		}
		first := c.Due(stream + n*streams)
		tell(c.Due(stream+(n+1)*streams) - first)
	}
}

// share is where part i begins of so many things cut into parts.
func share(i, things, parts uint64) uint64 {
	return i*(things/parts) + min(i, things%parts)
}

// golden and mix are splitmix64 (Steele, Lea and Flood, OOPSLA 2014): mix of
// key + golden, key + 2 golden, ... are independent random words.
const golden = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Seed makes one seed out of several numbers.
func Seed(numbers ...uint64) uint64 {
	key := uint64(0)
	for _, n := range numbers {
		key = mix(key + golden ^ mix(n+golden))
	}
	return key
}

// uniform is a number above 0 and below 1.
func uniform(word uint64) float64 { return (float64(word>>12) + 0.5) / (1 << 52) }

// exponential draws a time of the given mean in whole nanoseconds.
func exponential(word uint64, mean int64) int64 {
	return int64(min(-math.Log(uniform(word))*float64(mean), math.MaxInt64/4))
}

// plus adds times and saturates.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Even has the same gap everywhere, as exactly as whole nanoseconds allow.
func Even(mean unit.Schedule) Clock { return even{mean} }

type even struct{ mean unit.Schedule }

func (e even) Due(n uint64) int64         { return e.mean.Due(n) }
func (e even) Count(elapsed int64) uint64 { return e.mean.Count(elapsed) }
func (e even) Slots(phase int64) uint64   { return e.mean.Count(phase) }
func (e even) End(n uint64) int64         { return e.mean.Due(n) }

// Burst sends packets back to back, as many as a full token bucket of that depth
// holds, whenever it is full: a burst is due each time that its packets take at
// the mean rate, the first at once.
func Burst(mean unit.Schedule, packets uint64) Clock { return burst{mean, max(packets, 1)} }

type burst struct {
	mean unit.Schedule
	size uint64
}

func (b burst) Due(n uint64) int64 { return b.mean.Due(n - n%b.size) }

func (b burst) Count(elapsed int64) uint64 {
	n := b.mean.Count(elapsed)
	if rest := n % b.size; rest > 0 {
		if n > math.MaxUint64-b.size {
			return math.MaxUint64
		}
		n += b.size - rest
	}
	return n
}

func (b burst) Slots(phase int64) uint64 { return b.mean.Count(phase) }
func (b burst) End(n uint64) int64       { return b.mean.Due(n) }
