package record

import (
	"math"
	"math/bits"
	"slices"
)

// How a block's send times are written. Each is a guess at the next one, and what
// it was wrong by; the encoder takes the one that costs least.
const (
	sendLine   = iota // around a line through the block's sequences: a sender that keeps its schedule
	sendStep          // as long after the one before as that line has it: a sender that drifts
	sendGroups        // several share a time: packets handed to the kernel in batches
	sendWays
)

// How its receive times are written.
const (
	receiveMean = iota // by the delay, around its mean: a path that is idle
	receiveStep        // by the change of the delay: a path with queues
	receiveGap         // by the time after the one before, around its mean: a path that is full
	receiveWays
)

const windowBits = 4

// drift is a mean that follows its values.
type drift struct{ mean int64 } // times 2^windowBits

func (d *drift) off(v int64) int64 {
	v -= d.mean >> windowBits
	d.mean += v
	return v
}

func (d *drift) back(v int64) int64 {
	at := d.mean >> windowBits
	d.mean += v
	return v + at
}

// elapsed48 is b after a, for readings that wrap at 2^48.
func elapsed48(a, b uint64) int64 { return int64((b-a)<<16) >> 16 }

// slopes are the time from one sequence to the next, times 2^16: over the whole
// block, and as most packets have it, which a pause of the sender does not move.
type slopes struct{ line, step int64 }

func slopesOf(p []Packet) slopes {
	first, last := p[0], p[len(p)-1]
	s := slopes{line: per(elapsed48(first.SendNanos, last.SendNanos), elapsed48(first.Sequence, last.Sequence))}
	const most = 127
	var some [most]int64
	n := 0
	for i, by := 1, max(len(p)/most, 1); i < len(p) && n < most; i += by {
		some[n] = per(elapsed48(p[i-1].SendNanos, p[i].SendNanos), elapsed48(p[i-1].Sequence, p[i].Sequence))
		n++
	}
	if n > 0 {
		slices.Sort(some[:n])
		s.step = some[n/2]
	}
	return s
}

// per is t/n times 2^16, 0 where that is no time between packets.
func per(t, n int64) int64 {
	if n <= 0 || t <= 0 || t>>46 > 0 || n>>46 > 0 {
		return 0
	}
	return t/n<<16 + t%n<<16/n
}

// residuals are what the guesses were wrong by, by way; each has a number for
// every packet but the first. sendGroups has the gap between groups and then how
// many packets there are beside a group's first, as many pairs as groups.
type residuals struct {
	send    [sendWays][]int64
	receive [receiveWays][]int64
}

func (r *residuals) find(p []Packet, m slopes) {
	for i := range r.send {
		r.send[i] = r.send[i][:0]
	}
	for i := range r.receive {
		r.receive[i] = r.receive[i][:0]
	}
	var line, mean, gap drift
	sent := int64(p[0].SendNanos) // unwrapped
	first, seq, off := sent, int64(0), int64(0)
	delay, came := p[0].ReceiveNanos-sent, p[0].ReceiveNanos
	for i := 1; i < len(p); i++ {
		step := elapsed48(p[i-1].SendNanos, p[i].SendNanos)
		seq += elapsed48(p[i-1].Sequence, p[i].Sequence)
		sent += step
		r.send[sendLine] = append(r.send[sendLine], line.off(sent-first-seq*m.line>>16))
		now := sent - first - seq*m.step>>16
		r.send[sendStep] = append(r.send[sendStep], now-off)
		off = now

		d := p[i].ReceiveNanos - sent
		r.receive[receiveMean] = append(r.receive[receiveMean], mean.off(d-delay0(p)))
		r.receive[receiveStep] = append(r.receive[receiveStep], d-delay)
		r.receive[receiveGap] = append(r.receive[receiveGap], gap.off(p[i].ReceiveNanos-came))
		delay, came = d, p[i].ReceiveNanos
	}
	r.groups(p)
}

// delay0 is the first packet's delay, in which the difference of the two clocks is.
func delay0(p []Packet) int64 { return p[0].ReceiveNanos - int64(p[0].SendNanos) }

func (r *residuals) groups(p []Packet) {
	var gap drift
	var size int64
	out := r.send[sendGroups]
	for i := 0; i < len(p); {
		n := 1
		for i+n < len(p) && p[i+n].SendNanos == p[i].SendNanos {
			n++
		}
		if i > 0 {
			out = append(out, gap.off(elapsed48(p[i-1].SendNanos, p[i].SendNanos)))
		}
		out = append(out, int64(n)-size)
		size = int64(n)
		i += n
	}
	r.send[sendGroups] = out
}

// cheapest is the way that takes the fewest bits, by and large: those below each
// number's highest, and the entropy of how many there are.
func cheapest(ways [][]int64) (best int) {
	least := math.Inf(1)
	for i, list := range ways {
		var count [65]int32
		for _, v := range list {
			count[bits.Len64(zigzag(v))]++
		}
		cost := 0.0
		for length, n := range count {
			if n > 0 {
				cost += float64(n) * (float64(max(length-1, 0)) + math.Log2(float64(len(list))/float64(n)))
			}
		}
		if cost < least {
			best, least = i, cost
		}
	}
	return best
}
