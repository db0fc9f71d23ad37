package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
)

// Limit is what a comparison must not show: a change of a metric below or above a
// number of percent, or of points for a ratio.
type Limit struct {
	text   string
	word   string
	below  bool
	change float64 // a ratio
}

// limitWords are the metrics that a limit may name.
func limitWords() []string {
	var words []string
	for _, m := range metrics() {
		if !slices.Contains(words, m.word) {
			words = append(words, m.word)
		}
	}
	return words
}

// ParseLimit reads "goodput < -5%": relative for rates and delays, points for loss, cpu
// and softirq. An *AskError says what would be right.
func ParseLimit(text string) (Limit, error) {
	wrong := func(format string, args ...any) (Limit, error) {
		return Limit{}, &AskError{fmt.Sprintf("%q: ", text) + fmt.Sprintf(format, args...)}
	}
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return wrong("want METRIC < or > PERCENT, as 'goodput < -5%%'")
	}
	l := Limit{text: strings.Join(strings.Fields(text), " "), word: strings.TrimSpace(text[:at]), below: text[at] == '<'}
	if !slices.Contains(limitWords(), l.word) {
		return wrong("no metric %q; want one of %s", l.word, strings.Join(limitWords(), ", "))
	}
	number, ok := strings.CutSuffix(strings.TrimSpace(text[at+1:]), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return wrong("want a number of percent after %c, as 'goodput < -5%%'", text[at])
	}
	if l.below && v > 0 || !l.below && v < 0 {
		return wrong("would hold where nothing changed; want a number below 0 after <, above 0 after >")
	}
	if v <= -100 {
		return wrong("nothing falls by 100 %% or more; want a number above -100%%")
	}
	l.change = v / 100
	return l, nil
}

// Of reports whether the metrics have what the limit needs.
func (l Limit) Of(metrics Metrics) bool { return slices.Contains(metrics, l.word) }

// Word is the limit's metric.
func (l Limit) Word() string { return l.word }

func (l Limit) breaks(change float64) bool {
	if l.below {
		return change < l.change
	}
	return change > l.change
}

// Judge says what became of each limit: failed where a separable effect breaks it,
// told of each effect; passed where no interval reaches beyond it; else it cannot be
// told. A limit on what was not measured is missing, at each place where it was to be.
func Judge(c model.Comparison, limits []Limit) []model.JudgedLimit {
	list := []model.JudgedLimit{}
	for _, l := range limits {
		seen := false
		before := len(list)
		for _, e := range c.Effects {
			if findMetric(e.Metric).word != l.word {
				continue
			}
			seen = true
			switch {
			case e.Separable && l.breaks(e.Change):
				list = append(list, model.JudgedLimit{Limit: l.text, State: model.LimitFailed, Text: e.Text})
			case l.breaks(e.Change) || l.breaks(e.Low) || l.breaks(e.High):
				list = append(list, model.JudgedLimit{Limit: l.text, State: model.LimitUntold, Text: untold(c, e)})
			}
		}
		for _, u := range c.Uncompared {
			if findMetric(u.Metric).word != l.word {
				continue
			}
			state := model.LimitMissing
			if u.Measured {
				state = model.LimitUntold
			}
			list = append(list, model.JudgedLimit{Limit: l.text, State: state, Text: u.Text})
		}
		switch {
		case !seen && len(list) == before:
			list = append(list, model.JudgedLimit{Limit: l.text, State: model.LimitMissing, Text: "nothing of it was measured often enough on both sides"})
		case len(list) == before:
			list = append(list, model.JudgedLimit{Limit: l.text, State: model.LimitPassed, Text: "no change reaches it"})
		}
	}
	return list
}

func untold(c model.Comparison, e model.Effect) string {
	return fmt.Sprintf("%s against %s%s: %s (95 %%: %s to %s)", c.Sides[e.Side].Name, c.Sides[0].Name, atPlace(e),
		changeText(e.Kind, e.Change), changeText(e.Kind, e.Low), changeText(e.Kind, e.High))
}
