package lab

import (
	"fmt"

	"pelt/lab/impair"
)

// pointless says in one line what of an emulated direction's settings could be
// done and is not what anybody means, "" if nothing is.
func (s shape) pointless() string {
	set := s.settings()
	switch file := s.asked.DistributionFile(); {
	case s.asked.Distribution != "" && set.Jitter == 0: // uniform is no table, so the model knows nothing of it
		return "a distribution needs a jitter that it can shape, as delay=20ms,jitter=5ms"
	case file != "" && s.asked.DistributionTable == "":
		return fmt.Sprintf("the distribution in file %s was not read", file)
	case set.Reorder.Ratio == 1 && set.Gap <= 1:
		return "reorder of 100 % lets every frame pass without the delay: want less, or a gap, or no delay"
	}
	switch l := set.Loss; {
	case l.Model == impair.GilbertElliott && l.Bad == 0 && l.Good == 0:
		return "loss ge loses nothing in either state: want BAD above 0"
	case l.Model == impair.GilbertElliott && l.P == 0:
		return "loss ge never comes to its bad state: want P above 0"
	case l.Model == impair.GilbertElliott && l.R == 0:
		return "loss ge never leaves its bad state: want R above 0"
	case l.Model == impair.FourState && l.P13 == 0 && l.P14 == 0:
		return "loss 4state never leaves the state that loses nothing: want P13 or P14 above 0"
	case l.Model == impair.FourState && l.P13 > 0 && l.P31 == 0 && l.P32 == 0:
		return "loss 4state never leaves a burst of losses: want P31 or P32 above 0"
	}
	return ""
}

// Blocked names a direction that no packet can pass, with what takes them all;
// "" if there is none that this process knows of.
func (l *Lab) Blocked() string {
	for _, k := range l.links {
		for d, s := range k.settings {
			way := k.Ends[d] + " to " + k.Ends[1-d]
			switch {
			case s.LossRatio() == 1, k.kernel != nil && k.kernel[d].Asked == 1:
				return way + " loses every packet"
			case s.Corrupt.Ratio == 1:
				return way + " damages every packet"
			}
		}
	}
	return ""
}
