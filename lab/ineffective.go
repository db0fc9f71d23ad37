package lab

import (
	"pelt/model"
	"pelt/words"
)

// ineffective says in one line what of an emulated direction's settings could be
// done and is not what anybody means, nil if nothing is.
func ineffective(asked model.Link) error {
	set := settingsOf(asked)
	l := set.Loss
	switch {
	case asked.Distribution != "" && set.Jitter == 0: // uniform is no table, so the model knows nothing of it
		return words.Errorf("a distribution needs a jitter that it can shape, as delay=20ms,jitter=5ms")
	case set.Reorder == 1:
		return words.Errorf("reorder of 100 %% lets every frame pass without the delay: want less, or no delay")
	case asked.LossModel == model.GilbertElliott && l.Bad == 0 && l.Good == 0:
		return words.Errorf("loss ge loses nothing in either state: want BAD above 0")
	case asked.LossModel == model.GilbertElliott && l.P == 0:
		return words.Errorf("loss ge never comes to its bad state: want P above 0")
	case asked.LossModel == model.GilbertElliott && l.R == 0:
		return words.Errorf("loss ge never leaves its bad state: want R above 0")
	}
	return nil
}
