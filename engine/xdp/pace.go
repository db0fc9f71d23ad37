package xdp

import (
	"math"

	"pelt/pace"
	"pelt/unit"
)

// interval is the time between slots of one of n workers, whole + rest/parts in
// nanoseconds. The kernel multiplies rest by slots, so that parts are bounded;
// what is cut off is less than a billionth.
func interval(c unit.Schedule, n uint64) (whole, rest, parts uint64) {
	nanos, packets := c.Nanos, c.Packets
	for packets > 1<<31 || nanos > math.MaxUint64/n {
		packets, nanos = (packets+1)/2, (nanos+1)/2
	}
	nanos *= n
	return max(nanos/packets, 1), nanos % packets, packets
}

// catchUp returns from when on a late slot is given up, and the least gap between
// slots that are used, in ns: the rule of pace.Pacer.
func catchUp(burst int, interval uint64) (patience, leastGap uint64) {
	if burst > 0 {
		return uint64(burst) * interval, 0
	}
	return max(pace.CatchUpLimit, interval), interval / 2
}

// Frames of a batch leave together at its end: a paced sender's are few.
const (
	fullBatch  = 64 // what a driver handles in one go (NAPI_POLL_WEIGHT)
	batchNanos = 1_000
)

func batchOf(c unit.Schedule, paced bool, workers int) uint32 {
	if !paced {
		return fullBatch
	}
	each := c.PPS() / float64(workers)
	return uint32(min(max(each*batchNanos/1e9, 1), fullBatch))
}
