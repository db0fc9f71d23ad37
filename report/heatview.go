package report

import (
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/heat"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// mostMaps bounds the heat maps of one page: one a flow and setting of what is
// not on its sides.
const mostMaps = 6

// heatView is the section of a sweep's heat maps. It needs no script.
type heatView struct {
	Measures []heatChoice
	Maps     []heatMap
	Missing  bool // some cell of a map has no trial
	Invalid  bool
	Ties     bool
	Best     string // the best cell in words
	Left     int    // maps beyond mostMaps
}

type heatChoice struct {
	Number  int
	Name    string
	Chosen  bool
	Caption string
}

// heatMap is one picture; its figures are in layers of which one is shown.
type heatMap struct {
	Title         string // what tells it from the others
	Label         string // for who cannot see it
	Class         string
	Width, Height string
	Base          string // path of every cell
	Bad           string // path of a cross in each cell that is not valid
	Layers        []heatLayer
	Ties, Best    string // outlines
	Texts         []shape
	Cells         []heatCell
}

type heatLayer struct {
	Number int
	Fills  []heatFill
	Texts  []shape // in the cells
	Bar    []heatFill
	Ticks  string
	Names  []shape
}

// heatFill is one colour and the cells that have it.
type heatFill struct{ Colour, D string }

// heatCell is what a pointer resting on a cell is told.
type heatCell struct{ X, Y, Width, Height, Title string }

// heatMeasure is a figure that the colours may stand for.
type heatMeasure struct {
	name    string
	caption string
	log     bool // may be logarithmic
	units   []string
	times   float64 // a unit is so many times the one before
	factor  float64 // from base units to the first of them
	value   func(rows.Row) float64
	cell    func(float64) string
}

func heatMeasures(all []rows.Row) []heatMeasure {
	bits := []string{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"}
	list := []heatMeasure{
		{"receive speed", "Payload that arrived, all receivers together.", false, bits, 1000, 1, func(r rows.Row) float64 { return middleOf(r.GoodputBPS) }, unit.FormatBits},
		{"loss", "Share of the packets sent that did not arrive.", false, []string{"%"}, 1, 100, lossOf, unit.FormatRatio},
		{"delta", "Payload sent per second less what arrived: what was sent in vain, or waits in a queue.", true, bits, 1000, 1, deltaOf, unit.FormatBits},
	}
	if kind := delayKind(all); kind != "" {
		list = append(list, heatMeasure{"delay", "Median " + kind + ".", true, []string{"ns", "µs", "ms", "s"}, 1000, 1, delayOf, unit.FormatNanos})
	}
	return list
}

// newHeatView draws the rows over the plan's first two knobs with numbers.
func newHeatView(doc model.Document, t rows.Table, best int, ties []int) heatView {
	var v heatView
	grids := t.Grids(doc.Plan)
	if len(grids) == 0 {
		return v
	}
	// The map with the best cell comes first.
	slices.SortStableFunc(grids, func(a, b rows.Grid) int {
		if x, y := a.Has(best), b.Has(best); x != y {
			return yesFirst(x)
		}
		return 0
	})
	each := len(grids[0].X.Levels) * len(grids[0].Y.Levels)
	shown := min(len(grids), mostMaps, max(1, rows.MaxGridCells/each))
	v.Left = len(grids) - shown
	grids = grids[:shown]
	measures := heatMeasures(t.Rows)
	scales := make([]heat.Scale, len(measures))
	for i, m := range measures {
		v.Measures = append(v.Measures, heatChoice{i, m.name, i == 0, m.caption})
		var values []float64
		for _, r := range t.Rows {
			if r.State == model.Valid {
				values = append(values, m.value(r))
			}
		}
		scales[i] = heat.NewScale(values, m.log)
	}
	several := len(grids)+v.Left > 1
	for _, g := range grids {
		d := newHeatDrawing(doc, t, g)
		h := d.draw(measures, scales, best, ties)
		if several {
			h.Title = words.Curve(t, g.Flow, g.Rest)
		}
		h.Label = "heat map of " + words.And(slices.DeleteFunc([]string{d.xName, d.yName}, func(s string) bool { return s == "" }))
		v.Maps = append(v.Maps, h)
		v.Ties = v.Ties || h.Ties != ""
		v.Invalid = v.Invalid || h.Bad != ""
		for _, line := range g.Rows {
			v.Missing = v.Missing || slices.Contains(line, -1)
		}
	}
	if best >= 0 {
		r := t.Rows[best]
		v.Best = words.Shorten(words.Cell(r.Cell), 80) + ": " + figure(r.GoodputBPS, unit.FormatBits)
	}
	return v
}

// heatTitle is a cell's figures, a line each.
func heatTitle(doc model.Document, t rows.Table, r rows.Row, columns []sweepColumn) string {
	lines := []string{words.Shorten(words.Cell(r.Cell), 80)}
	if r.State != model.Valid {
		lines = append(lines, strings.TrimSuffix("not counted: "+words.Name(string(r.State))+": "+words.Shorten(words.Plain(r.Why), 120), ": "))
	}
	for _, c := range columns {
		if text := c.cell(r); text != "" && text != "–" && c.key != "size" && c.key != "interval" && !slices.Contains(t.Keys, c.key) {
			lines = append(lines, c.head+" "+text)
		}
	}
	return strings.Join(lines, "\n")
}
