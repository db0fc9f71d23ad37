package report

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/controls"
	"pelt/report/internal/words"
	"pelt/report/rows"
)

// maxChartPoints bounds one series in the file: a screen shows no more, and a
// week of seconds would make the file slow to open.
const maxChartPoints = 3000

// maxChartRuns bounds the trials whose seconds are in the file.
const maxChartRuns = 500

// num is a figure for the charts: null when nobody measured it.
type num float64

// MarshalJSON writes six significant digits, more than any screen shows.
func (n num) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if !finite(f) {
		return []byte("null"), nil
	}
	return json.Marshal(json.RawMessage(strconv.FormatFloat(f, 'g', 6, 64)))
}

func nothing() num { return num(math.NaN()) }

// chartData is what the page's script draws; report.js names the same fields.
type chartData struct {
	Axis    chartAxis    `json:"axis"`
	Lines   []chartLine  `json:"lines"`
	Delay   string       `json:"delay"` // what the delays are; "" if there are none
	Rate    string       `json:"rate"`  // unit of the rates: pps or /s
	Trials  []chartRun   `json:"trials"`
	Left    int          `json:"left"` // trials with series that the file leaves out
	Bench   *benchData   `json:"bench,omitempty"`
	Control *controlData `json:"control,omitempty"`
}

type chartAxis struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	Log   bool   `json:"log"`

	Levels []chartLevel `json:"levels"` // of all lines, in words
}

type chartLevel struct {
	X    num    `json:"x"`
	Text string `json:"text"`
}

type chartLine struct {
	Name    string   `json:"name"`
	Offered string   `json:"offered"`
	Carried string   `json:"carried"`
	X       []num    `json:"x"`
	Sent    []num    `json:"sent"`
	Got     []num    `json:"got"`
	GotLow  []num    `json:"got_low"`
	GotHigh []num    `json:"got_high"`
	Bits    []num    `json:"bits"`
	BitsLow []num    `json:"bits_low"`
	BitsTop []num    `json:"bits_high"`
	Share   []num    `json:"share"`
	P50     []num    `json:"p50"`
	P90     []num    `json:"p90"`
	P99     []num    `json:"p99"`
	P999    []num    `json:"p999"`
	Invalid []string `json:"invalid"` // why, "" for a valid point
}

func newChartData(doc model.Document, t rows.Table, classes map[string]string) chartData {
	d := chartData{Rate: "pps", Lines: []chartLine{}, Trials: []chartRun{}}
	if bench.Is(doc) { // its charts are others
		d.Bench = newBenchData(doc)
		return d
	}
	if controls.Is(doc) { // likewise
		d.Control = newControlData(doc)
		return d
	}
	if key := t.Axis(); key != "" && !rows.IsSweep(doc) {
		d.Axis = chartAxis{Key: key, Label: axisWords(key), Levels: []chartLevel{}}
		lines := t.Lines(key)
		low, high := math.Inf(1), math.Inf(-1)
		for _, l := range lines {
			c := newChartLine(t, l, len(lines) > 1)
			for _, x := range c.X {
				d.Axis.Levels = append(d.Axis.Levels, chartLevel{x, words.Level(key, float64(x))})
			}
			d.Lines = append(d.Lines, c)
			low, high = min(low, l.Points[0].X), max(high, l.Points[len(l.Points)-1].X)
			if l.Protocol == model.TCP {
				d.Rate = "/s"
			}
		}
		d.Axis.Log = low > 0 && (key == rows.PayloadKey || high/low >= 20)
	}
	d.Delay = delayKind(t.Rows)
	for _, r := range doc.Results {
		run := newChartRun(doc, r, classes)
		if len(run.Rate)+len(run.CPU) == 0 {
			continue
		}
		if len(d.Trials) == maxChartRuns {
			d.Left++
			continue
		}
		d.Trials = append(d.Trials, run)
	}
	return d
}

// delayKind: one way where any row has it, for then the clocks are one.
func delayKind(all []rows.Row) string {
	kind := ""
	for _, r := range all {
		if r.Delay != nil {
			return "one-way delay"
		}
		if r.RoundTrip != nil {
			kind = "round-trip time"
		}
	}
	return kind
}

func axisWords(key string) string {
	if what, _, link := model.LinkKnobWords(key, model.Value{}); link {
		return words.Name(what)
	}
	switch key {
	case rows.PayloadKey:
		return "payload in bytes"
	case "rate_pps":
		return "offered rate"
	case "interval_ns":
		return "time between packets"
	}
	return words.Name(strings.ReplaceAll(key, "_", " "))
}

func newChartLine(t rows.Table, l rows.Line, several bool) chartLine {
	c := chartLine{Offered: "sent", Carried: "received"}
	if l.Protocol == model.TCP {
		c.Offered, c.Carried = "writes", "segments"
	}
	if several {
		c.Name = words.Curve(t, l.Flow, l.Cell)
	}
	middle := func(s rows.Stat) num {
		if s.N == 0 {
			return nothing()
		}
		return num(s.Median)
	}
	for _, p := range l.Points {
		r := t.Rows[p.Row]
		got := r.Carried()
		c.X, c.Sent, c.Got = append(c.X, num(p.X)), append(c.Sent, middle(r.Offered())), append(c.Got, middle(got))
		c.GotLow, c.GotHigh = append(c.GotLow, num(got.Min)), append(c.GotHigh, num(got.Max))
		c.Bits, c.BitsLow, c.BitsTop = append(c.Bits, middle(r.GoodputBPS)), append(c.BitsLow, num(r.GoodputBPS.Min)), append(c.BitsTop, num(r.GoodputBPS.Max))
		c.Share = append(c.Share, num(r.Share))
		q := [4]num{nothing(), nothing(), nothing(), nothing()}
		if d := rowDelay(r); d != nil {
			q = [4]num{middle(d.P50), middle(d.P90), middle(d.P99), middle(d.P999)}
		}
		c.P50, c.P90, c.P99, c.P999 = append(c.P50, q[0]), append(c.P90, q[1]), append(c.P99, q[2]), append(c.P999, q[3])
		why := ""
		if r.State != model.Valid {
			why = words.Name(string(r.State))
		}
		c.Invalid = append(c.Invalid, why)
	}
	return c
}

func rowDelay(r rows.Row) *rows.Delays {
	if r.Delay != nil {
		return r.Delay
	}
	return r.RoundTrip
}

// thin joins steps to their mean until the series has at most so many.
func thin(s model.Series, most int) (step num, values []num) {
	by := (len(s.Values) + most - 1) / most
	for i := 0; i < len(s.Values); i += by {
		sum, n := 0.0, 0
		for _, v := range s.Values[i:min(i+by, len(s.Values))] {
			if finite(v) {
				sum += v
				n++
			}
		}
		if n == 0 {
			values = append(values, nothing())
			continue
		}
		values = append(values, num(sum/float64(n)))
	}
	return num(s.StepSeconds * float64(by)), values
}
