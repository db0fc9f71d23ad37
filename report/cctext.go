package report

import (
	"fmt"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/controls"
	"pelt/report/internal/words"
)

// controls writes a comparison of congestion controls: the matrix, each cell's
// other figures, and how competing streams shared.
func (s *screen) controls(doc model.Document) {
	t := controls.Fold(doc)
	s.line("", "")
	s.wrap(styleBold, "", controls.Title(doc, t))
	if !s.controlMatrix(t) {
		s.controlList(t)
	}
	s.wrap(styleDim, "", t.Key())
	s.controlVerdicts(doc, t)
	s.controlFigures(t)
	s.controlMixes(t)
	listOf(s, styleDim, "What the figures rest on", t.Of.Notes, func(t string) string { return t })
}

// controlMatrix writes conditions down and controls across, two lines each:
// figures, then the speed against the baseline. false if it has no room.
func (s *screen) controlMatrix(t controls.Table) bool {
	fields := []field{{left: true}}
	for _, c := range t.Controls {
		fields = append(fields, field{head: c.Name, left: true})
	}
	var second []bool // lines below another
	for _, c := range t.Conditions {
		fields[0].cells = append(fields[0].cells, c.Name, "")
		second = append(second, false, true)
		for i := range c.Cells {
			x := &c.Cells[i]
			fields[i+1].cells = append(fields[i+1].cells, controlFigure(x), controlSpeed(x))
		}
	}
	used := -2
	for _, f := range fields {
		used += f.width() + 2
	}
	if used > s.width {
		return false
	}
	s.line(styleDim, lay(fields, func(f field) string { return f.head }, "  "))
	for n, below := range second {
		text := lay(fields, func(f field) string { return f.cells[n] }, "  ")
		if !below || strings.TrimSpace(text) != "" {
			s.line("", text)
		}
	}
	return true
}

func controlFigure(x *controls.Cell) string {
	if text := x.Interval(); text != "" {
		return x.Middle() + " (" + text + ")"
	}
	return x.Middle()
}

func controlSpeed(x *controls.Cell) string {
	text := x.Speed()
	if r := x.SpeedInterval(); text != "" && text != "=" && r != "" {
		text += " (" + r + ")"
	}
	return text
}

// controlList writes a line for each control under each condition.
func (s *screen) controlList(t controls.Table) {
	fields := []field{{left: true}, {head: t.Metric.Name()}, {head: "interval", left: true, drop: 1}, {head: "speed"}, {head: "interval", left: true, drop: 2}}
	for _, c := range t.Conditions {
		for i := range c.Cells {
			x := &c.Cells[i]
			for n, text := range []string{words.Shorten(t.Controls[x.Control].Name, 24), x.Middle(), x.Interval(), x.Speed(), ""} {
				fields[n].cells = append(fields[n].cells, text)
			}
			if speed := x.Speed(); speed != "" && speed != "=" {
				fields[4].cells[len(fields[4].cells)-1] = x.SpeedInterval()
			}
		}
	}
	if t.Metric.Completion {
		fields[1].head = "time"
	}
	s.byCondition(t, fields)
}

// byCondition writes a table whose rows are the cells, below their conditions.
func (s *screen) byCondition(t controls.Table, fields []field) {
	indent := ""
	if len(t.Conditions) > 1 || t.Conditions[0].Name != "" {
		indent = "  "
	}
	fields = fit(fields, s.width-len(indent))
	gap, used := " ", -1
	for _, f := range fields {
		used += f.width() + 1
	}
	if used+len(fields)-1 <= s.width-len(indent) {
		gap = "  "
	}
	s.line(styleDim, indent+lay(fields, func(f field) string { return f.head }, gap))
	n := 0
	for _, c := range t.Conditions {
		if indent != "" {
			s.line(styleBold, words.Shorten(c.Name, s.width))
		}
		for range c.Cells {
			s.line("", indent+lay(fields, func(f field) string { return f.cells[n] }, gap))
			n++
		}
	}
}

// controlVerdicts writes what the controls did under each condition, where no
// finding says it already.
func (s *screen) controlVerdicts(doc model.Document, t controls.Table) {
	first := true
	for _, c := range t.Conditions {
		if c.Verdict == "" || found(doc, c.Verdict) {
			continue
		}
		if first {
			s.line("", "")
			first = false
		}
		s.wrap("", "", c.Verdict)
	}
}

