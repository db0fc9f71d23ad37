package draw

import (
	"cmp"
	"math"
	"slices"

	"pelt/render/plain"
	"pelt/view"
)

// Chart draws a chart at a width. A chart whose height is free is at least so high.
func Chart(c view.Chart, width, height float64) Picture {
	p := Picture{Width: max(width, 240), Height: max(height, 230), Title: plain.Text(c.Title), Note: c.Note}
	if c.Hero {
		p.Height = max(height, 300)
	}
	c = Clean(c)
	if (c.Kind == view.Heat || c.Kind == view.Interval) && len(c.Series) > 1 {
		c.Series = c.Series[:1]
	}
	switch {
	case Empty(c):
		return Picture{Title: p.Title}
	case c.Kind == view.Interval:
		intervals(&p, c)
	case c.Kind == view.Heat:
		heat(&p, c)
	case c.Kind == view.Stack:
		bars(&p, c)
	default:
		lines(&p, c)
	}
	return p
}

func Empty(c view.Chart) bool {
	for _, s := range Clean(c).Series {
		if len(s.Points) > 0 {
			return false
		}
	}
	return true
}

// Clean copies a chart without points that have no place on it, and with names that are safe to show.
func Clean(c view.Chart) view.Chart {
	for _, a := range []*view.Axis{&c.X, &c.Y, &c.Z} {
		a.Label = plain.Text(a.Label)
		a.Categories = slices.Clone(a.Categories)
		for i, name := range a.Categories {
			a.Categories[i] = plain.Text(name)
		}
	}
	category := func(v float64, a view.Axis) bool {
		return v == math.Trunc(v) && v >= 0 && v < float64(len(a.Categories))
	}
	ofSeries := slices.Clone(c.Series)
	for i, s := range ofSeries {
		s.Name, s.Points = plain.Text(s.Name), nil
		for _, q := range c.Series[i].Points {
			keep := finite(q.X) && finite(q.Y)
			switch c.Kind {
			case view.Stack:
				keep = category(q.X, c.X) && finite(q.Y)
			case view.Interval:
				keep = category(q.Y, c.Y) && finite(q.X)
			case view.Heat:
				keep = category(q.X, c.X) && category(q.Y, c.Y) && finite(q.Z)
			}
			if !keep {
				continue
			}
			if !finite(q.Low) || !finite(q.High) {
				q.Low, q.High = 0, 0
			}
			q.Name = plain.Text(q.Name)
			s.Points = append(s.Points, q)
		}
		if c.Kind == view.Line {
			slices.SortStableFunc(s.Points, func(a, b view.Point) int { return cmp.Compare(a.X, b.X) })
		}
		ofSeries[i] = s
	}
	c.Series = ofSeries
	c.Marks = slices.DeleteFunc(slices.Clone(c.Marks), func(m view.Mark) bool { return !finite(m.At) })
	return c
}

// look is how a line is drawn. Bars have no dashes.
type look struct {
	ink  Ink
	dash Dash
}

// looksOf tells series apart. The first of a tone has the ink of the tone. Those that share an ink differ in their
// dashes; guests are dashed, as long as they share none.
func looksOf(all []view.Series) []look {
	out, toned, shared := make([]look, len(all)), map[view.Tone]bool{}, map[look]Dash{}
	for i, s := range all {
		out[i].ink = seriesInk(i)
		if !toned[s.Tone] {
			out[i].ink, toned[s.Tone] = toneInk(s.Tone, out[i].ink), true
		}
		kind := out[i]
		if s.Guest {
			kind.dash = Dashed
		}
		before := shared[kind] % dashes
		if out[i].dash = before; s.Guest {
			out[i].dash = Dashed - before
		}
		shared[kind]++
	}
	return out
}

func toneInk(t view.Tone, plainInk Ink) Ink {
	switch t {
	case view.Good:
		return Good
	case view.Bad:
		return Bad
	case view.Muted:
		return Soft
	}
	return plainInk
}

type entry struct {
	name string
	look
}

// legend names series from a height on, and returns where the chart below it begins. One
// series needs no name beside the title.
func legend(p *Picture, entries []entry, top float64) float64 {
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.name == "" })
	if len(entries) < 2 {
		return top + 4
	}
	x, y := 0.0, top+10
	for _, e := range entries {
		lines := wrap(e.name, small, p.Width-30, 2)
		wide := longest(lines)
		if x > 0 && x+wide+18 > p.Width {
			x, y = 0, y+18
		}
		if e.dash == Whole {
			p.box(x, y-6, 12, 8, Shape{Radius: 2, Fill: e.ink})
		} else {
			p.add(Shape{Form: Polyline, At: []float64{x, y - 2, x + 12, y - 2}, Stroke: e.ink, Width: 8, Dash: e.dash})
		}
		for i, line := range lines {
			if i > 0 {
				y += 16
			}
			p.print(x+17, y+2, Shape{Text: line, Size: small, Fill: Text, Halo: true})
		}
		x += wide + 34
	}
	return y + 16
}

// labelRoom is the width of the widest label of a scale, at most 0.4 of the picture's.
func labelRoom(p *Picture, s scale) float64 {
	w := 0.0
	for _, t := range s.ticks {
		w = max(w, textWidth(s.label(t), small))
	}
	return min(w, 0.4*p.Width)
}

// rulesY draws the grid lines of a scale that stands upright, with their labels.
func rulesY(p *Picture, y scale, left, right float64) {
	for _, t := range y.ticks {
		at := math.Round(y.at(t)) + 0.5
		p.line(Rule, 1, left, min(at, p.Height), right, min(at, p.Height))
		p.print(left-8, at+4, Shape{Text: y.label(t), Size: small, Fill: Soft, Anchor: End})
	}
}

// tickRow is how high a row of labels below a chart is.
const tickRow = 14.0

// rowsOf is the row of each label of a scale that lies: -1 where there is no room for it. Levels that were set have up
// to three rows. The last label is always there.
func rowsOf(p *Picture, x scale) []int {
	rows, last := make([]int, len(x.ticks)), len(x.ticks)-1
	span := func(i int) (from, to float64) {
		half := textWidth(x.label(x.ticks[i]), small) / 2
		middle := clamp(x.at(x.ticks[i]), half, p.Width-half)
		return middle - half, middle + half
	}
	ends := []float64{math.Inf(-1)} // of the labels before, in each row
	if x.levels {
		ends = append(ends, ends[0], ends[0])
	}
	for i := range max(last, 0) {
		from, to := span(i)
		begin, _ := span(last)
		rows[i] = -1
		for row, end := range ends {
			if from >= end+8 && (row > 0 || to+8 <= begin) {
				rows[i], ends[row] = row, to
				break
			}
		}
	}
	return rows
}

// ticksX labels a scale that lies, where there is room; rules draws its grid lines.
func ticksX(p *Picture, x scale, top, bottom float64, rules bool) {
	rows := rowsOf(p, x)
	for i, t := range x.ticks {
		at, text := min(math.Round(x.at(t))+0.5, p.Width-0.5), x.label(t)
		if rules {
			p.under(Shape{Form: Polyline, At: []float64{at, top, at, bottom}, Stroke: Rule, Width: 1})
		} else {
			p.line(Soft, 1, at, bottom, at, bottom+4)
		}
		if rows[i] >= 0 {
			y := bottom + 17 + tickRow*float64(rows[i])
			p.print(at, y, Shape{Text: text, Size: small, Fill: Soft, Anchor: Middle})
		}
	}
}
