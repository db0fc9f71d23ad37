package impair

import "fmt"

// Check says in one line which settings do not go together, "" if all do. That each number is
// in its own range is for those to check who take it in: see model.Link.
func (s Settings) Check() string {
	l := s.Loss
	const slack = 1e-9 // of sums of what was rounded
	switch {
	case s.Rate == 0 && (s.QueuePackets > 0 || s.QueueBytes > 0):
		return "queue needs a rate: without one nothing waits"
	case s.Rate == 0 && s.Overhead > 0:
		return "overhead needs a rate: without one no frame takes time"
	case s.QueueBytes > 0 && s.QueueBytes < s.MinFrame:
		return fmt.Sprintf("a queue of %d B holds no frame: want at least %d B", s.QueueBytes, s.MinFrame)
	case s.Jitter > 0 && s.Delay == 0:
		return "jitter needs a delay that it can vary, as delay=20ms,jitter=5ms"
	case s.Jitter > s.Delay:
		return fmt.Sprintf("jitter %v is more than the delay of %v, and frames cannot leave before they came: want at most that", s.Jitter, s.Delay)
	case s.Jitter == 0 && s.Shape != nil:
		return "a distribution needs a jitter that it can shape, as delay=20ms,jitter=5ms"
	case s.Jitter == 0 && s.Correlation != 0:
		return "a correlation of delays needs a jitter, as delay=20ms,jitter=5ms"
	case s.Correlation == 1:
		return neverChanges("delay")
	case s.Gap > 0 && s.Reorder.Ratio == 0:
		return "gap needs a share to reorder, as reorder=100%"
	case s.Reorder.Ratio > 0 && s.Delay == 0:
		return "reorder needs a delay: a reordered frame overtakes by not waiting"
	case l.Model != Random && l.Correlation > 0:
		return fmt.Sprintf("loss correlation is for a plain share of loss: %s says itself how losses follow each other", l.Model)
	case l.Model != Random && l.Ratio > 0:
		return fmt.Sprintf("two loss models: want a loss ratio or %s", l.Model)
	case l.Model != Random && l.P+l.R+l.Bad+l.Good+l.P13+l.P31+l.P32+l.P23+l.P14 == 0:
		return fmt.Sprintf("loss model %s has no numbers", l.Model)
	case l.P13+l.P14 > 1+slack:
		return fmt.Sprintf("p13 and p14 make %v: want at most 1", l.P13+l.P14)
	case l.P31+l.P32 > 1+slack:
		return fmt.Sprintf("p31 and p32 make %v: want at most 1", l.P31+l.P32)
	}
	for _, c := range []struct {
		name string
		Chance
	}{{"loss", l.Chance}, {"duplicate", s.Duplicate}, {"corrupt", s.Corrupt}, {"reorder", s.Reorder}} {
		switch {
		case c.Correlation == 1:
			return neverChanges(c.name)
		case c.Ratio == 0 && c.Correlation > 0:
			return fmt.Sprintf("%s correlation without %s has no effect", c.name, c.name)
		}
	}
	return ""
}

func neverChanges(name string) string {
	return fmt.Sprintf("a %s correlation of 100 %% never changes: want less", name)
}
