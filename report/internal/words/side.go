package words

import (
	"math"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/rows"
	"pelt/unit"
)

// Side names one side of a grid, with its unit, and each of its levels.
func Side(s rows.Side) (name string, levels []string) {
	if s.Key == "" {
		return "", make([]string, len(s.Levels))
	}
	div := 1.0
	what, _, link := model.LinkKnobWords(s.Key, model.Value{})
	switch {
	case link:
		name = Name(what)
	case s.Key == rows.PayloadKey:
		name = "payload (B)"
	case s.Key == "rate_pps":
		name = "offered rate"
	case strings.HasSuffix(s.Key, "_ns"):
		var times string
		div, times = timeUnit(s)
		name = knobWords(s.Key) + " (" + times + ")"
	case strings.HasSuffix(s.Key, "_bytes"):
		name = knobWords(s.Key) + " (B)"
	default:
		name = knobWords(s.Key)
	}
	for _, v := range s.Levels {
		text := v.String()
		_, value, link := model.LinkKnobWords(s.Key, v)
		switch {
		case link:
			text = Plain(value)
		case v.Text != "":
			text = Plain(v.Text)
		case strings.HasSuffix(s.Key, "_pps"):
			text = unit.FormatPPS(v.Number)
		case strings.HasSuffix(s.Key, "_ratio"):
			text = unit.FormatRatio(v.Number)
		case strings.HasSuffix(s.Key, "_ns"):
			text = strconv.FormatFloat(v.Number/div, 'g', 6, 64)
		}
		levels = append(levels, Shorten(text, 14))
	}
	return name, levels
}

// knobWords is a knob without the unit in its name: "receive buffer".
func knobWords(key string) string {
	for _, suffix := range []string{"_pps", "_ns", "_ratio", "_bytes"} {
		key = strings.TrimSuffix(key, suffix)
	}
	return Name(strings.ReplaceAll(key, "_", " "))
}

// timeUnit is the largest unit in which no level but 0 is a fraction.
func timeUnit(s rows.Side) (div float64, name string) {
	least := math.Inf(1)
	for _, v := range s.Levels {
		if v.Text == "" && v.Number > 0 {
			least = min(least, v.Number)
		}
	}
	switch {
	case math.IsInf(least, 0) || least >= 1e6 && least < 1e9:
		return 1e6, "ms"
	case least >= 1e9:
		return 1e9, "s"
	case least >= 1e3:
		return 1e3, "µs"
	}
	return 1, "ns"
}
