package chart

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/report/seconds"
)

const soakPoints = 2000 // of one series: 10 inches show no more

// overSoak draws the rates of a soak over its time, its losses by cause below them, and
// what marks the time on both.
func overSoak(doc model.Document, t rows.Table) (figure, error) {
	r, ok := seconds.Chosen(doc)
	if !ok {
		return figure{}, ErrNothing
	}
	s := seconds.Of(r)
	f := frame(doc, t, false)
	var rates, losses []*curve
	for i, one := range s.Flows {
		label := ""
		if len(s.Flows) > 1 {
			label = words.Name(one.Name) + " "
		}
		rates = appendStairs(rates, one.Received, label+"received", hue(i), false)
		rates = appendStairs(rates, one.Sent, label+"sent", hue(i), true)
		for _, c := range one.Causes {
			colour := faint
			if c.Words != words.Unattributed && c.Words != seconds.Unplaced {
				colour = hue(len(s.Flows) + len(losses))
			}
			if len(losses) < mostLines-1 {
				losses = appendStairs(losses, c.Series, label+words.Shorten(c.Words, 60), colour, false)
			}
		}
	}
	if len(rates) == 0 || s.EndS <= 0 {
		return figure{}, ErrNothing
	}
	f.legend = append(f.legend, rates...)
	for _, c := range losses {
		named := *c
		named.name = "lost: " + named.name
		f.legend = append(f.legend, &named)
	}
	m := newMoments(s)
	if legend := m.legend(); legend != "" {
		f.caption += " · " + legend
	}
	f.flags = m
	x := overSeconds(s.EndS)
	if len(losses) == 0 {
		p := panel(x, upward("packets per second", highest(rates), packetNames()))
		p.Add(m)
		f.panels = []*plot.Plot{filled(p, rates)}
		return f, nil
	}
	upper := x
	upper.label = ""
	top := panel(upper, upward("packets per second", highest(rates), packetNames()))
	top.Add(m)
	below := panel(x, upward("lost per second", highest(losses), packetNames()))
	below.Add(m)
	f.panels = []*plot.Plot{filled(top, rates), filled(below, losses)}
	return f, nil
}

// appendStairs adds a series as a line that stands for its whole steps; a value that is
// not a number leaves a gap.
func appendStairs(curves []*curve, s model.Series, name string, colour color.RGBA, dashed bool) []*curve {
	if len(s.Values) == 0 {
		return curves
	}
	step, values := seconds.Thin(s, soakPoints)
	c := &curve{name: name, colour: colour, dashed: dashed, thin: true}
	for n, v := range values {
		from := s.StartSeconds + step*float64(n)
		c.x, c.y = append(c.x, bounded(from), bounded(from+step)), append(c.y, bounded(v), bounded(v))
	}
	return append(curves, c)
}

// doubt shades when a change may have been, apart from the grey of what was not heard.
var doubt = color.RGBA{0xfb, 0xef, 0xd0, 0xff}

// moments draws when something changed, and when nothing was heard.
type moments struct {
	marks []seconds.Mark
	gaps  []seconds.Span
}

func newMoments(t seconds.Trial) *moments {
	return &moments{marks: t.Marks[:min(len(t.Marks), mostFlags)], gaps: t.Gaps}
}

// legend says in the caption what the lines are.
func (m *moments) legend() string {
	made, found := false, false
	for _, x := range m.marks {
		made, found = made || x.Made, found || !x.Made
	}
	var text string
	if found {
		text = join(text, "upright line: a change was found (yellow: when it may have been)")
	}
	if made {
		text = join(text, "dashed: changed as planned")
	}
	if len(m.gaps) > 0 {
		text = join(text, fmt.Sprintf("grey: an end was not heard (%s)", times(len(m.gaps))))
	}
	return text
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Plot draws shades and lines over the whole height of a panel.
func (m *moments) Plot(c draw.Canvas, p *plot.Plot) {
	tx, _ := p.Transforms(&c)
	for _, g := range m.gaps {
		from, to := max(tx(g.FromS), c.Min.X), min(tx(g.ToS), c.Max.X)
		box(c, from, c.Max.Y, max(to-from, 0.7), c.Max.Y-c.Min.Y, unused)
	}
	for _, k := range m.marks {
		if from, to := max(tx(k.LowS), c.Min.X), min(tx(k.HighS), c.Max.X); to > from {
			box(c, from, c.Max.Y, to-from, c.Max.Y-c.Min.Y, doubt)
		}
	}
	for i, x := range m.lines(tx) {
		c.StrokeLine2(lineOf(m.marks[i]), x, c.Min.Y, x, c.Max.Y)
	}
}
