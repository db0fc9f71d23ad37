package controls

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

// Metric is the figure that controls are compared by.
type Metric struct {
	Completion bool // seconds, the less the better; else bit/s
	seconds    bool // no time is so short that it wants another unit
}

// leastSecond is the shortest time that is well read in seconds.
const leastSecond = 0.1

func newMetric(t model.ControlTable) Metric {
	m := Metric{Completion: t.Metric != "goodput_bps", seconds: true}
	for _, c := range t.Cells {
		if e := c.Completion; e != nil && e.Median < leastSecond {
			m.seconds = false
		}
	}
	return m
}

// Name is "completion time" or "goodput".
func (m Metric) Name() string {
	if m.Completion {
		return "completion time"
	}
	return "goodput"
}

// Better says which side of an axis is good.
func (m Metric) Better() string {
	if m.Completion {
		return "further left is faster"
	}
	return "further right is faster"
}

// Format prints one value.
func (m Metric) Format(v float64) string {
	switch {
	case !finite(v):
		return "–"
	case !m.Completion:
		return unit.FormatBits(v)
	case m.seconds:
		return digits(v) + " s"
	}
	return Seconds(v)
}

// Seconds prints a time given in seconds: "41.2 ms".
func Seconds(s float64) string { return unit.FormatNanos(s * 1e9) }

// scale is what one of the unit is that a value is printed in.
func (m Metric) scale(v float64) float64 {
	switch {
	case m.Completion && m.seconds:
		return 1
	case m.Completion:
		return scaleSeconds(v)
	}
	return scaleBits(v)
}

func scaleSeconds(v float64) float64 {
	div := 1.0
	for v = math.Abs(v); v*1e9 < 999.5e6 && div > 1e-9 && v > 0; v *= 1000 {
		div /= 1000
	}
	return div
}

func scaleBits(v float64) float64 {
	div := 1.0
	for v = math.Abs(v); v >= 999.5 && div < 1e12; v /= 1000 {
		div *= 1000
	}
	return div
}

// Middle is the cell's median: "5.40 s", "> 60.0 s" where it is a lower bound.
func (c *Cell) Middle() string {
	e := c.Estimate()
	if e == nil || !finite(e.Median) {
		return "–"
	}
	if e.Bound {
		return "> " + c.Metric.Format(e.Median)
	}
	return c.Metric.Format(e.Median)
}

// Interval is the one of the median in its unit: "5.10..5.90"; an end that trials
// cut short hold is "> 60.0". "" without one.
func (c *Cell) Interval() string {
	e := c.Estimate()
	if e == nil {
		return ""
	}
	div := c.Metric.scale(e.Median)
	return interval(e, func(v float64) string {
		if c.bound(v) {
			return ">" + digits(v/div)
		}
		return digits(v / div)
	})
}

// bound: at least one trial that was cut is not above v, or v is above all that ended, as
// the mean of one of these and a cut one may be.
func (c *Cell) bound(v float64) bool {
	cut, most := false, 0.0
	for _, t := range c.Trials {
		if !t.Bound {
			most = max(most, t.Value)
			continue
		}
		if cut = true; t.Value <= v {
			return true
		}
	}
	return cut && v > most
}

func interval(e *model.Estimate, format func(float64) string) string {
	if !finite(e.Low) || !finite(e.High) || !(e.High > e.Low) {
		return ""
	}
	return format(e.Low) + ".." + format(e.High)
}

// Speed is the ratio to the baseline: "7.8×", "=" where the two are not separable,
// "" where nothing was compared.
func (c *Cell) Speed() string {
	switch {
	case c.Contrast == nil || !finite(c.Contrast.Ratio):
		return ""
	case !c.Contrast.Separable:
		return "="
	}
	return c.sign() + digits(c.Contrast.Ratio) + "×"
}

