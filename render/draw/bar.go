package draw

import (
	"math"

	"pelt/view"
)

const mostNamed = 16

type barChart struct {
	*Picture
	view.Chart
	pieces  [][]piece // by category
	totals  []float64
	longest float64 // name of a category
	widest  float64 // figure at the end of a bar
	top     float64
}

type piece struct {
	from, to float64
	ink      Ink
	tip      string
}

// bars draws stacked bars. Where names are too long for upright bars, the bars lie.
func bars(p *Picture, c view.Chart) {
	n := len(c.X.Categories)
	g := &barChart{Picture: p, Chart: c, pieces: make([][]piece, n), totals: make([]float64, n),
		longest: longest(c.X.Categories)}
	looks := looksOf(c.Series)
	for i, s := range c.Series {
		ink := looks[i].ink
		for _, q := range s.Points {
			k := int(q.X)
			from := g.totals[k]
			g.totals[k] += max(q.Y, 0)
			g.pieces[k] = append(g.pieces[k], piece{from, g.totals[k], ink, q.Name})
		}
	}
	e := noExtent()
	e.add(g.totals...)
	for _, total := range g.totals {
		g.widest = max(g.widest, textWidth(g.Y.Unit.Format(total), small)+4)
	}
	g.top = legend(p, legendOf(c.Series), 0)
	amount := fromZero(g.Y, e, int(p.Height/60))
	slot := (p.Width - labelRoom(p, amount) - 20) / float64(n)
	if n <= mostNamed && (slot < g.longest+8 || slot < g.widest) {
		g.lying(fromZero(g.Y, e, int(p.Width/130)))
		return
	}
	g.upright(amount)
}

func (g *barChart) upright(y scale) {
	left, bottom := labelRoom(g.Picture, y)+10, g.Height-26
	if g.X.Label != "" {
		bottom -= 16
		g.print(g.Width-8, g.Height-6, Shape{Text: g.X.Label, Size: small, Fill: Soft, Anchor: End})
	}
	y = y.between(bottom, g.top+22)
	slot := (g.Width - 8 - left) / float64(len(g.X.Categories))
	rulesY(g.Picture, y, left, g.Width-8)
	g.print(0, g.top+10, Shape{Text: g.Y.Label, Size: small, Fill: Soft})
	every := int(math.Ceil((g.longest + 10) / slot))
	thick := min(0.7*slot, 56)
	for i, name := range g.X.Categories {
		middle := left + slot*(float64(i)+0.5)
		for _, b := range g.pieces[i] {
			g.box(middle-thick/2, y.at(b.to), thick, y.at(b.from)-y.at(b.to),
				Shape{Radius: min(2, 0.2*thick), Fill: b.ink, Tip: b.tip})
		}
		if len(g.X.Categories) <= mostNamed && len(g.pieces[i]) > 0 {
			g.print(middle, min(y.at(g.totals[i])-5, bottom-5),
				Shape{Text: g.Y.Unit.Format(g.totals[i]), Size: small, Fill: Text, Anchor: Middle})
		}
		if i%every == 0 {
			g.print(middle, bottom+17, Shape{Text: name, Size: small, Fill: Soft, Anchor: Middle})
		}
	}
}

// lying draws bars that lie, with the names before them, or above them in a narrow picture.
func (g *barChart) lying(x scale) {
	const thick = 16.0
	left, middle := g.rows(g.X.Categories, g.top+8, thick+10)
	x = x.between(left, g.Width-g.widest-10)
	ticksX(g.Picture, x, g.top, g.Height-42, true)
	g.print(g.Width, g.Height-6, Shape{Text: g.Y.Label, Size: small, Fill: Soft, Anchor: End})
	for i, pieces := range g.pieces {
		y := middle(i)
		for _, b := range pieces {
			g.box(x.at(b.from), y-thick/2, max(x.at(b.to)-x.at(b.from), 1), thick,
				Shape{Radius: 2, Fill: b.ink, Tip: b.tip})
		}
		if len(pieces) > 0 {
			g.print(x.at(g.totals[i])+6, y+4, Shape{Text: g.Y.Unit.Format(g.totals[i]), Size: small, Fill: Text})
		}
	}
}

// rows prints names one below the other, each before a row or, in a narrow picture, above it, and
// makes the picture as high as they need, an axis included. left is where the rows begin.
func (p *Picture) rows(names []string, top, height float64) (left float64, middle func(i int) float64) {
	left, above := min(longest(names), 0.4*p.Width)+14, 0.0
	if longest(names) > 0.34*p.Width {
		left, above = 4, 16
	}
	middle = func(i int) float64 { return top + (height+above)*float64(i) + above + height/2 - 3 }
	for i, name := range names {
		if above > 0 {
			p.print(0, middle(i)-height/2-2, Shape{Text: name, Size: small, Fill: Text, Halo: true})
		} else {
			p.print(left-12, middle(i)+4, Shape{Text: fit(name, small, left-14), Size: small, Fill: Text, Anchor: End})
		}
	}
	p.Height = top + (height+above)*float64(len(names)) + 42
	return left, middle
}

// longest is the width of the longest name in whole pixels, so that what is added to it can be taken away exactly.
func longest(names []string) float64 {
	width := 0.0
	for _, name := range names {
		width = max(width, textWidth(name, small))
	}
	return math.Ceil(width)
}
