package impair

import (
	"fmt"
	"math"
	"time"

	"pelt/unit"
)

const (
	mostRate  = unit.BitRate(10e12) // as unit.ParseBitRate
	mostDelay = 24 * time.Hour
	mostBytes = 65535 // of an Ethernet frame and what is added to it
)

// Check says in one line what is wrong with the settings, "" if nothing is.
func (s Settings) Check() string {
	for _, check := range []func(Settings) string{
		Settings.checkQueue, Settings.checkDelay, Settings.checkChances, Settings.checkReorder, Settings.checkLoss,
	} {
		if wrong := check(s); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (s Settings) checkQueue() string {
	for _, n := range []struct {
		name  string
		value int
	}{{"queue", s.QueuePackets}, {"queue", s.QueueBytes}, {"overhead", s.Overhead}, {"least frame", s.MinFrame}, {"gap", s.Gap}} {
		if n.value < 0 {
			return fmt.Sprintf("%s is %d: want no negative number", n.name, n.value)
		}
	}
	switch {
	case s.Rate > mostRate:
		return fmt.Sprintf("a rate of %v is beyond %v", s.Rate, mostRate)
	case s.Overhead > mostBytes || s.MinFrame > mostBytes:
		return fmt.Sprintf("want an overhead and a least frame of at most %d B", mostBytes)
	case s.Rate == 0 && (s.QueuePackets > 0 || s.QueueBytes > 0):
		return "queue needs a rate: without one nothing waits"
	case s.Rate == 0 && s.Overhead > 0:
		return "overhead needs a rate: without one no frame takes time"
	case s.QueueBytes > 0 && s.QueueBytes < s.MinFrame:
		return fmt.Sprintf("a queue of %d B holds no frame: want at least %d B", s.QueueBytes, s.MinFrame)
	}
	return ""
}

func (s Settings) checkDelay() string {
	switch {
	case s.Delay < 0 || s.Jitter < 0:
		return "delay and jitter must not be negative"
	case s.Delay > mostDelay || s.Jitter > mostDelay:
		return fmt.Sprintf("want a delay and a jitter of at most %v", mostDelay)
	case s.Jitter > 0 && s.Delay == 0:
		return "jitter needs a delay that it can vary, as delay=20ms,jitter=5ms"
	case s.Jitter > s.Delay:
		return fmt.Sprintf("jitter %v is more than the delay of %v, and frames cannot leave before they came: want at most that", s.Jitter, s.Delay)
	case s.Jitter == 0 && s.Shape != nil:
		return "a distribution needs a jitter that it can shape, as delay=20ms,jitter=5ms"
	case s.Shape != nil && (len(s.Shape.Values) == 0 || len(s.Shape.Values) > tableMost):
		return fmt.Sprintf("distribution %s has %d values: want 1 to %d", s.Shape.Name, len(s.Shape.Values), tableMost)
	case s.Jitter == 0 && s.Correlation != 0:
		return "a correlation of delays needs a jitter, as delay=20ms,jitter=5ms"
	}
	return checkCorrelation("delay", s.Correlation)
}

func (s Settings) checkChances() string {
	for _, c := range []struct {
		name string
		Chance
	}{{"loss", s.Loss.Chance}, {"duplicate", s.Duplicate}, {"corrupt", s.Corrupt}, {"reorder", s.Reorder}} {
		if !isRatio(c.Ratio) {
			return fmt.Sprintf("%s ratio is %v: want 0 to 1", c.name, c.Ratio)
		}
		if wrong := checkCorrelation(c.name, c.Correlation); wrong != "" {
			return wrong
		}
		if c.name == "loss" && s.Loss.Model != Random && c.Correlation > 0 {
			return fmt.Sprintf("loss correlation is for a plain share of loss: %s says itself how losses follow each other", s.Loss.Model)
		}
		if c.Ratio == 0 && c.Correlation > 0 {
			return fmt.Sprintf("%s correlation without %s has no effect", c.name, c.name)
		}
	}
	return ""
}

func (s Settings) checkReorder() string {
	switch {
	case s.Gap > 0 && s.Reorder.Ratio == 0:
		return "gap needs a share to reorder, as reorder=100%"
	case s.Gap > math.MaxInt32:
		return fmt.Sprintf("want a gap of at most %d", math.MaxInt32)
	case s.Reorder.Ratio > 0 && s.Delay == 0:
		return "reorder needs a delay: a reordered frame overtakes by not waiting"
	}
	return ""
}

func (s Settings) checkLoss() string {
	l := s.Loss
	two := []ratio{{"p", l.P}, {"r", l.R}, {"loss in the bad state", l.Bad}, {"loss in the good state", l.Good}}
	four := []ratio{{"p13", l.P13}, {"p31", l.P31}, {"p32", l.P32}, {"p23", l.P23}, {"p14", l.P14}}
	if wrong := checkRatios(append(two, four...)); wrong != "" {
		return wrong
	}
	isTwo, isFour := !allZero(two), !allZero(four)
	switch l.Model {
	case Random:
		if isTwo || isFour {
			return fmt.Sprintf("transition probabilities need a loss model: want %s or %s", GilbertElliott, FourState)
		}
		return ""
	case GilbertElliott, FourState:
	default:
		return fmt.Sprintf("unknown loss model %q: there are %s and %s, and the plain ratio", l.Model, GilbertElliott, FourState)
	}
	const slack = 1e-9 // of sums of what was rounded
	switch {
	case l.Ratio > 0:
		return fmt.Sprintf("two loss models: want a loss ratio or %s", l.Model)
	case isTwo && isFour:
		return fmt.Sprintf("two loss models: want the numbers of %s or of %s", GilbertElliott, FourState)
	case l.Model == GilbertElliott && !isTwo || l.Model == FourState && !isFour:
		return fmt.Sprintf("loss model %s has no numbers", l.Model)
	case l.P13+l.P14 > 1+slack:
		return fmt.Sprintf("p13 and p14 make %v: want at most 1", l.P13+l.P14)
	case l.P31+l.P32 > 1+slack:
		return fmt.Sprintf("p31 and p32 make %v: want at most 1", l.P31+l.P32)
	}
	return ""
}

type ratio struct {
	name  string
	value float64
}

func isRatio(v float64) bool { return v >= 0 && v <= 1 } // NaN is not

func allZero(ratios []ratio) bool {
	for _, r := range ratios {
		if r.value != 0 {
			return false
		}
	}
	return true
}

func checkRatios(ratios []ratio) string {
	for _, r := range ratios {
		if !isRatio(r.value) {
			return fmt.Sprintf("%s of the loss model is %v: want 0 to 1", r.name, r.value)
		}
	}
	return ""
}

func checkCorrelation(name string, c float64) string {
	switch {
	case !isRatio(c):
		return fmt.Sprintf("%s correlation is %v: want 0 to 1", name, c)
	case c == 1:
		return fmt.Sprintf("a %s correlation of 100 %% never changes: want less", name)
	}
	return ""
}
