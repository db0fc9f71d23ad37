package chart

import (
	"errors"
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pelt/model"
	"pelt/report/controls"
	"pelt/report/internal/words"
	"pelt/report/rows"
)

// mostStrips is how many strips a picture holds legibly.
const mostStrips = 27

// errNoValue: a comparison without any figure of its metric.
var errNoValue = errors.New("no trial has a figure to compare")

// controlPicture is a comparison of congestion controls: to the left a strip for
// each control under each condition, to the right one condition in another light.
type controlPicture struct {
	table controls.Table // the conditions that are drawn
	axis  controls.Axis
	right controls.Condition
	where string // the condition to the right; "" where there is one
}

// overControls draws intervals and trials of the metric, and goodput against delay
// or, where nobody measured the delay, the share of transfers ended over time.
func overControls(doc model.Document) (figure, error) {
	if !controls.Is(doc) {
		return figure{}, ErrNothing
	}
	t := controls.Fold(doc)
	p := &controlPicture{table: t}
	widest := t.Widest()
	p.right = t.Conditions[widest]
	if len(t.Conditions) > 1 {
		p.where = p.right.Name
	}
	left := 0
	if n := max(1, mostStrips/(len(t.Controls)+1)); len(t.Conditions) > n {
		left = len(t.Conditions) - n
		p.table.Conditions = t.Conditions[:n]
	}
	p.table.Controls = t.Controls[:min(len(t.Controls), mostStrips)]
	var ok bool
	if p.axis, ok = p.table.Axis(); !ok {
		return figure{}, fmt.Errorf("%w: %w", ErrNothing, errNoValue)
	}
	f := frame(doc, rows.Table{}, false)
	mtu, _, _ := strings.Cut(words.PathMTU(doc), ":")
	var links []string
	for _, l := range doc.Plan.Links {
		if text := words.Plain(l.Words()); text != "" {
			links = append(links, strings.TrimSpace("link "+words.Name(l.Node))+" "+words.Shorten(text, 90))
		}
	}
	notes := "dots: trials; bars: 95 % interval of the median; band: that of " + t.Baseline
	if cut(p.table) {
		notes += "; triangles: cut before the end"
	}
	if len(doc.Control.Contrasts) > 0 {
		notes += "; ×: speed against " + t.Baseline + ", = not separable"
	}
	switch {
	case left == 1:
		notes = join(notes, "1 more condition not drawn")
	case left > 1:
		notes = join(notes, fmt.Sprintf("%d more conditions not drawn", left))
	}
	f.caption = join(host(doc), mtu, strings.Join(links, " · "), trialWords(doc), notes, made(doc))
	f.controls = p
	return f, nil
}

func cut(t controls.Table) bool {
	return slices.ContainsFunc(t.Conditions, func(c controls.Condition) bool {
		return slices.ContainsFunc(c.Cells, func(x controls.Cell) bool {
			return slices.ContainsFunc(x.Trials, func(t controls.Trial) bool { return t.Bound })
		})
	})
}

// trialWords says how many trials of what: "10 valid trials of each setting, 80 MB each, within 1 min".
func trialWords(doc model.Document) string {
	least, most := -1, 0
	for _, c := range doc.Control.Cells {
		if c.Valid < least || least < 0 {
			least = c.Valid
		}
		most = max(most, c.Valid)
	}
	text := words.Each(doc.Plan)
	switch {
	case most < 1:
		return text
	case least == most:
		return fmt.Sprintf("%d valid trials of each setting, %s", most, text)
	}
	return fmt.Sprintf("%d to %d valid trials of each setting, %s", max(least, 0), most, text)
}

// draw fills the canvas.
func (p *controlPicture) draw(c draw.Canvas) {
	wide := c.Max.X - c.Min.X
	p.strips(draw.Crop(c, 0, -wide*0.38, 0, 0))
	right := draw.Crop(c, wide*0.66, 0, 0, 0)
	if high := right.Max.Y - right.Min.Y; high > 300 {
		right = draw.Crop(right, 0, 0, high-300, 0)
	}
	if !p.scatter(right) {
		p.ended(right)
	}
}

