package chart

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pelt/model"
	"pelt/report/internal/heat"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// overGrid draws goodput over the plan's first two knobs with numbers: the map
// with the best cell, where others are set apart by further knobs.
func overGrid(doc model.Document, t rows.Table) (figure, error) {
	grids := t.Grids(doc.Plan)
	if len(grids) == 0 {
		return figure{}, ErrNothing
	}
	best := t.Best(doc.Findings)
	g := grids[max(0, slices.IndexFunc(grids, func(g rows.Grid) bool { return g.Has(best) }))]
	h := &heatMap{table: t, grid: g, best: best, ties: t.Ties(doc.Findings, best)}
	h.xName, h.xLabels = words.Side(g.X)
	h.yName, h.yLabels = words.Side(g.Y)
	var values []float64
	invalid, missing, repeats := false, false, 0
	for _, line := range g.Rows {
		for _, i := range line {
			if i < 0 {
				missing = true
				continue
			}
			r := t.Rows[i]
			invalid = invalid || r.State != model.Valid
			if r.State == model.Valid && r.GoodputBPS.N > 0 {
				repeats = max(repeats, len(r.Trials))
				values = append(values, r.GoodputBPS.Median)
			}
		}
	}
	h.scale = heat.NewScale(values, false)
	f := frame(doc, t, false)
	f.heat = h
	f.caption = join(f.caption, h.notes(repeats, invalid, missing))
	if several := len(grids) - 1; several > 0 {
		f.subtitle = join(words.Curve(t, g.Flow, g.Rest), f.subtitle)
		f.caption = join(f.caption, fmt.Sprintf("%d more not drawn", several))
	}
	return f, nil
}

// notes say what the marks of the picture mean.
func (h *heatMap) notes(repeats int, invalid, missing bool) string {
	text := ""
	if repeats > 1 {
		text = fmt.Sprintf("middle of %d trials", repeats)
	}
	if h.grid.Has(h.best) {
		r := h.table.Rows[h.best]
		text = join(text, "thick frame: best, "+words.Shorten(words.Cell(r.Cell), 80)+", "+unit.FormatBits(r.GoodputBPS.Median))
	}
	if slices.ContainsFunc(h.ties, h.grid.Has) {
		text = join(text, "thin frame: not separable from it")
	}
	if invalid {
		text = join(text, "crossed: not a valid trial")
	}
	if missing {
		text = join(text, "empty: no finished trial")
	}
	return text
}

// heatMap is a grid of coloured cells with a bar that explains the colours.
type heatMap struct {
	table            rows.Table
	grid             rows.Grid
	best             int
	ties             []int
	scale            heat.Scale
	xName, yName     string
	xLabels, yLabels []string
}

// Sizes of the parts around the cells.
const (
	heatType = 10.0 // points
	barWidth = 14.0
	barSpace = 96.0 // the bar, its labels, and what parts it from the cells
)

// mostHigh bounds a cell's height, so that few of them do not look like bars.
const mostHigh = 2 * vg.Inch

// draw fills the canvas.
func (h *heatMap) draw(c draw.Canvas) {
	label := style(heatType, ink, false)
	left := vg.Length(0)
	for _, l := range h.yLabels {
		left = max(left, label.Width(l))
	}
	left += 8
	if h.yName != "" {
		left += 18
	}
	area := draw.Crop(c, left, -barSpace, 36, -4)
	if most := mostHigh * vg.Length(len(h.yLabels)); area.Max.Y-area.Min.Y > most {
		area.Min.Y = area.Max.Y - most
	}
	wide := (area.Max.X - area.Min.X) / vg.Length(len(h.xLabels))
	high := (area.Max.Y - area.Min.Y) / vg.Length(len(h.yLabels))
	corner := func(x, y int) vg.Point {
		return vg.Point{X: area.Min.X + wide*vg.Length(x), Y: area.Min.Y + high*vg.Length(y)}
	}
	h.cells(c, corner)
	h.frames(c, corner)
	h.labels(c, area, wide, high)
	bar := area
	bar.Min.X, bar.Max.X = area.Max.X+22, area.Max.X+22+barWidth
	h.bar(c, bar)
}

// cells colours what is valid, crosses what is not, and leaves the rest empty.
func (h *heatMap) cells(c draw.Canvas, corner func(x, y int) vg.Point) {
	inside := style(9, ink, false)
	inside.XAlign, inside.YAlign = draw.XCenter, draw.YCenter
	for y, line := range h.grid.Rows {
		for x, i := range line {
			a, b := corner(x, y), corner(x+1, y+1)
			box := []vg.Point{a, {X: b.X, Y: a.Y}, b, {X: a.X, Y: b.Y}}
			if i < 0 || h.table.Rows[i].State != model.Valid || h.table.Rows[i].GoodputBPS.N == 0 {
				c.StrokeLines(draw.LineStyle{Color: rule, Width: 0.8}, append(box, a))
				if i >= 0 {
					cross := draw.LineStyle{Color: hue(1), Width: 1}
					c.StrokeLine2(cross, a.X+1, a.Y+1, b.X-1, b.Y-1)
					c.StrokeLine2(cross, a.X+1, b.Y-1, b.X-1, a.Y+1)
				}
				continue
			}
			v := h.table.Rows[i].GoodputBPS.Median
			shade := heat.Colour(h.scale.Place(v))
			c.FillPolygon(shade, box)
			if said := unit.FormatBits(v); inside.Width(said)+6 < b.X-a.X && b.Y-a.Y > 14 {
				inside.Color = color.Black
				if heat.Dark(shade) {
					inside.Color = color.White
				}
				c.FillText(inside, vg.Point{X: (a.X + b.X) / 2, Y: (a.Y + b.Y) / 2}, said)
			}
		}
	}
}

