package impair

// LossRatio is the expected share of frames that Loss takes over many frames.
// Duplicates and the queue are not in it.
func (s Settings) LossRatio() float64 {
	switch l := s.Loss; l.Model {
	case GilbertElliott:
		bad := l.shareBad()
		return bad*l.Bad + (1-bad)*l.Good
	case FourState:
		shares := l.shares()
		return shares[2] + shares[3]
	default:
		return l.Ratio
	}
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
