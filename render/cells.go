package render

import (
	"slices"
	"strings"

	"pelt/render/plain"
	"pelt/unit"
	"pelt/view"
)

// none stands for a figure that was not measured.
const none = "–"

func wordsOf(c view.Column, cell view.Cell) (text, note string) {
	text, note = plain.Text(cell.Text), plain.Text(cell.Note)
	if text == "" && c.Unit != unit.Word {
		text = c.Unit.Format(cell.Value)
	}
	if note == "" && hasInterval(cell) && c.Unit != unit.Word {
		note = c.Unit.Between(cell.Low, cell.High)
		if _, name, ok := strings.Cut(text, " "); ok { // the figure before it has the unit
			note = strings.TrimSuffix(note, " "+name)
		}
	}
	return text, note
}

func rightward(c view.Column) bool {
	return c.Right || c.Unit != unit.Word
}

// used leaves out the columns in which no row has anything.
func used(t view.Table) view.Table {
	keep := make([]bool, len(t.Columns))
	for i, c := range t.Columns {
		keep[i] = len(t.Rows) == 0 || slices.ContainsFunc(t.Rows, func(row []view.Cell) bool {
			text, _ := wordsOf(c, cellOf(row, i))
			return text != none && text != ""
		})
	}
	out := t
	out.Columns, out.Rows = nil, make([][]view.Cell, len(t.Rows))
	for i, c := range t.Columns {
		if !keep[i] {
			continue
		}
		out.Columns = append(out.Columns, c)
		for j, row := range t.Rows {
			out.Rows[j] = append(out.Rows[j], cellOf(row, i))
		}
	}
	return out
}
