package unit

import (
	"math"
	"strings"
)

// Exact prints a value that was set, not measured: "1.5 Mpps", without zeros at its end.
func (u Unit) Exact(v float64) string {
	number, name, named := strings.Cut(u.Format(v), " ")
	if strings.Contains(number, ".") && !strings.ContainsAny(number, "e") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if named {
		return number + " " + name
	}
	return number
}

// Between prints an interval and says its unit once: "390–410 kpps"; "" if both ends print alike.
func (u Unit) Between(low, high float64) string {
	a, b := u.Format(low), u.Format(high)
	if a == b {
		return ""
	}
	return Bare(a, b) + "–" + b
}

// Change prints how far two figures are apart: "+12 %", "30 times", and in points "+0.4
// points". change is the first over the second less one, or their difference in points.
func Change(change float64, points bool) string {
	sign := "+"
	if change < 0 {
		sign = "-"
	}
	switch size := math.Abs(change); {
	case math.IsNaN(change):
		return ""
	case points:
		return sign + strings.TrimSuffix(Ratio.Format(size), " %") + " points"
	case math.IsInf(change, 0):
		return "from 0"
	case size > 0.999 && size < 1 && change > 0:
		return "+100 %"
	case size > 0.999 && size < 1: // and not all of it
		return "-99.9 %"
	case change >= 1:
		return count(1+change) + " times"
	default:
		return sign + Ratio.Format(size)
	}
}
