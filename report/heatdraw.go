package report

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/internal/heat"
	"pelt/report/internal/words"
	"pelt/report/rows"
)

// heatSteps is how many colours a map has: more of them no eye tells apart.
const heatSteps = 48

// Sizes of a heat map in pixels.
const (
	heatRoom   = 1030.0 // for the cells across
	heatTall   = 330.0  // for the cells up
	heatTop    = 54.0   // colour bar above the cells
	heatBottom = 44.0
	heatFont   = 12.0
	heatBar    = 300.0
)

// heatDrawing places the cells of one grid; y runs upwards, as on any chart.
type heatDrawing struct {
	doc                   model.Document
	t                     rows.Table
	g                     rows.Grid
	left, top, wide, high float64 // of the cells; wide and high of one
	xName, yName          string
	xLabels, yLabels      []string
	width, height         float64 // of the picture
}

func newHeatDrawing(doc model.Document, t rows.Table, g rows.Grid) *heatDrawing {
	d := &heatDrawing{doc: doc, t: t, g: g, top: heatTop}
	d.xName, d.xLabels = words.Side(g.X)
	d.yName, d.yLabels = words.Side(g.Y)
	label := 0.0
	for _, l := range d.yLabels {
		label = max(label, textWidth(l, heatFont))
	}
	d.left = 8 + label + 10
	if g.Y.Key != "" {
		d.left += 22 // its name
	}
	nx, ny := float64(len(g.X.Levels)), float64(len(g.Y.Levels))
	d.wide = min(120, max(4, (heatRoom-d.left)/nx))
	d.high = min(max(52, min(96, heatTall/ny*0.8)), max(6, heatTall/ny)) // a few rows leave room for the side's name
	d.width = max(d.left+d.wide*nx+24, 560)
	d.height = d.top + d.high*ny + heatBottom
	return d
}

// corner is where a corner of the grid lies, counted in cells from its first levels.
func (d *heatDrawing) corner(x, y int) (px, py float64) {
	return d.left + float64(x)*d.wide, d.top + float64(len(d.g.Y.Levels)-y)*d.high
}

func (d *heatDrawing) draw(measures []heatMeasure, scales []heat.Scale, best int, ties []int) heatMap {
	h := heatMap{Class: "small", Width: px(d.width), Height: px(d.height)}
	if d.width > 700 {
		h.Class = "large"
	}
	columns := sweepColumns(d.doc.Plan, d.t.Keys, "")
	var base, bad strings.Builder
	d.each(func(x, y int, r *rows.Row) {
		cx, cy := d.corner(x, y+1)
		d.rect(&base, x, y)
		if r == nil {
			return
		}
		if r.State != model.Valid {
			fmt.Fprintf(&bad, "M%s %sl%s %sm0 %sl%s %s", px(cx+2), px(cy+2), px(d.wide-4), px(d.high-4), px(4-d.high), px(4-d.wide), px(d.high-4))
		}
		h.Cells = append(h.Cells, heatCell{px(cx), px(cy), px(d.wide), px(d.high), heatTitle(d.doc, d.t, *r, columns)})
	})
	h.Base, h.Bad = base.String(), bad.String()
	for i, m := range measures {
		h.Layers = append(h.Layers, d.layer(i, m, scales[i]))
	}
	if slices.ContainsFunc(ties, d.g.Has) {
		h.Ties = d.outline(append(slices.Clone(ties), best))
	}
	if d.g.Has(best) {
		h.Best = d.outline([]int{best})
	}
	h.Texts = d.labels(best)
	return h
}

// each visits every cell; r is nil where no trial was finished.
func (d *heatDrawing) each(visit func(x, y int, r *rows.Row)) {
	for y, line := range d.g.Rows {
		for x, i := range line {
			if i < 0 {
				visit(x, y, nil)
				continue
			}
			visit(x, y, &d.t.Rows[i])
		}
	}
}

// rect adds a cell to a path.
func (d *heatDrawing) rect(b *strings.Builder, x, y int) {
	cx, cy := d.corner(x, y+1)
	fmt.Fprintf(b, "M%s %sh%sv%sh-%sz", px(cx), px(cy), px(d.wide), px(d.high), px(d.wide))
}

