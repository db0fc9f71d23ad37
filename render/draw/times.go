package draw

import (
	"pelt/render/plain"
	"pelt/unit"
	"pelt/view"
)

// Heights of the parts of a picture of times.
const (
	laneHeight = 78.0
	changeRow  = 18.0
)

// mostChangeRows is how many rows words of changes may take.
const mostChangeRows = 4

// Times draws lanes one above the other on one axis of time, with changes and gaps across all of them.
func Times(t view.Times, width float64) Picture {
	p := Picture{Width: max(width, 240), Title: plain.Text(t.Title), Note: t.Note}
	over, left := noExtent(), 0.0
	var lanes []view.Lane
	var scales []scale
	for _, l := range t.Lanes {
		e, taken := noExtent(), noExtent()
		for _, tr := range l.Traces {
			if !finite(tr.Start) || !finite(tr.Step) || tr.Step <= 0 {
				continue
			}
			e.add(tr.Values...)
			taken.add(tr.Start, tr.Start+tr.Step*float64(len(tr.Values)))
		}
		if e.empty() {
			continue
		}
		over.add(taken.low, taken.high)
		y := fromZero(view.Axis{Unit: l.Unit}, e, 2)
		left = max(left, labelRoom(&p, y)+10)
		lanes, scales = append(lanes, l), append(scales, y)
	}
	if len(lanes) == 0 {
		return Picture{Title: p.Title}
	}
	right := p.Width - 8
	x := span(view.Axis{Unit: unit.Seconds}, over, int((right-left)/90)).between(left, right)
	placed, rows := placeChanges(t.Changes, x, p.Width)
	top := changeRow * float64(rows)
	bottom := top
	p.Height = beyondMeasure // until it is known
	for i, l := range lanes {
		start := laneHead(&p, l, bottom)
		bottom = start + laneHeight
		gaps(&p, t.Gaps, x, start, bottom)
		lane(&p, l, x, scales[i].between(bottom, start), left, right)
	}
	p.Height = bottom + 26
	ticksX(&p, x, top, bottom, false)
	changes(&p, placed, top, bottom)
	return p
}

// laneHead names a lane and its traces from a height on, and returns where the lane begins.
func laneHead(p *Picture, l view.Lane, top float64) float64 {
	p.print(0, top+24, Shape{Text: l.Label, Size: small, Fill: Text, Bold: true, Halo: true})
	return legend(p, legendOf(traces(l)), top+30) + 6
}

// traces are the traces of a lane as series without points.
func traces(l view.Lane) (out []view.Series) {
	for _, tr := range l.Traces {
		out = append(out, view.Series{Name: tr.Name, Tone: tr.Tone})
	}
	return out
}

func gaps(p *Picture, all []view.Gap, x scale, top, bottom float64) {
	for _, g := range all {
		if !finite(g.From) || !finite(g.To) || g.To < x.low || g.From > x.high || g.To < g.From {
			continue
		}
		from, to := x.at(g.From), x.at(g.To)
		p.box(from, top, max(to-from, 1.5), bottom-top, Shape{Fill: Soft, Opacity: 0.18, Tip: plain.Text(g.Text)})
		text := Shape{Text: g.Text, Size: small, Fill: Soft, Anchor: Middle}
		if textWidth(g.Text, small) < to-from-6 {
			p.print((from+to)/2, (top+bottom)/2+4, text)
		}
	}
}

func lane(p *Picture, l view.Lane, x, y scale, left, right float64) {
	rulesY(p, y, left, right)
	looks := looksOf(traces(l))
	for i := len(l.Traces) - 1; i >= 0; i-- {
		parts, look := samples(l.Traces[i], x, y), looks[i]
		points := 0
		for _, part := range parts {
			points += len(part) / 2
		}
		width := 1.75
		if points > 300 {
			width = 1
		}
		for _, part := range parts {
			if len(l.Traces) == 1 {
				ground := y.at(0)
				under := append(append([]float64{part[0], ground}, part...), part[len(part)-2], ground)
				p.add(Shape{Form: Polygon, At: under, Fill: look.ink, Opacity: 0.16})
			}
			p.add(Shape{Form: Polyline, At: part, Stroke: look.ink, Width: width, Dash: look.dash})
		}
	}
}

// samples are the unbroken parts of a trace as places.
func samples(tr view.Trace, x, y scale) [][]float64 {
	if !finite(tr.Start) || !finite(tr.Step) || tr.Step <= 0 {
		return nil
	}
	var out [][]float64
	at := func(i int) float64 { return x.at(tr.Start + tr.Step*float64(i)) }
	for from := 0; from < len(tr.Values); from++ {
		to := from
		for to < len(tr.Values) && finite(tr.Values[to]) {
			to++
		}
		part := thin(to-from, func(i int) float64 { return at(from + i) },
			func(i int) float64 { return y.at(tr.Values[from+i]) })
		if len(part) == 2 { // a sample alone is shown as long as it lasted
			part = append(part, max(x.at(x.low), min(part[0]+max(at(1)-at(0), 1.5), max(x.from, x.to))), part[1])
		}
		if part != nil {
			out = append(out, part)
		}
		from = to
	}
	return out
}

// placedChange is a change with the place of its words; row 0 is the lowest.
type placedChange struct {
	at, wordsAt float64
	row         int // -1: no room for its words
	label       Shape
}

// placeChanges finds places for the words of changes: beside their lines, in rows that
// fill from below; or moved and cut where the picture is too narrow for them.
func placeChanges(all []view.Change, x scale, width float64) (placed []placedChange, rows int) {
	var taken [mostChangeRows][]area
	for _, c := range all {
		if !finite(c.At) || c.At < x.low || c.At > x.high {
			continue
		}
		l := Shape{Text: fit(plain.Text(c.Text), small, width), Size: small, Fill: toneInk(c.Tone, Text), Halo: true}
		end := l
		end.Anchor = End
		done := placedChange{at: x.at(c.At), row: -1, label: l}
		for row := 0; row < mostChangeRows && done.row < 0; row++ {
			for i, try := range []Shape{l, end, l} {
				at := done.at + []float64{7, -7, 7}[i]
				if i == 2 { // too long for either side
					at = clamp(at, 0, width-l.width())
				}
				if a := try.area(at, 0); a.left >= 0 && a.right <= width && !touches(a, taken[row]) {
					done.row, done.wordsAt, done.label = row, at, try
					taken[row] = append(taken[row], a)
					rows = max(rows, row+1)
					break
				}
			}
		}
		placed = append(placed, done)
	}
	return placed, rows
}

func touches(a area, others []area) bool {
	for _, b := range others {
		if a.left < b.right+12 && b.left < a.right+12 {
			return true
		}
	}
	return false
}

// changes draws a line at each change, below the names and traces of lanes, and its words above the lanes.
func changes(p *Picture, placed []placedChange, top, bottom float64) {
	for _, c := range placed {
		y := top - 8
		if c.row >= 0 {
			y -= changeRow * float64(c.row)
		}
		if a := c.label.area(c.wordsAt, y); c.row >= 0 && a.left < c.at && c.at < a.right {
			y += 9 // below its own words
		}
		p.under(Shape{Form: Polyline, At: []float64{c.at, y, c.at, bottom}, Stroke: c.label.Fill, Width: 1,
			Dash: Dashed})
		p.add(Shape{Form: Dot, At: []float64{c.at, y}, Radius: 3.5, Fill: c.label.Fill, Tip: c.label.Text})
	}
	for _, c := range placed {
		if c.row >= 0 {
			p.print(c.wordsAt, top-4-changeRow*float64(c.row), c.label)
		}
	}
}
