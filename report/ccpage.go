package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/controls"
	"pelt/report/internal/words"
)

// mostConditions bounds the pictures of one page; the tables have all conditions.
const mostConditions = 24

// controlView is what the page of a comparison of congestion controls has instead
// of curves and tables.
type controlView struct {
	Title    string
	Controls []controlName
	Matrix   []controlRow
	Key      string

	Strips []stripGroup // on one axis
	Own    []stripGroup // each on its own; none where there is one condition
	Better string
	Left   int // conditions without pictures

	Curves    []plotDrawing
	Cut       bool // some curve stops short of all
	Scatter   []plotDrawing
	ScatterBy string

	Seconds bool // there are series
	Unseen  int  // trials with series that the page leaves out
	Source  string

	Heads     []benchHead
	HeadKey   string
	Figures   []controlGroup
	Mathis    []string
	Mixes     []mixRow
	MixKey    string
	Contrasts []string
	Notes     []string
}

// controlName is one control with its colour and symbol.
type controlName struct {
	Name, Class string
	Symbol      string // path around 0,0
	Baseline    bool
}

type controlRow struct {
	Condition string
	Cells     []controlCell
}

// controlCell is one cell of the matrix.
type controlCell struct {
	Middle, Interval, Speed, Range, Class, Title string
}

type controlGroup struct {
	Condition string
	Rows      []controlRow
}

type mixRow struct {
	controls.Mix
	Parts []lossPart
}

func newControlView(doc model.Document, charts chartData) *controlView {
	t := controls.Fold(doc)
	v := &controlView{Title: controls.Title(doc, t), Key: t.Key(), Better: upperFirst(t.Metric.Name()) + ", log scale: " + t.Metric.Better()}
	for i, c := range t.Controls {
		v.Controls = append(v.Controls, controlName{c.Name, controlClass(i), symbolOf(i), doc.Control.Controls[i] == doc.Control.Baseline})
	}
	for n, c := range t.Conditions {
		if found(doc, c.Verdict) { // above, among what it means
			t.Conditions[n].Verdict = ""
		}
		row := controlRow{Condition: c.Name}
		for i := range c.Cells {
			row.Cells = append(row.Cells, matrixCell(&c.Cells[i]))
		}
		v.Matrix = append(v.Matrix, row)
	}
	shown := t
	v.Left = max(0, len(t.Conditions)-mostConditions)
	shown.Conditions = t.Conditions[:len(t.Conditions)-v.Left]
	v.Strips = newStrips(shown, false)
	if len(v.Strips) > 1 {
		v.Own = newStrips(shown, true)
	}
	v.Curves, v.Cut = newCurves(shown)
	v.Scatter = newScatter(shown)
	if charts.Control != nil {
		v.Seconds, v.Unseen, v.Source = len(charts.Control.Conditions) > 0, charts.Control.Left, charts.Control.Source
	}
	v.fillFigures(t)
	for _, m := range t.Mixes() {
		v.Mixes, v.MixKey = append(v.Mixes, newMixRow(m)), mixKey
	}
	for _, x := range doc.Control.Contrasts {
		if text := words.Plain(x.Text); text != "" && !found(doc, text) {
			v.Contrasts = append(v.Contrasts, text)
		}
	}
	for _, n := range doc.Control.Notes {
		v.Notes = append(v.Notes, words.Plain(n))
	}
	return v
}

func matrixCell(x *controls.Cell) controlCell {
	c := controlCell{Middle: x.Middle(), Interval: x.Interval(), Speed: x.Speed(), Class: controlClass(x.Control)}
	switch r := x.SpeedInterval(); {
	case c.Speed == "=":
		c.Range = "not separable"
	case c.Speed != "" && r != "":
		c.Range = "(" + r + ")"
	}
	if x.Contrast != nil {
		c.Title = words.Plain(x.Contrast.Text)
	}
	return c
}

