package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/seconds"
)

// chartRun is one trial second by second.
type chartRun struct {
	Name  string      `json:"name"`
	Rate  []chartTime `json:"rate"`
	Loss  []chartTime `json:"loss"` // by cause
	CPU   []chartTime `json:"cpu"`
	Marks []chartMark `json:"marks"`
	Gaps  []chartGap  `json:"gaps"`
}

type chartTime struct {
	Name   string `json:"name"`
	Sent   bool   `json:"sent"`
	Hue    int    `json:"hue"` // the two rates of a flow share one; -1: that of what has none of its own
	Start  num    `json:"start"`
	Step   num    `json:"step"`
	Values []num  `json:"values"`
}

// chartMark is a moment at which something changed, on order (made) or as it was found.
type chartMark struct {
	At   num    `json:"at"`
	Low  num    `json:"low"` // it lies between these with 95 % confidence
	High num    `json:"high"`
	Text string `json:"text"`
	Made bool   `json:"made"`
}

// chartGap is a time in which nothing was heard.
type chartGap struct {
	From num `json:"from"`
	To   num `json:"to"`
}

// maxChartMarks bounds what one trial marks; more would hide the lines.
const maxChartMarks = 60

func newChartRun(doc model.Document, r model.Result, classes map[string]string) chartRun {
	run := chartRun{Name: words.Shorten(trialWords(doc, r), 80), Rate: []chartTime{}, Loss: []chartTime{}, CPU: []chartTime{}, Marks: []chartMark{}, Gaps: []chartGap{}}
	if r.State != model.Valid {
		run.Name += " (" + words.Name(string(r.State)) + ")"
	}
	for _, s := range r.Series {
		if len(s.Values) == 0 || !(s.StepSeconds > 0) || !finite(s.StepSeconds) || !finite(s.StartSeconds) || s.Core != nil {
			continue
		}
		c := chartTime{Start: num(s.StartSeconds), Hue: max(0, slices.IndexFunc(r.Flows, func(f model.FlowResult) bool { return f.Name == s.Flow }))}
		flow := ""
		if len(r.Flows) > 1 {
			flow = words.Name(s.Flow) + " "
		}
		switch {
		case s.Metric == "send_pps":
			c.Name, c.Sent = flow+"sent", true
		case s.Metric == "receive_pps":
			c.Name = flow + "received"
		case strings.HasPrefix(s.Metric, "cpu_") && strings.HasSuffix(s.Metric, "_ratio"):
			c.Name = fmt.Sprintf("%s %s", words.Name(s.At), words.Name(strings.TrimSuffix(strings.TrimPrefix(s.Metric, "cpu_"), "_ratio")))
			c.Step, c.Values = thin(s, maxChartPoints)
			c.Hue = len(run.CPU)
			run.CPU = append(run.CPU, c)
			continue
		default:
			continue
		}
		c.Step, c.Values = extremes(s)
		run.Rate = append(run.Rate, c)
	}
	slices.SortStableFunc(run.Rate, func(a, b chartTime) int { return cmp.Compare(a.Hue, b.Hue) })
	run.overTime(r, classes)
	return run
}

// overTime adds the losses by cause, and what marks the time.
func (run *chartRun) overTime(r model.Result, classes map[string]string) {
	t := seconds.Of(r)
	for _, f := range t.Flows {
		for _, cause := range f.Causes {
			name := cause.Words
			if len(t.Flows) > 1 {
				name = words.Name(f.Name) + " " + name
			}
			c := chartTime{Name: name, Hue: classHue(classes[cause.Words]), Start: num(cause.Series.StartSeconds)}
			c.Step, c.Values = extremes(cause.Series)
			run.Loss = append(run.Loss, c)
		}
	}
	for _, m := range t.Marks[:min(len(t.Marks), maxChartMarks)] {
		run.Marks = append(run.Marks, chartMark{num(m.AtS), num(m.LowS), num(m.HighS), m.Words, m.Made})
	}
	for _, g := range t.Gaps[:min(len(t.Gaps), maxChartMarks)] {
		run.Gaps = append(run.Gaps, chartGap{num(g.FromS), num(g.ToS)})
	}
}

// classHue is the number of a cause's colour.
func classHue(class string) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(class, "hue")); err == nil {
		return n
	}
	return -1
}

// extremes brings a series to what a screen shows, with its shortest bursts.
func extremes(s model.Series) (step num, values []num) {
	at, kept := seconds.Thin(s, maxChartPoints)
	for _, v := range kept {
		values = append(values, num(v))
	}
	return num(at), values
}

// markNote says what the charts mark.
func markNote(trials []chartRun) string {
	var found, made, gaps bool
	for _, t := range trials {
		gaps = gaps || len(t.Gaps) > 0
		for _, m := range t.Marks {
			found, made = found || !m.Made, made || m.Made
		}
	}
	var said []string
	if found {
		said = append(said, "A solid upright line marks a change that was found, yellow when it may have been.")
	}
	if made {
		said = append(said, "A dashed upright line marks what was changed as planned.")
	}
	if gaps {
		said = append(said, "In grey times an end was not heard.")
	}
	return strings.Join(said, " ")
}
