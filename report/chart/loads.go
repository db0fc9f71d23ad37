package chart

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// mostLoads is how many rows of bars a picture holds legibly.
const mostLoads = 36

// loadBars are a router bench's rates and, beside them, its processor's time.
type loadBars struct {
	rows     []bench.Row
	variants bool
	whose    string  // the processor
	bits     float64 // full width of the bars
	packets  float64
}

// overLoads draws a row of bars for each setting; variants stand one below the other.
func overLoads(doc model.Document) (figure, error) {
	t := bench.Fold(doc)
	b := &loadBars{rows: t.Pairs(), variants: len(t.Variants) > 1, whose: "router's CPU, all cores"}
	if len(b.rows) == 0 {
		return figure{}, ErrNothing
	}
	f := frame(doc, rows.Table{}, false)
	if facts := bench.Facts(doc); facts != "" {
		f.subtitle = facts
	}
	more := ""
	if left := len(b.rows) - mostLoads; left > 0 {
		b.rows = b.rows[:mostLoads]
		more = fmt.Sprintf("%d more not drawn", left)
	}
	var counts []int
	unfit := false
	for _, r := range b.rows {
		counts = append(counts, len(r.Trials))
		b.bits, b.packets = max(b.bits, bounded(r.BPS.Mean)), max(b.packets, bounded(r.PPS.Mean))
		unfit = unfit || r.State != model.Valid
	}
	notes := words.Trials(counts)
	if notes != "" {
		notes = "means of " + notes
	}
	notes = join(notes, more)
	if unfit {
		notes = join(notes, "!: not a valid trial")
	}
	if doc.Lab != nil {
		b.whose = "this machine's CPU, all cores"
	}
	f.caption = join(host(doc), words.Each(doc.Plan), notes, made(doc))
	f.loads = b
	return f, nil
}

// Colours of the layers of a processor's time, the lowest first, and of what was
// not used; report.css has the same.
var (
	layerColours = [bench.LayerCount]color.RGBA{{0xf0, 0xa0, 0x70, 0xff}, {0xb0, 0x57, 0x8d, 0xff}, {0xf3, 0xcf, 0x6b, 0xff}, {0x7c, 0xc7, 0xa8, 0xff}, {0xb9, 0xc0, 0xc7, 0xff}}
	unused       = color.RGBA{0xea, 0xed, 0xf0, 0xff}
)

// draw fills the canvas.
func (b *loadBars) draw(c draw.Canvas) {
	const head, gap, most = 16, 8, 30
	top := b.legend(c) - 4
	high := min((top-head-c.Min.Y)/vg.Length(len(b.rows)), most)
	size := min(max(high*0.62, 6), 9.5)
	plain, strong, quiet := style(size, ink, false), style(size, ink, true), style(size, faint, false)
	var label, variant vg.Length
	for _, r := range b.rows {
		label = max(label, strong.Width(b.label(r)))
		if b.variants {
			variant = max(variant, quiet.Width(words.Shorten(r.Variant, 20))+gap)
		}
	}
	texts := [3]vg.Length{plain.Width("88.8 Mbit/s"), plain.Width("88.8 kpps"), plain.Width("100 % busy")}
	room := c.Max.X - c.Min.X - label - variant - texts[0] - texts[1] - texts[2] - 7*gap
	wide := [3]vg.Length{room * 0.29, room * 0.29, room * 0.42}
	var left [3]vg.Length
	x := c.Min.X + label + variant + gap
	for i := range left {
		left[i] = x
		x += wide[i] + texts[i] + 2*gap
	}
	for i, name := range []string{"goodput", "packets per second", b.whose} {
		c.FillText(style(9, faint, false), vg.Point{X: left[i], Y: top}, name)
	}
	top -= head
	last := ""
	for i, r := range b.rows {
		y := top - vg.Length(i)*high   // upper edge
		line := y - (high-size*1.26)/2 // of the text
		if name := b.label(r); name != last {
			if i > 0 && b.variants {
				c.StrokeLine2(draw.LineStyle{Color: rule, Width: 0.6}, c.Min.X, y, c.Max.X, y)
			}
			c.FillText(strong, vg.Point{X: c.Min.X, Y: line}, name)
			last = name
		}
		if b.variants {
			c.FillText(quiet, vg.Point{X: c.Min.X + label + gap, Y: line}, words.Shorten(r.Variant, 20))
		}
		bar := func(n int, from, to float64, colour color.Color) {
			box(c, left[n]+wide[n]*vg.Length(from), y-high*0.2, wide[n]*vg.Length(to-from), high*0.6, colour)
		}
		say := func(n int, s text.Style, text string) {
			c.FillText(s, vg.Point{X: left[n] + wide[n] + 5, Y: line}, text)
		}
		for n := range left {
			bar(n, 0, 1, unused)
		}
		for n, f := range []bench.Figure{r.BPS, r.PPS} {
			most, format := []float64{b.bits, b.packets}[n], []func(float64) string{unit.FormatBits, unit.FormatPPS}[n]
			if f.N == 0 || !(most > 0) {
				say(n, quiet, "–")
				continue
			}
			bar(n, 0, min(bounded(f.Mean)/most, 1), hue(0))
			say(n, plain, format(bounded(f.Mean)))
		}
		b.processor(r, bar, say, plain, quiet)
	}
}

// processor draws one row's share of the router's time; the mark is its busiest core.
func (b *loadBars) processor(r bench.Row, bar func(int, float64, float64, color.Color), say func(int, text.Style, string), plain, quiet text.Style) {
	if r.Load == nil {
		say(2, quiet, "not seen")
		return
	}
	x := 0.0
	for i, share := range bench.Layers(r.Load.CPU) {
		if share = min(share, 1-x); share > 0 {
			bar(2, x, x+share, layerColours[i])
			x += share
		}
	}
	if top := r.Load.Busiest; top.N > 0 {
		at := min(max(top.Mean, 0.006), 1)
		bar(2, at-0.006, at, ink)
	}
	if busy := r.Load.Busy.Mean; !math.IsNaN(busy) {
		say(2, plain, strconv.FormatFloat(min(busy, 1)*100, 'f', 0, 64)+" % busy")
	}
}

func (b *loadBars) label(r bench.Row) string {
	text := r.Way + " " + r.Traffic
	if r.State != model.Valid {
		text += "!"
	}
	return words.Shorten(text, 32)
}

// legend says what the colours are and returns where it ended.
func (b *loadBars) legend(c draw.Canvas) vg.Length {
	s := style(9.5, ink, false)
	x, y := c.Min.X, c.Max.Y
	key := func(name string, colour color.Color, width vg.Length) {
		box(c, x+(9-width)/2, y-1.5, width, 9, colour)
		c.FillText(s, vg.Point{X: x + 13, Y: y}, name)
		x += 13 + s.Width(name) + 14
	}
	key("rate", hue(0), 9)
	for i, name := range bench.LayerNames() {
		for _, r := range b.rows {
			if r.Load != nil && bench.Layers(r.Load.CPU)[i] > 0.0005 {
				key(name, layerColours[i], 9)
				break
			}
		}
	}
	key("idle", unused, 9)
	key("busiest core", ink, 1.5)
	return y - 20
}

// box fills a rectangle by its upper left corner.
func box(c draw.Canvas, x, y, width, height vg.Length, colour color.Color) {
	if width > 0 {
		c.FillPolygon(colour, []vg.Point{{X: x, Y: y}, {X: x + width, Y: y}, {X: x + width, Y: y - height}, {X: x, Y: y - height}})
	}
}
