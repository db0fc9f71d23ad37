// Package pace says when the packets of a flow are due.
//
// A mean rate and a profile come in, a [Schedule] comes out, which is the same whenever it is
// asked; a [Pacer] leads one stream's sender along it. Neither reads the time. The package knows
// no sockets, no threads and no names of profiles (package model has those).
package pace

import (
	"math"
	"math/bits"

	"pelt/unit"
)

// Schedule is when the slots of a flow are due, which are numbered from 0. It returns the
// generator for the slots first, first+step, ...; all generators of a schedule agree.
type Schedule func(first, step uint64) Generator

// Generator returns the due time of the next slot in nanoseconds after the phase began, never
// less than the one before: Never once it is beyond what an int64 holds.
type Generator func() int64

// Never is when a slot is due that there is not.
const Never = math.MaxInt64

// End returns how long a phase with the first n slots of a schedule is, n > 0: their own time,
// which runs to the next slot. That may be due with the last one.
func End(s Schedule, n uint64) int64 {
	next := s(n-1, 1)
	last := next()
	return max(next(), plus(last, 1))
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

// exponential returns draw n of the exponential distribution with a mean.
func exponential(key, n uint64, mean float64) float64 {
	uniform := (float64(mix(key+n*golden)>>12) + 0.5) / (1 << 52) // above 0 and below 1
	return -math.Log(uniform) * mean
}

// plus adds times and saturates.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// whole cuts off a time's fraction and saturates.
func whole(nanos float64) int64 {
	if nanos >= math.MaxInt64 {
		return Never
	}
	return int64(nanos)
}

// Even has the same gap everywhere, as exactly as whole nanoseconds allow: slot n is due at
// mean.Due(n).
func Even(mean unit.Schedule) Schedule {
	rest := func(n uint64) uint64 {
		hi, lo := bits.Mul64(n, mean.Nanos)
		return bits.Rem64(hi, lo, mean.Packets)
	}
	return func(first, step uint64) Generator {
		at, gap := mean.Due(first), mean.Due(step)
		part, more := rest(first), rest(step) // of a nanosecond, in 1/mean.Packets
		return func() int64 {
			due := at
			at = plus(at, gap)
			if part += more; part >= mean.Packets {
				part -= mean.Packets
				at = plus(at, 1)
			}
			return due
		}
	}
}

// Burst sends packets back to back, as many as a full token bucket of that depth
// holds, whenever it is full: a burst is due each time that its packets take at
// the mean rate, the first at once.
func Burst(mean unit.Schedule, packets uint64) Schedule {
	size := max(packets, 1)
	return func(first, step uint64) Generator {
		n, end, due := first, uint64(0), int64(0) // end: first slot of the next burst
		return func() int64 {
			if n >= end {
				due, end = mean.Due(n-n%size), n-n%size+size
			}
			n += step
			return due
		}
	}
}

// Poisson has independent gaps of the exponential distribution around the mean
// one. The same seed makes the same schedule.
func Poisson(mean unit.Schedule, seed uint64) Schedule {
	gap, key := 1e9/mean.PPS(), Seed(seed)
	return func(first, step uint64) Generator {
		at, n, draws := 0.0, uint64(0), first+1
		return func() int64 {
			for ; draws > 0; draws-- {
				n++
				at += exponential(key, n, gap)
			}
			draws = step
			return whole(at)
		}
	}
}

// OnOff sends at a constant gap while it is on, from the beginning, and nothing
// while it is off. The gaps run on over what is off as if it were not there, so
// the mean rate is exactly on / (on + off) of the other. Both are in nanoseconds;
// on is positive.
func OnOff(rate unit.Schedule, on, off int64) Schedule {
	return func(first, step uint64) Generator {
		running := Even(rate)(first, step)
		return func() int64 {
			at := running()
			times := at / on
			if off > 0 && times > (math.MaxInt64-at)/off {
				return Never
			}
			return at + times*off
		}
	}
}

// RandomOnOff is OnOff with times on and off that are independent draws of the
// exponential distributions with those means. The same seed makes the same
// schedule. It draws all times from the beginning on.
func RandomOnOff(rate unit.Schedule, on, off int64, seed uint64) Schedule {
	return func(first, step uint64) Generator {
		running, key := Even(rate)(first, step), Seed(seed)
		until, paused, draws := int64(0), int64(0), uint64(0) // until: time on up to the end of this period
		return func() int64 {
			at := running()
			for at >= until && at < Never {
				if draws > 0 {
					paused = plus(paused, whole(exponential(key, draws, float64(off))))
				}
				until = plus(until, max(whole(exponential(key, draws+1, float64(on))), 1))
				draws += 2
			}
			return plus(at, paused)
		}
	}
}

// Ramp has a rate that changes evenly with time, from one to the other within
// the given nanoseconds, and stays there.
func Ramp(from, to unit.Schedule, length int64) Schedule {
	const rounding = 1e-6 // of a slot: what the arithmetic adds to a whole number must not make it the next
	a, b, long := from.PPS()/1e9, to.PPS()/1e9, float64(max(length, 1))
	slope := (b - a) / long
	inside := uint64(math.Ceil(max((a+b)/2*long-rounding, 0))) // slots within the length
	return func(first, step uint64) Generator {
		slot := first
		return func() int64 {
			n := slot
			if slot += step; n >= inside {
				return plus(int64(long), to.Due(n-inside))
			}
			// n = a t + slope / 2 t^2, solved without the difference of nearly equal numbers.
			root := math.Sqrt(max(a*a+2*slope*float64(n), 0))
			return whole(math.Round(min(2*float64(n)/(a+root), long)))
		}
	}
}

// Trace repeats recorded gaps, in nanoseconds, none negative and not all 0: gap i
// is the time from packet i to the next, the last one that to the first packet of
// the repetition. Time is stretched so that the mean rate is the given one.
func Trace(mean unit.Schedule, gaps []int64) Schedule {
	times, period := make([]int64, len(gaps)), int64(0)
	for i, g := range gaps {
		times[i] = period
		period = plus(period, g)
	}
	size := uint64(len(gaps))
	stretch := float64(size) / float64(period) * 1e9 / mean.PPS()
	return func(first, step uint64) Generator {
		n := first
		return func() int64 {
			recorded := float64(n/size)*float64(period) + float64(times[n%size])
			n += step
			return whole(math.Round(recorded * stretch))
		}
	}
}
