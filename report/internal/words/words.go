// Package words says parts of a document in plain language for every report:
// what ran and where, a cell, a loss and its causes.
//
// Names and errors from outside come in and go out safe for one line of a
// terminal or of a picture. It lays nothing out.
package words

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
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

// Layer says a ledger layer in words a home user understands; the order
// is that of travel.
func Layer(layer string) string {
	words := map[string]string{
		"send-call":        "refused by the sender's kernel",
		"sender-qdisc":     "dropped in the sender's queue",
		"sender-device":    "dropped by the sender's network card",
		"network":          "on the way",
		"receiver-ring":    "receiver's network card ring full",
		"receiver-xdp":     "dropped by an XDP program at the receiver",
		"receiver-tc":      "dropped by tc at the receiver",
		"receiver-backlog": "receiver's CPU backlog full",
		"receiver-filter":  "dropped by the receiver's firewall",
		"receiver-ip":      "dropped by the receiver's IP layer",
		"receiver-udp":     "dropped by the receiver's UDP layer",
		"receiver-memory":  "receiver's UDP memory limit reached",
		"receiver-buffer":  "receiver socket buffer full",
		"application":      "lost inside the receiving program",
		"unattributed":     "unattributed",
	}
	if w, ok := words[layer]; ok {
		return w
	}
	return Name(layer)
}

// Line says one ledger line: "receiver socket buffer full (SOCKET_RCVBUFF)".
func Line(l model.Line) string {
	s := Layer(l.Layer)
	if l.Layer == "network" && l.Host == "" {
		s += " between the hosts"
	}
	if l.Host != "" && l.Host != model.Sender && l.Host != model.Receiver && l.Host != l.Layer {
		s += " at " + Name(l.Host)
	}
	if l.Cause != "" {
		s += " (" + Name(l.Cause) + ")"
	}
	return s
}

// Part is one share of a row's loss.
type Part struct {
	Words      string
	Layer      string
	Packets    uint64
	Ratio      float64 // of the attempted packets
	Confidence string
}

// LossParts splits what a row lost, largest first, unattributed last.
func LossParts(r rows.Row) []Part {
	var parts []Part
	if r.Attempted == 0 {
		return nil
	}
	ratio := func(n uint64) float64 { return float64(n) / float64(r.Attempted) }
	for _, l := range r.Ledger.Lines {
		if l.Packets > 0 {
			parts = append(parts, Part{Line(l), l.Layer, l.Packets, ratio(l.Packets), Plain(l.Confidence)})
		}
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Packets, a.Packets) })
	if u := r.Ledger.Unattributed; u > 0 {
		words := "unattributed"
		if r.TCP != nil {
			words = "sent again by TCP"
		}
		parts = append(parts, Part{words, "unattributed", u, ratio(u), ""})
	}
	return parts
}

// Loss is "3.1 % lost: 2.6 % receiver socket buffer full (SOCKET_RCVBUFF),
// 0.5 % unattributed"; "" when nothing was lost.
func Loss(r rows.Row) string {
	if r.Ledger.Lost == 0 || r.Attempted == 0 {
		return ""
	}
	if r.TCP != nil {
		return fmt.Sprintf("%s of the segments sent again", unit.FormatRatio(float64(r.Ledger.Lost)/float64(r.Attempted)))
	}
	text := unit.FormatRatio(float64(r.Ledger.Lost)/float64(r.Attempted)) + " lost"
	parts := LossParts(r)
	if len(parts) == 1 {
		return text + ", all " + parts[0].Words
	}
	var words []string
	for _, p := range parts {
		words = append(words, unit.FormatRatio(p.Ratio)+" "+p.Words)
	}
	return strings.TrimSuffix(text+": "+strings.Join(words, ", "), ": ")
}

// Missed is "0.06 % of the schedule missed"; "" when all of it was kept.
func Missed(r rows.Row) string {
	if missed := r.MissedRatio(); missed > 0 && r.TCP == nil {
		return unit.FormatRatio(missed) + " of the schedule missed"
	}
	return ""
}

// Below is what stands below a row: its loss, and what its sender missed.
func Below(r rows.Row) string {
	return strings.Trim(Loss(r)+"; "+Missed(r), "; ")
}

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
	if v.Text != "" {
		if key == "direction" {
			return Plain(v.Text)
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
	case key == "interval_ns":
		return "every " + unit.FormatNanos(v.Number)
	case strings.HasSuffix(key, "_ns"):
		return Plain(strings.TrimSuffix(key, "_ns")) + " " + unit.FormatNanos(v.Number)
	case strings.HasSuffix(key, "_ratio"):
		return Plain(strings.TrimSuffix(key, "_ratio")) + " " + unit.FormatRatio(v.Number)
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
