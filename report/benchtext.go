package report

import (
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/internal/words"
	"pelt/report/rows"
)

// benchFacts says what the router is, above the table.
func (s *screen) benchFacts(doc model.Document) {
	if facts := bench.Facts(doc); facts != "" {
		s.wrap("", "", "Router: "+facts)
	}
	for _, l := range bench.State(doc) {
		s.wrap(styleDim, "  ", l)
	}
}

// bench writes the table of a router bench, and below it who watched the router.
func (s *screen) bench(doc model.Document, t rows.Table) {
	b := bench.Fold(doc)
	if len(b.Rows) > 0 {
		s.line("", "")
		s.wrap(styleBold, "", benchTitle(b))
		s.benchRows(b)
		s.wrap(styleDim, "", benchKey(b))
		s.line("", "")
		s.wrap(styleYellow, "", b.Apart())
		s.wrap(styleDim, "", bench.Losses(t))
	}
	s.wrap(styleDim, "", bench.Watch(doc))
	for _, g := range bench.Gaps(doc) {
		s.wrap(styleYellow, "  ! ", g)
	}
	if untold := bench.Untold(doc); len(untold) > 0 {
		s.wrap(styleDim, "", "Not told by the router: "+strings.Join(untold, "; "))
	}
}

func benchTitle(b bench.Table) string {
	title := "Rates, and the router's processor in percent"
	var counts []int
	for _, r := range b.Rows {
		counts = append(counts, len(r.Trials))
	}
	if trials := words.Trials(counts); trials != "" {
		title += "; means of " + trials + ", loss of all"
	}
	return title
}

// benchKey says what the heads of the table cannot.
func benchKey(b bench.Table) string {
	key := ""
	if slices.ContainsFunc(b.Rows, func(r bench.Row) bool { return r.Load != nil }) {
		key = "usr to sirq as top names them, % of all cores; core: the busiest one."
	}
	if slices.ContainsFunc(b.Rows, func(r bench.Row) bool { return r.TCP }) {
		key += " Of TCP, packets are segments, and lost ones those sent again."
	}
	return strings.TrimSpace(key)
}

func (s *screen) benchRows(b bench.Table) {
	path, traffic := field{head: "path", left: true}, field{head: "traffic", left: true}
	for _, r := range b.Rows {
		way := r.Way
		if r.Share {
			way = "  " + way
		}
		path.cells = append(path.cells, way)
		text := r.Traffic
		if r.State != model.Valid {
			text += "!"
		}
		traffic.cells = append(traffic.cells, text)
	}
	fields := []field{path, traffic}
	for _, c := range b.Columns() {
		if c.Drop >= bench.HTMLOnly {
			continue
		}
		f := field{head: c.Head, drop: c.Drop}
		for _, r := range b.Rows {
			f.cells = append(f.cells, words.Shorten(c.Cell(r), 24))
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
	variant := ""
	for i, r := range b.Rows {
		if len(b.Variants) > 1 && r.Variant != variant {
			s.line(styleBold, r.Variant+":")
			variant = r.Variant
		}
		style := ""
		switch {
		case r.State != model.Valid:
			style = styleYellow
		case r.Share:
			style = styleDim
		}
		s.line(style, lay(fields, func(f field) string { return f.cells[i] }, gap))
	}
}
