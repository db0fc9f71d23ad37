// Package words says parts of a document in plain language for every report:
// what ran and where, a cell, a loss and its causes.
//
// Names and errors from outside come in and go out safe for one line of a
// terminal or of a picture. It lays nothing out.
package words

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"pelt/model"
	"pelt/report/rows"
	"pelt/unit"
)

// Plain makes outside text safe on one line of a terminal: no control
// characters, no escape sequences, no reversal of direction.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return '·'
		}
		return r
	}, strings.ToValidUTF8(s, "·"))
}

// Name is outside text that is a name: plain and short.
func Name(s string) string { return Shorten(Plain(s), 40) }

// Setting says what tells a curve's cell from others of one flow: "both at once,
// 4 streams"; "" for a flow alone in its own direction.
func Setting(flow string, rest model.Cell) string {
	rest = maps.Clone(rest)
	var parts []string
	if d := rest["direction"].Text; d != "" {
		delete(rest, "direction")
		if d == "both" {
			parts = append(parts, "both at once")
		} else if d != flow {
			parts = append(parts, Name(d))
		}
	}
	if len(rest) > 0 {
		parts = append(parts, Cell(rest))
	}
	return strings.Join(parts, ", ")
}

// Curve names one curve among others: "up, both at once".
func Curve(t rows.Table, flow string, rest model.Cell) string {
	text := Shorten(Setting(flow, rest), 60)
	if len(t.Flows) < 2 && text != "" {
		return text
	}
	return strings.TrimSuffix(Name(flow)+", "+text, ", ")
}

// Knob says one knob setting: "150 kpps", "4 streams", "down".
func Knob(key string, v model.Value) string {
	if what, value, link := model.LinkKnobWords(key, v); link {
		return Name(what + " " + value)
	}
	if v.Text != "" {
		switch key {
		case "direction", "variant":
			return Name(v.Text)
		case "protocol":
			return strings.ToUpper(Name(v.Text))
		}
		return Name(strings.TrimSuffix(key, "_pps") + " " + v.Text)
	}
	switch {
	case key == "payload_bytes":
		return unit.FormatSize(int(v.Number))
	case key == "frame_bytes":
		return unit.FormatSize(int(v.Number)) + " frames"
	case strings.HasSuffix(key, "_pps"):
		return unit.FormatPPS(v.Number)
	case key == "interval_ns" && v.Number == 0:
		return "unpaced"
	case key == "interval_ns":
		return "every " + unit.FormatNanos(v.Number)
	case strings.HasSuffix(key, "_ns"):
		return Plain(strings.TrimSuffix(key, "_ns")) + " " + unit.FormatNanos(v.Number)
	case strings.HasSuffix(key, "_ratio"):
		return Plain(strings.TrimSuffix(key, "_ratio")) + " " + unit.FormatRatio(v.Number)
	case strings.HasSuffix(key, "_bytes"):
		return knobWords(key) + " " + v.String() + " B"
	case key == "streams" && v.Number == 1:
		return "1 stream"
	}
	return v.String() + " " + Plain(key)
}

// Cell says a cell: "64 B, 4 streams".
func Cell(c model.Cell) string {
	if len(c) == 0 {
		return "the only setting"
	}
	keys := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		return strings.Compare(sizesFirst(a), sizesFirst(b))
	})
	var words []string
	for _, k := range keys {
		words = append(words, Knob(k, c[k]))
	}
	return strings.Join(words, ", ")
}

func sizesFirst(key string) string {
	if key == "payload_bytes" || key == "frame_bytes" {
		return " " + key
	}
	return key
}

// Seconds prints a length of time given in seconds: "10 s", "500 ms", "2 h".
func Seconds(s float64) string {
	if !(s >= 0 && s <= math.MaxFloat64) {
		return "–"
	}
	whole := s == math.Trunc(s)
	switch {
	case whole && math.Mod(s, 3600) == 0 && s > 0:
		return fmt.Sprintf("%.0f h", s/3600)
	case whole && math.Mod(s, 60) == 0 && s > 0:
		return fmt.Sprintf("%.0f min", s/60)
	case whole && s < 120:
		return fmt.Sprintf("%.0f s", s)
	case s < 120:
		return unit.FormatNanos(s * 1e9)
	}
	return time.Duration(min(s, 1e9) * 1e9).Round(time.Second).String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Shorten cuts s to width characters, the last one an ellipsis.
func Shorten(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// PerSecond prints a count per second: "158 k/s".
func PerSecond(n float64) string { return strings.TrimSuffix(unit.FormatPPS(n), "pps") + "/s" }

// Bytes prints a length exactly where three digits can: "640 MB", "64 MiB".
func Bytes(n uint64) string {
	for _, u := range []struct {
		name string
		size uint64
	}{{"TB", 1e12}, {"GB", 1e9}, {"GiB", 1 << 30}, {"MB", 1e6}, {"MiB", 1 << 20}, {"kB", 1e3}, {"KiB", 1 << 10}} {
		if n >= u.size && (n%u.size == 0 || n%(u.size/10) == 0 && u.size%10 == 0) {
			return strconv.FormatFloat(float64(n)/float64(u.size), 'f', -1, 64) + " " + u.name
		}
	}
	return unit.FormatCount(n) + " B"
}
