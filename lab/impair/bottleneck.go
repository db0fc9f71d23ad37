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

	queue ring
	bytes int
}

// follow takes over what waits in another, which is not used any more.
func (b *bottleneck) follow(before *bottleneck) {
	b.queue, b.bytes, b.free = before.queue, before.bytes, before.free
}

// push takes a frame in and says when its last bit will have left; false if the
// queue is full.
func (b *bottleneck) push(now int64, length int) (departure int64, ok bool) {
	if b.bitRate == 0 {
		if b.queue.count > 0 { // of a rate that there was before
			if frames, _ := b.drain(now); frames > 0 {
				return max(now, b.free), true
			}
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
	b.queue.push(waiter{departure, size})
	b.bytes += size
	return departure, true
}

// drain forgets what has left by now and counts the rest.
func (b *bottleneck) drain(now int64) (frames, bytes int) {
	for b.queue.count > 0 && b.queue.first().at <= now {
		b.bytes -= b.queue.first().bytes
		b.queue.pop()
	}
	return b.queue.count, b.bytes
}

// waiter is a frame that will leave.
type waiter struct {
	at    int64
	bytes int
}

// ring is a first-in first-out queue that grows only with what waits in it.
type ring struct {
	slots       []waiter // a power of two of them
	head, count int
}

func (r *ring) first() *waiter { return &r.slots[r.head] }

func (r *ring) pop() {
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.count--
}

func (r *ring) push(w waiter) {
	if r.count == len(r.slots) {
		grown := make([]waiter, max(2*len(r.slots), 16))
		n := copy(grown, r.slots[r.head:])
		copy(grown[n:], r.slots[:r.head])
		r.slots, r.head = grown, 0
	}
	r.slots[(r.head+r.count)&(len(r.slots)-1)] = w
	r.count++
}
