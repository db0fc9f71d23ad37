package report

import (
	"fmt"
	"strings"

	"pelt/report/controls"
	"pelt/unit"
)

// Places across a drawing are percent of its width, so that it fits any screen
// without a script; places down it are pixels.

// axisTick is a tick of an axis along the foot of a drawing.
type axisTick struct {
	X, Text, Anchor string
	Bare            bool // its label would touch another
}

// stripGroup is one condition: a line for each control.
type stripGroup struct {
	Title, Verdict string
	Rows           []strip
	Ticks          []axisTick
}

// strip is the interval of one control, and its trials.
type strip struct {
	Name, Class, Symbol string
	Text, Speed, Title  string
	BandX, BandWidth    string // the baseline's interval, behind all; "" without
	X, Width, Middle    string // of the interval; "" without
	Open                bool   // the median is a lower bound
	Dots                []dot
}

type dot struct {
	X, Y, Title string
	Open        bool // cut before its end
}

// Sizes of a strip, in pixels; the template and cc.css have the same.
const (
	stripDots   = 9.0 // middle of the trials
	stripSpread = 5.0 // of the trials up and down, so that equal ones are seen
)

// controlClass is a control's colour; those beyond the seventh share one.
func controlClass(i int) string {
	if i >= maxCauses {
		return "rest"
	}
	return fmt.Sprintf("hue%d", i)
}

// symbolOf is a control's mark, which tells it where colours do not.
func symbolOf(i int) string {
	all := []string{
		"M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0z", "M-3.8 -3.8h7.6v7.6h-7.6z", "M0 -5.2L5.2 0L0 5.2L-5.2 0z",
		"M0 -4.8L4.8 3.6H-4.8z", "M0 4.8L4.8 -3.6H-4.8z", "M-1.6 -5h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4v-3.2h3.4z",
		"M-5 0L-2.5 -4.4H2.5L5 0L2.5 4.4H-2.5z", "M-4.8 -3.2L4.8 -3.2L0 0L4.8 3.2L-4.8 3.2L0 0z",
	}
	return all[i%len(all)]
}

// newStrips draws all conditions on one axis, or each on its own.
func newStrips(t controls.Table, own bool) []stripGroup {
	var groups []stripGroup
	for i, c := range t.Conditions {
		of := t
		if own {
			of.Conditions = t.Conditions[i : i+1]
		}
		axis, ok := of.Axis()
		if !ok {
			continue
		}
		g := stripGroup{Title: c.Name, Verdict: c.Verdict, Ticks: ticksAlong(axis, t.Metric.Format, 54)}
		var bandX, bandWidth string
		for i := range c.Cells {
			if low, _, high, ok := c.Cells[i].Span(); ok && c.Cells[i].Baseline {
				bandX, bandWidth = percent(axis.Place(low)), percent(axis.Place(high)-axis.Place(low))
			}
		}
		for i := range c.Cells {
			s := newStrip(t, &c.Cells[i], axis)
			s.BandX, s.BandWidth = bandX, bandWidth
			g.Rows = append(g.Rows, s)
		}
		groups = append(groups, g)
	}
	return groups
}

func newStrip(t controls.Table, x *controls.Cell, axis controls.Axis) strip {
	name := t.Controls[x.Control].Name
	s := strip{Name: name, Class: controlClass(x.Control), Symbol: symbolOf(x.Control), Text: x.Middle(), Speed: x.Speed()}
	s.Title = name + ": " + controlFigure(x)
	if low, middle, high, ok := x.Span(); ok {
		s.X, s.Width, s.Middle = percent(axis.Place(low)), percent(axis.Place(high)-axis.Place(low)), percent(axis.Place(middle))
		s.Open = x.Estimate().Bound
	}
	for i, trial := range x.Trials {
		if !finite(trial.Value) || trial.Value <= 0 {
			continue
		}
		d := dot{X: percent(axis.Place(trial.Value)), Y: px(stripDots + stripSpread*(float64(i*5%7)/3-1)), Title: t.Metric.Format(trial.Value), Open: trial.Bound}
		if d.Open {
			d.Title = "cut after " + d.Title
		}
		s.Dots = append(s.Dots, d)
	}
	return s
}

// ticksAlong places an axis's ticks; labels that would touch a rounder one, on a
// drawing of so many characters, are left out.
func ticksAlong(a controls.Axis, format func(float64) string, characters float64) []axisTick {
	var out []axisTick
	var spans [][2]float64
	ticks := a.Ticks()
	for _, v := range ticks {
		at := a.Place(v)
		t := axisTick{X: percent(at), Text: tickText(format(v)), Anchor: "middle"}
		half := (float64(len([]rune(t.Text)))/2 + 1) / characters
		span := [2]float64{at - half, at + half}
		switch {
		case span[1] > 1:
			t.Anchor, span = "end", [2]float64{at - 2*half, at}
		case span[0] < 0:
			t.Anchor, span = "start", [2]float64{at, at + 2*half}
		}
		out, spans = append(out, t), append(spans, span)
	}
	for i, kept := range controls.Labelled(ticks, func(i int) (from, to float64) { return spans[i][0], spans[i][1] }) {
		out[i].Bare = !kept
	}
	return out
}

