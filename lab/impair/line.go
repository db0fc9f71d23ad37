package impair

import (
	"math"
	"math/rand/v2"
)

// line draws how long frames are under way behind the bottleneck.
type line struct {
	source        rand.PCG
	delay, jitter int64
	quantiles     []int16 // nil: uniform

	// A Gaussian of lag-1 correlation c whose quantile picks the delay: so the
	// delays are correlated and still have exactly their distribution.
	c, rest float64
	z       float64
	started bool
}

func newLine(s Settings) line {
	l := line{
		source: stream(s.Seed, delayStream),
		delay:  int64(s.Delay), jitter: int64(s.Jitter),
		c: s.Correlation, rest: math.Sqrt(1 - s.Correlation*s.Correlation),
	}
	if s.Shape != nil {
		l.quantiles = s.Shape.Values
	}
	return l
}

func (l *line) sample() int64 {
	if l.jitter == 0 {
		return l.delay
	}
	return max(l.at(l.quantile()), 0)
}

// quantile is uniform in 0..1 and correlated with the one before.
func (l *line) quantile() float64 {
	if l.c == 0 {
		return float64(draw(&l.source)) * 0x1p-53
	}
	// 52 bits and a half: neither 0 nor 1 comes out.
	u := (float64(l.source.Uint64()>>12) + 0.5) * 0x1p-52
	e := math.Sqrt2 * math.Erfinv(2*u-1)
	if l.started {
		e = l.c*l.z + l.rest*e
	}
	l.z, l.started = e, true
	return 0.5 * math.Erfc(-l.z/math.Sqrt2)
}

// at is the delay at a quantile.
func (l *line) at(q float64) int64 {
	if l.quantiles == nil {
		return l.delay - l.jitter + min(int64(q*float64(2*l.jitter+1)), 2*l.jitter)
	}
	last := len(l.quantiles) - 1
	x := q * float64(last)
	i := min(int(x), last)
	v := float64(l.quantiles[i])
	if i < last {
		v += (float64(l.quantiles[i+1]) - v) * (x - float64(i))
	}
	return l.delay + int64(math.Floor(float64(l.jitter)*v/tableScale+0.5))
}
