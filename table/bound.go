package table

import (
	"math"
	"strconv"
	"strings"

	"pelt/words"
)

// Bound is what a comparison must not show: a change of a metric below or above a
// share, or a number of points for a metric in points.
type Bound struct {
	Text    string    // as asked for, without extra spaces
	Metrics []*Metric // that the limit's word names; see Named
	below   bool
	change  float64 // a ratio
}

// ParseBound reads "goodput < -5%" and the like. Its error says what was typed, and what to type.
func ParseBound(text string) (Bound, error) {
	wrong := func(format string, args ...any) (Bound, error) {
		return Bound{}, words.Errorf("%q: %w", text, words.Errorf(format, args...))
	}
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return wrong("want METRIC < or > PERCENT, as 'goodput < -5%%'")
	}
	l := Bound{Text: strings.Join(strings.Fields(text), " "), Metrics: Named(text[:at]), below: text[at] == '<'}
	if len(l.Metrics) == 0 {
		return wrong("no metric %q; want one of %s", strings.TrimSpace(text[:at]), strings.Join(Words(), ", "))
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(text[at+1:]), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case !percent || err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return wrong("want a number of percent after %c, as 'goodput < -5%%'", text[at])
	case l.below && v > 0 || !l.below && v < 0:
		return wrong("would fail where nothing changed; want a number below 0 after <, above 0 after >")
	case v <= -100:
		return wrong("nothing falls by 100 %% or more; want a number above -100%%")
	}
	l.change = v / 100
	return l, nil
}

type Outcome string

const (
	Passed    Outcome = "passed"         // no change that is likely reaches the limit
	Failed    Outcome = "failed"         // a change beyond chance is beyond the limit
	Undecided Outcome = "cannot-be-told" // the change, or its interval, reaches beyond the limit
	// NotMeasured is of a figure that one side should have and lacks.
	NotMeasured Outcome = "not-measured"
)

// Judge tells what an effect of one of the limit's metrics means for it.
func (l Bound) Judge(e Effect) Outcome {
	switch {
	case e.Proven() && l.broken(e.Change):
		return Failed
	case math.IsNaN(e.Low) || math.IsNaN(e.High) || l.broken(e.Change) || l.broken(e.Low) || l.broken(e.High):
		return Undecided
	}
	return Passed
}

func (l Bound) broken(change float64) bool {
	if l.below {
		return change < l.change
	}
	return change > l.change
}
