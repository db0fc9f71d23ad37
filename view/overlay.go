package view

import (
	"slices"

	"pelt/finding"
	"pelt/words"
)

// Overlay puts the main charts of pages into one chart for each line that all have: a series a page. Pages whose
// charts differ in their axes keep charts of their own.
func Overlay(pages []Page, names []string) []Section {
	var charts []Chart
	var apart []Section
	for i, p := range pages {
		for _, s := range p.Sections {
			c, chart := s.(Chart)
			if _, times := s.(Times); !times && !(chart && c.Hero) {
				continue
			}
			apart = append(apart, Heading{names[i]}, s)
			charts = append(charts, c)
			break
		}
	}
	if len(charts) > 0 && len(charts) == len(pages) {
		if out := overlaid(pages[0].Language, charts, names); len(out) > 0 {
			return out
		}
	}
	if len(apart) > 0 {
		apart = append([]Section{Text{finding.Finding{Code: "compare.charts", Language: pages[0].Language}.Text()}},
			apart...)
	}
	return apart
}

func overlaid(l words.Language, charts []Chart, names []string) (out []Section) {
	first := charts[0]
	for _, line := range first.Series {
		c := Chart{Title: first.Title, Kind: Line, X: first.X, Y: first.Y}
		if line.Guest {
			continue
		}
		for i, other := range charts {
			at := slices.IndexFunc(other.Series, func(s Series) bool { return s.Name == line.Name && !s.Guest })
			if at < 0 || other.Kind != Line || axesDiffer(other.X, c.X) || axesDiffer(other.Y, c.Y) {
				break
			}
			s := Series{Name: names[i], Points: slices.Clone(other.Series[at].Points)}
			for j := range s.Points {
				s.Points[j].Name = l.Sayf("%s: %s", names[i], s.Points[j].Name)
			}
			c.Series = append(c.Series, s)
			c.X.Ticks = append(slices.Clone(c.X.Ticks), other.X.Ticks...)
		}
		if len(c.Series) < len(charts) {
			continue
		}
		slices.Sort(c.X.Ticks)
		c.X.Ticks = slices.Compact(c.X.Ticks)
		if len(first.Series) > 1 && line.Name != "" {
			c.Title = l.Sayf("%s: %s", c.Title, line.Name)
		}
		out = append(out, c)
	}
	return out
}

func axesDiffer(a, b Axis) bool {
	return a.Label != b.Label || a.Unit != b.Unit || a.Log != b.Log || len(a.Categories) > 0 || len(b.Categories) > 0
}
