package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

type column struct {
	Column
	cell func(g table.Group, row int) Cell
}

func rowsOf(title string, groups []table.Group, columns ...[]column) Table {
	t := Table{Title: title, groups: groups}
	all := slices.Concat(columns...)
	for _, c := range all {
		t.Columns = append(t.Columns, c.Column)
	}
	for i, g := range groups {
		var row []Cell
		for _, c := range all {
			row = append(row, c.cell(g, i))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// mark marks the rows of the places that a verdict names.
func (t Table) mark(verdict finding.Finding) {
	for i, g := range t.groups {
		for _, place := range verdict.Places {
			for j := range t.Rows[i] {
				t.Rows[i][j].Named = t.Rows[i][j].Named || isIn(*place, g)
			}
		}
	}
}

// isIn reports whether a place lies in the group of a row: it has the levels of the keys that both have.
func isIn(place, row table.Group) bool {
	shared := 0
	for i, k := range row.Keys {
		if l := place.Level(k.Name); l.Known {
			if l != row.Levels[i] {
				return false
			}
			shared++
		}
	}
	return shared > 0
}

func unitOf(name string) unit.Unit {
	if strings.HasSuffix(name, "_packets") {
		return unit.Count
	}
	return unit.UnitOf(name)
}

// cells is a column of its own kind. Its unit is the end of its name.
func cells(name, label string, cell func(g table.Group, row int) Cell) []column {
	return []column{{Column{Name: name, Label: label, Unit: unitOf(name)}, cell}}
}

func keyColumns(keys ...table.Key) []column {
	var out []column
	for _, k := range keys {
		head := Column{Name: k.Name, Label: k.Label, Right: k.Unit != unit.Word, Key: true}
		out = append(out, column{head, func(g table.Group, _ int) Cell {
			l := g.Level(k.Name)
			value := math.NaN()
			if l.Known && l.Text == "" {
				value = l.Number
			}
			return Cell{Text: k.FormatIn(g.Language(), l), Value: value}
		}})
	}
	return out
}

// nameColumn names the setting of each group in one column: each part of a table that is too wide repeats its keys.
func nameColumn(keys []table.Key) []column {
	if len(keys) == 1 {
		return keyColumns(keys...)
	}
	out := cells("setting", "Setting", func(g table.Group, _ int) Cell { return Cell{Text: g.Name()} })
	out[0].Key = true
	return out
}

func lossTone(share float64) Tone {
	if share >= table.Lossless {
		return Bad
	}
	return Plain
}

func metricColumns(names ...string) []column {
	var out []column
	for _, name := range names {
		m := table.MetricOf(name)
		out = append(out, column{Column{Name: m.Name, Label: m.Label, Unit: m.Unit}, func(g table.Group, _ int) Cell {
			s := g.Stat(m)
			c := Cell{Value: s.Median}
			if s.N > 1 {
				c.Low, c.High = s.Low, s.High
			}
			if name == "loss_ratio" {
				c.Tone = lossTone(s.Median)
			}
			return c
		}})
	}
	return out
}

// details are columns that a terminal shows only where they fit.
func details(columns ...[]column) []column {
	out := slices.Concat(columns...)
	for i := range out {
		out[i].Detail = true
	}
	return out
}

// bare is columns without intervals, where room is short.
func bare(columns []column) []column {
	for i, c := range columns {
		columns[i].cell = func(g table.Group, row int) Cell {
			cell := c.cell(g, row)
			cell.Low, cell.High = 0, 0
			return cell
		}
	}
	return columns
}

// effectColumn shows how each group compares with what the label names. Effects are in the
// order of the groups; the baseline has the zero Effect.
func effectColumn(label string, effects []table.Effect) []column {
	return cells("verdict", label, func(g table.Group, row int) Cell { return effectCell(g.Language(), effects[row]) })
}

func effectCell(l words.Language, e table.Effect) Cell {
	c := Cell{Text: string(e.Verdict), Value: e.Change, Low: e.Low, High: e.High, Note: changeOf(e),
		Tone: toneOf(e.Verdict)}
	switch {
	case e.Verdict == "":
		return Cell{Text: "baseline", Value: math.NaN(), Tone: Muted}
	case e.Verdict == table.Best:
		return Cell{Text: "best", Value: math.NaN(), Tone: Good}
	case e.Verdict == table.TooFew && math.IsNaN(e.Change):
		return Cell{Text: "not compared", Value: e.Change, Tone: Muted}
	case e.Verdict == table.TooFew:
		c.Text = "not proven"
		if e.Needed > 0 && e.Needed < table.MostNeeded {
			c.Note = l.Names(l.Say(c.Note), moreRepeats(l, e))
		}
	}
	return c
}

// moreRepeats says how many more repeats would tell a difference; of fewer than three nobody knows more than that.
func moreRepeats(l words.Language, e table.Effect) string {
	if math.IsNaN(e.Low) {
		if e.Needed == 1 {
			return l.Say("at least 1 more repeat")
		}
		return l.Sayf("at least %d more repeats", e.Needed)
	}
	repeats := l.Sayf("%d more repeats", e.Needed)
	if e.Needed == 1 {
		repeats = l.Say("1 more repeat")
	}
	return l.Sayf("%s would tell", repeats)
}

// lowered is an English text in a language, in the middle of a sentence.
func lowered(l words.Language, text string) string {
	if said := l.Say(text); said != text {
		return said
	}
	return strings.ToLower(text)
}

// compared has the difference from the baseline's figure in the place of the interval. A
// question mark is on what is not beyond chance.
func compared(c Cell, e table.Effect) Cell {
	c.Tone, c.Low, c.High = toneOf(e.Verdict), 0, 0
	switch e.Verdict {
	case "":
	case table.Tied:
		c.Note = "tied"
	case table.TooFew:
		if c.Note = changeOf(e); c.Note != "" {
			c.Note += "?"
		}
	default:
		c.Note = changeOf(e)
	}
	return c
}

// changeOf says how far two groups are apart: "+12 %", "30×", "-0.4 points".
func changeOf(e table.Effect) string { return unit.Change(e.Change, e.Points) }

func toneOf(v table.Verdict) Tone {
	tones := map[table.Verdict]Tone{
		table.Best: Good, table.BetterThan: Good, table.WorseThan: Bad, table.TooFew: Muted,
	}
	return tones[v]
}

// listing is a table of what is listed as it is. Each column is its name and its label, as "lost_packets Lost there";
// the end of the name is its unit. A key has * before its name, a detail -.
func listing(title string, columns ...string) Table {
	t := Table{Title: title}
	for _, c := range columns {
		name, label, _ := strings.Cut(c, " ")
		name, key := strings.CutPrefix(name, "*")
		name, detail := strings.CutPrefix(name, "-")
		t.Columns = append(t.Columns, Column{Name: name, Label: label, Unit: unitOf(name), Key: key, Detail: detail})
	}
	return t
}

func (t *Table) add(cells ...any) {
	var row []Cell
	for _, c := range cells {
		switch c := c.(type) {
		case Cell:
			row = append(row, c)
		case string:
			row = append(row, Cell{Text: c, Value: math.NaN()})
		case uint64:
			row = append(row, Cell{Value: float64(c)})
		case int:
			row = append(row, Cell{Value: float64(c)})
		case float64:
			row = append(row, Cell{Value: c})
		default:
			panic(fmt.Sprintf("no cell is made of a %T", c))
		}
	}
	t.Rows = append(t.Rows, row)
}

// shown leaves out the tables and times that have nothing to show; render leaves out charts without points.
func shown(sections ...Section) []Section { return slices.DeleteFunc(sections, empty) }

func empty(s Section) bool {
	switch s := s.(type) {
	case Times:
		return len(s.Lanes) == 0
	case Table:
		return !slices.ContainsFunc(s.Rows, func(row []Cell) bool {
			for i, c := range row {
				measured := !math.IsNaN(c.Value)
				if s.Columns[i].Unit == unit.Word {
					measured = c.Text != ""
				}
				if measured && !s.Columns[i].Key {
					return true
				}
			}
			return false
		})
	}
	return false
}
