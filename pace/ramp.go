package pace

import (
	"math"

	"pelt/unit"
)

// Ramp has a rate that changes evenly with time, from one to the other within
// the given nanoseconds, and stays there.
func Ramp(from, to unit.Schedule, length int64) Clock {
	r := ramp{from: from.PPS() / 1e9, to: to.PPS() / 1e9, length: float64(max(length, 1)), after: to}
	r.inside = r.Count(int64(r.length))
	return r
}

type ramp struct {
	from, to float64 // packets per nanosecond
	length   float64
	after    unit.Schedule
	inside   uint64 // slots within the length
}

// rounding is a share of a packet that is less than one: what the arithmetic
// adds to a whole number must not make it the next.
const rounding = 1e-6

// passed is how many packets' time has passed. It never falls with time, in
// spite of rounding, because it is a sum of products that do not.
func (r ramp) passed(elapsed float64) float64 {
	if r.to >= r.from {
		return r.rising(r.from, elapsed)
	}
	return r.whole() - r.rising(r.to, r.length-elapsed)
}

// rising is what a ramp upwards from the lower rate has passed.
func (r ramp) rising(low, elapsed float64) float64 {
	return low*elapsed + math.Abs(r.to-r.from)/(2*r.length)*elapsed*elapsed
}

func (r ramp) whole() float64 { return r.rising(min(r.from, r.to), r.length) }

func (r ramp) Count(elapsed int64) uint64 {
	switch {
	case elapsed <= 0:
		return 0
	case float64(elapsed) > r.length:
		rest := r.after.Count(elapsed - int64(r.length))
		return r.inside + min(rest, math.MaxUint64/2)
	}
	return uint64(math.Ceil(max(r.passed(float64(elapsed))-rounding, 0)))
}

// Due is the last time at which no more than n slots are before it: exactly what
// Count leaves.
func (r ramp) Due(n uint64) int64 {
	if n >= r.inside {
		return plus(int64(r.length), r.after.Due(n-r.inside))
	}
	// n = from t + (to - from) / (2 length) t^2, solved without the difference of
	// nearly equal numbers.
	slope := (r.to - r.from) / r.length
	root := math.Sqrt(max(r.from*r.from+2*slope*float64(n), 0))
	t := int64(min(2*float64(n)/(r.from+root), r.length))
	for step := int64(1); r.Count(t+1) <= n; step *= 2 {
		t = r.last(n, t, t+step)
	}
	for step := int64(1); t > 0 && r.Count(t) > n; step *= 2 {
		t = r.last(n, max(t-step, 0), t)
	}
	return t
}

// last is the last time from low up to high with no more than n slots before it,
// or low.
func (r ramp) last(n uint64, low, high int64) int64 {
	for low < high {
		if middle := low + (high-low+1)/2; r.Count(middle) <= n {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

func (r ramp) Slots(phase int64) uint64 { return r.Count(phase) }
func (r ramp) End(n uint64) int64       { return r.Due(n) }
