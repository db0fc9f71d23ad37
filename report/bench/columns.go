package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"pelt/report/internal/words"
	"pelt/unit"
)

// HTMLOnly is the Drop of a column that a terminal never shows.
const HTMLOnly = 100

// Column is one figure of the table.
type Column struct {
	Key  string
	Head string
	Drop int // columns with the highest number go first when width is short; 0 stays
	// Says explains the head.
	Says  string
	Value func(Row) float64 // what it is sorted by, NaN if unknown
	Cell  func(Row) string  // "" where the row has no such figure, – where nobody measured it
}

// Columns are the figures in display order. Those that no row has are left out.
func (t Table) Columns() []Column {
	delay, roundTrip := 4, HTMLOnly
	if !slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Delay50.N > 0 }) {
		delay, roundTrip = HTMLOnly, 4
	}
	all := []Column{
		scaled("kpps", "kpps", 0, "thousand packets received per second; of TCP, segments, or connections set up", 1e3, func(r Row) Figure { return r.PPS }),
		scaled("goodput", "Mbit/s", 0, "payload that arrived", 1e6, func(r Row) Figure { return r.BPS }),
		{"range", "range", 9, "Mbit/s of the least and the best repeat", func(r Row) float64 { return (r.BPS.Max - r.BPS.Min) / r.BPS.Mean }, func(r Row) string { return rangeText(r.BPS) }},
		{"open", "open", 3, "connections at a time, at most", func(r Row) float64 { return r.Open.Mean }, func(r Row) string {
			if r.Open.N == 0 {
				return ""
			}
			return unit.FormatCount(uint64(r.Open.Mean))
		}},
		{"loss", "loss", 0, "share of the packets sent; of TCP, segments sent again", Row.LossRatio, lossText},
		time("delay", "delay", delay, "one way, median", func(r Row) Figure { return r.Delay50 }),
		time("p99", "p99", delay+1, "99 % were as fast one way, or faster", func(r Row) Figure { return r.Delay99 }),
		time("rtt", "RTT", roundTrip, "round trip, median", func(r Row) Figure { return r.RTT50 }),
		time("rtt99", "p99", roundTrip+1, "99 % of the round trips were as fast, or faster", func(r Row) Figure { return r.RTT99 }),
		cpu("usr", "usr", 3, "programs", 0),
		cpu("sys", "sys", 0, "the kernel on behalf of programs", 1),
		cpu("nic", "nic", 13, "programs with a nice value", 2),
		cpu("idle", "idle", 0, "nothing to do", 3),
		cpu("io", "io", 12, "waiting for storage", 4),
		cpu("irq", "irq", 11, "interrupts", 5),
		cpu("sirq", "sirq", 0, "soft interrupts: forwarding happens here", 6),
		percent("steal", "steal", 14, "taken by other guests of the machine it runs on", func(l *Load) float64 { return l.CPU.Steal }),
		{"busiest", "core", 2, "the busiest core, busy %", busiest, func(r Row) string { return percentText(r, busiest(r)) }},
		scaled("perpercent", "Mbit/%", 7, "Mbit/s for each percent of the processor that was busy", 1e6, func(r Row) Figure { return ofLoad(r, func(l *Load) Figure { return l.PerPercent }) }),
		time("packet", "/packet", 8, "the router's processor time for each packet", func(r Row) Figure { return ofLoad(r, func(l *Load) Figure { return l.PacketNanos }) }),
		count("dropped", "softnet drops", 15, "packets beyond the router's backlog, in a trial", func(l *Load) Figure { return l.Dropped }),
		count("squeezed", "squeezed", HTMLOnly, "times that the router left work for its next turn, in a trial", func(l *Load) Figure { return l.Squeezed }),
		count("connections", "connections", 16, "that the router tracked, at most", func(l *Load) Figure { return l.Connections }),
		{"clock", "clock", HTMLOnly, "of the slowest core", loadValue(func(l *Load) float64 { return l.ClockHz.Mean }), func(r Row) string {
			return shown(r, func(l *Load) Figure { return l.ClockHz }, func(v float64) string { return strconv.FormatFloat(v/1e6, 'f', 0, 64) + " MHz" })
		}},
		{"temperature", "hottest", 17, "place of the router, °C", loadValue(func(l *Load) float64 { return l.TemperatureC.Mean }), func(r Row) string {
			return shown(r, func(l *Load) Figure { return l.TemperatureC }, func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) + " °C" })
		}},
		{"trials", "trials", 18, "that the figures are of", func(r Row) float64 { return float64(len(r.Trials)) }, trialsText},
	}
	return slices.DeleteFunc(all, func(c Column) bool {
		if c.Key == "steal" { // none of a machine's own
			return !slices.ContainsFunc(t.Rows, func(r Row) bool { return c.Value(r) > 0 })
		}
		return !slices.ContainsFunc(t.Rows, func(r Row) bool { text := c.Cell(r); return text != "" && text != "–" })
	})
}

