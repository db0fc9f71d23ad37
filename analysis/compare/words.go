package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

// where says a cell and a flow as people would: "64 B up", "TCP both, down" of both
// directions at once.
func where(c model.Cell, flow string, protocol model.Protocol) string {
	var parts []string
	if c["protocol"].Text == string(model.TCP) || protocol == model.TCP {
		parts = append(parts, "TCP")
	}
	if v, ok := c["payload_bytes"]; ok {
		parts = append(parts, v.String()+" B")
	}
	if v, ok := c["frame_bytes"]; ok {
		parts = append(parts, v.String()+" B frames")
	}
	for _, k := range slices.SortedFunc(maps.Keys(c), say.ByImportance) {
		if k == "protocol" || k == "direction" {
			continue
		}
		if text := say.Knob(k, c[k]); text != "" {
			parts = append(parts, text)
		}
	}
	both := c["direction"].Text == "both"
	switch {
	case flow != "" && both:
		parts = append(parts, "both, "+flow)
	case flow != "":
		parts = append(parts, flow)
	case both:
		parts = append(parts, "both")
	case c["direction"].Text != "":
		parts = append(parts, c["direction"].Text)
	}
	if len(parts) == 0 {
		return "the only setting"
	}
	return strings.Join(parts, " ")
}

// atPlace is where, as it follows a comparison: " at 64 B up", " up".
func atPlace(e model.Effect) string {
	if e.Where == e.Flow {
		return " " + e.Where
	}
	return " at " + e.Where
}

// metricWords names a metric in a sentence.
func metricWords(name string) string {
	switch name {
	case "receive_pps":
		return "packets per second"
	case "goodput_bps":
		return "goodput"
	case "loss_ratio":
		return "loss"
	case "delay_p50_ns":
		return "median delay"
	case "delay_p99_ns":
		return "99 % delay"
	case "round_trip_p50_ns":
		return "median round trip"
	case "round_trip_p99_ns":
		return "99 % round trip"
	case "router_cpu_busy_ratio":
		return "router CPU"
	case "router_cpu_softirq_ratio":
		return "router softirq"
	}
	return "goodput per percent of CPU"
}

// digits prints a number of percent or points as precisely as anybody reads it.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 9.95:
		return strconv.FormatFloat(a, 'f', 0, 64)
	case a >= 0.095:
		return strconv.FormatFloat(a, 'f', 1, 64)
	}
	return strconv.FormatFloat(a, 'g', 1, 64)
}

func percent(x float64) string { return digits(x*100) + " %" }

func points(x float64) string {
	if d := digits(x * 100); d != "1" && d != "1.0" {
		return d + " points"
	}
	return "1 point"
}

// doubled is from when on a growth is told in times.
const doubled = 1.0

func timesText(change float64) string {
	if 1+change >= 99.5 {
		return strconv.FormatFloat(1+change, 'f', 0, 64)
	}
	return strconv.FormatFloat(1+change, 'f', 1, 64)
}

// amount says a change with the words for less and for more: "78 % less", "4.5 times as much".
func amount(e model.Effect, less, more, as string) string {
	switch {
	case e.Kind == model.Points && e.Change < 0:
		return points(e.Change) + " " + less
	case e.Kind == model.Points:
		return points(e.Change) + " " + more
	case e.Change >= doubled:
		return timesText(e.Change) + " times as " + as
	case e.Change < 0:
		return percent(e.Change) + " " + less
	}
	return percent(e.Change) + " " + more
}

// interval says the ends of an interval that lies on one side of nothing.
func interval(e model.Effect, less, more string) string {
	if e.Low < 0 && e.High > 0 {
		return "from " + changeText(e.Kind, e.Low) + " to " + changeText(e.Kind, e.High)
	}
	if e.Kind == model.Relative && e.Change >= doubled {
		return span(1+e.Low, 1+e.High, func(x float64) string { return timesText(x - 1) }) + " times"
	}
	a, b := math.Abs(e.Low)*100, math.Abs(e.High)*100
	word := more
	if e.Change < 0 {
		a, b, word = b, a, less
	}
	unit := " % "
	if e.Kind == model.Points {
		unit = " points "
	}
	return span(a, b, digits) + unit + word
}

