package impair

import (
	"math"
	"math/bits"
)

// taus113 is the kernel's pseudo-random generator: four shift registers
// (prandom_u32_state in lib/random32.c; P. L'Ecuyer, "Tables of maximally
// equidistributed combined LFSR generators", Math. Comp. 68, 1999).
type taus113 struct{ s1, s2, s3, s4 uint32 }

// newTaus113 is prandom_seed_state in include/linux/prandom.h, Linux 6.12.
func newTaus113(seed uint64) taus113 {
	folded := uint32(seed>>32 ^ seed<<10 ^ seed)
	least := func(m uint32) uint32 {
		if folded < m {
			return folded + m
		}
		return folded
	}
	return taus113{least(2), least(8), least(16), least(128)}
}

func (t *taus113) next() uint32 {
	t.s1 = t.s1&^1<<18 ^ (t.s1<<6^t.s1)>>13
	t.s2 = t.s2&^7<<2 ^ (t.s2<<2^t.s2)>>27
	t.s3 = t.s3&^15<<7 ^ (t.s3<<13^t.s3)>>21
	t.s4 = t.s4&^127<<13 ^ (t.s4<<3^t.s4)>>12
	return t.s1 ^ t.s2 ^ t.s3 ^ t.s4
}

// correlated is get_crandom of net/sched/sch_netem.c: a mean of the draw and of
// the value before. It is not uniform any more, so with a correlation a ratio
// comes out far smaller than it was asked for.
type correlated struct{ rho, last uint32 }

func (c *correlated) next(random *taus113) uint32 {
	u := random.next()
	if c.rho == 0 {
		return u
	}
	rho := uint64(c.rho) + 1
	c.last = uint32((uint64(u)*(1<<32-rho) + uint64(c.last)*rho) >> 32)
	return c.last
}

// share is how tc writes a ratio: 32 bits that are all set for 1 (set_percent in
// tc/q_netem.c of iproute2).
func share(ratio float64) uint32 { return uint32(math.RoundToEven(ratio * math.MaxUint32)) }

// kernelLosses are the loss models of net/sched/sch_netem.c. Both with states
// begin in their good one.
type kernelLosses struct {
	model LossModel
	ratio uint32
	r     correlated
	bad   bool
	state int

	toBad, toGood, keptInBad, inGood uint32
	p13, p31, p32, p23, p14          uint32
}

func (k *kernelLosses) next(random *taus113) bool {
	switch k.model {
	case GilbertElliott:
		move, lose := random.next(), random.next()
		if k.bad {
			k.bad = move >= k.toGood
			return lose > k.keptInBad
		}
		k.bad = move < k.toBad
		return lose < k.inGood
	case FourState:
		return k.nextOfFour(random.next())
	}
	return k.ratio > 0 && k.ratio >= k.r.next(random)
}

// nextOfFour keeps the kernel's gaps: a draw that hits a bound moves nothing and
// loses nothing, and the sums wrap at 32 bits.
func (k *kernelLosses) nextOfFour(u uint32) bool {
	switch k.state {
	case 1:
		if u < k.p14 {
			k.state = 4
			return true
		}
		if k.p14 < u && u < k.p13+k.p14 {
			k.state = 3
			return true
		}
	case 2:
		if u < k.p23 {
			k.state = 3
			return true
		}
	case 3:
		switch {
		case u < k.p32:
			k.state = 2
		case k.p32 < u && u < k.p31+k.p32:
			k.state = 1
		case k.p31+k.p32 < u:
			return true
		}
	default:
		k.state = 1
	}
	return false
}

// pending are the frames in the link, the next to leave first.
type pending struct {
	heap  []waiter
	bytes int
	last  int64 // when the last one leaves, if there is any
}

func (p *pending) push(w waiter) {
	if len(p.heap) == 0 || w.at > p.last {
		p.last = w.at
	}
	p.bytes += w.bytes
	p.heap = append(p.heap, w)
	i := len(p.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if p.heap[up].at <= w.at {
			break
		}
		p.heap[i] = p.heap[up]
		i = up
	}
	p.heap[i] = w
}

// drain forgets what has left by now and counts the rest.
func (p *pending) drain(now int64) (frames, bytes int) {
	for len(p.heap) > 0 && p.heap[0].at <= now {
		p.pop()
	}
	return len(p.heap), p.bytes
}

func (p *pending) pop() {
	p.bytes -= p.heap[0].bytes
	n := len(p.heap) - 1
	w := p.heap[n]
	p.heap = p.heap[:n]
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && p.heap[down+1].at < p.heap[down].at {
			down++
		}
		if w.at <= p.heap[down].at {
			break
		}
		p.heap[i] = p.heap[down]
		i = down
	}
	if n > 0 {
		p.heap[i] = w
	}
}

// packetTime is packet_time_ns of net/sched/sch_netem.c.
func packetTime(length int, bytesPerSecond uint64) int64 {
	hi, lo := bits.Mul64(uint64(length), 1e9)
	if hi >= bytesPerSecond {
		return math.MaxInt64
	}
	nanos, _ := bits.Div64(hi, lo, bytesPerSecond)
	return int64(min(nanos, math.MaxInt64))
}