func ofLoad(r Row, get func(*Load) Figure) Figure {
	if r.Load == nil {
		return figure(nil)
	}
	return get(r.Load)
}

func loadValue(get func(*Load) float64) func(Row) float64 {
	return func(r Row) float64 {
		if r.Load == nil {
			return math.NaN()
		}
		return get(r.Load)
	}
}

func scaled(key, head string, drop int, says string, div float64, get func(Row) Figure) Column {
	return Column{key, head, drop, says, func(r Row) float64 { return get(r).Mean }, func(r Row) string {
		f := get(r)
		switch {
		case f.N > 0:
			return Digits(f.Mean / div)
		case r.PPS.N > 0:
			return ""
		}
		return "–"
	}}
}

func time(key, head string, drop int, says string, get func(Row) Figure) Column {
	return Column{key, head, drop, says, func(r Row) float64 { return get(r).Mean }, func(r Row) string {
		if f := get(r); f.N > 0 {
			return unit.FormatNanos(f.Mean)
		}
		return ""
	}}
}

func cpu(key, head string, drop int, says string, at int) Column {
	return percent(key, head, drop, "% of all cores: "+says, func(l *Load) float64 { return Split(l.CPU)[at] })
}

func percent(key, head string, drop int, says string, get func(*Load) float64) Column {
	value := loadValue(get)
	return Column{key, head, drop, says, value, func(r Row) string { return percentText(r, value(r)) }}
}

// percentText prints whole percent, as top does.
func percentText(r Row, ratio float64) string {
	switch {
	case r.Share:
		return ""
	case math.IsNaN(ratio) || math.IsInf(ratio, 0):
		return "–"
	}
	return strconv.FormatFloat(math.Abs(min(max(ratio, 0), 1)*100), 'f', 0, 64)
}

func busiest(r Row) float64 { return ofLoad(r, func(l *Load) Figure { return l.Busiest }).Mean }

func count(key, head string, drop int, says string, get func(*Load) Figure) Column {
	return Column{key, head, drop, says, loadValue(func(l *Load) float64 { return get(l).Mean }), func(r Row) string {
		return shown(r, get, func(v float64) string { return unit.FormatCount(uint64(max(0, min(v+0.5, 1e18)))) })
	}}
}

func shown(r Row, get func(*Load) Figure, form func(float64) string) string {
	if f := ofLoad(r, get); f.N > 0 {
		return form(f.Mean)
	}
	return ""
}

func lossText(r Row) string {
	if r.Attempted == 0 {
		return "–"
	}
	return unit.FormatRatio(r.LossRatio())
}

func rangeText(f Figure) string {
	if !f.Spread() {
		return ""
	}
	return Digits(f.Min/1e6) + ".." + Digits(f.Max/1e6)
}

func trialsText(r Row) string {
	if r.Unwatched > 0 && r.Watched > 0 {
		return fmt.Sprintf("%d, %d unseen", len(r.Trials), r.Unwatched)
	}
	return strconv.Itoa(len(r.Trials))
}

// Digits prints three significant digits without an exponent or a unit.
func Digits(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a == 0:
		return "0"
	}
	return words.Shorten(strconv.FormatFloat(v, 'f', 2, 64), 12)
}