// layer colours the valid cells by one figure, and explains the colours.
func (d *heatDrawing) layer(n int, m heatMeasure, scale heat.Scale) heatLayer {
	l := heatLayer{Number: n}
	paths := make([]strings.Builder, heatSteps)
	d.each(func(x, y int, r *rows.Row) {
		if r == nil || r.State != model.Valid {
			return
		}
		v := m.value(*r)
		if !finite(v) {
			return
		}
		step := min(int(scale.Place(v)*heatSteps), heatSteps-1)
		d.rect(&paths[step], x, y)
		text := m.cell(v)
		if d.high >= 22 && textWidth(text, heatFont) <= d.wide-8 {
			class := "onlight"
			if heat.Dark(stepColour(step)) {
				class = "ondark"
			}
			cx, cy := d.corner(x, y+1)
			l.Texts = append(l.Texts, shape{Class: class, Anchor: "middle", X: px(cx + d.wide/2), Y: px(cy + d.high/2 + 4), Text: text})
		}
	})
	for i := range paths {
		if paths[i].Len() > 0 {
			l.Fills = append(l.Fills, heatFill{heat.Hex(stepColour(i)), paths[i].String()})
		}
	}
	d.bar(&l, m, scale)
	return l
}

// bar draws the colour bar above the cells, with round values below it.
func (d *heatDrawing) bar(l *heatLayer, m heatMeasure, scale heat.Scale) {
	name, div := heat.Scale{High: scale.High * m.factor}.Unit(m.units, m.times)
	div /= m.factor
	title := m.name + " (" + name + ")"
	if scale.Log {
		title = m.name + " (" + name + ", log scale)"
	}
	left := d.left + textWidth(title, heatFont)*bold + 14
	for i := range heatSteps {
		x := left + heatBar/heatSteps*float64(i)
		l.Bar = append(l.Bar, heatFill{heat.Hex(stepColour(i)), fmt.Sprintf("M%s 8h%sv12h-%sz", px(x), px(heatBar/heatSteps+0.4), px(heatBar/heatSteps+0.4))})
	}
	l.Names = append(l.Names, shape{Class: "name", Anchor: "start", X: px(d.left), Y: px(18), Text: title})
	var ticks strings.Builder
	for _, v := range scale.Ticks() {
		x := left + heatBar*scale.Place(v)
		fmt.Fprintf(&ticks, "M%s 20v4", px(x))
		l.Names = append(l.Names, shape{Class: "tick", Anchor: "middle", X: px(x), Y: px(36), Text: strconv.FormatFloat(v/div, 'g', 4, 64)})
	}
	l.Ticks = ticks.String()
}

func stepColour(i int) color.RGBA { return heat.Colour(float64(i) / (heatSteps - 1)) }

func (d *heatDrawing) outline(wanted []int) string {
	var b strings.Builder
	d.g.Outline(wanted, func(x0, y0, x1, y1 int) {
		ax, ay := d.corner(x0, y0)
		bx, by := d.corner(x1, y1)
		fmt.Fprintf(&b, "M%s %sL%s %s", px(ax), px(ay), px(bx), px(by))
	})
	return b.String()
}

// labels are the levels along both sides and their names. Where labels would
// touch, those of the best cell and the ends stay.
func (d *heatDrawing) labels(best int) []shape {
	var out []shape
	bestX, bestY := -1, -1
	for y, line := range d.g.Rows {
		if x := slices.Index(line, best); x >= 0 && best >= 0 {
			bestX, bestY = x, y
		}
	}
	class := func(i, best int) string {
		if i == best {
			return "tick hit"
		}
		return "tick"
	}
	bottom := d.top + d.high*float64(len(d.yLabels))
	for _, i := range heat.Apart(len(d.xLabels), bestX, func(i int) (at, half float64) {
		return d.wide * (float64(i) + 0.5), textWidth(d.xLabels[i], heatFont)*bold/2 + 3
	}) {
		out = append(out, shape{Class: class(i, bestX), Anchor: "middle", X: px(d.left + d.wide*(float64(i)+0.5)), Y: px(bottom + 16), Text: d.xLabels[i]})
	}
	for _, i := range heat.Apart(len(d.yLabels), bestY, func(i int) (at, half float64) { return d.high * (float64(i) + 0.5), 7.5 }) {
		if d.yLabels[i] != "" {
			_, y := d.corner(0, i)
			out = append(out, shape{Class: class(i, bestY), Anchor: "end", X: px(d.left - 8), Y: px(y - d.high/2 + 4), Text: d.yLabels[i]})
		}
	}
	out = append(out, shape{Class: "name", Anchor: "middle", X: px(d.left + d.wide*float64(len(d.xLabels))/2), Y: px(bottom + 37), Text: d.xName})
	if name := d.yName; name != "" {
		for n := len([]rune(name)); textWidth(name, heatFont)*bold > bottom-d.top+12 && n > 2; n-- {
			name = words.Shorten(name, n-1)
		}
		out = append(out, shape{Class: "name up", Anchor: "middle", X: px(15), Y: px((d.top + bottom) / 2), Text: name})
	}
	return out
}