func (p *controlPicture) strips(c draw.Canvas) {
	const foot, gap = 30, 8
	count := len(p.table.Conditions) * len(p.table.Controls)
	heads := 0
	for _, cond := range p.table.Conditions {
		if cond.Name != "" {
			heads++
		}
	}
	high := min((c.Max.Y-c.Min.Y-foot-18)/(vg.Length(count)+0.8*vg.Length(heads)), 44)
	size := min(max(high*0.5, 5.5), 9.5)
	plain, strong := style(size, ink, false), style(size, ink, true)
	var name, text vg.Length
	for _, x := range p.table.Controls {
		name = max(name, plain.Width(words.Shorten(x.Name, 18)))
	}
	for _, cond := range p.table.Conditions {
		for i := range cond.Cells {
			text = max(text, strong.Width(valueText(&cond.Cells[i])))
		}
	}
	left, right := c.Min.X+name+22, c.Max.X-text-gap
	at := func(v float64) vg.Length { return left + (right-left)*vg.Length(p.axis.Place(v)) }
	title := p.table.Metric.Name() + " (log scale; " + p.table.Metric.Better() + ")"
	c.FillText(style(9.5, faint, false), vg.Point{X: left, Y: c.Max.Y}, title)
	top := c.Max.Y - 18
	y := top
	for _, cond := range p.table.Conditions {
		if cond.Name != "" {
			y -= high * 0.8
			c.FillText(strong, vg.Point{X: c.Min.X, Y: y + size*1.4}, squeeze(strong, cond.Name, c.Max.X-c.Min.X))
		}
		cells := cond.Cells[:len(p.table.Controls)]
		p.ground(c, cells, at, y, y-high*vg.Length(len(cells)))
		for i := range cells {
			line := y - (high-size*1.26)/2
			symbol(c, i, vg.Point{X: c.Min.X + 6, Y: y - high/2}, 3.6, hue(i), nil)
			c.FillText(plain, vg.Point{X: c.Min.X + 16, Y: line}, words.Shorten(p.table.Controls[i].Name, 18))
			strip(c, &cells[i], at, y, high)
			c.FillText(strong, vg.Point{X: right + gap, Y: line}, valueText(&cells[i]))
			y -= high
		}
	}
	below(c, p.axis.Ticks(), p.table.Metric.Format, at, y-4)
}

// below writes an axis's labels, those that have room.
func below(c draw.Canvas, ticks []float64, format func(float64) string, at func(float64) vg.Length, y vg.Length) {
	s := style(9, ink, false)
	half := func(i int) vg.Length { return s.Width(short(format(ticks[i]))) / 2 }
	for i, kept := range controls.Labelled(ticks, func(i int) (from, to float64) {
		return float64(at(ticks[i]) - half(i) - 2), float64(at(ticks[i]) + half(i) + 2)
	}) {
		if kept {
			c.FillText(s, vg.Point{X: at(ticks[i]) - half(i), Y: y}, short(format(ticks[i])))
		}
	}
}

// ground rules a condition's strips and marks the baseline's interval behind them.
func (p *controlPicture) ground(c draw.Canvas, cells []controls.Cell, at func(float64) vg.Length, top, bottom vg.Length) {
	for i := range cells {
		if low, _, high, ok := cells[i].Span(); ok && cells[i].Baseline {
			box(c, at(low), top, max(at(high)-at(low), 0.5), top-bottom, color.RGBA{0xdf, 0xe9, 0xf2, 0xff})
			break
		}
	}
	for _, v := range p.axis.Ticks() {
		c.StrokeLine2(draw.LineStyle{Color: rule, Width: 0.7}, at(v), top, at(v), bottom)
	}
}

func valueText(x *controls.Cell) string {
	text := x.Middle()
	if s := x.Speed(); s != "" {
		text += "  " + s
	}
	return text
}

// strip draws one cell: its trials above, the interval of its median below.
func strip(c draw.Canvas, x *controls.Cell, at func(float64) vg.Length, y, high vg.Length) {
	colour := hue(x.Control)
	for i, t := range x.Trials {
		if !(t.Value > 0) {
			continue
		}
		spread := vg.Length(i*5%7)/3 - 1
		where := vg.Point{X: at(t.Value), Y: y - high*(0.32+0.13*spread)}
		if t.Bound {
			symbol(c, arrow, where, 2.4, color.White, colour)
			continue
		}
		symbol(c, 0, where, 2, pale(colour), nil)
	}
	low, middle, top, ok := x.Span()
	if !ok {
		return
	}
	line := y - high*0.74
	box(c, at(low), line+1.3, max(at(top)-at(low), 1), 2.6, colour)
	if e := x.Estimate(); e.Bound {
		symbol(c, arrow, vg.Point{X: at(middle), Y: line}, 4, colour, nil)
		return
	}
	box(c, at(middle)-1.9, line+high*0.18+0.6, 3.8, high*0.36+1.2, color.White)
	box(c, at(middle)-1.2, line+high*0.18, 2.4, high*0.36, colour)
}

// pale is a colour half way to white, for many small marks.
func pale(c color.RGBA) color.RGBA {
	return color.RGBA{c.R/2 + 0x7f, c.G/2 + 0x7f, c.B/2 + 0x7f, 0xff}
}

// short loses zeros that mean nothing: "10 s", not "10.0 s".
func short(text string) string {
	number, rest, _ := strings.Cut(text, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if number == "0" {
		return number
	}
	return strings.TrimSpace(number + " " + rest)
}
