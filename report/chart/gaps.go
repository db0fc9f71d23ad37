package chart

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// gapBars is a histogram of the gaps between packets: sent as bars, asked as an outline.
type gapBars struct {
	upTo        []int64 // nanoseconds
	asked, sent []float64
}

// withGaps adds the gaps of the first row that was sent by a profile.
func (f *figure) withGaps(t rows.Table) {
	at := slices.IndexFunc(t.Rows, func(r rows.Row) bool { return r.Pacing != nil })
	if at < 0 {
		return
	}
	r := t.Rows[at]
	upTo, asked, sent := r.Pacing.Bars()
	if len(upTo) == 0 {
		return
	}
	g := gapBars{upTo, asked, sent}
	label := "gaps between packets, " + words.Shorten(words.Plain(r.Pacing.Profile), 40)
	if len(t.Rows) > 1 {
		label += ", " + unit.FormatSize(r.Payload)
	}
	f.legend = append(f.legend, &curve{name: "gaps sent", colour: gapColour(), thin: true}, &curve{name: "gaps asked", colour: ink, thin: true})
	p := panel(g.times(label+" (log scale)"), upward("share", 100*max(slices.Max(asked), slices.Max(sent)), []string{"%"}))
	p.Add(g)
	f.panels = append(f.panels, p)
}

func gapColour() color.RGBA { return hue(5) }

// times is the axis of gaps, a tick a decade.
func (g gapBars) times(label string) axis {
	a := axis{label: label, log: true, min: float64(g.upTo[0]) / 1.26, max: float64(g.upTo[len(g.upTo)-1])}
	a.max = max(a.max, 3*a.min)
	for v := math.Pow(10, math.Ceil(math.Log10(a.min))); v <= min(a.max, largest); v *= 10 {
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: unit.FormatNanos(v)})
	}
	return a
}

// Plot draws the bars and, over them, the outline.
func (g gapBars) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	base := ty(0)
	outline := []vg.Point{{X: tx(p.X.Min), Y: base}}
	last := tx(p.X.Min)
	for i, bound := range g.upTo {
		edge := tx(float64(bound))
		if g.sent[i] > 0 {
			top := ty(100 * g.sent[i])
			c.FillPolygon(gapColour(), []vg.Point{{X: last, Y: base}, {X: last, Y: top}, {X: edge, Y: top}, {X: edge, Y: base}})
		}
		y := ty(100 * g.asked[i])
		outline = append(outline, vg.Point{X: last, Y: y}, vg.Point{X: edge, Y: y})
		last = edge
	}
	outline = append(outline, vg.Point{X: last, Y: base})
	c.StrokeLines(draw.LineStyle{Color: ink, Width: 1.3}, outline)
}