// SpeedInterval is the one of the ratio: "6.91..8.72"; "" where the ratio is a bound,
// for then the interval holds the bound only.
func (c *Cell) SpeedInterval() string {
	x := c.Contrast
	if x == nil || c.sign() != "" {
		return ""
	}
	return interval(&model.Estimate{Low: x.Low, High: x.High}, digits)
}

// sign says on which side the true ratio is where one of the two was cut short.
func (c *Cell) sign() string {
	own, other := c.cutShort(), c.Against != nil && c.Against.cutShort()
	switch {
	case own && other:
		return "~"
	case other:
		return ">"
	case own:
		return "<"
	}
	return ""
}

func (c *Cell) cutShort() bool { e := c.Estimate(); return e != nil && e.Bound }

// trials says how many there are: "10", "9 of 12" with invalid ones.
func (c *Cell) trials() string {
	text := strconv.Itoa(c.Of.Valid)
	if c.Of.Invalid > 0 {
		text += " of " + strconv.Itoa(c.Of.Valid+c.Of.Invalid)
	}
	return text
}

// Key says what the marks of the matrix mean.
func (t Table) Key() string {
	var parts []string
	has := func(f func(*Cell) bool) bool {
		return slices.ContainsFunc(t.Conditions, func(c Condition) bool {
			return slices.ContainsFunc(c.Cells, func(x Cell) bool { return f(&x) })
		})
	}
	if has(func(c *Cell) bool { return c.Interval() != "" }) {
		text := "Medians of the valid trials, with their 95 % intervals"
		if has(func(c *Cell) bool { e := c.Estimate(); return e != nil && len(e.Values) > 1 && len(e.Values) < 5 }) {
			text += ", or their range where they are fewer than 5"
		}
		parts = append(parts, text+".")
	}
	if has(func(c *Cell) bool { return c.Contrast != nil }) {
		parts = append(parts, fmt.Sprintf("×: speed against %s.", t.Baseline))
	}
	if has(func(c *Cell) bool { return c.Speed() == "=" }) {
		parts = append(parts, fmt.Sprintf("=: not separable from %s with these trials.", t.Baseline))
	}
	if has(func(c *Cell) bool { return strings.HasPrefix(c.Speed(), "~") }) {
		parts = append(parts, "~: told apart by how many trials ended, for most of both were cut.")
	}
	switch {
	case has(func(c *Cell) bool { return strings.HasPrefix(c.Speed(), "<") }):
		parts = append(parts, ">: at least, <: at most, for trials were cut before all bytes were there.")
	case has(func(c *Cell) bool { return strings.ContainsAny(c.Middle()+c.Interval()+c.Speed(), ">") }):
		parts = append(parts, ">: at least, for trials were cut before all bytes were there.")
	}
	return strings.Join(parts, " ")
}

// Title names the matrix: "Completion time of 640 MB".
func Title(doc model.Document, t Table) string {
	name := t.Metric.Name()
	name = strings.ToUpper(name[:1]) + name[1:]
	if len(doc.Plan.Flows) == 0 || !t.Metric.Completion {
		return name
	}
	f := doc.Plan.Flows[0]
	switch {
	case f.Commands != nil:
		name += " of the client"
	case f.Bytes > 0:
		name += " of " + words.Bytes(f.Bytes)
	}
	if f.HTTP {
		name += " over HTTP"
	}
	return name
}

// ConditionOf names a trial's condition; "" if it has none of the table's.
func ConditionOf(doc model.Document, r model.Result) string {
	for _, c := range doc.Control.Conditions {
		if within(c.Cell, r.Cell) {
			return words.Plain(c.Text)
		}
	}
	return ""
}

// TrialName is one trial in words: "bbr, 1 % loss, trial 3".
func TrialName(doc model.Document, r model.Result) string {
	parts := []string{words.Name(controlOf(doc, r)), words.Name(ConditionOf(doc, r))}
	if doc.Plan.Design.Repeats > 1 || r.Repeat > 0 {
		parts = append(parts, "trial "+strconv.Itoa(r.Repeat+1))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// digits prints three significant digits without an exponent.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a < 0.0995 && a > 0:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
