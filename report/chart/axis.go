package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
)

// axis is the range and the ticks of one axis.
type axis struct {
	label    string
	min, max float64
	log      bool
	ticks    []plot.Tick
}

// largest bounds what an axis shows: nothing real is beyond, and the
// arithmetic of drawing stays finite.
const largest = 1e15

// upward is an axis from 0 whose ticks have the unit of the highest: names are
// those of 1, 1000, 1 000 000, ...
func upward(label string, highest float64, names []string) axis {
	if !(highest > 0) {
		highest = 1
	}
	highest = min(highest, largest) * 1.06
	step := math.Pow(10, math.Floor(math.Log10(highest/4)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if step*m >= highest/5 {
			step *= m
			break
		}
	}
	div, name := 1.0, names[0]
	for i := 1; i < len(names) && highest >= div*1000; i++ {
		div, name = div*1000, names[i]
	}
	a := axis{label: label, max: highest}
	for i := 0; float64(i)*step <= highest; i++ {
		v := float64(i) * step
		text := strconv.FormatFloat(v/div, 'g', 6, 64)
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: text + " " + name})
	}
	a.ticks[0].Label = "0"
	return a
}

// across is the axis of what varies, with a tick at each value really measured.
func across(key string, values []float64) axis {
	slices.Sort(values)
	values = slices.Compact(values)
	low, high := values[0], values[len(values)-1]
	a := axis{label: axisLabel(key), log: low > 0 && (key == rows.PayloadKey || high/low >= 20)}
	position := func(v float64) float64 { return v }
	if a.log {
		a.min, a.max = low/1.25, high*1.25
		position = math.Log
	} else {
		pad := max((high-low)*0.06, math.Abs(high)*0.02, 1e-9)
		a.min, a.max = low-pad, high+pad
		if low >= 0 {
			a.min = max(0, a.min)
		}
	}
	// 560 pt of panel, 10 pt type: about 5.6 pt a character and a blank between labels.
	room := func(label string) float64 {
		return (float64(len(label))*5.6 + 6) / 560 * (position(a.max) - position(a.min))
	}
	last := math.Inf(-1)
	end := level(key, high)
	for i, v := range values {
		label := level(key, v)
		half := room(label) / 2
		if i < len(values)-1 && (position(v)-half < last || position(v)+half > position(high)-room(end)/2) {
			label = "" // its neighbours leave no room: the tick stays
		} else {
			last = position(v) + half
		}
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: label})
	}
	return a
}

func level(key string, v float64) string {
	if strings.HasSuffix(key, "_bytes") {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	text := words.Knob(key, model.Number(v))
	if rest, ok := strings.CutSuffix(text, " "+key); ok {
		return rest
	}
	return text
}

func axisLabel(key string) string {
	switch key {
	case rows.PayloadKey:
		return "payload (B, log scale)"
	case "rate_pps":
		return "offered rate"
	case "interval_ns":
		return "time between packets"
	}
	return words.Name(strings.ReplaceAll(key, "_", " "))
}

// overSeconds is the axis of a trial's time.
func overSeconds(end float64) axis {
	a := upward("seconds", end, []string{""})
	a.max = end
	for i := range a.ticks {
		a.ticks[i].Label = strings.TrimSpace(a.ticks[i].Label)
	}
	return a
}
