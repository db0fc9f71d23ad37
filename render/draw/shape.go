// Package draw lays out charts, times and paths as lists of plain shapes.
//
// Sections of a report and a width come in, pictures go out. It knows no file
// format and no colours: inks name what a colour means, and the writers of SVG and
// PNG choose the colours. Whatever the data, every shape lies inside its picture.
package draw

import (
	"math"
	"slices"

	"pelt/render/plain"
)

// Ink is a colour by its meaning.
type Ink int

const (
	None  Ink = iota
	Back      // the page
	Panel     // boxes on the page
	Rule      // grid lines and borders
	Soft      // axes and small print
	Text
	Good
	Bad
	Series1
	Series2
	Series3
	Series4
	Series5
	Series6
	Inks // how many there are
)

func seriesInk(i int) Ink { return Series1 + Ink(i%int(Inks-Series1)) }

// Dash is how a line is broken.
type Dash int

const (
	Whole Dash = iota
	Dotted
	DashDot
	Dashed
	dashes // how many there are
)

// Lengths are those of the dashes of a line and of the gaps behind them in turn, in pixels; none of a whole line.
func (d Dash) Lengths() []float64 {
	return [dashes][]float64{Dotted: {2, 3}, DashDot: {6, 2, 2, 2}, Dashed: {5, 4}}[d]
}

type Form int

const (
	Box Form = iota
	Polyline
	Polygon
	Dot
	Words
)

// Anchor is which end of the words stands at their place.
type Anchor int

const (
	Start Anchor = iota
	Middle
	End
)

// Shape is one thing to draw, in pixels from the upper left corner.
type Shape struct {
	Form         Form
	At           []float64 // x, y pairs; of a Box x, y, width, height
	Fill, Stroke Ink
	Width        float64 // of the stroke
	Opacity      float64 // of the fill; 0 is opaque
	Dash         Dash    // of the stroke
	Radius       float64 // of a Dot, or of the corners of a Box
	Text         string
	Size         float64 // of the words
	Anchor       Anchor
	Bold         bool
	Halo         bool   // the words have a rim of the page's colour
	Tip          string // shown when pointed at
}

type Picture struct {
	Width, Height float64
	Title, Note   string
	Shapes        []Shape
	labels        []area       // where words stand already
	crowded       [][2]float64 // places that figures keep clear of: dots, and points along lines
}

const (
	small  = 12.0
	normal = 13.0
)

func (p *Picture) add(s Shape) { p.Shapes = append(p.Shapes, s) }

func (p *Picture) box(x, y, w, h float64, look Shape) {
	look.Form, look.At = Box, []float64{x, y, max(w, 0), max(h, 0)}
	p.add(look)
}

func (p *Picture) line(ink Ink, width float64, at ...float64) {
	p.add(Shape{Form: Polyline, At: at, Stroke: ink, Width: width})
}

// under puts a shape below all others.
func (p *Picture) under(s Shape) { p.Shapes = slices.Insert(p.Shapes, 0, s) }

// dot has a rim of the page's colour, so that dots on a line and on each other stay apart.
func (p *Picture) dot(x, y, radius float64, fill Ink, tip string) {
	p.add(Shape{Form: Dot, At: []float64{x, y}, Radius: radius, Fill: fill, Stroke: Back, Width: 1.5, Tip: tip})
}

// print puts words at a place, their baseline at y, and moves or cuts them where they would leave the picture.
func (p *Picture) print(x, y float64, l Shape) {
	room := p.Width
	if l.Bold {
		room /= boldness
	}
	if l.Text = fit(plain.Text(l.Text), l.Size, room); l.Text == "" {
		return
	}
	a := l.area(x, y)
	if a.left < 0 {
		x -= a.left
	} else if a.right > p.Width {
		x -= a.right - p.Width
	}
	p.labels = append(p.labels, l.area(x, y))
	l.Form, l.At = Words, []float64{x, y}
	p.add(l)
}

// try prints words at the first of some places where they touch no other words and
// stay inside the frame. Words without such a place are left out.
func (p *Picture) try(frame area, l Shape, places ...[2]float64) bool {
	l.Halo = true
	for _, at := range places {
		a := l.area(at[0], at[1])
		if a.left < frame.left || a.right > frame.right || a.top < frame.top || a.bottom > frame.bottom || p.taken(a) {
			continue
		}
		p.print(at[0], at[1], l)
		return true
	}
	return false
}

// keepClear makes figures keep clear of a line.
func (p *Picture) keepClear(at []float64) {
	const step = 5
	for i := 0; i+1 < len(at); i += 2 {
		p.crowded = append(p.crowded, [2]float64{at[i], at[i+1]})
		if i == 0 {
			continue
		}
		dx, dy := at[i]-at[i-2], at[i+1]-at[i-1]
		for n, total := 1.0, math.Hypot(dx, dy)/step; n < total && n < 500; n++ {
			p.crowded = append(p.crowded, [2]float64{at[i-2] + dx*n/total, at[i-1] + dy*n/total})
		}
	}
}

func (p *Picture) taken(a area) bool {
	for _, c := range p.crowded {
		if c[0] > a.left-2 && c[0] < a.right+2 && c[1] > a.top-1 && c[1] < a.bottom+1 {
			return true
		}
	}
	for _, b := range p.labels {
		if a.left < b.right+3 && b.left < a.right+3 && a.top < b.bottom && b.top < a.bottom {
			return true
		}
	}
	return false
}

type area struct{ left, top, right, bottom float64 }

// distance is how far a place is from the area.
func (a area) distance(x, y float64) float64 {
	return math.Hypot(max(a.left-x, x-a.right, 0), max(a.top-y, y-a.bottom, 0))
}

func (l Shape) width() float64 {
	if l.Bold {
		return boldness * textWidth(l.Text, l.Size)
	}
	return textWidth(l.Text, l.Size)
}

func (l Shape) area(x, y float64) area {
	w := l.width()
	switch l.Anchor {
	case Middle:
		x -= w / 2
	case End:
		x -= w
	}
	return area{x, y - 0.8*l.Size, x + w, y + 0.25*l.Size}
}

// clamp keeps a place between two others; a place that is no number is the first.
func clamp(v, a, b float64) float64 {
	if math.IsNaN(v) {
		return a
	}
	return max(min(a, b), min(v, max(a, b)))
}
