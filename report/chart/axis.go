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

// largest and smallest bound the top of what an axis shows: nothing real is beyond,
// and the arithmetic of drawing stays finite, and steps between ticks above 0.
const (
	largest  = 1e15
	smallest = 1e-15
)

// upward is an axis from 0 with about four ticks; names are the units of 1,
// 1000, 1 000 000, ...
func upward(label string, highest float64, names []string) axis {
	if !(highest > smallest) {
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
	a := axis{label: label, max: highest}
	for i := 0; float64(i)*step <= highest; i++ {
		v := float64(i) * step
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: tickLabel(v, names)})
	}
	a.ticks[0].Label = "0"
	return a
}

func tickLabel(v float64, names []string) string {
	i := 0
	for ; v >= 1000 && i < len(names)-1; i++ {
		v /= 1000
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + " " + names[i]
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
	end := words.Level(key, high)
	for i, v := range values {
		label := words.Level(key, v)
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

func axisLabel(key string) string {
	if what, _, link := model.LinkKnobWords(key, model.Value{}); link {
		return words.Name(what)
	}
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

// overSeconds is the axis of a trial's time; a long one counts minutes or hours.
func overSeconds(end float64) axis {
	a, div := axis{label: "seconds", max: end}, 1.0
	switch {
	case end > 4*3600:
		a.label, div = "hours", 3600
	case end > 10*60:
		a.label, div = "minutes", 60
	}
	step := 10.0
	for _, s := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60} {
		if step = s; end/div/step <= 8 {
			break
		}
	}
	for end/div/step > 8 {
		step *= 2
	}
	for i := 0; float64(i)*step*div <= end; i++ {
		v := float64(i) * step
		a.ticks = append(a.ticks, plot.Tick{Value: v * div, Label: strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return a
}
