package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
)

// mostSweepRows is how many rows of a sweep a terminal is shown unasked.
const mostSweepRows = 32

// SweepTable writes a row per setting of a run, the best receive speed first if
// nothing else is asked, and below it how many rows it left out. An *AskError
// means that the run has no such column.
func SweepTable(w io.Writer, doc model.Document, width int, colour bool, o SweepOptions) error {
	s := newScreen(width, colour)
	if err := s.sweep(doc, rows.Fold(doc), o); err != nil {
		return err
	}
	if err := s.flush(w); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// sweep writes the tables of all flows.
func (s *screen) sweep(doc model.Document, t rows.Table, o SweepOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	planned := slices.ContainsFunc(doc.Plan.Factors, func(f model.Factor) bool { return f.Knob == o.Sort })
	if _, err := findColumn(sweepColumns(doc.Plan, t.Keys, o.Unit), o.Sort); err != nil && planned {
		o.Sort = "" // it had one level in all trials, so it is no column
	}
	best := t.Best(doc.Findings)
	ties := t.Ties(doc.Findings, best)
	marks := sweepMarks(t, best, ties)
	for i, of := range t.Groups() {
		columns := sweepColumns(doc.Plan, t.Keys, o.Unit)
		sorted, err := sortSweep(of, columns, o)
		if err != nil {
			return err
		}
		if i > 0 || s.text.Len() > 0 {
			s.line("", "")
		}
		s.wrap(styleBold, "", sweepTitle(of))
		shown := sorted
		if !o.All && len(shown) > mostSweepRows {
			shown = shown[:mostSweepRows]
		}
		s.sweepRows(shown, columns, marks)
		s.sweepRest(doc, of, sorted[len(shown):])
		if slices.ContainsFunc(of, func(r rows.Row) bool { return marks[rowKey(r)] == markBest }) {
			s.wrap(styleDim, "", bestWords(t, best, ties, o.Unit))
		}
	}
	return nil
}

// rowKey tells a row from all others.
func rowKey(r rows.Row) string {
	return r.Flow + "\x00" + string(r.Protocol) + "\x00" + r.Cell.Key()
}

// Marks of a sweep's rows.
const (
	markBest = "*"
	markTie  = "=" // not separable from the best
)

// sweepMarks marks the best row, and those that are not separable from it, by rowKey.
func sweepMarks(t rows.Table, best int, ties []int) map[string]string {
	marks := map[string]string{}
	for _, i := range ties {
		marks[rowKey(t.Rows[i])] = markTie
	}
	if best >= 0 {
		marks[rowKey(t.Rows[best])] = markBest
	}
	return marks
}

// sweepTitle names a flow: "up: sender to 100 receivers together, UDP".
func sweepTitle(of []rows.Row) string {
	title := flowTitle(of[0])
	count, upTo := 0, ""
	for _, r := range of {
		if r.Receivers != nil {
			if count > 0 && count != r.Receivers.Count {
				upTo = "up to "
			}
			count = max(count, r.Receivers.Count)
		}
	}
	if count > 1 {
		title = fmt.Sprintf("%s: %s to %s%d receivers together, %s", words.Name(of[0].Flow), words.Name(of[0].From), upTo, count, strings.ToUpper(words.Name(string(of[0].Protocol))))
	}
	if trials := trialsOf(of); trials != "" {
		title += "; speeds: middle and range of " + trials + ", loss: of all"
	}
	return title
}

func (s *screen) sweepRows(of []rows.Row, columns []sweepColumn, marks map[string]string) {
	star := field{left: true}
	for _, r := range of {
		star.cells = append(star.cells, marks[rowKey(r)])
	}
	fields := []field{star}
	for _, c := range columns {
		f := field{head: c.head, drop: c.drop}
		for _, r := range of {
			f.cells = append(f.cells, words.Shorten(c.cell(r), 32))
		}
		fields = append(fields, f)
	}
	fields = fit(fields, s.width)
	gap, used := " ", -1
	for _, f := range fields {
		used += f.width() + 1
	}
	if used+len(fields)-1 <= s.width {
		gap = "  "
	}
	s.line(styleDim, lay(fields, func(f field) string { return f.head }, gap))
	for i, r := range of {
		style := ""
		switch {
		case r.State != model.Valid:
			style = styleYellow
		case marks[rowKey(r)] == markBest:
			style = styleBold
		}
		s.line(style, lay(fields, func(f field) string { return f.cells[i] }, gap))
	}
}

// sweepRest says what the table does not show.
func (s *screen) sweepRest(doc model.Document, of, left []rows.Row) {
	invalid := 0
	for _, r := range left {
		if r.State != model.Valid {
			invalid++
		}
	}
	if len(left) > 0 {
		text := "… and 1 more setting"
		if len(left) > 1 {
			text = fmt.Sprintf("… and %d more settings", len(left))
		}
		if invalid > 0 {
			text += fmt.Sprintf(", %d of them not valid", invalid)
		}
		s.wrap(styleDim, "", text+"; the HTML and CSV reports have all.")
	}
	planned := rows.Planned(doc.Plan, of[0].Flow)
	if missing := planned - len(of); missing > 0 {
		s.wrap(styleYellow, "", fmt.Sprintf("%d of the %d planned settings have no finished trial.", missing, planned))
	}
}

// bestWords says what became of the best row's packets.
func bestWords(t rows.Table, best int, ties []int, unitName string) string {
	r := t.Rows[best]
	text := "* best: " + words.Shorten(words.Cell(r.Cell), 80)
	if below := words.Below(r); below != "" {
		text += ": " + below
	}
	if each := receiversText(r, unitName); each != "" {
		if unitName != "" {
			each += " " + unitName
		}
		text += "; least, middle and most of a receiver " + each
	}
	if len(ties) > 0 {
		text += "; = marks those not separable from it"
	}
	return text
}

// IsSweep reports whether a run is told as a sweep, with a table that can be sorted.
func IsSweep(doc model.Document) bool { return rows.IsSweep(doc) }
