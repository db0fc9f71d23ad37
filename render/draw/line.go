package draw

import (
	"math"
	"slices"

	"pelt/render/plain"
	"pelt/view"
)

// How many points have dots of their own, and how many their figures beside them.
const (
	mostDots    = 40
	mostFigures = 12
)

type plot struct {
	*Picture
	view.Chart
	x, y  scale
	frame area
}

func lines(p *Picture, c view.Chart) {
	g := plot{Picture: p, Chart: c}
	xs, ys := noExtent(), amounts(c)
	for _, s := range c.Series {
		for _, q := range s.Points {
			xs.add(q.X)
		}
	}
	top := legend(p, legendOf(c.Series), 0)
	g.y = fromZero(c.Y, ys, int(p.Height/60))
	left := labelRoom(p, g.y) + 10
	g.frame = area{left, top + 22, p.Width - 12, p.Height - 40}
	count := int((g.frame.right - left) / 90)
	inset := 8.0
	g.x = span(c.X, xs, count).between(left+inset, g.frame.right-inset)
	g.frame.bottom -= tickRow * float64(slices.Max(append(rowsOf(p, g.x), 0)))
	g.y = g.y.between(g.frame.bottom, g.frame.top)
	rulesY(p, g.y, left, g.frame.right)
	ticksX(p, g.x, g.frame.top, g.frame.bottom, false)
	p.print(g.frame.right, p.Height-6, Shape{Text: c.X.Label, Size: small, Fill: Soft, Anchor: End})
	p.print(0, top+10, Shape{Text: c.Y.Label, Size: small, Fill: Soft})
	g.marks()
	looks := looksOf(c.Series)
	for i := len(c.Series) - 1; i >= 0; i-- {
		g.series(c.Series[i], looks[i])
	}
	g.figures()
}

// amounts is the extent on Y of the series that set the scale. A guest and a limit that lie near it are let in.
func amounts(c view.Chart) extent {
	e := noExtent()
	for _, s := range c.Series {
		for _, q := range s.Points {
			if !s.Guest {
				e.add(q.Y)
			}
			if !s.Guest && q.Low < q.High {
				e.add(q.Low, q.High)
			}
		}
	}
	alone, near := e.empty(), 1.3*e.high
	for _, s := range c.Series {
		for _, q := range s.Points {
			if alone || s.Guest && q.Y < near {
				e.add(q.Y)
			}
		}
	}
	near = 2.5 * e.high
	for _, m := range c.Marks {
		if m.OnY && m.At <= near {
			e.add(m.At)
		}
	}
	return e
}

// legendOf has an entry for each series.
func legendOf(all []view.Series) (out []entry) {
	looks := looksOf(all)
	for i, s := range all {
		out = append(out, entry{plain.Text(s.Name), looks[i]})
	}
	return out
}

func (g *plot) series(s view.Series, look look) {
	ink := look.ink
	x := func(i int) float64 { return g.x.at(s.Points[i].X) }
	y := func(i int) float64 { return g.y.at(s.Points[i].Y) }
	width, dense := 2.25, len(s.Points) > mostDots
	if len(s.Points) > 4*mostDots {
		width = 1.25
	}
	for _, part := range onScale(thin(len(s.Points), x, y), g.y.to) {
		g.add(Shape{Form: Polyline, At: part, Stroke: ink, Width: width, Dash: look.dash})
		if !dense {
			g.keepClear(part)
		}
	}
	beyond := math.Inf(-1)
	for _, q := range s.Points {
		x, y := g.x.at(q.X), g.y.at(q.Y)
		if q.Y > g.y.high {
			if !dense || x > beyond+12 {
				g.add(Shape{Form: Polygon, At: []float64{x - 5, y + 1, x + 5, y + 1, x, y - 7}, Fill: ink, Tip: q.Name})
				beyond = x
			}
			continue
		}
		if q.Low < q.High && !dense {
			low, high := g.y.at(q.Low), g.y.at(q.High)
			g.line(ink, 1.5, x, low, x, high)
			g.keepClear([]float64{x, low, x, high})
			g.line(ink, 1.5, x-4, low, x+4, low)
			g.line(ink, 1.5, x-4, high, x+4, high)
		}
		if !dense {
			g.dot(x, y, 4.5, toneInk(q.Tone, ink), q.Name)
		}
	}
}

