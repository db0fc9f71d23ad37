package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// FormatPPS prints packets per second in human units with three significant digits: "262 kpps", "1.49 Mpps".
func FormatPPS(pps float64) string {
	return rate(pps, []string{"pps", "kpps", "Mpps", "Gpps"})
}

// FormatBits prints bits per second: "935 Mbit/s", "1.20 Gbit/s".
func FormatBits(bps float64) string {
	return rate(bps, []string{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"})
}

// FormatNanos prints a time span given in nanoseconds: "12.3 µs".
func FormatNanos(ns float64) string {
	if ns == 0 {
		return "0 s"
	}
	if a := math.Abs(ns); a >= 999.5e6 && !math.IsInf(ns, 0) {
		return significant(ns/1e9) + " s"
	}
	return human(ns, []string{"ns", "µs", "ms"})
}

// Duration is a time that was set, as a flag takes it: "10ms", "6m40s", "7d".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	for _, end := range []string{"m0s", "h0m"} {
		if whole, ok := strings.CutSuffix(text, end); ok {
			text = whole + end[:1]
		}
	}
	return text
}

// FormatDuration prints a time that was set: "10 ms", "6 min 40 s", "7 d".
func FormatDuration(d time.Duration) string {
	var out strings.Builder
	letter := false
	for i, r := range Duration(d) {
		if unicode.IsLetter(r) != letter && i > 0 {
			out.WriteByte(' ')
		}
		letter = unicode.IsLetter(r)
		out.WriteRune(r)
	}
	words := strings.Fields(out.String())
	for i, word := range words {
		if word == "m" {
			words[i] = "min"
		}
	}
	return strings.Join(words, " ")
}

// FormatMoment prints a time since a start to the second: "80 s", "14 h 24 min 5 s".
func FormatMoment(seconds float64) string {
	whole := int64(math.Round(max(0, min(seconds, 1e12))))
	if math.IsNaN(seconds) {
		return "–"
	}
	if whole < 600 {
		return fmt.Sprintf("%d s", whole)
	}
	var words []string
	for _, p := range []struct {
		seconds int64
		name    string
	}{{3600, "h"}, {60, "min"}, {1, "s"}} {
		if n := whole / p.seconds; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, p.name))
			whole -= n * p.seconds
		}
	}
	return strings.Join(words, " ")
}

// FormatEstimate prints a time that is known roughly: "40 s", "2 min 40 s", "3 h 20 min", "2 days 3 h".
func FormatEstimate(seconds float64) string {
	step := 1.0
	for _, s := range []struct{ from, step float64 }{{20, 5}, {60, 10}, {600, 60}, {7200, 600}, {172800, 3600}} {
		if seconds >= s.from {
			step = s.step
		}
	}
	whole := int(max(1, math.Round(min(seconds, 1e9)/step)*step))
	days, hours, minutes := whole/86400, whole/3600%24, whole/60%60
	text := func(a int, first string, b int, second string) string {
		if b == 0 {
			return fmt.Sprintf("%d %s", a, first)
		}
		return fmt.Sprintf("%d %s %d %s", a, first, b, second)
	}
	switch {
	case days > 1:
		return text(days, "days", hours, "h")
	case whole >= 3600:
		return text(whole/3600, "h", minutes, "min")
	case whole >= 60:
		return text(minutes, "min", whole%60, "s")
	}
	return fmt.Sprintf("%d s", whole)
}

// FormatRatio prints a share as percent with enough digits to tell it from 0
// and from 1: "0 %", "0.0031 %", "3.1 %", "99.95 %".
func FormatRatio(ratio float64) string {
	p := ratio * 100
	switch {
	case math.IsNaN(p), math.IsInf(p, 0):
		return "–"
	case p == 0, p == 100:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	case p < 100 && 100-p < 0.0009999:
		return ">99.999 %"
	case p > 99.9 && p < 100: // rounded down, with one digit of what is missing
		scale := math.Pow(10, math.Ceil(-math.Log10(100-p)))
		return strconv.FormatFloat(math.Floor(p*scale)/scale, 'f', -1, 64) + " %"
	case p < 0.001 && p > 0:
		return "<0.001 %"
	}
	return strconv.FormatFloat(p, 'g', 2+max(0, int(math.Floor(math.Log10(math.Abs(p))))), 64) + " %"
}

// FormatNamed prints a value in the unit that the name of its metric ends with: 262000
// of receive_pps is "262 kpps". ok is false of any other end.
func FormatNamed(metric string, v float64) (text string, ok bool) {
	switch u := UnitOf("_" + metric); u {
	case PPS, BPS, Nanos, Seconds:
		return u.Format(v), true
	case Ratio:
		return fmt.Sprintf("%.0f %%", 100*v), true
	}
	return "", false
}

// Bare is a printed value without its unit where another one after it has the same, or
// where it is 0: "262" before "148 kpps".
func Bare(value, next string) string {
	if a, b := strings.Fields(value), strings.Fields(next); len(a) == 2 && len(b) == 2 &&
		(a[1] == b[1] || a[0] == "0") {
		return a[0]
	}
	return value
}

// FormatCount prints a whole number with thin groups: "287 920 000".
func FormatCount(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// FormatSize prints bytes exactly: "1472 B".
func FormatSize(n int) string { return fmt.Sprintf("%d B", n) }

// rate prints a measured rate: "5.00 kpps", as "4.98 kpps" beside it. One that was set is for Exact or Rate.
func rate(v float64, names []string) string {
	number, name, _ := strings.Cut(human(v, names), " ")
	if math.Abs(v) >= 999.5 && len(strings.TrimPrefix(number, "-")) == 1 {
		number += ".00"
	}
	return strings.TrimSpace(number + " " + name)
}

func human(v float64, names []string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	i := 0
	// 999.5 would print as "1000" of the smaller unit.
	for math.Abs(v) >= 999.5 && i < len(names)-1 {
		v /= 1000
		i++
	}
	return significant(v) + " " + names[i]
}

func significant(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a == math.Trunc(a):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a < 0.01: // one packet an hour is not none
		return strconv.FormatFloat(v, 'g', 2, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}
