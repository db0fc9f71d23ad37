package pace

import (
	"math"
	"math/big"
	"math/bits"

	"pelt/unit"
)

// Trace repeats recorded gaps, in nanoseconds, none negative and not all 0: gap i
// is the time from packet i to the next, the last one that to the first packet of
// the repetition. Time is stretched so that the mean rate is the given one.
func Trace(mean unit.Schedule, gaps []int64) Clock {
	t := &trace{times: make([]int64, len(gaps))}
	for i, g := range gaps {
		t.times[i] = t.period
		t.period = plus(t.period, g)
	}
	// The mean gap asked over the mean gap recorded.
	over, under := new(big.Int).SetUint64(mean.Nanos), new(big.Int).SetUint64(mean.Packets)
	over.Mul(over, big.NewInt(int64(len(gaps))))
	under.Mul(under, big.NewInt(t.period))
	g := new(big.Int).GCD(nil, nil, over, under)
	over.Quo(over, g)
	under.Quo(under, g)
	for over.BitLen() > 62 || under.BitLen() > 62 { // more than 60 bits of precision are left
		over.Rsh(over, 1)
		under.Rsh(under, 1)
	}
	t.over, t.under = max(over.Uint64(), 1), max(under.Uint64(), 1)
	return t
}

type trace struct {
	times       []int64 // of each packet after the first one
	period      int64
	over, under uint64 // a recorded time is stretched by over / under
	last        int    // packet of the trace that the last answer of Count was about
}

func (t *trace) Due(n uint64) int64 {
	size := uint64(len(t.times))
	hi, recorded := bits.Mul64(n/size, uint64(t.period))
	recorded, carry := bits.Add64(recorded, uint64(t.times[n%size]), 0)
	if hi+carry > 0 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(recorded, t.over)
	if hi >= t.under {
		return math.MaxInt64
	}
	nanos, _ := bits.Div64(hi, lo, t.under)
	return int64(min(nanos, math.MaxInt64))
}

func (t *trace) Count(elapsed int64) uint64 {
	if elapsed <= 0 {
		return 0
	}
	// The recorded times below this are due: those with time * over / under < elapsed.
	hi, lo := bits.Mul64(uint64(elapsed), t.under)
	if hi >= t.over {
		return math.MaxUint64
	}
	below, rest := bits.Div64(hi, lo, t.over)
	if rest > 0 {
		below++
	}
	hi, whole := bits.Mul64(below/uint64(t.period), uint64(len(t.times)))
	if hi > 0 {
		return math.MaxUint64
	}
	return whole + uint64(t.find(int64(below%uint64(t.period))))
}

// find counts the packets before a time of the trace, and looks near the last
// answer first.
func (t *trace) find(time int64) int {
	low, high := 0, len(t.times)
	if t.last < len(t.times) && t.times[t.last] < time {
		low = t.last
		for step := 1; low+step < len(t.times); step *= 2 {
			if t.times[low+step] >= time {
				high = low + step
				break
			}
			low += step
		}
	} else {
		high = t.last
	}
	for low < high {
		if middle := (low + high) / 2; t.times[middle] < time {
			low = middle + 1
		} else {
			high = middle
		}
	}
	t.last = low
	return low
}

func (t *trace) Slots(phase int64) uint64 { return t.Count(phase) }

// End is never the time of the last slot itself, which the next may share.
func (t *trace) End(n uint64) int64 { return max(t.Due(n), plus(t.Due(n-1), 1)) }