// frames outline the best cell, and together those that are not separable from it.
func (h *heatMap) frames(c draw.Canvas, corner func(x, y int) vg.Point) {
	outline := func(wanted []int, width vg.Length) {
		for _, l := range []draw.LineStyle{{Color: color.White, Width: width + 2}, {Color: color.Black, Width: width}} {
			h.grid.Outline(wanted, func(x0, y0, x1, y1 int) {
				a, b := corner(x0, y0), corner(x1, y1)
				// The ends are square, so that corners are.
				dx, dy := vg.Length(sign(x1-x0))*l.Width/2, vg.Length(sign(y1-y0))*l.Width/2
				c.StrokeLine2(l, a.X-dx, a.Y-dy, b.X+dx, b.Y+dy)
			})
		}
	}
	if slices.ContainsFunc(h.ties, h.grid.Has) {
		outline(append(slices.Clone(h.ties), h.best), 1)
	}
	if h.grid.Has(h.best) {
		outline([]int{h.best}, 2.4)
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

// labels are the levels along both sides and the sides' names.
func (h *heatMap) labels(c draw.Canvas, area draw.Canvas, wide, high vg.Length) {
	bestX, bestY := -1, -1
	for y, line := range h.grid.Rows {
		if x := slices.Index(line, h.best); x >= 0 && h.best >= 0 {
			bestX, bestY = x, y
		}
	}
	at := func(s text.Style, i, best int) text.Style {
		if i == best {
			bold := style(heatType, ink, true)
			bold.XAlign, bold.YAlign = s.XAlign, s.YAlign
			return bold
		}
		return s
	}
	s := style(heatType, ink, false)
	s.XAlign = draw.XCenter
	for _, i := range heat.Apart(len(h.xLabels), bestX, func(i int) (float64, float64) {
		return float64(wide) * (float64(i) + 0.5), float64(at(s, i, bestX).Width(h.xLabels[i]))/2*1.08 + 3
	}) {
		c.FillText(at(s, i, bestX), vg.Point{X: area.Min.X + wide*(vg.Length(i)+0.5), Y: area.Min.Y - 4}, h.xLabels[i])
	}
	c.FillText(s, vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: area.Min.Y - 21}, h.xName)
	s.XAlign, s.YAlign = draw.XRight, draw.YCenter
	for _, i := range heat.Apart(len(h.yLabels), bestY, func(i int) (float64, float64) { return float64(high) * (float64(i) + 0.5), heatType * 0.6 }) {
		c.FillText(at(s, i, bestY), vg.Point{X: area.Min.X - 6, Y: area.Min.Y + high*(vg.Length(i)+0.5)}, h.yLabels[i])
	}
	h.upright(c, c.Min.X, area, h.yName)
}

// upright writes a name that runs upwards beside the cells.
func (h *heatMap) upright(c draw.Canvas, x vg.Length, area draw.Canvas, name string) {
	s := style(heatType, ink, false)
	s.Rotation = math.Pi / 2
	s.XAlign, s.YAlign = draw.XCenter, draw.YTop
	room := area.Max.Y - area.Min.Y
	c.FillText(s, vg.Point{X: x, Y: (area.Min.Y + area.Max.Y) / 2}, squeeze(style(heatType, ink, false), name, room+20))
}

// bar explains the colours, its values right of it.
func (h *heatMap) bar(c draw.Canvas, area draw.Canvas) {
	const steps = 128
	tall := area.Max.Y - area.Min.Y
	for i := range steps {
		low, top := area.Min.Y+tall*vg.Length(i)/steps, min(area.Max.Y, area.Min.Y+tall*(vg.Length(i)+1.3)/steps)
		c.FillPolygon(heat.Colour(float64(i)/(steps-1)), []vg.Point{{X: area.Min.X, Y: low}, {X: area.Max.X, Y: low}, {X: area.Max.X, Y: top}, {X: area.Min.X, Y: top}})
	}
	name, div := h.scale.Unit(bitNames(), 1000)
	s := style(heatType, ink, false)
	s.YAlign = draw.YCenter
	widest := vg.Length(0)
	for _, v := range h.scale.Ticks() {
		y := area.Min.Y + tall*vg.Length(h.scale.Place(v))
		c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.8}, area.Max.X, y, area.Max.X+4, y)
		said := strconv.FormatFloat(v/div, 'g', 4, 64)
		widest = max(widest, s.Width(said))
		c.FillText(s, vg.Point{X: area.Max.X + 7, Y: y}, said)
	}
	h.upright(c, area.Max.X+7+widest+6, area, "receive speed ("+name+")")
}
