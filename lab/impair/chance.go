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

// chain draws a chance: two states with the mean Ratio and the correlation c
// between one draw and the next, so P(hit|miss) = p(1-c) and P(miss|hit) =
// (1-p)(1-c).
type chain struct {
	source rand.PCG
	bounds [3]uint64 // of a hit: at first, after a miss, after a hit
	state  uint8
}

func newChain(c Chance, source rand.PCG) chain {
	return chain{source: source, bounds: [3]uint64{
		below(c.Ratio),
		below(c.Ratio * (1 - c.Correlation)),
		below(1 - (1-c.Ratio)*(1-c.Correlation)),
	}}
}

func (c *chain) next() bool {
	hit := draw(&c.source) < c.bounds[c.state]
	c.state = 1
	if hit {
		c.state = 2
	}
	return hit
}

// losses draws frames to lose by one of the models.
type losses struct {
	model  LossModel
	random chain
	source rand.PCG // of the other models
	bad    bool
	state  int // of four
	// Bounds of the draws. GilbertElliott: to the bad state, to the good one, lost in the bad one,
	// lost in the good one. FourState: from 1 to 4, from 1, from 2 to 3, from 3 to 2, from 3.
	bounds [5]uint64
}

// newLosses starts every model in its stationary distribution, so that the
// first frame is lost as often as any.
func newLosses(l Loss, source rand.PCG) losses {
	d := losses{model: l.Model, source: source}
	switch l.Model {
	case GilbertElliott:
		d.bounds = [5]uint64{below(l.P), below(l.R), below(l.Bad), below(l.Good)}
		d.bad = draw(&d.source) < below(l.shareBad())
	case FourState:
		d.bounds = [5]uint64{below(l.P14), below(l.P14 + l.P13), below(l.P23), below(l.P32), below(l.P32 + l.P31)}
		u, sum := draw(&d.source), 0.0
		for i, share := range l.shares() {
			if sum += share; d.state == 0 && u < below(sum) {
				d.state = i + 1
			}
		}
		d.state = max(d.state, 1)
	default:
		d.random = newChain(l.Chance, source)
	}
	return d
}

func (d *losses) next() bool {
	switch d.model {
	case GilbertElliott:
		return d.nextOfTwo()
	case FourState:
		return d.nextOfFour()
	}
	return d.random.bounds[0] > 0 && d.random.next()
}

func (d *losses) nextOfTwo() bool {
	move, lose := draw(&d.source), draw(&d.source)
	if d.bad {
		d.bad = move >= d.bounds[1]
		return lose < d.bounds[2]
	}
	d.bad = move < d.bounds[0]
	return lose < d.bounds[3]
}

func (d *losses) nextOfFour() bool {
	u := draw(&d.source)
	switch d.state {
	case 1:
		if u < d.bounds[0] {
			d.state = 4
		} else if u < d.bounds[1] {
			d.state = 3
		}
	case 2:
		if u < d.bounds[2] {
			d.state = 3
		}
	case 3:
		if u < d.bounds[3] {
			d.state = 2
		} else if u < d.bounds[4] {
			d.state = 1
		}
	default:
		d.state = 1
	}
	return d.state >= 3
}
