package render

import (
	"encoding/csv"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/render/plain"
	"pelt/unit"
	"pelt/view"
)

// CSV writes a table as RFC 4180 says: a line of column names, then a line for each
// row, with figures in base units. A column with intervals has two more for their ends.
func CSV(w io.Writer, t view.Table) error {
	var head []string
	spread := make([]bool, len(t.Columns))
	for i, c := range t.Columns {
		spread[i] = slices.ContainsFunc(t.Rows, func(row []view.Cell) bool { return hasInterval(cellOf(row, i)) })
		head = append(head, c.Name)
		if spread[i] {
			head = append(head, c.Name+"_low", c.Name+"_high")
		}
	}
	lines := [][]string{head}
	for _, row := range t.Rows {
		var line []string
		for i, c := range t.Columns {
			cell, low, high := cellOf(row, i), "", ""
			text := cell.Text
			if c.Unit != unit.Word && !math.IsNaN(cell.Value) && !math.IsInf(cell.Value, 0) {
				text = figure(cell.Value)
			}
			if hasInterval(cell) {
				low, high = figure(cell.Low), figure(cell.High)
			}
			if line = append(line, text); spread[i] {
				line = append(line, low, high)
			}
		}
		lines = append(lines, line)
	}
	return Records(w, slices.Values(lines))
}

// csvText keeps outside text from being taken for a formula by a spreadsheet.
func csvText(s string) string {
	s = plain.Spaces(plain.Text(s))
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// Records writes lines of words as CSV writes a table.
func Records(w io.Writer, lines iter.Seq[[]string]) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	for line := range lines {
		safe := make([]string, len(line))
		for i, word := range line {
			if _, err := strconv.ParseFloat(word, 64); err == nil { // -1 is no formula
				safe[i] = word
				continue
			}
			safe[i] = csvText(word)
		}
		if err := out.Write(safe); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func figure(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func hasInterval(c view.Cell) bool {
	return c.Low < c.High && !math.IsInf(c.Low, 0) && !math.IsInf(c.High, 0)
}

// cellOf is a cell of a row; a row may be too short.
func cellOf(row []view.Cell, i int) view.Cell {
	if i < len(row) {
		return row[i]
	}
	return view.Cell{Value: math.NaN()}
}
