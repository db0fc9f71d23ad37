package draw

import (
	"math"
	"strings"

	"pelt/view"
)

// mostCells is up to how many cells of a heat map have their figures in them.
const mostCells = 60

const (
	faint  = 0.07
	strong = 0.5
	full   = 0.95 // of the greatest where cells have no words
)

func shade(v float64, a view.Axis, e extent, worded bool) float64 {
	low, high := e.low, e.high
	if a.Log && low > 0 {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	share := 1.0
	switch {
	case high > low:
		share = clamp((v-low)/(high-low), 0, 1)
	case v == 0: // nothing anywhere
		share = 0
	}
	if worded {
		return faint + (strong-faint)*share
	}
	return faint + (full-faint)*share
}

// heat draws a map of shaded cells: the first series. Cells without a figure stay empty.
func heat(p *Picture, c view.Chart) {
	e, ink := noExtent(), looksOf(c.Series)[0].ink
	for _, q := range c.Series[0].Points {
		e.add(q.Z)
	}
	left := min(longest(c.Y.Categories), 0.3*p.Width) + 12
	columns, rows := len(c.X.Categories), len(c.Y.Categories)
	worded := columns*rows <= mostCells
	row := 40.0
	if !worded {
		row = max(5, min(26, 420/float64(rows)))
	}
	top := 38.0
	column := (p.Width - left) / float64(columns)
	p.Height = top + row*float64(rows) + 6
	p.print(0, 12, Shape{Text: fit(c.Y.Label, small, 0.45*p.Width), Size: small, Fill: Soft})
	p.print(p.Width, 12, Shape{Text: fit(c.X.Label, small, 0.45*p.Width), Size: small, Fill: Soft, Anchor: End})
	categories(p, c, left, top, column, row)
	pad := min(1.5, 0.08*min(column, row))
	for _, q := range c.Series[0].Points {
		x, y := left+column*q.X, top+row*q.Y
		p.box(x+pad, y+pad, column-2*pad, row-2*pad,
			Shape{Radius: min(4, 0.2*row), Fill: ink, Opacity: shade(q.Z, c.Z, e, worded), Tip: q.Name})
		if worded {
			cellFigure(p, c.Z.Unit.Format(q.Z), x+column/2, y+row/2, column-6, q.Z == e.high && e.high > e.low)
		}
	}
	if !worded && !e.empty() {
		shades(p, c, e, ink)
	}
}

// leastName is how wide the names above a map are at least before some are left out, in pixels.
const leastName = 64.0

func categories(p *Picture, c view.Chart, left, top, column, row float64) {
	widest := min(longest(c.X.Categories), max(column-8, leastName))
	every := max(1, int(math.Ceil((widest+8)/column)))
	for i := 0; i < len(c.X.Categories); i += every {
		name := fitName(c.X.Categories[i], small, max(column*float64(every)-4, 30))
		l := Shape{Text: name, Size: small, Fill: Text, Anchor: Middle}
		at := clamp(left+column*(float64(i)+0.5), l.width()/2, p.Width-l.width()/2)
		p.try(area{-1, 0, p.Width + 1, top}, l, [2]float64{at, top - 8})
	}
	every = max(1, int(math.Ceil(15/row)))
	for i := 0; i < len(c.Y.Categories); i += every {
		name := fitName(c.Y.Categories[i], small, left-12)
		p.print(left-10, top+row*(float64(i)+0.5)+4, Shape{Text: name, Size: small, Fill: Text, Anchor: End})
	}
}

// cellFigure prints the figure of a cell, in two lines where it is narrow, and not at all where it is too narrow.
func cellFigure(p *Picture, figure string, x, y, room float64, bold bool) {
	l := Shape{Text: figure, Size: small, Fill: Text, Anchor: Middle, Bold: bold}
	if textWidth(figure, small) <= room {
		p.print(x, y+4, l)
		return
	}
	number, name, _ := strings.Cut(figure, " ")
	if textWidth(number, small) > room {
		l.Size = 10
	}
	if max(textWidth(number, l.Size), textWidth(name, 10)) > room {
		return
	}
	l.Text = number
	p.print(x, y-1, l)
	p.print(x, y+11, Shape{Text: name, Size: 10, Fill: Text, Anchor: Middle})
}

// shades shows below the map what its shades mean.
func shades(p *Picture, c view.Chart, e extent, ink Ink) {
	const steps = 24
	y := p.Height + 10
	p.Height += 32
	low, high := c.Z.Unit.Format(e.low), c.Z.Unit.Format(e.high)
	words := c.Z.Label
	if c.Z.Log && e.low > 0 {
		words += c.Language.Say(", logarithmic")
	}
	x := textWidth(low, small) + 8
	room := p.Width - x - textWidth(high, small) - 10
	step := min(6, room/steps)
	if beside := (room - textWidth(words, small) - 14) / steps; beside > 3 {
		step = min(6, beside) // the words have their place, too
	}
	if step <= 0 {
		return
	}
	p.print(0, y+10, Shape{Text: low, Size: small, Fill: Soft})
	for i := range steps {
		p.box(x+float64(i)*step, y, step, 12, Shape{Fill: ink, Opacity: faint + (full-faint)*float64(i)/(steps-1)})
	}
	x += steps*step + 8
	p.print(x, y+10, Shape{Text: high, Size: small, Fill: Soft})
	x += textWidth(high, small) + 14
	if room := p.Width - x; room > 40 {
		p.print(x, y+10, Shape{Text: fit(words, small, room), Size: small, Fill: Soft})
	}
}
