package impair

import "math/rand/v2"

// netem does at each frame what netem_enqueue of net/sched/sch_netem.c (Linux
// 6.12) does, draw by draw.
type netem struct {
	random  taus113
	entropy rand.PCG // where the kernel draws without a seed: what a correlation starts from, which bit turns

	duplicate, corrupt, reorder    uint32
	duplicateR, corruptR, reorderR correlated
	losses                         kernelLosses

	gap, counter uint32
	limit        int

	delay          int64
	jitter         int32
	delayR         correlated
	table          []int16
	bytesPerSecond uint64

	pending pending
}

func newNetem(s Settings) *netem {
	n := &netem{
		random:    newTaus113(s.Seed),
		entropy:   stream(s.Seed, entropyStream),
		duplicate: share(s.Duplicate.Ratio), corrupt: share(s.Corrupt.Ratio), reorder: share(s.Reorder.Ratio),
		limit: s.QueuePackets,
		delay: int64(s.Delay), jitter: int32(s.Jitter),
		bytesPerSecond: uint64(s.Rate) / 8,
	}
	r := func(correlation float64) correlated {
		return correlated{share(correlation), uint32(n.entropy.Uint64() >> 32)}
	}
	n.delayR, n.duplicateR, n.corruptR, n.reorderR = r(s.Correlation), r(s.Duplicate.Correlation), r(s.Corrupt.Correlation), r(s.Reorder.Correlation)
	l := s.Loss
	n.losses = kernelLosses{
		model: l.Model, ratio: share(l.Ratio), r: r(l.Chance.Correlation), state: 1,
		toBad: share(l.P), toGood: share(l.R), keptInBad: ^share(l.Bad), inGood: share(l.Good),
		p13: share(l.P13), p31: share(l.P31), p32: share(l.P32), p23: share(l.P23), p14: share(l.P14),
	}
	if n.reorder > 0 {
		n.gap = uint32(max(s.Gap, 1)) // tc makes it 1
	}
	if s.Shape != nil {
		n.table = s.Shape.Values
	}
	return n
}

func (n *netem) offer(now int64, length int) (f Fate) {
	n.pending.drain(now)
	copies := 1
	if n.duplicate > 0 && n.duplicate >= n.duplicateR.next(&n.random) {
		copies++
	}
	if n.losses.next(&n.random) {
		copies--
	}
	if copies == 0 {
		return Fate{Cause: Lost}
	}
	flip, ok := n.admit(length)
	if !ok {
		return Fate{Cause: QueueFull} // the clone with it
	}
	// The clone, made before the frame was damaged, comes in anew and is queued before
	// it; it may be lost once more.
	if copies == 2 && !n.losses.next(&n.random) {
		if flip, ok := n.admit(length); ok {
			n.enqueue(&f, now, length, flip)
		}
	}
	n.enqueue(&f, now, length, flip)
	return f
}

// admit damages a frame, and tells whether there is room for it.
func (n *netem) admit(length int) (flip int, ok bool) {
	flip = -1
	if n.corrupt > 0 && n.corrupt >= n.corruptR.next(&n.random) {
		flip = anyBit(&n.entropy, length)
	}
	return flip, n.limit == 0 || len(n.pending.heap) < n.limit
}

func (n *netem) enqueue(f *Fate, now int64, length, flip int) {
	at := now
	if n.gap == 0 || n.counter < n.gap-1 || n.reorder < n.reorderR.next(&n.random) {
		n.counter++
		at = n.release(now, length)
	} else {
		n.counter = 0
	}
	n.pending.push(waiter{at, length})
	f.add(max(at, now), flip)
}

// release is when a frame leaves that is not reordered. With a rate it is never
// before the last one, so jitter cannot reorder.
func (n *netem) release(now int64, length int) int64 {
	at := now + n.wait()
	if n.bytesPerSecond == 0 {
		return at
	}
	if len(n.pending.heap) > 0 {
		at = max(at, n.pending.last)
	}
	return later(at, packetTime(length, n.bytesPerSecond))
}

// wait is tabledist of net/sched/sch_netem.c. It may be negative.
func (n *netem) wait() int64 {
	if n.jitter == 0 {
		return n.delay
	}
	u := n.delayR.next(&n.random)
	if n.table == nil {
		return int64(u%(2*uint32(n.jitter))) + n.delay - int64(n.jitter)
	}
	t := int64(n.table[u%uint32(len(n.table))])
	x := int64(n.jitter%tableScale) * t
	if x >= 0 {
		x += tableScale / 2
	} else {
		x -= tableScale / 2
	}
	return x/tableScale + int64(n.jitter/tableScale)*t + n.delay
}
