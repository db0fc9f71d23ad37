package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pelt/report/controls"
	"pelt/unit"
)

// field is a small chart's frame with its two axes.
type field struct {
	draw.Canvas
	x, y     controls.Axis
	mirrored bool // x runs from right to left
}

func newField(c draw.Canvas, title string, x, y controls.Axis, mirrored bool, xName string, xText, yText func(float64) string) field {
	s, small := style(10, ink, true), style(9, ink, false)
	for _, line := range wrap(s, title, c.Max.X-c.Min.X, 2) {
		c.FillText(s, vg.Point{X: c.Min.X, Y: c.Max.Y}, line)
		c.Max.Y -= 13
	}
	wide := vg.Length(0)
	for _, v := range y.Ticks() {
		wide = max(wide, small.Width(short(yText(v))))
	}
	f := field{draw.Crop(c, wide+6, -8, 34, -6), x, y, mirrored}
	for _, v := range y.Ticks() {
		at := f.at(x.Low, v).Y
		f.StrokeLine2(draw.LineStyle{Color: rule, Width: 0.7}, f.Min.X, at, f.Max.X, at)
		text := short(yText(v))
		c.FillText(small, vg.Point{X: f.Min.X - 5 - small.Width(text), Y: at + 5}, text)
	}
	across := func(v float64) vg.Length { return f.at(v, y.Low).X }
	for _, v := range x.Ticks() {
		f.StrokeLine2(draw.LineStyle{Color: rule, Width: 0.7}, across(v), f.Min.Y, across(v), f.Max.Y)
	}
	below(c, x.Ticks(), xText, across, f.Min.Y-4)
	name := style(9, faint, false)
	c.FillText(name, vg.Point{X: (f.Min.X + f.Max.X - name.Width(xName)) / 2, Y: f.Min.Y - 18}, xName)
	return f
}

func (f field) at(x, y float64) vg.Point {
	px := f.x.Place(x)
	if f.mirrored {
		px = 1 - px
	}
	return vg.Point{X: f.Min.X + (f.Max.X-f.Min.X)*vg.Length(px), Y: f.Min.Y + (f.Max.Y-f.Min.Y)*vg.Length(f.y.Place(y))}
}

// scatter draws goodput against delay; false if no control has both.
func (p *controlPicture) scatter(c draw.Canvas) bool {
	var goodputs, delays []float64
	cells := p.right.Cells[:len(p.table.Controls)]
	for i := range cells {
		trials, middle, ok := cells[i].Scatter()
		if !ok {
			continue
		}
		for _, q := range append(trials, middle) {
			goodputs, delays = append(goodputs, q.Goodput), append(delays, q.Delay)
		}
	}
	x, ok := controls.LogAxis(delays)
	y, okY := controls.ZeroAxis(goodputs)
	if !ok || !okY {
		return false
	}
	f := newField(c, join(p.where, "goodput against delay; up and right is better"), x, y, true, "← p95 of a thin flow's round trips (log scale)", controls.Seconds, unit.FormatBits)
	for i := range cells {
		trials, _, _ := cells[i].Scatter()
		for _, q := range trials {
			symbol(f.Canvas, i, f.at(q.Delay, q.Goodput), 2.6, pale(hue(i)), nil)
		}
	}
	for i := range cells {
		if _, middle, ok := cells[i].Scatter(); ok {
			symbol(f.Canvas, i, f.at(middle.Delay, middle.Goodput), 5.4, hue(i), color.White)
		}
	}
	return true
}

// ended draws the share of transfers that had ended over time.
func (p *controlPicture) ended(c draw.Canvas) {
	var all []float64
	cells := p.right.Cells[:len(p.table.Controls)]
	for i := range cells {
		steps, upTo := cells[i].Finished()
		for _, s := range steps {
			all = append(all, s.Seconds)
		}
		all = append(all, upTo)
	}
	x, ok := controls.LogAxis(all)
	if !ok {
		return
	}
	f := newField(c, join(p.where, "transfers that had ended"), x, controls.Axis{High: 1}, false, "time (log scale)", p.table.Metric.Format, unit.FormatRatio)
	for i := range cells {
		steps, upTo := cells[i].Finished()
		if upTo == 0 {
			continue
		}
		line, share := []vg.Point{f.at(x.Low, 0)}, 0.0
		for _, s := range steps {
			line = append(line, f.at(s.Seconds, share), f.at(s.Seconds, s.Share))
			share = s.Share
		}
		if share == 1 {
			upTo = x.High
		}
		line = append(line, f.at(upTo, share))
		f.StrokeLines(draw.LineStyle{Color: hue(i), Width: 1.8}, line)
		if share < 1 {
			symbol(f.Canvas, i, f.at(upTo, share), 4, hue(i), color.White)
		}
	}
}
