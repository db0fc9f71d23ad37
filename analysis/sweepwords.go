package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// words says a cell as people would: "1472 B every 5 ms with 4 streams".
func (s spot) words() string {
	var parts []string
	if s.payload > 0 {
		parts = append(parts, unit.FormatSize(s.payload))
	}
	for _, knob := range slices.SortedFunc(maps.Keys(s.cell), byImportance) {
		text := knobWords(knob, s.cell[knob])
		if text == "" {
			continue
		}
		if more, with := strings.CutPrefix(text, "with "); with && len(parts) > 0 && (strings.HasPrefix(parts[len(parts)-1], "with ") || strings.HasPrefix(parts[len(parts)-1], "and ")) {
			text = "and " + more
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// byImportance puts what paces a flow before all else.
func byImportance(a, b string) int {
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

func knobWords(knob string, v model.Value) string {
	switch {
	case knob == "payload_bytes", knob == "frame_bytes":
		return "" // the payload stands first
	case knob == "interval_ns" && v.Text == "" && v.Number == 0, knob == "rate_pps" && v.Text == "max":
		return "without pauses"
	case knob == "interval_ns" && v.Text == "":
		return "every " + level(unit.FormatNanos(v.Number))
	case knob == "rate_pps" && v.Text == "":
		return "at " + level(unit.FormatPPS(v.Number))
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
		return what + byteText(v.Number)
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

// level is a figure that was set, so that it has no digits of doubt: "12 ms".
func level(text string) string { return strings.Replace(text, ".0 ", " ", 1) }

// values are the cell's numbers, and the payload whatever it was set by.
func (s spot) values() map[string]float64 {
	values := map[string]float64{}
	for knob, v := range s.cell {
		if v.Text == "" {
			values[knob] = v.Number
		}
	}
	if s.payload > 0 {
		values["payload_bytes"] = float64(s.payload)
	}
	return values
}

// listed names up to three spots, and how many there are besides.
func listed(all []spot) string {
	var names []string
	for _, s := range all {
		names = append(names, s.words())
	}
	if len(names) > 3 {
		names = append(names[:2:2], fmt.Sprintf("%d more", len(names)-2))
	}
	return and(names)
}

// speedText prints payload bits per second as bytes: "11.7 MiB/s".
func speedText(bps float64) string { return byteText(bps/8) + "/s" }

// speedRange prints two speeds, the unit once where it is the same.
func speedRange(low, high float64) string {
	a, b := speedText(low), speedText(high)
	number, scale, _ := strings.Cut(a, " ")
	switch {
	case a == b:
		return a
	case strings.HasSuffix(b, " "+scale):
		return number + " to " + b
	}
	return a + " to " + b
}

// byteText prints bytes with three digits: "256 KiB".
func byteText(n float64) string {
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

// lostText says a share of lost packets: "5.0 % lost".
func lostText(ratio float64) string {
	switch {
	case ratio <= 0:
		return "nothing lost"
	case ratio < 0.001:
		return unit.FormatRatio(ratio) + " lost"
	}
	return onePercent(ratio) + " lost"
}

// onePercent prints a share with one digit after the point, as losses that are
// compared need it.
func onePercent(ratio float64) string { return fmt.Sprintf("%.1f %%", ratio*100) }

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
