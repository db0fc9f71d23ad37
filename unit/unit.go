package unit

import (
	"fmt"
	"math"
	"strings"
)

// Unit is what a figure is counted in, as the names of figures end: receive_pps
// is in PPS. Figures are in base units; only Format scales them.
type Unit string

// The units of figures. Word is the unit of what is no number.
const (
	Word    Unit = ""
	PPS     Unit = "pps"
	BPS     Unit = "bps"
	Seconds Unit = "s"
	Nanos   Unit = "ns"
	Ratio   Unit = "ratio" // 0..1, printed as percent
	Bytes   Unit = "bytes"
	Count   Unit = "count"
	Hertz   Unit = "hz"    // of a clock; events a second are PerSecond
	Each    Unit = "per_s" // events a second
	Celsius Unit = "c"
	Index   Unit = "index" // a plain number
)

// UnitOf is the unit that a name ends with, Word if none.
func UnitOf(name string) Unit {
	for _, u := range []Unit{PPS, BPS, Each, Seconds, Nanos, Ratio, Bytes, Count, Hertz, Celsius, Index} {
		if strings.HasSuffix(name, "_"+string(u)) {
			return u
		}
	}
	return Word
}

// Format prints a value with its unit: 262000 of PPS is "262 kpps".
func (u Unit) Format(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case u == PPS:
		return FormatPPS(v)
	case u == BPS:
		return FormatBits(v)
	case u == Seconds && (math.Abs(v) >= 7200 || v != 0 && math.Mod(v, 3600) == 0):
		return significant(v/3600) + " h"
	case u == Seconds:
		return FormatNanos(v * 1e9)
	case u == Nanos:
		return FormatNanos(v)
	case u == Ratio:
		return FormatRatio(v)
	case u == Hertz:
		return human(v, []string{"Hz", "kHz", "MHz", "GHz"})
	case u == Celsius:
		return fmt.Sprintf("%.0f °C", v)
	case u == Bytes && math.Abs(v) < 1e5:
		return FormatSize(int(v))
	case u == Bytes:
		return count(v) + " B"
	case u == Each:
		return count(v) + "/s"
	}
	return count(v)
}

// count prints whole and large numbers in groups of digits, others with three digits.
func count(v float64) string {
	if a := math.Abs(v); a < 99.95 && a != math.Trunc(a) {
		return significant(v)
	}
	if v < 0 {
		return "-" + FormatCount(uint64(min(-v+0.5, 1e18)))
	}
	return FormatCount(uint64(min(v+0.5, 1e18)))
}
