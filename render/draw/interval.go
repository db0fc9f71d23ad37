package draw

import (
	"math"

	"pelt/view"
)

// intervals draws a row for each category: a bar to its figure, its interval, a dot.
func intervals(p *Picture, c view.Chart) {
	points := c.Series[0].Points
	e, room := noExtent(), 0.0
	for _, q := range points {
		e.add(q.X)
		if q.Low < q.High {
			e.add(q.Low, q.High)
		}
		room = max(room, textWidth(c.X.Unit.Format(q.X), small))
	}
	left, middle := p.rows(c.Y.Categories, 10, 28)
	x := fromZero(c.X, e, int(p.Width/130)).between(left, p.Width-room-16)
	ticksX(p, x, 4, p.Height-40, true)
	p.print(p.Width, p.Height-6, Shape{Text: c.X.Label, Size: small, Fill: Soft, Anchor: End})
	ink := looksOf(c.Series)[0].ink
	for _, q := range points {
		intervalRow(p, x, q, middle(int(q.Y)), toneInk(q.Tone, ink), c.X.Unit.Format(q.X))
	}
}

func intervalRow(p *Picture, x scale, q view.Point, y float64, ink Ink, figure string) {
	zero, at := x.at(0), x.at(q.X)
	p.box(min(zero, at), y-5, math.Abs(at-zero), 10, Shape{Radius: 2, Fill: ink, Opacity: 0.22, Tip: q.Name})
	end := at + 6
	if q.Low < q.High {
		low, high := x.at(q.Low), x.at(q.High)
		p.line(ink, 2, low, y, high, y)
		p.line(ink, 2, low, y-4, low, y+4)
		p.line(ink, 2, high, y-4, high, y+4)
		end = max(end, high)
	}
	p.dot(at, y, 5, ink, q.Name)
	p.print(end+5, y+4, Shape{Text: figure, Size: small, Fill: Text})
}
