package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pelt/report/seconds"
)

const (
	mostFlags  = 24 // marks with a line; those have words that find room in so many rows
	flagRows   = 3
	flagHeight = 11.5
	flagGap    = 8   // between the words of two marks
	lineGap    = 2.5 // between their lines, so that each is to be seen
)

// flag is where the words of a mark stand in the strip above the panels, through which
// no curve runs. A mark's line leads to its words and crosses nobody else's.
type flag struct {
	mark int
	row  int       // from the top
	line vg.Length // where the mark's line is
	from vg.Length // where the words begin
}

// lines are where the marks' lines stand, none far from its time.
func (m *moments) lines(tx func(float64) vg.Length) (all []vg.Length) {
	last := vg.Length(math.Inf(-1))
	for _, k := range m.marks {
		x := tx(k.AtS)
		if x < last+lineGap {
			x = min(last, x+lineGap) + lineGap
		}
		last = max(last, x)
		all = append(all, x)
	}
	return all
}

// flags finds a place for the words of as many marks as have room between the left and
// the right of a panel, and says how many rows they take.
func (m *moments) flags(tx func(float64) vg.Length, left, right vg.Length) (all []flag, rows int) {
	words := style(9, ink, false)
	var taken [flagRows]vg.Length // up to where
	for i := range taken {
		taken[i] = vg.Length(math.Inf(-1))
	}
	for i, x := range m.lines(tx) {
		width := words.Width(m.marks[i].Words)
		from := min(x+3, right-width)
		if from < left {
			continue
		}
		for row := range taken {
			free := from >= taken[row]+flagGap
			for _, end := range taken[row+1:] { // which the line crosses
				free = free && x > end
			}
			if !free {
				continue
			}
			all = append(all, flag{i, row, x, from})
			rows = max(rows, row+1)
			taken[row] = from + width
			for below := row + 1; below < flagRows; below++ {
				taken[below] = max(taken[below], x+2-flagGap) // the line
			}
			break
		}
	}
	return all, rows
}

// above lays panels out below each other in an area, and draws the flags in a strip over
// the uppermost.
func (m *moments) above(panels []*plot.Plot, align func(draw.Canvas) []draw.Canvas, area draw.Canvas) []draw.Canvas {
	at := align(area)
	if len(m.marks) == 0 {
		return at
	}
	top := func() (draw.Canvas, func(float64) vg.Length) {
		c := panels[0].DataCanvas(at[0])
		tx, _ := panels[0].Transforms(&c)
		return c, tx
	}
	c, tx := top()
	all, rows := m.flags(tx, c.Min.X, c.Max.X)
	at = align(draw.Crop(area, 0, 0, 0, -vg.Length(rows)*flagHeight))
	c, _ = top()
	for _, f := range all {
		k := m.marks[f.mark]
		y := c.Max.Y + vg.Length(rows-f.row)*flagHeight
		end := y
		if f.from < f.line {
			end -= flagHeight // the words lie over it
		}
		area.StrokeLine2(lineOf(k), f.line, c.Max.Y, f.line, end)
		area.FillText(style(9, ink, false), vg.Point{X: f.from, Y: y}, k.Words)
	}
	return at
}

func lineOf(k seconds.Mark) draw.LineStyle {
	if k.Made {
		return draw.LineStyle{Color: faint, Width: 0.8, Dashes: []vg.Length{3, 2}}
	}
	return draw.LineStyle{Color: ink, Width: 0.8}
}
