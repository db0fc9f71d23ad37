package draw

import (
	"math"

	"pelt/view"
)

// intervals draws a row for each category: a bar to its figure, its interval, a dot.
func intervals(p *Picture, c view.Chart) {
	points := c.Series[0].Points
	longest, e, room := 0.0, noExtent(), 0.0
	for _, name := range c.Y.Categories {
		longest = max(longest, textWidth(name, small))
	}
	for _, q := range points {
		e.add(q.X)
		if q.Low < q.High {
			e.add(q.Low, q.High)
		}
		room = max(room, textWidth(c.X.Unit.Format(q.X), small))
	}
	left, above := min(longest, 0.4*p.Width)+14, 0.0
	if longest > 0.34*p.Width {
		left, above = 4, 16
	}
	const top, lane = 10.0, 22.0
	row := lane + 6 + above
	p.Height = top + row*float64(len(c.Y.Categories)) + 42
	x := fromZero(c.X, e, int(p.Width/130)).between(left, p.Width-room-16)
	ticksX(p, x, top-6, p.Height-40, true)
	p.print(p.Width, p.Height-6, label{text: c.X.Label, size: small, ink: Soft, anchor: End})
	for i, name := range c.Y.Categories {
		y := top + row*float64(i)
		if above > 0 {
			p.print(0, y+11, label{text: name, size: small, ink: Text})
		} else {
			p.print(left-12, y+row/2+1, label{text: fit(name, small, left-14), size: small, ink: Text, anchor: End})
		}
	}
	for _, q := range points {
		ink := toneInk(q.Tone, inkOf(c.Series[0], 0))
		intervalRow(p, x, q, top+row*q.Y+above+lane/2, ink, c.X.Unit.Format(q.X))
	}
}

func intervalRow(p *Picture, x scale, q view.Point, y float64, ink Ink, figure string) {
	zero, at := x.at(0), x.at(q.X)
	p.box(min(zero, at), y-5, math.Abs(at-zero), 10, 2, ink, 0.22, q.Name)
	end := at + 6
	if q.Low < q.High {
		low, high := x.at(q.Low), x.at(q.High)
		p.line(ink, 2, low, y, high, y)
		p.line(ink, 2, low, y-4, low, y+4)
		p.line(ink, 2, high, y-4, high, y+4)
		end = max(end, high)
	}
	p.dot(at, y, 5, ink, q.Name)
	p.print(end+5, y+4, label{text: figure, size: small, ink: Text})
}