// span prints two ends, with more digits than usual where these do not tell them apart.
func span(a, b float64, usual func(float64) string) string {
	if x, y := usual(a), usual(b); x != y {
		return x + " to " + y
	}
	x, y := strconv.FormatFloat(a, 'f', 2, 64), strconv.FormatFloat(b, 'f', 2, 64)
	if x == y {
		return usual(a)
	}
	return x + " to " + y
}

// changeText prints a change with its sign: "−78 %", "+12 pt".
func changeText(kind string, x float64) string {
	sign := "+"
	if x < 0 {
		sign = "−"
	}
	switch {
	case kind == model.Points:
		return sign + digits(x*100) + " pt"
	case x >= 10:
		return "×" + timesText(x)
	}
	return sign + percent(x)
}

// values says what was measured on both sides: "148 against 673 kpps".
func valuesText(e model.Effect) string {
	a, b := figureText(e.Metric, e.Other.Mean), figureText(e.Metric, e.Baseline.Mean)
	number, scale, _ := strings.Cut(a, " ")
	if strings.HasSuffix(b, " "+scale) {
		a = number
	}
	return a + " against " + b
}

// figureText prints a metric's value with its unit.
func figureText(name string, v float64) string {
	switch {
	case strings.HasSuffix(name, "_pps"):
		return unit.FormatPPS(v)
	case strings.HasSuffix(name, "_bps"):
		return unit.FormatBits(v)
	case strings.HasSuffix(name, "_ns"):
		return unit.FormatNanos(v)
	}
	if v > 0 && v < 0.0001 {
		return unit.FormatRatio(v)
	}
	return strconv.FormatFloat(v*100, 'f', 1, 64) + " %"
}

// clause says a change without its subject; at is where it was measured. base is ""
// where it was named before, and then figures are left out.
func clause(e model.Effect, base, at string) string {
	less, more := "less", "more"
	if strings.HasSuffix(e.Metric, "_ns") {
		less, more = "shorter", "longer"
	}
	said := func(noun, as string) string {
		text := amount(e, less, more, as) + noun
		switch {
		case base == "":
			return text
		case e.Kind == model.Relative && e.Change >= doubled:
			return text + " as " + base + at
		}
		return text + " than " + base + at
	}
	var text string
	switch e.Metric {
	case "receive_pps", "goodput_bps":
		text = "carries " + said("", "much")
	case "loss_ratio":
		text = "loses " + said("", "")
	case "router_cpu_busy_ratio":
		text = "takes " + said(" CPU", "")
	case "router_cpu_softirq_ratio":
		text = "spends " + said(" in softirq", "")
	case "goodput_per_cpu_percent_bps":
		text = "carries, per percent of CPU, " + said("", "much")
	default:
		text = "has a " + metricWords(e.Metric) + " " + said("", "long")
	}
	if base == "" {
		return text
	}
	return text + " (" + valuesText(e) + "; 95 %: " + interval(e, less, more) + ")"
}

// effectText says one effect as a sentence.
func effectText(sides []model.ComparedSide, e model.Effect) string {
	base, name := sides[0].Name, sides[e.Side].Name
	at := atPlace(e)
	if e.Separable {
		return name + " " + clause(e, base, at) + "."
	}
	text := fmt.Sprintf("%s and %s cannot be told apart in %s%s (%s): up to %s could hide%s.",
		name, base, metricWords(e.Metric), at, valuesText(e), hidden(e), neededText(e))
	return text
}

func hidden(e model.Effect) string {
	if e.Kind == model.Points {
		return points(e.Hidden)
	}
	if e.Hidden >= 10 {
		return timesText(e.Hidden) + " times as much"
	}
	return percent(e.Hidden)
}

// wantedText is what needed repeats are for.
func wantedText(e model.Effect) string {
	if e.Kind == model.Points {
		return "5 points"
	}
	return "5 %"
}

func neededText(e model.Effect) string {
	switch {
	case e.Needed > mostNeeded:
		return "; no sensible number of repeats would show " + wantedText(e)
	case e.Needed > 0:
		return fmt.Sprintf("; about %d repeats would show %s", e.Needed, wantedText(e))
	}
	return "; " + wantedText(e) + " would have shown"
}
