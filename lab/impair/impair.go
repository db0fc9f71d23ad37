// Package impair is the model of an emulated link: frames with their times go
// in, and out comes what becomes of each, and when. It never looks at a clock, a
// packet's content or the system; whoever moves the frames does.
//
// The same settings with the same seed give the same fates to the same frames.
// Each impairment draws from a stream of its own, so turning another one on
// changes none of its draws.
package impair

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"pelt/unit"
)

// Settings are those of one direction of a link. A zero field leaves frames alone.
// A ratio is that share of the frames.
type Settings struct {
	// The bottleneck. A frame takes (max(length, MinFrame) + Overhead) * 8 / Rate.
	Rate     unit.BitRate
	Overhead int // bytes
	MinFrame int // bytes

	// How many frames, or bytes of frames, may wait for the bottleneck, with the one
	// that it is sending. 0: any number. A frame counts max(length, MinFrame)
	// bytes, without the Overhead, which is never stored.
	QueuePackets int
	QueueBytes   int

	// The line behind the bottleneck.
	Delay time.Duration
	// uniform: largest deviation; else the distribution's scale, the standard deviation of Normal
	Jitter      time.Duration
	Correlation float64 // of a frame's delay with that of the one before, 0..1
	Shape       *Table  // of the jitter; nil is uniform

	Loss      Loss
	Duplicate float64 // ratio
	Corrupt   float64 // ratio; one bit of the frame is turned
	Reorder   float64 // ratio; such a frame does not wait in the line at all

	Seed uint64
}

// Loss is that of frames before the bottleneck.
type Loss struct {
	Ratio float64 // without memory

	// Gilbert and Elliott's two states in place of it, per frame: to the bad state, back to the good one, and the
	// losses in the bad and in the good state (tc says p, r, 1-h, 1-k). A frame is lost by the state that it finds;
	// the next one meets the new state.
	P, R, Bad, Good float64
}

func (l Loss) hasStates() bool { return l.P+l.R+l.Bad+l.Good > 0 }

// Cause is why a frame did not pass.
type Cause int

// The causes, in the order in which a frame meets them.
const (
	Passes    Cause = iota
	Lost            // drawn
	QueueFull       // of the bottleneck
)

// Fate is what becomes of one frame.
type Fate struct {
	Cause  Cause // why no copy leaves; Passes if one does
	Copies int   // that leave: 0, 1, or 2 of a duplicated frame
	Copy   [2]Copy
}

// Copy is one frame that leaves the link.
type Copy struct {
	At   int64 // when, in ns on the clock of Offer; never before the offer
	Flip int   // number of the bit to turn, from the frame's first: byte Flip/8, 1<<(Flip%8); -1: none
}

func (f *Fate) add(at int64, flip int) {
	f.Copy[f.Copies] = Copy{At: at, Flip: flip}
	f.Copies++
	f.Cause = Passes
}

// Link is one direction of a link. It is for one goroutine.
type Link struct {
	now        int64
	losses     losses
	duplicate  coin
	corrupt    coin
	flips      rand.PCG
	reorder    coin
	bottleneck bottleneck
	line       line
}

// New makes a link at rest. It panics on settings that Check refuses.
func New(s Settings) *Link {
	if wrong := s.Check(); wrong != nil {
		panic("impair: " + wrong.Error())
	}
	return &Link{
		now:       math.MinInt64,
		losses:    newLosses(s.Loss, stream(s.Seed, lossStream)),
		duplicate: newCoin(s.Duplicate, stream(s.Seed, duplicateStream)),
		corrupt:   newCoin(s.Corrupt, stream(s.Seed, corruptStream)),
		flips:     stream(s.Seed, flipStream),
		reorder:   newCoin(s.Reorder, stream(s.Seed, reorderStream)),
		bottleneck: bottleneck{
			bitRate:  uint64(s.Rate),
			minFrame: s.MinFrame, overhead: s.Overhead,
			maxPackets: s.QueuePackets, maxBytes: s.QueueBytes,
		},
		line: newLine(s),
	}
}

// Follow has a link that nothing was offered to begin with what is still in another,
// whose place it takes: what waits there for the bottleneck leaves before what comes.
func (l *Link) Follow(before *Link) {
	l.now = max(l.now, before.now)
	l.bottleneck.follow(&before.bottleneck)
}

// Offer gives a frame of so many bytes, from the Ethernet header on and without
// its check sequence, to the link at a time in ns. A time that falls counts as the
// latest so far.
func (l *Link) Offer(now int64, bytes int) (f Fate) {
	l.now = max(l.now, now)
	bytes = max(bytes, 0)
	if l.losses.next() {
		return Fate{Cause: Lost}
	}
	copies := 1
	if l.duplicate.next() {
		copies = 2
	}
	for range copies {
		departure, ok := l.bottleneck.push(l.now, bytes)
		if !ok {
			if f.Copies == 0 {
				f.Cause = QueueFull
			}
			continue
		}
		flip := -1
		if l.corrupt.next() {
			flip = anyBit(&l.flips, bytes)
		}
		// The delay is drawn for frames that skip it too: so reordering some
		// leaves the delays of the others.
		delay := l.line.sample()
		if l.reorder.next() {
			delay = 0
		}
		f.add(later(departure, delay), flip)
	}
	return f
}

// anyBit is the number of one of a frame's bits; -1 if it has none.
func anyBit(source *rand.PCG, length int) int {
	if length == 0 {
		return -1
	}
	hi, _ := bits.Mul64(source.Uint64(), uint64(length)*8)
	return int(hi)
}

// later is at+d for a d of at least 0. It saturates at the largest int64.
func later(at, d int64) int64 {
	if sum := at + d; sum >= at {
		return sum
	}
	return math.MaxInt64
}
