package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// arrow is the symbol of a trial that was cut: its value is beyond.
const arrow = -1

// symbolShapes tell controls apart where colours do not, the first is a circle;
// points are in units of the symbol's size.
var symbolShapes = [...][][2]float64{
	nil,
	{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
	{{0, -1.25}, {1.25, 0}, {0, 1.25}, {-1.25, 0}},
	{{0, 1.15}, {1.15, -0.86}, {-1.15, -0.86}},
	{{0, -1.15}, {1.15, 0.86}, {-1.15, 0.86}},
	{{-0.4, -1.2}, {0.4, -1.2}, {0.4, -0.4}, {1.2, -0.4}, {1.2, 0.4}, {0.4, 0.4}, {0.4, 1.2}, {-0.4, 1.2}, {-0.4, 0.4}, {-1.2, 0.4}, {-1.2, -0.4}, {-0.4, -0.4}},
	{{-1.2, 0}, {-0.6, 1.05}, {0.6, 1.05}, {1.2, 0}, {0.6, -1.05}, {-0.6, -1.05}},
	{{-1.15, 0.77}, {1.15, 0.77}, {0, 0}, {1.15, -0.77}, {-1.15, -0.77}, {0, 0}},
}

// symbol draws the mark of a control; edge may be nil.
func symbol(c draw.Canvas, i int, at vg.Point, size vg.Length, fill, edge color.Color) {
	points := [][2]float64{{-1, 1.1}, {1.2, 0}, {-1, -1.1}}
	if i >= 0 {
		points = symbolShapes[i%len(symbolShapes)]
	}
	var p vg.Path
	if points == nil {
		p.Move(vg.Point{X: at.X + size, Y: at.Y})
		p.Arc(at, size, 0, 2*math.Pi)
	}
	for n, q := range points {
		to := vg.Point{X: at.X + size*vg.Length(q[0]), Y: at.Y + size*vg.Length(q[1])}
		if n == 0 {
			p.Move(to)
		} else {
			p.Line(to)
		}
	}
	p.Close()
	c.SetColor(fill)
	c.Fill(p)
	if edge != nil {
		c.SetColor(edge)
		c.SetLineWidth(0.9)
		c.SetLineDash(nil, 0)
		c.Stroke(p)
	}
}
