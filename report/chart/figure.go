package chart

import (
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pelt/report/internal/words"
)

// figure is one picture before it is drawn.
type figure struct {
	title    string
	subtitle string
	caption  string
	legend   []*curve
	panels   []*plot.Plot
	flags    *moments // whose words stand over the uppermost panel; nil for none
	heat     *heatMap // instead of panels
	loads    *loadBars
	controls *controlPicture
}

// Inks, and the palette of Okabe and Ito, which colour-blind people can tell
// apart (jfly.uni-koeln.de/color); its yellow, too pale for lines, gives way to
// the wine of Tol (personal.sron.nl/~pault).
var (
	ink   = color.RGBA{0x1a, 0x1f, 0x26, 0xff}
	faint = color.RGBA{0x5b, 0x65, 0x70, 0xff}
	rule  = color.RGBA{0xe3, 0xe7, 0xeb, 0xff}
)

func hue(i int) color.RGBA {
	palette := []color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
		{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x44, 0x44, 0x44, 0xff}, {0x88, 0x22, 0x55, 0xff},
	}
	return palette[i%len(palette)]
}

func style(size vg.Length, c color.Color, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if bold {
		f.Weight = 3 // golang.org/x/image/font.WeightBold
	}
	return text.Style{Color: c, Font: font.From(f, size), Handler: plot.DefaultTextHandler, YAlign: draw.YTop}
}

// draw lays the parts out from top and bottom; the panels share what is left.
func (f figure) draw(c draw.Canvas) {
	c = draw.Crop(c, 24, -24, 16, -18)
	top := c.Max.Y
	room := (c.Max.X - c.Min.X) * 0.88 // an SVG may be shown in a wider font than the one measured here
	paragraph := func(s text.Style, sentence string, lines int, gap vg.Length) {
		for _, line := range wrap(s, sentence, room, lines) {
			c.FillText(s, vg.Point{X: c.Min.X, Y: top}, line)
			top -= s.Font.Size * 1.28
		}
		top -= gap
	}
	big, most := titleStyle(f.title, room)
	paragraph(big, f.title, most, 3)
	paragraph(style(10.5, faint, false), f.subtitle, 1, 5)
	top = f.drawLegend(c, top)

	small := style(9, faint, false)
	lines := wrap(small, f.caption, room, 3)
	bottom := c.Min.Y + vg.Length(len(lines))*small.Font.Size*1.28
	for i, line := range lines {
		c.FillText(small, vg.Point{X: c.Min.X, Y: bottom - vg.Length(i)*small.Font.Size*1.28}, line)
	}
	area := draw.Crop(c, 0, 0, bottom-c.Min.Y+8, top-c.Max.Y-2)
	switch {
	case f.heat != nil:
		f.heat.draw(area)
		return
	case f.loads != nil:
		f.loads.draw(area)
		return
	case f.controls != nil:
		f.controls.draw(area)
		return
	}
	grid := make([][]*plot.Plot, len(f.panels))
	for i, p := range f.panels {
		grid[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(f.panels), Cols: 1, PadY: 10}
	align := func(area draw.Canvas) (all []draw.Canvas) {
		for _, row := range plot.Align(grid, tiles, area) {
			all = append(all, row[0])
		}
		return all
	}
	places := align(area)
	if f.flags != nil {
		places = f.flags.above(f.panels, align, area)
	}
	for i, c := range places {
		f.panels[i].Draw(c)
	}
}

// titleStyle is the largest type in which a title is whole.
func titleStyle(title string, room vg.Length) (s text.Style, lines int) {
	for _, try := range []struct {
		size  vg.Length
		lines int
	}{{15, 2}, {13, 3}, {11, 4}} {
		s, lines = style(try.size, ink, true), try.lines
		if len(wrap(s, title, room, lines+1)) <= lines {
			break
		}
	}
	return s, lines
}

// drawLegend writes the keys from left to right and returns where it ended.
func (f figure) drawLegend(c draw.Canvas, top vg.Length) vg.Length {
	s := style(10, ink, false)
	const swatch, gap = 22, 16
	x := c.Min.X
	for _, k := range f.legend {
		w := swatch + 5 + s.Width(k.name)
		if x > c.Min.X && x+w > c.Max.X {
			x, top = c.Min.X, top-15
		}
		y := top - s.Font.Size*0.55
		c.StrokeLine2(k.line(), x, y, x+swatch, y)
		k.mark(&c, vg.Point{X: x + swatch/2, Y: y}, false)
		c.FillText(s, vg.Point{X: x + swatch + 5, Y: top}, k.name)
		x += w + gap
	}
	if len(f.legend) == 0 {
		return top
	}
	return top - 17
}

// wrap breaks text into lines that fit, the last one cut with an ellipsis.
func wrap(s text.Style, sentence string, width vg.Length, most int) []string {
	var lines []string
	line := ""
	for _, word := range words.Phrases(sentence) {
		longer := strings.TrimPrefix(line+" "+word, " ")
		if line != "" && s.Width(longer) > width {
			lines = append(lines, line)
			longer = word
		}
		line = longer
	}
	if line != "" {
		lines = append(lines, line)
	}
	if len(lines) > most {
		lines = append(lines[:most-1:most-1], lines[most-1]+"…")
	}
	for i, l := range lines {
		lines[i] = squeeze(s, l, width)
	}
	return lines
}

// squeeze cuts one word too long for its line.
func squeeze(s text.Style, line string, width vg.Length) string {
	r := []rune(line)
	for len(r) > 2 && s.Width(string(r)) > width {
		r = append(r[:len(r)-2], '…')
	}
	return string(r)
}

// panel makes an empty plot in the house style.
func panel(x, y axis) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	dress(&p.X, x)
	dress(&p.Y, y)
	p.Add(gridLines{})
	return p
}

