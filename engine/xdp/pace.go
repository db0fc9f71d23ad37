package xdp

import (
	"math"
	"time"

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

// stall is how late a slot may be that is still used, unless a burst was asked for.
const stall = 10 * time.Millisecond

// catchUp is how late a slot may be, and how close to the one before its frame
// may leave. With an asked burst that many may leave back to back, and no more;
// else what is late is caught up at twice the rate at most.
func catchUp(burst int, interval uint64) (patience, leastGap uint64) {
	if burst > 0 {
		return uint64(burst) * interval, 0
	}
	return max(uint64(stall), interval), interval / 2
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
