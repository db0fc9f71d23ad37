package impair

// LossRatio is the expected share of frames that Loss takes over many frames.
// Duplicates and the queue are not in it.
func (s Settings) LossRatio() float64 {
	l := s.Loss
	if !l.hasStates() {
		return l.Ratio
	}
	bad := l.shareBad()
	return bad*l.Bad + (1-bad)*l.Good
}

// shareBad is how often the bad state is met. A link that
// never moves is a good one.
func (l Loss) shareBad() float64 {
	if l.P == 0 {
		return 0
	}
	return l.P / (l.P + l.R)
}
