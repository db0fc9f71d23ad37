package impair

import (
	"math/bits"
	"math/rand/v2"
)

// exact is a link whose settings mean what they say, each for every frame.
type exact struct {
	losses     losses
	duplicate  chain
	corrupt    chain
	flips      rand.PCG
	reorder    chain
	gap, since int
	bottleneck bottleneck
	line       line
}

func newExact(s Settings) *exact {
	return &exact{
		losses:    newLosses(s.Loss, stream(s.Seed, lossStream)),
		duplicate: newChain(s.Duplicate, stream(s.Seed, duplicateStream)),
		corrupt:   newChain(s.Corrupt, stream(s.Seed, corruptStream)),
		flips:     stream(s.Seed, flipStream),
		reorder:   newChain(s.Reorder, stream(s.Seed, reorderStream)),
		gap:       s.Gap,
		bottleneck: bottleneck{
			bitRate:  uint64(s.Rate),
			minFrame: s.MinFrame, overhead: s.Overhead,
			maxPackets: s.QueuePackets, maxBytes: s.QueueBytes,
		},
		line: newLine(s),
	}
}

func (x *exact) offer(now int64, length int) (f Fate) {
	if x.losses.next() {
		return Fate{Cause: Lost}
	}
	copies := 1
	if x.duplicate.bounds[0] > 0 && x.duplicate.next() {
		copies = 2
	}
	for range copies {
		departure, ok := x.bottleneck.push(now, length)
		if !ok {
			if f.Copies == 0 {
				f.Cause = QueueFull
			}
			continue
		}
		flip := -1
		if x.corrupt.bounds[0] > 0 && x.corrupt.next() {
			flip = anyBit(&x.flips, length)
		}
		// The delay is drawn for frames that skip it too: so reordering some
		// leaves the delays of the others.
		delay := x.line.sample()
		if x.reordered() {
			delay = 0
		}
		f.add(later(departure, delay), flip)
	}
	return f
}

func (x *exact) reordered() bool {
	if x.reorder.bounds[0] == 0 {
		return false
	}
	if x.since++; x.since < x.gap {
		return false
	}
	x.since = 0
	return x.reorder.next()
}

// anyBit is the number of one of a frame's bits; -1 if it has none.
func anyBit(source *rand.PCG, length int) int {
	if length == 0 {
		return -1
	}
	hi, _ := bits.Mul64(source.Uint64(), uint64(length)*8)
	return int(hi)
}
