package view

import (
	"slices"

	"pelt/finding"
	"pelt/table"
	"pelt/unit"
)

func Compare(c finding.Comparison) Page {
	names := make([]string, len(c.Sides))
	for i, s := range c.Sides {
		names[i] = s.Name
	}
	in := c.Sides[0].Doc.Language
	p := Page{Language: in, Title: "Comparison", Subject: in.Sayf("%s against %s", in.Join(names[1:]), names[0])}
	p.say(c.Findings())
	foremost := c.Effects[0].Metric
	figures := sidesListing(in.Sayf("Against %s", names[0]), names, true, "metric Figure", "settings Setting")
	marks := finding.Finding{Code: "compare.marks", Language: in}
	if len(c.Flooded) > 0 {
		marks.Words = map[string]string{"flooded": "yes"}
	}
	figures.Note = marks.Text()
	var groups []table.Group
	var effects []table.Effect
	for _, m := range c.Metrics {
		for i, under := range c.Conditions {
			place := finding.PlaceName(under.Group)
			row, measured := []any{m.Label, place}, false
			for side := range c.Sides {
				g := c.Group(i, side)
				cell, e := Cell{Text: figure(g, m.Name)}, effectOf(c, m, i, side)
				if cell.Text != "" {
					cell.Value, measured = g.Stat(m).Median, true
					cell = compared(cell, e)
				}
				row = append(row, cell)
				if m == foremost && cell.Text != "" {
					name := in.Names(place, names[side])
					groups, effects = append(groups, sideGroup(g, name)), append(effects, e)
				}
			}
			if measured {
				figures.add(row...)
			}
		}
		if m == foremost {
			figures.Lead = len(figures.Rows)
		}
	}
	differ := sidesListing("What differs in the set-up", names, false, "setting Setting")
	for _, d := range c.Differ {
		row := []any{d.In(in).Setting}
		for _, v := range d.Values {
			row = append(row, v)
		}
		differ.add(row...)
	}
	p.Sections = shown(hero(intervals(foremost.Label, groups, foremost.Name, effects)), figures, differ,
		sidesTable(c))
	for i, s := range c.Sides {
		for _, w := range finding.Warnings(s.Doc) {
			if c.By == "run" {
				w = in.Sayf("%s: %s", s.Name, w)
			}
			if c.By == "run" || i == 0 {
				p.Doubts = append(p.Doubts, sentence(in, w))
			}
		}
	}
	return p.translated()
}

func sidesListing(title string, sides []string, right bool, columns ...string) Table {
	t := listing(title, columns...)
	for _, n := range sides {
		t.Columns = append(t.Columns, Column{Name: n, Label: n, Right: right})
	}
	return t
}

// effectOf is the effect of one side at one place; the zero Effect of the baseline's.
func effectOf(c finding.Comparison, m *table.Metric, place, side int) table.Effect {
	i := slices.IndexFunc(c.Effects, func(e finding.Effect) bool {
		return e.Metric == m && e.Condition == place && e.Side == side
	})
	if i < 0 {
		return table.Effect{}
	}
	return c.Effects[i].Effect
}

// sideGroup is a group of one side under a condition, by the name of both.
func sideGroup(g table.Group, name string) table.Group {
	level := table.Level{Known: true}
	level.Text = name
	return table.Group{Keys: []table.Key{{Name: "side"}}, Levels: []table.Level{level}, Rows: g.Rows}
}

func sidesTable(c finding.Comparison) Table {
	t := listing("What was compared", "side Side", "run Run", "target Target", "started Started",
		"valid_count Trials", "left_count Left out")
	t.Fold = true
	for _, s := range c.Sides {
		valid, invalid, aborted := table.Group{Rows: s.Rows}.Trials()
		started := s.Doc.Started.UTC().Format("2006-01-02 15:04 UTC")
		t.add(s.Name, s.Doc.ID, s.Doc.Plan.Target, started, valid, invalid+aborted)
	}
	return t
}

// CompareFigures is what --csv writes of a comparison: a row for each effect.
func CompareFigures(c finding.Comparison) Table {
	t := listing("Effects", "side Side", "baseline Baseline")
	settings := settingColumns(c.Under)
	for _, s := range settings {
		t.Columns = append(t.Columns, s.Column)
	}
	for _, name := range []string{"metric", "baseline_median", "other_median", "change", "kind", "p", "verdict",
		"more_repeats_needed"} {
		t.Columns = append(t.Columns, Column{Name: name, Unit: unit.Count})
	}
	figure := func(s table.Stat) Cell { return Cell{Value: s.Median, Low: s.Low, High: s.High} }
	for _, e := range c.Effects {
		row := []any{c.Sides[e.Side].Name, c.Sides[0].Name}
		for _, s := range settings {
			row = append(row, s.cell(c.Group(e.Condition, e.Side), 0))
		}
		change, kind := Cell{Value: e.Change, Low: e.Low, High: e.High}, "relative"
		if e.Points {
			kind = "points"
		}
		t.add(append(row, e.Metric.Name, figure(c.Stat(e, 0)), figure(c.Stat(e, e.Side)), change, kind, e.P,
			string(e.Verdict), e.Needed)...)
	}
	return t
}
