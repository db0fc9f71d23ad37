package controls

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// numberText prints a number with so many significant digits, and all of those before
// the point that are left, as zeros: "0.71", "5.4", "54", "1200".
func numberText(v float64, digits int) string {
	if v == 0 || !finite(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	place := func(v float64) int { return int(math.Floor(math.Log10(math.Abs(v)))) - digits + 1 }
	scale := math.Pow(10, float64(place(v)))
	if rounded := math.Round(v/scale) * scale; finite(rounded) && rounded != 0 {
		return strconv.FormatFloat(rounded, 'f', max(0, -place(rounded)), 64)
	}
	return strconv.FormatFloat(v, 'g', digits, 64)
}

// timesText prints how many times as much: near once with two digits after the
// point, so that 0.98 is not 1.
func timesText(v float64) string {
	switch {
	case v > 999999: // the baseline carried nothing
		return "over a million"
	case v < 0.095:
		return numberText(v, 1)
	case v < 1.495:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v < 99.5:
		return numberText(v, 2)
	}
	return numberText(v, 3)
}

// atLeast prints a lower bound of how many times as much, never more than it is.
func atLeast(v float64) string {
	digits := 3
	if v >= 1.495 && v < 99.5 {
		digits = 2
	}
	return "at least " + timesText(floored(v, digits))
}

// floored cuts a number to so many significant digits.
func floored(v float64, digits int) float64 {
	if !(v > 0) || !finite(v) {
		return v
	}
	scale := math.Pow(10, math.Floor(math.Log10(v))-float64(digits-1))
	if f := math.Floor(v/scale+1e-9) * scale; f > 0 && finite(f) {
		return f
	}
	return v
}

// secondsText prints seconds as a number and its unit, with so many digits.
func secondsText(s float64, digits int) (number, name string) {
	if s != 0 && s < 0.0995 {
		return numberText(s*1000, digits), "ms"
	}
	return numberText(s, digits), "s"
}

func bitsText(bps float64, _ int) (number, name string) {
	number, name, _ = strings.Cut(unit.FormatBits(bps), " ")
	return number, name
}

// ranged prints a figure and its interval: "0.71 s (0.69 to 0.74)", with as few digits,
// two or three, as tell the three apart.
func ranged(e model.Estimate, form func(float64, int) (number, name string)) string {
	for digits := 2; ; digits++ {
		mid, name := form(e.Median, digits)
		low, lowName := form(e.Low, digits)
		high, highName := form(e.High, digits)
		alike := low == mid && lowName == name || high == mid && highName == name
		switch {
		case digits < 3 && alike && e.Low < e.High:
			continue
		case low == high && lowName == highName:
			return mid + " " + name
		}
		if lowName != name || highName != name {
			low, high = low+" "+lowName, high+" "+highName
		}
		return fmt.Sprintf("%s %s (%s to %s)", mid, name, low, high)
	}
}

// tookText is what a control's transfers took: "0.71 s (0.69 to 0.74)", or more than a
// time if most were cut.
func tookText(c model.ControlCell) string {
	e := *c.Completion
	if !e.Bound {
		text := ranged(e, secondsText)
		if c.Unfinished > 0 {
			text += fmt.Sprintf("; %d of %s cut", c.Unfinished, trialsText(len(e.Values)))
		}
		return text
	}
	number, name := secondsText(floored(e.Median, 3), 3)
	ended := "none"
	if n := len(e.Values) - c.Unfinished; n > 0 {
		ended = strconv.Itoa(n)
	}
	return fmt.Sprintf("more than %s %s (%s of %s ended)", number, name, ended, trialsText(len(e.Values)))
}

func trialsText(n int) string {
	if n == 1 {
		return "1 trial"
	}
	return fmt.Sprintf("%d trials", n)
}

// figureText is a control's figure in a sentence: "takes 0.71 s (0.69 to 0.74)".
func figureText(t *model.ControlTable, c *model.ControlCell, verb bool) string {
	switch e := compared(t, c); {
	case e == nil:
		return "has no valid trial"
	case t.Metric == byCompletion && verb:
		return "takes " + tookText(*c)
	case t.Metric == byCompletion:
		return tookText(*c)
	case verb:
		return "carries " + ranged(*e, bitsText)
	default:
		return ranged(*e, bitsText)
	}
}
