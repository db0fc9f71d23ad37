package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/unit"
)

// words says a cell as people would: "1472 B every 5 ms with 4 streams".
func (s spot) words() string {
	var parts []string
	if s.payload > 0 {
		parts = append(parts, unit.FormatSize(s.payload))
	}
	for _, knob := range slices.SortedFunc(maps.Keys(s.cell), say.ByImportance) {
		text := say.Knob(knob, s.cell[knob])
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
	return say.And(names)
}

// speedText prints payload bits per second as bytes: "11.7 MiB/s".
func speedText(bps float64) string { return say.Bytes(bps/8) + "/s" }

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

// lostText says a share of lost packets: "5.0 % lost".
func lostText(ratio float64) string {
	switch {
	case ratio <= 0:
		return "nothing lost"
	case ratio < 0.001:
		return say.Share(ratio) + " lost"
	}
	return onePercent(ratio) + " lost"
}

// only belittles a share, which "less than 0.001 %" already does.
func only(share string) string {
	if strings.HasPrefix(share, "less than ") {
		return share
	}
	return "only " + share
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
