package words

import (
	"strconv"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// Level says a number of a knob where the axis names the knob: "64", "12.5 %", "20 ms".
func Level(key string, v float64) string {
	if _, value, link := model.LinkKnobWords(key, model.Number(v)); link {
		return Name(value)
	}
	switch {
	case strings.HasSuffix(key, "_bytes"):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case strings.HasSuffix(key, "_pps"):
		return packets(v)
	case key == "interval_ns" && v == 0:
		return "unpaced"
	case strings.HasSuffix(key, "_ns"):
		return strings.Replace(unit.FormatNanos(v), ".0 ", " ", 1) // a level has no digits of doubt
	case strings.HasSuffix(key, "_ratio"):
		return unit.FormatRatio(v)
	}
	return model.Number(v).String()
}

// packets keeps the digits that somebody gave a rate: "12.345 kpps".
func packets(v float64) string {
	names := []string{"pps", "kpps", "Mpps", "Gpps"}
	i := 0
	for ; v >= 1000 && i < len(names)-1; i++ {
		v /= 1000
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + " " + names[i]
}