// found reports whether a finding says a sentence already, or more than it.
func found(doc model.Document, sentence string) bool {
	return slices.ContainsFunc(doc.Findings, func(f model.Finding) bool { return strings.HasPrefix(words.Plain(f.Text), sentence) })
}

// controlFigures writes what else is known of each cell.
func (s *screen) controlFigures(t controls.Table) {
	columns := t.Columns()
	if len(columns) == 0 {
		return
	}
	fields := []field{{left: true}}
	for _, c := range t.Conditions {
		for i := range c.Cells {
			fields[0].cells = append(fields[0].cells, words.Shorten(t.Controls[c.Cells[i].Control].Name, 24))
		}
	}
	for _, col := range columns {
		if col.Drop >= controls.HTMLOnly {
			continue
		}
		f := field{head: col.Head, drop: col.Drop}
		for _, c := range t.Conditions {
			for i := range c.Cells {
				f.cells = append(f.cells, words.Shorten(col.Cell(&c.Cells[i]), 24))
			}
		}
		fields = append(fields, f)
	}
	s.line("", "")
	s.line(styleBold, "Cell by cell")
	s.byCondition(t, fields)
	s.wrap(styleDim, "", controlKey(fit(fields, s.width-2)))
}

// controlKey explains the heads that are shown.
func controlKey(shown []field) string {
	says := map[string]string{
		"resent": "resent: data segments sent again, of all", "RTT": "RTT and p95: of a thin flow of UDP beside the transfer", "p95": "",
		"queueing": "queueing: its p95 above the path's shortest", "limited": "limited: time held by a window or buffer, not by the control",
		"Mathis": "Mathis: goodput, of what that model has Reno carry", "cut": "cut: trials whose time was over first",
	}
	var parts []string
	rtt := false
	for _, f := range shown {
		rtt = rtt || f.head == "RTT"
		if f.head == "p95" && !rtt {
			parts = append(parts, "p95: round trips of a thin flow of UDP beside the transfer")
		} else if text := says[f.head]; text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, "; ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// controlMixes writes how streams of different controls shared the path.
func (s *screen) controlMixes(t controls.Table) {
	mixes := t.Mixes()
	if len(mixes) == 0 {
		return
	}
	fields := []field{{head: "streams of", left: true}, {left: true}, {head: "Jain"}, {head: "interval", left: true, drop: 2}, {head: "shares", left: true}, {head: "steady after", drop: 1}}
	for _, m := range mixes {
		var parts []string
		for _, p := range m.Shares {
			parts = append(parts, p.Text())
		}
		for n, text := range []string{words.Shorten(m.Control, 24), words.Shorten(m.Condition, 24), m.Jain, m.Interval, words.Shorten(strings.Join(parts, ", "), 48), m.Steady} {
			fields[n].cells = append(fields[n].cells, text)
		}
	}
	fields = fit(fields, s.width)
	wide := -1
	for _, f := range fields {
		wide += f.width() + 1
	}
	s.line("", "")
	s.line(styleBold, "Streams that compete")
	if wide > s.width {
		for _, m := range mixes {
			s.wrap("", "  ", mixSentence(m))
		}
	} else {
		s.line(styleDim, lay(fields, func(f field) string { return f.head }, " "))
		for n := range mixes {
			s.line("", lay(fields, func(f field) string { return f.cells[n] }, " "))
		}
	}
	s.wrap(styleDim, "", mixKey)
}

const mixKey = "Jain's index of the streams' goodputs: 1 is an even share, 1/n is one stream that has all. Steady after: when the shares stood still."

func mixSentence(m controls.Mix) string {
	var parts []string
	for _, p := range m.Shares {
		parts = append(parts, p.Text())
	}
	text := strings.TrimSuffix(m.Control+", "+m.Condition, ", ") + ": Jain " + m.Jain
	if len(parts) > 0 {
		text += "; " + strings.Join(parts, ", ")
	}
	if m.Steady != "–" {
		text += fmt.Sprintf("; steady after %s", m.Steady)
	}
	return text
}
