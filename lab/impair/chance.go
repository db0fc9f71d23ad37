package impair

import "math/rand/v2"

// The streams of draws of a seed. Their numbers are part of what a seed means.
const (
	lossStream = iota + 1
	duplicateStream
	corruptStream
	flipStream
	reorderStream
	delayStream
)

// PCG's own Uint64 is used all over, for what rand.Rand makes of a source may
// change between Go versions.
func stream(seed uint64, number uint64) rand.PCG { return *rand.NewPCG(seed, number) }

// below makes a probability a bound: draw(source) < below(p) has it.
func below(p float64) uint64 { return uint64(p*0x1p53 + 0.5) }

func draw(source *rand.PCG) uint64 { return source.Uint64() >> 11 }

// coin draws a chance for each frame.
type coin struct {
	source rand.PCG
	bound  uint64
}

func newCoin(ratio float64, source rand.PCG) coin { return coin{source, below(ratio)} }

func (c *coin) next() bool { return c.bound > 0 && draw(&c.source) < c.bound }

// losses draws frames to lose by one of the models.
type losses struct {
	random coin
	states bool // of Gilbert and Elliott
	source rand.PCG
	bad    bool
	// Bounds of the draws: to the bad state, to the good one, lost in the bad one, lost in the good one.
	bounds [4]uint64
}

// newLosses starts every model in its stationary distribution, so that the
// first frame is lost as often as any.
func newLosses(l Loss, source rand.PCG) losses {
	if !l.hasStates() {
		return losses{random: newCoin(l.Ratio, source)}
	}
	d := losses{states: true, source: source, bounds: [4]uint64{below(l.P), below(l.R), below(l.Bad), below(l.Good)}}
	d.bad = draw(&d.source) < below(l.shareBad())
	return d
}

func (d *losses) next() bool {
	if !d.states {
		return d.random.next()
	}
	move, lose := draw(&d.source), draw(&d.source)
	if d.bad {
		d.bad = move >= d.bounds[1]
		return lose < d.bounds[2]
	}
	d.bad = move < d.bounds[0]
	return lose < d.bounds[3]
}
