package chart

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/report/seconds"
)

// Most curves one panel can hold legibly; a note says what was left out.
const mostLines = 8

// Units of 1, 1000, 1 000 000, ... on an axis.
func packetNames() []string { return []string{"pps", "kpps", "Mpps", "Gpps"} }
func countNames() []string  { return []string{"/s", "k/s", "M/s", "G/s"} }
func bitNames() []string    { return []string{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"} }

// overSize draws rate and goodput over what varies, or at the one setting there is.
func overSize(doc model.Document, t rows.Table) (figure, error) {
	key := t.Axis()
	if key == "" {
		key = rows.PayloadKey
	}
	lines := t.Lines(key)
	if len(lines) == 0 {
		return figure{}, ErrNothing
	}
	f := frame(doc, t, true)
	left := len(lines) - mostLines
	if left > 0 {
		lines = lines[:mostLines]
		f.caption += fmt.Sprintf(" · %d more not drawn", left)
	}
	var xs []float64
	var rate, bits []*curve
	for i, l := range lines {
		got := curveOf(t, l, carriedWord(l), i, rows.Row.Carried)
		sent := curveOf(t, l, offeredWord(l), i, rows.Row.Offered)
		sent.dashed, sent.lo, sent.hi = true, nil, nil
		goodput := curveOf(t, l, "", i, func(r rows.Row) rows.Stat { return r.GoodputBPS })
		rate, bits = append(rate, sent, got), append(bits, goodput)
		if len(lines) > 1 { // colour tells the curves apart, the kind of line what it is
			f.legend = append(f.legend, &curve{name: words.Curve(t, l.Flow, l.Cell), colour: hue(i)})
		}
		xs = append(xs, got.x...)
	}
	plain := hue(0)
	if len(lines) > 1 {
		plain = ink
	}
	f.legend = append(f.legend, &curve{name: carriedWord(lines[0]), colour: plain}, &curve{name: offeredWord(lines[0]), colour: plain, dashed: true})
	names, title := packetNames(), "packets per second"
	if lines[0].Protocol == model.TCP {
		names, title = countNames(), "per second"
	}
	x := across(key, xs)
	upper := x
	upper.label = ""
	f.panels = []*plot.Plot{
		filled(panel(upper, upward(title, highest(rate), names)), rate),
		filled(panel(x, upward("goodput", highest(bits), bitNames())), bits),
	}
	f.withGaps(t)
	return f, nil
}

func filled(p *plot.Plot, curves []*curve) *plot.Plot {
	for _, c := range curves {
		p.Add(c)
	}
	return p
}

func carriedWord(l rows.Line) string {
	if l.Protocol == model.TCP {
		return "segments received"
	}
	return "received"
}

func offeredWord(l rows.Line) string {
	if l.Protocol == model.TCP {
		return "writes"
	}
	return "sent"
}

func curveOf(t rows.Table, l rows.Line, name string, i int, get func(rows.Row) rows.Stat) *curve {
	c := &curve{name: name, colour: hue(i)}
	for _, p := range l.Points {
		r := t.Rows[p.Row]
		s := get(r)
		y := math.NaN()
		if s.N > 0 {
			y = bounded(s.Median)
		}
		c.x, c.y = append(c.x, bounded(p.X)), append(c.y, y)
		c.lo, c.hi = append(c.lo, bounded(s.Min)), append(c.hi, bounded(s.Max))
		c.hollow = append(c.hollow, r.State != model.Valid)
	}
	return c
}

func bounded(v float64) float64 {
	if math.IsNaN(v) {
		return v
	}
	return min(max(v, -largest), largest)
}

func highest(curves []*curve) float64 {
	top := 0.0
	for _, c := range curves {
		for i, y := range c.y {
			if y > top {
				top = y
			}
			if c.hi != nil && c.hi[i] > top {
				top = c.hi[i]
			}
		}
	}
	return top
}

// overTime draws the rates of one cell's trials, or of several cells' first
// trials, over seconds.
func overTime(doc model.Document, t rows.Table) (figure, error) {
	f := frame(doc, t, false)
	var curves []*curve
	left, drawn := 0, 0
	for _, r := range t.Rows {
		shown := 0
		for _, i := range r.Trials {
			if shown > 0 && len(t.Rows) > 1 {
				break // several cells: one trial of each
			}
			pair := timeCurves(doc, t, r, i, drawn)
			if len(pair) == 0 {
				continue
			}
			if drawn == mostLines {
				left++
				break
			}
			curves = append(curves, pair...)
			shown++
			drawn++
		}
	}
	if len(curves) == 0 {
		return figure{}, ErrNothing
	}
	if left > 0 {
		f.caption += fmt.Sprintf(" · %d more not drawn", left)
	}
	f.legend = curves
	end := 0.0
	for _, c := range curves {
		end = max(end, c.x[len(c.x)-1])
	}
	title := "packets per second"
	if len(t.Rows) > 1 {
		title = "packets received per second"
	}
	if end <= 0 {
		return figure{}, ErrNothing
	}
	p := panel(overSeconds(end), upward(title, highest(curves), packetNames()))
	if len(t.Rows) == 1 && len(t.Rows[0].Trials) == 1 { // where several trials are drawn, a mark would be of none of them
		if m := newMoments(seconds.Of(doc.Results[t.Rows[0].Trials[0]])); m.legend() != "" {
			p.Add(m)
			f.flags = m
			f.caption += " · " + m.legend()
		}
	}
	f.panels = []*plot.Plot{filled(p, curves)}
	f.withGaps(t)
	return f, nil
}

// timeCurves are the received and the sent rate of one trial; nil without series.
func timeCurves(doc model.Document, t rows.Table, r rows.Row, result, i int) []*curve {
	label := ""
	if len(t.Rows) > 1 {
		label = words.Curve(t, r.Flow, t.Rest(r.Cell, "")) + " "
	} else if len(r.Trials) > 1 {
		label = fmt.Sprintf("trial %d ", doc.Results[result].Repeat+1)
	}
	wanted := []struct{ metric, word string }{{"receive_pps", "received"}, {"send_pps", "sent"}}
	if len(t.Rows) > 1 {
		wanted, wanted[0].word = wanted[:1], "" // two lines a setting are too many to read
	}
	var out []*curve
	for _, want := range wanted {
		for _, s := range doc.Results[result].Series {
			if s.Metric != want.metric || s.Flow != r.Flow || s.Core != nil || len(s.Values) == 0 || !(s.StepSeconds > 0) || math.IsNaN(s.StartSeconds) {
				continue
			}
			c := &curve{name: label + want.word, colour: hue(i), dashed: want.word == "sent", thin: true}
			for n, v := range s.Values {
				// A value is the mean of its whole step: a stair, not a point.
				from := s.StartSeconds + s.StepSeconds*float64(n)
				c.x, c.y = append(c.x, bounded(from), bounded(from+s.StepSeconds)), append(c.y, bounded(v), bounded(v))
			}
			out = append(out, c)
			break
		}
	}
	return out
}

// frame is the text around the panels.
func frame(doc model.Document, t rows.Table, spread bool) figure {
	f := figure{title: words.Headline(doc), subtitle: join(words.Path(doc), words.Plan(doc))}
	if len(doc.Findings) > 0 && doc.Findings[0].Text != "" {
		f.title = words.Plain(doc.Findings[0].Text)
		f.subtitle = join(words.Headline(doc), words.Path(doc))
	}
	f.caption = caption(doc, t, spread)
	return f
}

func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " · ")
}

