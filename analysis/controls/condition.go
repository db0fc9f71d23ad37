package controls

import (
	"maps"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
)

// conditionText says a condition as people do: "1 % loss", "no loss, 20 ms delay
// with 4 streams"; "" where nothing varies.
func conditionText(under model.Cell) string {
	var link, rest []string
	for _, knob := range slices.SortedFunc(maps.Keys(under), say.ByImportance) {
		v := under[knob]
		if text, ok := linkText(knob, v); ok {
			link = append(link, text)
			continue
		}
		text := say.Knob(knob, v)
		if text == "" {
			text = "with writes of " + v.String() + " B"
		}
		if more, with := strings.CutPrefix(text, "with "); with && slices.ContainsFunc(rest, func(s string) bool { return strings.HasPrefix(s, "with ") }) {
			text = "and " + more
		}
		rest = append(rest, text)
	}
	return strings.TrimSpace(say.And(link) + " " + strings.Join(rest, " "))
}

// linkText says one setting of a lab's links: "1 % loss", "no delay".
func linkText(knob string, v model.Value) (text string, ok bool) {
	what, value, ok := model.LinkKnobWords(knob, v)
	if !ok {
		return "", false
	}
	where, what, _ := strings.Cut(what, " ")
	switch none := v.Text == "" && v.Number == 0 || v.Text == model.Nothing; {
	case what == "rate" && none:
		text = "no limit of the rate"
	case what == "queue" && none:
		text = "the usual queue"
	case what == "queue":
		text = "a queue of " + value
	case none:
		text = "no " + what
	default:
		text = value + " " + what
	}
	if node := strings.TrimPrefix(where, "link-"); node != where {
		text += " at " + node
	}
	return text, true
}

// ofLinks says whether a condition's text begins with a link's setting.
func ofLinks(under model.Cell) bool {
	for knob := range under {
		if _, _, link := model.SplitLinkKnob(knob); link {
			return true
		}
	}
	return false
}

// Under is what a sentence speaks of, at its end: " at 1 % loss"; "" where nothing
// varies.
func Under(s model.ControlSetting) string {
	switch {
	case s.Text == "":
		return ""
	case ofLinks(s.Cell):
		return " at " + s.Text
	}
	return " " + s.Text
}

// Opening is the same at the begin of one: "At 1 % loss ".
func Opening(s model.ControlSetting) string {
	text := strings.TrimSpace(Under(s))
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + " "
}