func dress(a *plot.Axis, from axis) {
	a.Min, a.Max = from.min, from.max
	if from.log {
		a.Scale = plot.LogScale{}
	}
	a.Label.Text = from.label
	a.Label.TextStyle.Font = style(10.5, ink, false).Font
	a.Label.TextStyle.Color = ink
	a.Label.Padding = 5
	a.Tick.Label.Font = style(10, ink, false).Font
	a.Tick.Label.Color = ink
	a.Tick.Marker = plot.ConstantTicks(from.ticks)
	a.Tick.LineStyle.Color, a.LineStyle.Color = faint, faint
	a.Tick.Length = 4
	a.Padding = 0
}

// gridLines rules a panel at every labelled tick of its y axis.
type gridLines struct{}

func (gridLines) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Label != "" && t.Value > p.Y.Min {
			c.StrokeLine2(draw.LineStyle{Color: rule, Width: 0.8}, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}

// curve is one line of a panel, with its spread and its marks.
type curve struct {
	name   string
	colour color.RGBA
	dashed bool
	thin   bool // a long series: no marks
	x, y   []float64
	lo, hi []float64 // spread of repeats; nil for none
	hollow []bool    // not valid; nil for none
}

func (k *curve) line() draw.LineStyle {
	l := draw.LineStyle{Color: k.colour, Width: 2}
	if k.thin {
		l.Width = 1.5
	}
	if k.dashed {
		l.Width, l.Dashes = 1.3, []vg.Length{5, 3}
	}
	return l
}

func (k *curve) mark(c *draw.Canvas, at vg.Point, hollow bool) {
	if k.thin {
		return
	}
	g := draw.GlyphStyle{Color: color.White, Radius: 3.4, Shape: draw.CircleGlyph{}}
	if k.dashed {
		g.Radius = 2.6
	}
	if !hollow && !k.dashed {
		g.Color = k.colour
	}
	c.DrawGlyphNoClip(g, at)
	g.Color, g.Shape = k.colour, draw.RingGlyph{}
	c.DrawGlyphNoClip(g, at)
}

// Plot draws the curve; points that are not numbers leave a gap.
func (k *curve) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	at := func(i int) vg.Point { return vg.Point{X: tx(k.x[i]), Y: ty(k.y[i])} }
	var run []vg.Point
	stroke := func() {
		c.StrokeLines(k.line(), c.ClipLinesXY(run)...)
		run = nil
	}
	for i := range k.x {
		if math.IsNaN(k.y[i]) {
			stroke()
			continue
		}
		run = append(run, at(i))
	}
	stroke()
	for i := range k.x {
		if math.IsNaN(k.y[i]) {
			continue
		}
		if k.hi != nil && k.hi[i] > k.lo[i] {
			x, bars := tx(k.x[i]), draw.LineStyle{Color: k.colour, Width: 1.2}
			c.StrokeLine2(bars, x, ty(k.lo[i]), x, ty(k.hi[i]))
			c.StrokeLine2(bars, x-4, ty(k.lo[i]), x+4, ty(k.lo[i]))
			c.StrokeLine2(bars, x-4, ty(k.hi[i]), x+4, ty(k.hi[i]))
		}
		k.mark(&c, at(i), k.hollow != nil && k.hollow[i])
	}
}
