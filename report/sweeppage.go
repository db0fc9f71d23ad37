package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// Bounds of a sweep's page.
const (
	mostPageRows  = 5000 // of its table
	mostFastest   = 8    // settings whose losses are drawn because they are fast,
	mostLossy     = 4    // and because they lost most
	mostReceivers = 2000 // rows of the table of receivers
)

// sweepView is what the page of a sweep has instead of curves and tables.
type sweepView struct {
	Heat      heatView
	Tables    []sweepTable
	Receivers []receiverTable
}

// sweepTable is sorted by receive speed; the script sorts it by any column.
type sweepTable struct {
	Title  string
	Heads  []sweepHead
	Rows   []sweepRow
	Left   int
	Marks  bool
	Shares bool // says what the columns of receivers are
}

type sweepHead struct {
	Text   string
	Sorted bool
	Words  bool // not a number
}

type sweepRow struct {
	Class string
	Cells []sweepCell
}

type sweepCell struct {
	Text  string
	Value string // what it is sorted by; "" if unknown
	Words bool
}

// receiverTable is what each receiver got at one setting.
type receiverTable struct {
	Title string
	Rows  [][]string
	Left  int
}

func newSweepView(doc model.Document, t rows.Table) sweepView {
	best := t.Best(doc.Findings)
	ties := t.Ties(doc.Findings, best)
	v := sweepView{Heat: newHeatView(doc, t, best, ties)}
	marks := sweepMarks(t, best, ties)
	for _, of := range t.Groups() {
		v.Tables = append(v.Tables, newSweepTable(doc, t, of, marks))
	}
	v.Receivers = receiverTables(doc, t, best)
	return v
}

func newSweepTable(doc model.Document, t rows.Table, of []rows.Row, marks map[string]string) sweepTable {
	columns := pageColumns(sweepColumns(doc.Plan, t.Keys, ""))
	sorted, err := sortSweep(of, columns, SweepOptions{})
	if err != nil { // every sweep has a receive column
		sorted = of
	}
	h := sweepTable{Title: sweepTitle(of), Left: max(0, len(sorted)-mostPageRows)}
	sorted = sorted[:len(sorted)-h.Left]
	columns = slices.DeleteFunc(columns, func(c sweepColumn) bool {
		return !slices.ContainsFunc(sorted, func(r rows.Row) bool { text := c.cell(r); return text != "" && text != "–" })
	})
	h.Heads = append(h.Heads, sweepHead{})
	for _, c := range columns {
		h.Heads = append(h.Heads, sweepHead{c.head, c.key == "receive", false})
		h.Shares = h.Shares || c.key == "middle"
	}
	h.Heads = append(h.Heads, sweepHead{"lost", false, true})
	for _, r := range sorted {
		mark := marks[rowKey(r)]
		h.Marks = h.Marks || mark != ""
		row := sweepRow{Cells: []sweepCell{{map[string]string{markBest: "★", markTie: "="}[mark], map[string]string{markBest: "2", markTie: "1"}[mark], false}}}
		switch {
		case r.State != model.Valid:
			row.Class = "invalid"
		case mark == markBest:
			row.Class = "best"
		}
		for _, c := range columns {
			cell := sweepCell{Text: c.cell(r)}
			if v := c.value(r); finite(v) {
				cell.Value = strconv.FormatFloat(v, 'g', 8, 64)
			}
			row.Cells = append(row.Cells, cell)
		}
		said := words.Below(r)
		if r.State != model.Valid {
			said = words.Shorten(words.Name(string(r.State))+": "+words.Plain(r.Why), 120)
		}
		row.Cells = append(row.Cells, sweepCell{said, "", true})
		h.Rows = append(h.Rows, row)
	}
	return h
}

// pageColumns has room for the receivers in columns of their own.
func pageColumns(columns []sweepColumn) []sweepColumn {
	columns = slices.DeleteFunc(columns, func(c sweepColumn) bool { return c.key == "receivers" && c.head == "per receiver" })
	of := func(key, head string, get func(*rows.Receivers) rows.Stat) sweepColumn {
		value := func(r rows.Row) float64 {
			if r.Receivers == nil || r.Receivers.Count < 2 {
				return middleOf(rows.Stat{})
			}
			return middleOf(get(r.Receivers))
		}
		return sweepColumn{key, head, 0, value, func(r rows.Row) string {
			if v := value(r); finite(v) {
				return unit.FormatBits(v)
			}
			return ""
		}}
	}
	return append(columns,
		of("least", "slowest receiver", func(r *rows.Receivers) rows.Stat { return r.Least }),
		of("middle", "middle receiver", func(r *rows.Receivers) rows.Stat { return r.Middle }),
		of("most", "fastest receiver", func(r *rows.Receivers) rows.Stat { return r.Most }))
}

// sweepExtremes keeps the fastest settings and those that lost most: a picture
// of each loss of hundreds would tell nobody anything.
func sweepExtremes(t rows.Table, best int) rows.Table {
	order := make([]int, len(t.Rows))
	for i := range order {
		order[i] = i
	}
	var kept []int
	keep := func(most int, before func(a, b rows.Row) int) {
		slices.SortStableFunc(order, func(a, b int) int { return before(t.Rows[a], t.Rows[b]) })
		for _, i := range order[:min(most, len(order))] {
			if !slices.Contains(kept, i) {
				kept = append(kept, i)
			}
		}
	}
	if best >= 0 {
		kept = append(kept, best)
	}
	valid := func(a, b rows.Row) int {
		if x, y := a.State == model.Valid, b.State == model.Valid; x != y {
			return yesFirst(x)
		}
		return 0
	}
	keep(mostFastest, func(a, b rows.Row) int {
		return cmp.Or(valid(a, b), cmp.Compare(b.GoodputBPS.Median, a.GoodputBPS.Median))
	})
	keep(mostLossy, func(a, b rows.Row) int { return cmp.Or(valid(a, b), lostMost(a, b)) })
	out := t
	out.Rows = nil
	for _, i := range kept {
		out.Rows = append(out.Rows, t.Rows[i])
	}
	return out
}

// receiverTables tell of each receiver at the best setting, and at the one that
// served them least evenly.
func receiverTables(doc model.Document, t rows.Table, best int) []receiverTable {
	uneven, worst := -1, 0.0
	for i, r := range t.Rows {
		if r.Receivers == nil || r.Receivers.Count < 2 || r.State != model.Valid || r.Receivers.Middle.Median <= 0 {
			continue
		}
		if ratio := (r.Receivers.Most.Median - r.Receivers.Least.Median) / r.Receivers.Middle.Median; ratio > worst {
			uneven, worst = i, ratio
		}
	}
	var out []receiverTable
	add := func(i int, what string) {
		if i < 0 || len(t.Rows[i].Shares(doc)) < 2 {
			return
		}
		shares := t.Rows[i].Shares(doc)
		h := receiverTable{Title: fmt.Sprintf("Each receiver at %s: %s", what, words.Shorten(words.Cell(t.Rows[i].Cell), 80)), Left: max(0, len(shares)-mostReceivers)}
		for _, s := range shares[:len(shares)-h.Left] {
			loss := "–"
			if ratio, ok := s.LossRatio(); ok {
				loss = unit.FormatRatio(ratio)
			}
			h.Rows = append(h.Rows, []string{words.Name(s.Node), unit.FormatCount(s.Attempted), unit.FormatCount(s.Received), loss,
				figure(s.GoodputBPS, unit.FormatBits), spread(s.GoodputBPS)})
		}
		out = append(out, h)
	}
	add(best, "the best setting")
	if uneven != best {
		add(uneven, "the least even setting")
	}
	return out
}
