package controls

import (
	"math"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

// HTMLOnly is the Drop of a column that a terminal never shows.
const HTMLOnly = 100

// IntervalHead is above the interval of the column before.
const IntervalHead = "interval"

// Column is one figure of the table of cells.
type Column struct {
	Head string
	Drop int    // columns with the highest number go first when width is short; 0 stays
	Says string // explains the head
	Cell func(*Cell) string
}

// Columns are the figures in display order. Those that no cell has are left out.
func (t Table) Columns() []Column {
	est := func(head string, drop int, says string, get func(model.ControlCell) *model.Estimate, format func(float64) string, scale func(float64) float64) []Column {
		return []Column{
			{head, drop, says, func(c *Cell) string { return middle(get(c.Of), format) }},
			{IntervalHead, HTMLOnly, "that holds the median with 95 % confidence", func(c *Cell) string { return within95(get(c.Of), scale) }},
		}
	}
	percent := func(float64) float64 { return 0.01 }
	var all []Column
	if !t.Metric.Completion {
		all = append(all, est("time", 8, "from the transfer's begin to its end", func(c model.ControlCell) *model.Estimate { return c.Completion }, Seconds, scaleSeconds)...)
	}
	all = append(all, est("goodput", 0, "payload that arrived per second", func(c model.ControlCell) *model.Estimate { return c.Goodput }, unit.FormatBits, scaleBits)...)
	all = append(all, est("resent", 0, "data segments that were sent again, of all", func(c model.ControlCell) *model.Estimate { return c.Resent }, unit.FormatRatio, percent)...)
	all = append(all, est("RTT", 5, "round trip of a thin flow of UDP beside the transfer, median", func(c model.ControlCell) *model.Estimate { return c.RTT50 }, Seconds, scaleSeconds)...)
	all = append(all, est("p95", 1, "95 % of these round trips were as fast, or faster", func(c model.ControlCell) *model.Estimate { return c.RTT95 }, Seconds, scaleSeconds)...)
	all = append(all,
		Column{"queueing", 4, "how much that is above the path's shortest round trip", func(c *Cell) string { return middle(c.Of.Standing, Seconds) }},
		Column{"limited", 6, "share of the time in which TCP was held by the peer's window or its own buffer, not by the control", func(c *Cell) string { return middle(c.Of.Limited, unit.FormatRatio) }},
		Column{"Mathis", 7, "goodput, of what the model of Mathis et al. has a Reno sender carry", func(c *Cell) string { return c.mathis() }},
		Column{"trials", 2, "valid ones; of how many, where some were not", func(c *Cell) string { return c.trials() }},
		Column{"cut", 3, "of the valid ones: their time was over before all bytes were there", func(c *Cell) string {
			if c.Of.Unfinished == 0 {
				return ""
			}
			return strconv.Itoa(c.Of.Unfinished)
		}})
	var kept []Column
	for _, col := range all {
		if t.any(func(c *Cell) bool { text := col.Cell(c); return text != "" && text != "–" }) {
			kept = append(kept, col)
		}
	}
	return kept
}

func (t Table) any(f func(*Cell) bool) bool {
	for i := range t.Conditions {
		for j := range t.Conditions[i].Cells {
			if f(&t.Conditions[i].Cells[j]) {
				return true
			}
		}
	}
	return false
}

func middle(e *model.Estimate, format func(float64) string) string {
	if e == nil || !finite(e.Median) {
		return "–"
	}
	if e.Bound {
		return ">" + format(e.Median)
	}
	return format(e.Median)
}

func within95(e *model.Estimate, scale func(float64) float64) string {
	if e == nil {
		return ""
	}
	div := scale(e.Median)
	return interval(e, func(v float64) string { return digits(v / div) })
}

// mathis: of other controls than Reno the document has none.
func (c *Cell) mathis() string {
	m := c.Of.Mathis
	switch {
	case m == nil:
		return ""
	case m.Above != "" || !finite(m.Ratio):
		return "–"
	}
	return digits(m.Ratio) + "×"
}

// Mathis says a cell's check against the model in a sentence; "" without one.
func (c *Cell) Mathis(condition string) string {
	m := c.Of.Mathis
	if m == nil {
		return ""
	}
	text := "at " + unit.FormatRatio(m.LossRatio) + " loss, " + Seconds(m.RTTSeconds) + " and segments of " + unit.FormatSize(m.SegmentBytes) + " it has Reno carry " + unit.FormatBits(m.PredictedBPS)
	switch {
	case m.Above != "":
		text += "; it does not bind here: " + words.Plain(m.Above)
	case finite(m.Ratio):
		text += "; measured was " + digits(m.Ratio) + " times that"
	}
	if condition != "" {
		return condition + ": " + text
	}
	return text
}

// Mix is how the streams of one cell shared the path.
type Mix struct {
	Condition, Control string
	Jain, Interval     string // Jain's index of the streams' goodputs
	Shares             []Share
	Steady             string // how long until the shares stood still
}

// Share is one control's part of the goodput; NaN if nobody knows.
type Share struct {
	Control  int    // place among those of the mix
	Name     string // safe to print
	Ratio    float64
	Interval string
}

// Text is "cubic 31 %".
func (s Share) Text() string { return s.Name + " " + unit.FormatRatio(s.Ratio) }

// Mixes are the cells whose streams compete, by condition.
func (t Table) Mixes() []Mix {
	var out []Mix
	for _, c := range t.Conditions {
		for _, x := range c.Cells {
			if x.Of.Jain == nil && len(x.Of.Shares) == 0 {
				continue
			}
			m := Mix{Condition: c.Name, Control: t.Controls[x.Control].Name, Steady: middle(x.Of.Converged, steady), Jain: "–"}
			if e := x.Of.Jain; e != nil && finite(e.Median) {
				m.Jain, m.Interval = digits(e.Median), interval(e, digits)
			}
			m.Shares = shares(x.Of)
			out = append(out, m)
		}
	}
	return out
}

// steady is a time until the shares stood still.
func steady(s float64) string {
	if s == 0 {
		return "0 s"
	}
	return Seconds(s)
}

// shares are in the order of the mix's name.
func shares(c model.ControlCell) []Share {
	var out []Share
	seen := map[string]bool{}
	for _, name := range strings.Split(c.Control, model.MixSeparator) {
		e := c.Shares[name]
		if seen[name] || len(c.Shares) == 0 {
			continue
		}
		seen[name] = true
		s := Share{Control: len(out), Name: words.Name(name), Ratio: math.NaN()}
		if e != nil {
			s.Ratio = e.Median
			s.Interval = interval(e, func(v float64) string { return digits(v * 100) })
		}
		out = append(out, s)
	}
	return out
}