// tickText loses zeros that mean nothing: "10 s", not "10.0 s".
func tickText(text string) string {
	number, rest, _ := strings.Cut(text, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if number == "0" {
		return number
	}
	return strings.TrimSpace(number + " " + rest)
}

// plotDrawing is a chart of its own: a curve for each control, or its points.
type plotDrawing struct {
	Title, Label string // Label is for who cannot see it
	Height       string
	YTicks       []heightTick
	XTicks       []axisTick
	Curves       []plotCurve
	Marks        []plotMark
	XName, YName string
	Better       string
}

type heightTick struct{ Y, Text string }

// plotCurve is a path on a field of 1000 by the drawing's height.
type plotCurve struct{ Class, D string }

type plotMark struct {
	X, Y, Class, Symbol, Title string
	Middle                     bool // of all trials
}

const plotHeight = 190.0

func (p *plotDrawing) yAxis(a controls.Axis, format func(float64) string) {
	for _, v := range a.Ticks() {
		p.YTicks = append(p.YTicks, heightTick{px(down(a, v)), tickText(format(v))})
	}
}

// down is where a value lies below the drawing's upper edge.
func down(a controls.Axis, v float64) float64 { return plotHeight * (1 - a.Place(v)) }

// newCurves draws the share of transfers that had ended, a drawing a condition.
func newCurves(t controls.Table) (out []plotDrawing, cut bool) {
	if !t.Metric.Completion {
		return nil, false
	}
	share := controls.Axis{High: 1}
	for _, c := range t.Conditions {
		var all []float64
		for i := range c.Cells {
			steps, upTo := c.Cells[i].Finished()
			for _, s := range steps {
				all = append(all, s.Seconds)
			}
			all = append(all, upTo)
		}
		axis, ok := controls.LogAxis(all)
		if !ok {
			continue
		}
		p := plotDrawing{Title: c.Name, Height: px(plotHeight), XName: "time (log scale)", YName: "of the valid trials"}
		p.XTicks = ticksAlong(axis, t.Metric.Format, 45)
		for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
			p.YTicks = append(p.YTicks, heightTick{px(down(share, v)), unit.FormatRatio(v)})
		}
		var labels []string
		for i := range c.Cells {
			x := &c.Cells[i]
			steps, upTo := x.Finished()
			if upTo == 0 {
				continue
			}
			name, ended := t.Controls[x.Control].Name, 0.0
			d := fmt.Sprintf("M0 %sH", px(plotHeight))
			for _, s := range steps {
				d += fmt.Sprintf("%sV%sH", px(axis.Place(s.Seconds)*1000), px(down(share, s.Share)))
				ended = s.Share
			}
			if d += px(axis.Place(upTo) * 1000); ended == 1 {
				d = strings.TrimSuffix(d, px(axis.Place(upTo)*1000)) + "1000"
			} else {
				cut = true
				p.Marks = append(p.Marks, plotMark{X: percent(axis.Place(upTo)), Y: px(down(share, ended)), Class: controlClass(x.Control), Symbol: symbolOf(x.Control), Title: fmt.Sprintf("%s: %s had ended after %s", name, unit.FormatRatio(ended), t.Metric.Format(upTo)), Middle: true})
			}
			p.Curves = append(p.Curves, plotCurve{controlClass(x.Control), d})
			labels = append(labels, name+" "+controlFigure(x))
		}
		p.Label = strings.TrimPrefix(c.Name+": ", ": ") + "share of transfers ended over time; medians: " + strings.Join(labels, ", ")
		out = append(out, p)
	}
	return out, cut
}

// newScatter draws goodput against the thin flow's delay, which runs from right to
// left: better is up and to the right.
func newScatter(t controls.Table) (out []plotDrawing) {
	for _, c := range t.Conditions {
		var goodputs, delays []float64
		for i := range c.Cells {
			trials, middle, ok := c.Cells[i].Scatter()
			if !ok {
				continue
			}
			for _, p := range append(trials, middle) {
				goodputs, delays = append(goodputs, p.Goodput), append(delays, p.Delay)
			}
		}
		x, ok := controls.LogAxis(delays)
		y, okY := controls.ZeroAxis(goodputs)
		if !ok || !okY {
			continue
		}
		p := plotDrawing{Title: c.Name, Height: px(plotHeight), XName: "← p95 of the round trips (log scale)", YName: "goodput", Better: "better ↗"}
		p.XTicks = mirrored(ticksAlong(x, controls.Seconds, 45), x)
		p.yAxis(y, unit.FormatBits)
		var middles []plotMark
		var labels []string
		for i := range c.Cells {
			cell := &c.Cells[i]
			trials, middle, ok := cell.Scatter()
			if !ok {
				continue
			}
			mark := func(at controls.Point, middle bool) plotMark {
				text := unit.FormatBits(at.Goodput) + " at " + controls.Seconds(at.Delay)
				return plotMark{percent(1 - x.Place(at.Delay)), px(down(y, at.Goodput)), controlClass(cell.Control), symbolOf(cell.Control), t.Controls[cell.Control].Name + ": " + text, middle}
			}
			for _, q := range trials {
				p.Marks = append(p.Marks, mark(q, false))
			}
			m := mark(middle, true)
			middles, labels = append(middles, m), append(labels, m.Title)
		}
		p.Marks = append(p.Marks, middles...)
		p.Label = strings.TrimPrefix(c.Name+": ", ": ") + "goodput against the 95th percentile of the thin flow's round trips; medians: " + strings.Join(labels, ", ")
		out = append(out, p)
	}
	return out
}

// mirrored turns an axis round.
func mirrored(ticks []axisTick, a controls.Axis) []axisTick {
	values := a.Ticks()
	for i := range ticks {
		ticks[i].X = percent(1 - a.Place(values[i]))
		switch ticks[i].Anchor {
		case "start":
			ticks[i].Anchor = "end"
		case "end":
			ticks[i].Anchor = "start"
		}
	}
	return ticks
}
