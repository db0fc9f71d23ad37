// Package say puts settings and amounts into the words of a sentence.
//
// Values come in, words go out. It judges nothing and lays nothing out.
package say

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// ByImportance orders knobs: it puts what paces a flow before all else.
func ByImportance(a, b string) int {
	place := func(knob string) int {
		if i := slices.Index([]string{"interval_ns", "rate_pps", "streams", "receivers"}, knob); i >= 0 {
			return i
		}
		return 4
	}
	if d := place(a) - place(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// Knob says one setting as it follows the size: "every 5 ms", "with 4 streams"; ""
// for the size itself, which stands first.
func Knob(knob string, v model.Value) string {
	switch {
	case knob == "payload_bytes", knob == "frame_bytes":
		return "" // the payload stands first
	case knob == "interval_ns" && v.Text == "" && v.Number == 0, knob == "rate_pps" && v.Text == "max":
		return "without pauses"
	case knob == "interval_ns" && v.Text == "":
		return "every " + Level(unit.FormatNanos(v.Number))
	case knob == "rate_pps" && v.Text == "":
		return "at " + Level(unit.FormatPPS(v.Number))
	case knob == "streams" && v.Text == "", knob == "receivers" && v.Text == "":
		if v.Number == 1 {
			knob = strings.TrimSuffix(knob, "s")
		}
		return "with " + v.String() + " " + knob
	case knob == "receive_buffer_bytes" && v.Text == "", knob == "send_buffer_bytes" && v.Text == "":
		what := "with a " + strings.TrimSuffix(knob, "_buffer_bytes") + " buffer of "
		if v.Number == 0 {
			return what + "the usual size"
		}
		return what + Bytes(v.Number)
	case knob == "direction" && v.Text == "both":
		return "both ways at once"
	case knob == "direction":
		return v.Text
	case knob == "control":
		return "with " + v.Text
	case knob == "loss_ratio" && v.Text == "":
		return "on links that lose " + unit.FormatRatio(v.Number)
	}
	if what, value, link := model.LinkKnobWords(knob, v); link {
		return "with " + what + " " + value
	}
	return "with " + knob + "=" + v.String()
}

// Share prints a ratio as it stands within a sentence: "3.1 %", "less than 0.001 %".
func Share(ratio float64) string {
	return strings.Replace(unit.FormatRatio(ratio), "<", "less than ", 1)
}

// Level is a figure that was set, so that it has no digits of doubt: "12 ms".
func Level(text string) string { return strings.Replace(text, ".0 ", " ", 1) }

// Bytes prints bytes with three digits: "256 KiB".
func Bytes(n float64) string {
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n >= 999.5 && i < len(names)-1 {
		n, i = n/1024, i+1
	}
	if n == float64(int(n)) {
		return fmt.Sprintf("%.0f %s", n, names[i])
	}
	digits := 2
	switch {
	case n >= 99.95:
		digits = 0
	case n >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + " " + names[i]
}

// And joins words as a sentence does.
func And(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}
