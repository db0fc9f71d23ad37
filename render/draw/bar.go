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
	g := &barChart{Picture: p, Chart: c, pieces: make([][]piece, n), totals: make([]float64, n)}
	for i, s := range c.Series {
		ink := inkOf(s, i)
		for _, q := range s.Points {
			k := int(q.X)
			from := g.totals[k]
			g.totals[k] += max(q.Y, 0)
			g.pieces[k] = append(g.pieces[k], piece{from, g.totals[k], ink, q.Name})
		}
	}
	e := noExtent()
	e.add(g.totals...)
	for i, name := range c.X.Categories {
		g.longest = max(g.longest, textWidth(name, small))
		g.widest = max(g.widest, textWidth(g.Y.Unit.Format(g.totals[i]), small)+4)
	}
	g.top = legend(p, legendOf(c))
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
		g.print(g.Width-8, g.Height-6, label{text: g.X.Label, size: small, ink: Soft, anchor: End})
	}
	y = y.between(bottom, g.top+22)
	slot := (g.Width - 8 - left) / float64(len(g.X.Categories))
	rulesY(g.Picture, y, left, g.Width-8)
	g.print(0, g.top+10, label{text: g.Y.Label, size: small, ink: Soft})
	every := int(math.Ceil((g.longest + 10) / slot))
	thick := min(0.7*slot, 56)
	for i, name := range g.X.Categories {
		middle := left + slot*(float64(i)+0.5)
		for _, b := range g.pieces[i] {
			g.box(middle-thick/2, y.at(b.to), thick, y.at(b.from)-y.at(b.to), min(2, 0.2*thick), b.ink, 0, b.tip)
		}
		if len(g.X.Categories) <= mostNamed && len(g.pieces[i]) > 0 {
			g.print(middle, min(y.at(g.totals[i])-5, bottom-5),
				label{text: g.Y.Unit.Format(g.totals[i]), size: small, ink: Text, anchor: Middle})
		}
		if i%every == 0 {
			g.print(middle, bottom+17, label{text: name, size: small, ink: Soft, anchor: Middle})
		}
	}
}

// lying draws bars that lie, with the names before them, or above them in a narrow picture.
func (g *barChart) lying(x scale) {
	const thick = 16.0
	left, row, above := min(g.longest, 0.4*g.Width)+12, thick+10, 0.0
	if g.longest > 0.34*g.Width {
		left, above = 2, 17
		row += above
	}
	x = x.between(left, g.Width-g.widest-10)
	g.Height = g.top + 8 + row*float64(len(g.X.Categories)) + 44
	ticksX(g.Picture, x, g.top, g.Height-42, true)
	g.print(g.Width, g.Height-6, label{text: g.Y.Label, size: small, ink: Soft, anchor: End})
	for i, name := range g.X.Categories {
		y := g.top + 8 + row*float64(i)
		if above > 0 {
			g.print(0, y+12, label{text: name, size: small, ink: Text})
			y += above
		} else {
			g.print(left-10, y+thick/2+4, label{text: fit(name, small, left-12), size: small, ink: Text, anchor: End})
		}
		for _, b := range g.pieces[i] {
			g.box(x.at(b.from), y, max(x.at(b.to)-x.at(b.from), 1), thick, 2, b.ink, 0, b.tip)
		}
		if len(g.pieces[i]) > 0 {
			g.print(x.at(g.totals[i])+6, y+thick/2+4,
				label{text: g.Y.Unit.Format(g.totals[i]), size: small, ink: Text})
		}
	}
}