func (v *controlView) fillFigures(t controls.Table) {
	columns := t.Columns()
	v.Heads = []benchHead{{"control", "", true}}
	for _, c := range columns {
		v.Heads = append(v.Heads, benchHead{c.Head, c.Says, false})
		if c.Head != controls.IntervalHead {
			v.HeadKey += upperFirst(c.Head) + ": " + c.Says + ". "
		}
	}
	v.HeadKey += "Intervals hold the median with 95 % confidence."
	for _, c := range t.Conditions {
		g := controlGroup{Condition: c.Name}
		for i := range c.Cells {
			x := &c.Cells[i]
			row := controlRow{Condition: t.Controls[x.Control].Name}
			for _, col := range columns {
				row.Cells = append(row.Cells, controlCell{Middle: col.Cell(x)})
			}
			g.Rows = append(g.Rows, row)
			if text := x.Mathis(c.Name); text != "" {
				v.Mathis = append(v.Mathis, text)
			}
		}
		v.Figures = append(v.Figures, g)
	}
}

func newMixRow(m controls.Mix) mixRow {
	row := mixRow{Mix: m}
	at := 0.0
	for _, s := range m.Shares {
		if !finite(s.Ratio) || s.Ratio <= 0 {
			continue
		}
		wide := min(s.Ratio, 1-at)
		title := s.Text()
		if s.Interval != "" {
			title += " (" + s.Interval + " %)"
		}
		row.Parts = append(row.Parts, lossPart{controlClass(s.Control), percent(at), percent(wide), title})
		at += wide
	}
	return row
}

// Columns is the width of the table of figures.
func (v *controlView) Columns() int { return len(v.Heads) }

// controlKeys are the fastest control under each of a few conditions.
func controlKeys(doc model.Document) []keyFigure {
	t := controls.Fold(doc)
	order := make([]int, len(t.Conditions))
	for i := range order {
		order[i] = i
	}
	const most = 4
	if len(order) > most { // those that tell most, in their order
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(apart(t.Conditions[b]), apart(t.Conditions[a])) })
		order = order[:most]
		slices.Sort(order)
	}
	var keys []keyFigure
	for _, i := range order {
		if k, ok := fastestKey(t, t.Conditions[i]); ok {
			keys = append(keys, k)
		}
	}
	return keys
}

func upperFirst(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// apart is how far a condition's separable controls are from the baseline.
func apart(c controls.Condition) float64 {
	most := 0.0
	for _, x := range c.Cells {
		if x.Contrast != nil && x.Contrast.Separable && x.Contrast.Ratio > 0 && finite(x.Contrast.Ratio) {
			most = max(most, math.Abs(math.Log(x.Contrast.Ratio)))
		}
	}
	return most
}

// fastestKey names the control that is fastest beyond doubt, or says that none is.
func fastestKey(t controls.Table, c controls.Condition) (keyFigure, bool) {
	var best, base *controls.Cell
	slower := true // all the others, beyond doubt
	for i := range c.Cells {
		x := &c.Cells[i]
		if x.Baseline {
			base = x
			continue
		}
		vague := strings.HasPrefix(x.Speed(), "~") // most trials of both were cut: which is faster the ratio does not say
		slower = slower && !vague && x.Contrast != nil && x.Contrast.Separable && x.Contrast.Ratio < 1
		if vague || x.Contrast == nil || !x.Contrast.Separable || !(x.Contrast.Ratio > 1) || !finite(x.Contrast.Ratio) {
			continue
		}
		if best == nil || x.Contrast.Ratio > best.Contrast.Ratio {
			best = x
		}
	}
	name := cmp.Or(c.Name, t.Metric.Name())
	switch {
	case best != nil:
		if base == nil {
			return keyFigure{}, false
		}
		times := strings.NewReplacer(">", "more than ", "<", "less than ", "~", "about ", "×", "").Replace(best.Speed())
		return keyFigure{name, best.Middle(), fmt.Sprintf("with %s, %s times as fast as %s (%s)", t.Controls[best.Control].Name, times, t.Baseline, base.Middle())}, true
	case base == nil || base.Middle() == "–":
		return keyFigure{}, false
	case slower && len(c.Cells) > 1:
		return keyFigure{name, base.Middle(), "with " + t.Baseline + "; every other control is slower"}, true
	case len(c.Cells) == 1:
		return keyFigure{name, base.Middle(), "with " + t.Baseline}, true
	}
	return keyFigure{name, base.Middle(), "with " + t.Baseline + "; no control is faster beyond doubt"}, true
}
