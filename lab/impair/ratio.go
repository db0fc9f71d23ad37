package impair

import "math"

// LossRatio is the expected share of frames that Loss takes, in the settings'
// mode: what is measured over many frames and, in Netem with a correlation,
// far from what was asked for. Duplicates and the queue are not in it.
func (s Settings) LossRatio() float64 {
	l := s.Loss
	switch {
	case l.Model == GilbertElliott:
		bad := l.shareBad()
		return bad*l.Bad + (1-bad)*l.Good
	case l.Model == FourState && s.Mode == Netem:
		shares := l.wrapped().shares()
		return shares[2] + shares[3]
	case l.Model == FourState:
		shares := l.shares()
		return shares[2] + shares[3]
	case s.Mode == Netem && l.Correlation > 0 && l.Ratio > 0:
		return correlatedBelow(l.Ratio, (float64(share(l.Correlation))+1)/(1<<32))
	}
	return l.Ratio
}

// shareBad is how often the bad state of GilbertElliott is met. A link that
// never moves is a good one.
func (l Loss) shareBad() float64 {
	if l.P == 0 {
		return 0
	}
	return l.P / (l.P + l.R)
}

// shares are how often each of the four states is met in the long run, from
// state 1 at the start: the solution of the chain's balance.
func (l Loss) shares() [4]float64 {
	switch {
	case l.P13 == 0: // never a burst
		return [4]float64{1 / (1 + l.P14), 0, 0, l.P14 / (1 + l.P14)}
	case l.P23 == 0 && l.P32 > 0: // the first burst that gets to state 2 stays there
		return [4]float64{0, 1, 0, 0}
	case l.P31 == 0: // the first burst never ends
		between := 0.0
		if l.P32 > 0 {
			between = l.P32 / l.P23
		}
		return [4]float64{0, between / (1 + between), 1 / (1 + between), 0}
	}
	burst, between := l.P13/l.P31, 0.0
	if l.P32 > 0 {
		between = burst * l.P32 / l.P23
	}
	sum := 1 + between + burst + l.P14
	return [4]float64{1 / sum, between / sum, burst / sum, l.P14 / sum}
}

// wrapped has the ratios that the kernel acts by: a sum that wraps at 32 bits
// (two halves) leaves only its first part.
func (l Loss) wrapped() Loss {
	if share(l.P14)+share(l.P13) < share(l.P14) {
		l.P13 = 0
	}
	if share(l.P32)+share(l.P31) < share(l.P32) {
		l.P31 = 0
	}
	return l
}

// correlatedBelow is how often netem's correlated draw y' = (1-rho)u + rho*y is
// below p. The long-run y is the sum of (1-rho)rho^k u_k. Less 1/2, that lies
// within a stretch of length 1, so the Fourier series of its distribution holds
// exactly, and its coefficients are products of sin(z)/z.
func correlatedBelow(p, rho float64) float64 {
	const (
		terms = 20000
		least = 1e-15 // of a coefficient that counts
	)
	x := p - 0.5
	sum := p
	for n := 1; n <= terms; n++ {
		c, bound := 1.0, 1.0
		z := math.Pi * float64(n) * (1 - rho)
		for z > 0.1 && bound > least {
			c *= math.Sin(z) / z
			bound *= min(1, 1/z)
			z *= rho
		}
		if bound <= least {
			break
		}
		// What is left is close to exp(-z^2/6 - z^4/180 - z^6/2835), whose powers sum up.
		z2, r2 := z*z, rho*rho
		left := math.Exp(-z2/6/(1-r2) - z2*z2/180/(1-r2*r2) - z2*z2*z2/2835/(1-r2*r2*r2))
		if left <= least {
			break
		}
		sum += c * left * math.Sin(2*math.Pi*float64(n)*x) * (1 / (math.Pi * float64(n)))
	}
	return min(max(sum, 0), 1)
}