// caption names host, port, size, duration and date, as a reader of a lone picture needs.
func caption(doc model.Document, t rows.Table, spread bool) string {
	notes := ""
	var counts []int
	invalid := false
	for _, r := range t.Rows {
		counts = append(counts, len(r.Trials))
		invalid = invalid || r.State != model.Valid
	}
	if trials := words.Trials(counts); trials != "" && spread {
		notes = "middle and range of " + trials
	}
	if invalid && spread {
		notes = join(notes, "hollow: not a valid trial")
	}
	return join(host(doc), payloads(t), words.Each(doc.Plan), notes, made(doc))
}

// host names the far end, or the lab.
func host(doc model.Document) string {
	target := doc.Plan.Target
	if h, port, err := model.HostPort(target); err == nil && !strings.HasPrefix(target, "lab:") && !strings.HasPrefix(target, "fleet:") {
		text := "host " + words.Name(h)
		if port > 0 {
			text += fmt.Sprintf(" · port %d", port)
		}
		return text
	}
	return "path " + words.Name(target)
}

// made says when, and by which pelt.
func made(doc model.Document) string {
	at := ""
	if !doc.Started.IsZero() {
		at = doc.Started.UTC().Format("2006-01-02 15:04 UTC")
	}
	return join(at, strings.TrimSpace("pelt "+words.Name(doc.Tool.Version)))
}

func payloads(t rows.Table) string {
	seen := map[int]bool{}
	low, high := math.MaxInt, 0
	for _, r := range t.Rows {
		seen[r.Payload] = true
		low, high = min(low, r.Payload), max(high, r.Payload)
	}
	if len(seen) == 1 {
		return fmt.Sprintf("payload %d B", high)
	}
	return fmt.Sprintf("payload %d to %d B (%d sizes)", low, high, len(seen))
}
