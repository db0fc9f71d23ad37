package impair

import "pelt/words"

// Check says in one line which settings do not go together, nil if all do. That each number is
// in its own range is for those to check who take it in: see model.Link.
func (s Settings) Check() error {
	switch {
	case s.Rate == 0 && (s.QueuePackets > 0 || s.QueueBytes > 0):
		return words.Errorf("queue needs a rate: without one nothing waits")
	case s.Rate == 0 && s.Overhead > 0:
		return words.Errorf("overhead needs a rate: without one no frame takes time")
	case s.QueueBytes > 0 && s.QueueBytes < s.MinFrame:
		return words.Errorf("a queue of %d B holds no frame: want at least %d B", s.QueueBytes, s.MinFrame)
	case s.Jitter > 0 && s.Delay == 0:
		return words.Errorf("jitter needs a delay that it can vary, as delay=20ms,jitter=5ms")
	case s.Jitter > s.Delay:
		return words.Errorf("jitter %v is more than the delay of %v, and frames cannot leave before they came: "+
			"want at most that", s.Jitter, s.Delay)
	case s.Jitter == 0 && s.Shape != nil:
		return words.Errorf("a distribution needs a jitter that it can shape, as delay=20ms,jitter=5ms")
	case s.Jitter == 0 && s.Correlation != 0:
		return words.Errorf("a correlation of delays needs a jitter, as delay=20ms,jitter=5ms")
	case s.Correlation == 1:
		return words.Errorf("a delay correlation of 100 %% never changes: want less")
	case s.Reorder > 0 && s.Delay == 0:
		return words.Errorf("reorder needs a delay: a reordered frame overtakes by not waiting")
	case s.Loss.hasStates() && s.Loss.Ratio > 0:
		return words.Errorf("two loss models: want a loss ratio or states")
	}
	return nil
}
