package impair

import (
	"math"
	"math/bits"
)

// bottleneck is a queue before a sender of a fixed rate. It holds no frames, only
// when each will have left.
type bottleneck struct {
	bitRate              uint64 // 0: nothing waits
	minFrame, overhead   int
	maxPackets, maxBytes int

	// The last departure is free + part/bitRate ns, exactly: a rounded sum would
	// drift away from the rate.
	free int64
	part uint64

	queue []waiter
	gone  int // of the queue, from its begin
	bytes int // of the rest
}

// follow takes over what waits in another, which is not used any more.
func (b *bottleneck) follow(before *bottleneck) {
	b.queue, b.gone, b.bytes, b.free = before.queue, before.gone, before.bytes, before.free
}

// push takes a frame in and says when its last bit will have left; false if the
// queue is full.
func (b *bottleneck) push(now int64, length int) (departure int64, ok bool) {
	if b.bitRate == 0 {
		if frames, _ := b.drain(now); frames > 0 { // of a rate that there was before
			return max(now, b.free), true
		}
		return now, true
	}
	frames, bytes := b.drain(now)
	size := max(length, b.minFrame)
	if b.maxPackets > 0 && frames >= b.maxPackets || b.maxBytes > 0 && bytes+size > b.maxBytes {
		return 0, false
	}
	if frames == 0 {
		b.free, b.part = now, 0
	}
	nanos, part := uint64(math.MaxInt64), uint64(0)
	if hi, lo := bits.Mul64(uint64(size+b.overhead)*8, 1e9); hi < b.bitRate {
		nanos, part = bits.Div64(hi, lo, b.bitRate)
	}
	if b.part += part; b.part >= b.bitRate {
		b.part -= b.bitRate
		nanos++
	}
	b.free = later(b.free, int64(min(nanos, math.MaxInt64)))
	departure = b.free
	if b.part > 0 {
		departure = later(departure, 1)
	}
	b.queue = append(b.queue, waiter{departure, size})
	b.bytes += size
	return departure, true
}

// drain forgets what has left by now and counts the rest.
func (b *bottleneck) drain(now int64) (frames, bytes int) {
	for b.gone < len(b.queue) && b.queue[b.gone].at <= now {
		b.bytes -= b.queue[b.gone].bytes
		b.gone++
	}
	if 2*b.gone >= len(b.queue) { // else it would grow for ever
		b.queue = b.queue[:copy(b.queue, b.queue[b.gone:])]
		b.gone = 0
	}
	return len(b.queue) - b.gone, b.bytes
}

// waiter is a frame that will leave.
type waiter struct {
	at    int64
	bytes int
}
