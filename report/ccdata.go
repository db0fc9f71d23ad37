package report

import (
	"math"
	"strconv"

	"pelt/model"
	"pelt/report/controls"
	"pelt/report/internal/words"
)

// controlData is what the script of a comparison draws; cc.js names the same
// fields. Each cell has one trial there: the one in the middle.
type controlData struct {
	Conditions []controlTimes `json:"conditions"`
	Chosen     int            `json:"chosen"` // where controls differ most
	Left       int            `json:"left"`   // trials with series that the page leaves out
	Source     string         `json:"source"`
}

type controlTimes struct {
	Name    string        `json:"name"`
	Note    string        `json:"note"` // which trials
	Goodput []controlLine `json:"goodput"`
	RTT     []controlLine `json:"rtt"`
	Window  []controlLine `json:"window"`
}

type controlLine struct {
	Name   string `json:"name"`
	Hue    int    `json:"hue"`
	Dashed bool   `json:"dashed"` // a stream beside another of the same trial
	Start  num    `json:"start"`
	Step   num    `json:"step"`
	Values []num  `json:"values"`
}

// mostControlPoints bounds all series of the page together, leastControlPoints is
// what each may have at least.
const (
	mostControlPoints  = 600_000
	leastControlPoints = 200
)

func newControlData(doc model.Document) *controlData {
	t := controls.Fold(doc)
	d := &controlData{Conditions: []controlTimes{}}
	cells := 0
	for _, c := range t.Conditions {
		for _, x := range c.Cells {
			if x.Median >= 0 {
				cells++
			}
		}
	}
	points := min(maxChartPoints, max(leastControlPoints, mostControlPoints/max(1, 3*cells)))
	widest := t.Widest()
	for n, c := range t.Conditions {
		out := controlTimes{Name: c.Name, Goodput: []controlLine{}, RTT: []controlLine{}, Window: []controlLine{}}
		if out.Name == "" {
			out.Name = "the only setting"
		}
		shown := 0
		for _, x := range c.Cells {
			d.Left += x.Series
			if x.Median < 0 {
				continue
			}
			if n >= mostConditions {
				d.Left++
				continue
			}
			shown++
			out.add(t.Controls[x.Control].Name, x.Control, doc.Results[x.Median], points, d)
		}
		if shown == 0 {
			continue
		}
		if n == widest {
			d.Chosen = len(d.Conditions)
		}
		d.Conditions = append(d.Conditions, out)
	}
	return d
}

// add lays one trial's lines over the others'.
func (c *controlTimes) add(name string, hue int, r model.Result, points int, d *controlData) {
	line := controls.NewTimeline(r)
	if d.Source == "" {
		d.Source = line.Source
	} else if line.Source != "" && line.Source != d.Source {
		d.Source = "each trial's own series"
	}
	if c.Note != "" {
		c.Note += ", "
	}
	c.Note += name + " " + strconv.Itoa(r.Repeat+1)
	to := func(lines []controls.Line, list *[]controlLine) {
		for n, l := range lines {
			out := controlLine{Name: name, Hue: hue, Dashed: n > 0, Start: num(l.Start)}
			if l.Stream != "" {
				out.Name += ", stream " + words.Name(l.Stream)
			}
			if len(l.Values) == 0 {
				continue
			}
			out.Step, out.Values = thin(model.Series{StepSeconds: l.Step, Values: l.Values}, points)
			for i, v := range out.Values {
				out.Values[i] = num(rounded(float64(v)))
			}
			*list = append(*list, out)
		}
	}
	to(line.Goodput, &c.Goodput)
	to(line.RTT, &c.RTT)
	to(line.Window, &c.Window)
}

// rounded keeps four digits, more than any screen shows.
func rounded(v float64) float64 {
	if v == 0 || !finite(v) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit == 0 || math.IsInf(unit, 0) {
		return v
	}
	return math.Round(v/unit) * unit
}