// thin is the places of n points from left to right: where many share a column of pixels,
// the first, lowest, highest and last stand for all, so that no peak is lost.
func thin(n int, x, y func(i int) float64) []float64 {
	var out []float64
	for i := 0; i < n; {
		column, first, low, high := math.Floor(x(i)), i, i, i
		for i++; i < n && math.Floor(x(i)) == column; i++ {
			if y(i) < y(low) {
				low = i
			}
			if y(i) > y(high) {
				high = i
			}
		}
		kept := -1
		for _, k := range []int{first, min(low, high), max(low, high), i - 1} {
			if k > kept {
				out = append(out, x(k), y(k))
				kept = k
			}
		}
	}
	return out
}

// onScale parts a line where it runs along the upper end of its scale: there it is beyond it.
func onScale(at []float64, top float64) (parts [][]float64) {
	from := 0
	for i := 2; i <= len(at); i += 2 {
		if i < len(at) && (at[i-1] > top || at[i+1] > top) {
			continue
		}
		if i-from >= 4 {
			parts = append(parts, at[from:i])
		}
		from = i
	}
	return parts
}

func (g *plot) figures() {
	frame := area{0, 0, g.Width, g.frame.bottom}
	hosts := slices.DeleteFunc(slices.Clone(g.Series), func(s view.Series) bool { return s.Guest })
	if !g.Hero || len(hosts) > 2 {
		return
	}
	for _, s := range hosts {
		if len(s.Points) > mostFigures {
			continue
		}
		for _, q := range s.Points {
			l := Shape{Text: g.Y.Unit.Format(q.Y), Size: small, Fill: Text, Bold: true}
			g.figure(frame, l, q)
		}
	}
}

// figure prints a value above its point or below it, or beside it, where it is clear of lines and no other point is
// nearer.
func (g *plot) figure(frame area, l Shape, q view.Point) {
	x, y := g.x.at(q.X), g.y.at(q.Y)
	high, low := y, y
	if q.Low < q.High {
		high, low = g.y.at(q.High), g.y.at(q.Low)
	}
	for _, anchor := range []Anchor{Middle, Start, End} {
		l.Anchor = anchor
		x, places := x+[]float64{6, 0, -6}[anchor], []float64{high - 9, low + 18}
		if anchor != Middle {
			places = []float64{y - 9, y + 18, y + 4}
		}
		for _, y := range places {
			if g.nearest(l.area(x, y), q) && g.try(frame, l, [2]float64{x, y}) {
				return
			}
		}
	}
}

// nearest reports whether no point is nearer to some words than their own.
func (g *plot) nearest(words area, own view.Point) bool {
	distance := func(q view.Point) float64 { return words.distance(g.x.at(q.X), g.y.at(q.Y)) }
	for _, s := range g.Series {
		for _, q := range s.Points {
			if distance(q) < distance(own) {
				return false
			}
		}
	}
	return true
}

// marks draws moments and limits that lie on the scale, and tells how far guests go beyond it.
func (g *plot) marks() {
	f := g.frame
	for _, m := range g.Marks {
		start := Shape{Text: m.Text, Size: small, Fill: Soft}
		end := start
		end.Anchor = End
		switch x, y := g.x.at(m.At), g.y.at(m.At); {
		case m.OnY && m.At >= g.y.low && m.At <= g.y.high:
			g.limit(f.left, y, f.right, y)
			f := area{f.left, 0, f.right, f.bottom}
			if !g.try(f, end, [2]float64{f.right - 4, y - 5}, [2]float64{f.right - 4, y + 14}) {
				g.try(f, start, [2]float64{f.left + 4, y - 5}, [2]float64{f.left + 4, y + 14})
			}
		case !m.OnY && m.At >= g.x.low && m.At <= g.x.high:
			g.limit(x, f.top, x, f.bottom)
			for _, y := range []float64{f.bottom - 8, f.bottom - 24, f.bottom - 40} {
				if g.try(f, start, [2]float64{x + 5, y}) || g.try(f, end, [2]float64{x - 5, y}) {
					break
				}
			}
		}
	}
	for _, s := range g.Series {
		high := math.Inf(-1)
		for _, q := range s.Points {
			high = max(high, q.Y)
		}
		if s.Guest && high > g.y.high {
			text := g.Language.Sayf("%s up to %s, beyond this scale.", s.Name, g.Y.Unit.Format(high))
			room := g.Width - textWidth(g.Y.Label, small) - 20
			g.print(f.right, f.top-12, Shape{Text: fit(text, small, room), Size: small, Fill: Soft, Anchor: End})
			return
		}
	}
}

// limit is a dashed line that figures keep clear of.
func (g *plot) limit(at ...float64) {
	g.add(Shape{Form: Polyline, At: at, Stroke: Soft, Width: 1, Dash: Dashed})
	g.keepClear(at)
}
