package impair

import (
	"encoding/binary"
	"math/rand/v2"
)

// Draws are the losses of Exact for whoever draws them elsewhere, as a program in
// the kernel does: the same frames are lost as Link loses.
type Draws struct {
	Model LossModel

	// Of the generator, PCG-DXSM of 128 bits as math/rand/v2 has it. A draw is its
	// next number >> 11 and hits a bound if it is below it.
	High, Low uint64

	// State at first. Random: 0 before the first frame, 1 after a frame that
	// passed, 2 after a lost one. GilbertElliott: 1 in the bad state. FourState: 1 to 4.
	State uint32

	// Bounds are of a loss in each state for Random; to the bad state, back, a loss
	// in the bad state, in the good one for GilbertElliott, which draws the move
	// first and loses by the state before; p14, p14+p13, p23, p32, p32+p31 for FourState.
	Bounds [5]uint64
}

// LossDraws are those of the settings in Exact.
func (s Settings) LossDraws() Draws {
	l := newLosses(s.Loss, stream(s.Seed, lossStream))
	d := Draws{Model: l.model}
	source := l.source
	switch l.model {
	case GilbertElliott:
		d.Bounds = [5]uint64{l.ge.toBad, l.ge.toGood, l.ge.inBad, l.ge.inGood}
		if l.bad {
			d.State = 1
		}
	case FourState:
		d.Bounds = [5]uint64{l.four.p14, l.four.p14p13, l.four.p23, l.four.p32, l.four.p32p31}
		d.State = uint32(l.state)
	default:
		source = l.random.source
		copy(d.Bounds[:], l.random.bounds[:])
	}
	d.High, d.Low = state(source)
	return d
}

// state is that of a generator, in the form that its package documents.
func state(source rand.PCG) (high, low uint64) {
	b, err := source.MarshalBinary()
	if err != nil || len(b) != 20 {
		panic("impair: the generator does not tell its state") // it cannot fail
	}
	return binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[12:])
}
