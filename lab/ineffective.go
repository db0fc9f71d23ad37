package lab

import "pelt/model"

// ineffective says in one line what of an emulated direction's settings could be
// done and is not what anybody means, "" if nothing is.
func ineffective(asked model.Link) string {
	set := settingsOf(asked)
	l := set.Loss
	switch {
	case asked.Distribution != "" && set.Jitter == 0: // uniform is no table, so the model knows nothing of it
		return "a distribution needs a jitter that it can shape, as delay=20ms,jitter=5ms"
	case set.Reorder == 1:
		return "reorder of 100 % lets every frame pass without the delay: want less, or no delay"
	case asked.LossModel == model.GilbertElliott && l.Bad == 0 && l.Good == 0:
		return "loss ge loses nothing in either state: want BAD above 0"
	case asked.LossModel == model.GilbertElliott && l.P == 0:
		return "loss ge never comes to its bad state: want P above 0"
	case asked.LossModel == model.GilbertElliott && l.R == 0:
		return "loss ge never leaves its bad state: want R above 0"
	}
	return ""
}
