package compare

import (
	"fmt"
	"maps"
	"slices"

	"pelt/analysis/internal/say"
	"pelt/model"
)

// left counts what was not compared, once for each reason.
type left struct {
	order   []string
	count   map[string]int
	figures []model.Uncompared // what a limit may be on
}

func (l *left) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l.count == nil {
		l.count = map[string]int{}
	}
	if l.count[text]++; l.count[text] == 1 {
		l.order = append(l.order, text)
	}
}

func (l *left) figure(m metric, measured bool, format string, args ...any) {
	l.figures = append(l.figures, model.Uncompared{Metric: m.name, Measured: measured, Text: fmt.Sprintf(format, args...)})
}

// missing tells which settings stand on one side only, and trials that do not count.
func missing(sides []side, wanted Metrics, out *left) {
	base := sides[0]
	for i, s := range sides {
		if s.Invalid > 0 {
			out.add("not valid: %d of %d trials of %s", s.Invalid, s.Invalid+s.Valid, s.Name)
		}
		if i == 0 {
			continue
		}
		only(base, s, wanted, out)
		only(s, base, wanted, out)
	}
}

// mostOnly is how many settings of one side only are named.
const mostOnly = 3

func only(a, b side, wanted Metrics, out *left) {
	var names []string
	for _, key := range common(a, a) {
		if b.cells[key] != nil {
			continue
		}
		names = append(names, where(a.cells[key].settings, "", ""))
		if b.meant(a.cells[key].settings) {
			lacking(a.cells[key], b.Name, wanted, out)
		}
	}
	if len(names) == 0 {
		return
	}
	if n := len(names); n > mostOnly {
		names = append(names[:mostOnly-1:mostOnly-1], fmt.Sprintf("%d more", n-mostOnly+1))
	}
	out.add("of %s only, not of %s: %s", a.Name, b.Name, say.And(names))
}

// meant reports whether a side was to measure settings: it tried to, or its plan has them.
func (s side) meant(settings model.Cell) bool {
	if s.tried[settings.Key()] {
		return true
	}
	whole := maps.Clone(settings)
	maps.Copy(whole, s.level)
	if cells := s.plan.Design.Cells; len(cells) > 0 {
		return slices.ContainsFunc(cells, func(c model.Cell) bool { return within(whole, c) })
	}
	for knob, v := range whole {
		if !slices.Contains(planned(s.plan, knob), v) {
			return false
		}
	}
	return true
}

// lacking are the figures of a cell that another side was to have, too.
func lacking(c *cell, other string, wanted Metrics, out *left) {
	for _, flow := range append(c.flows(), "") {
		for _, m := range metrics() {
			if wanted.has(m) && m.ofRouter == (flow == "") && len(c.measured(m, flow)) > 0 {
				out.figure(m, false, "%s: %s has no valid trial for %s", where(c.settings, flow, protocolOf(c, flow)), other, metricWords(m.name))
			}
		}
	}
}
