package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/internal/words"
)

// Bounds of a bench's charts: a screen shows no more.
const (
	maxBenchPoints = 600 // of one series of one trial
	maxBenchTrials = 200
	maxBenchCores  = 16 // the busiest ones of a trial
)

// benchData is what bench.js draws; it names the same fields.
type benchData struct {
	Layers []string     `json:"layers"` // the lowest of a pile first
	Rows   []benchPlace `json:"rows"`   // of the table, for the trials to refer to
	Trials []benchTrial `json:"trials"` // in the order of the table's rows
	Chosen int          `json:"chosen"` // the one with most load
	Left   int          `json:"left"`
}

// benchPlace are the words that the overview sets below its trials.
type benchPlace struct {
	Traffic string `json:"traffic"`
	Way     string `json:"way"`
	Variant string `json:"variant"`
}

type benchTrial struct {
	Name   string       `json:"name"`
	Row    int          `json:"row"` // of the table
	Note   string       `json:"note"`
	Rates  []benchRate  `json:"rates"`
	Stacks []benchStack `json:"stacks"` // the whole router first; none if it was not observed
	Left   int          `json:"left"`   // cores that are not there
}

type benchRate struct {
	Name  string `json:"name"`
	Start num    `json:"start"`
	Step  num    `json:"step"`
	PPS   []num  `json:"pps"`
	BPS   []num  `json:"bps"`
}

type benchStack struct {
	Name   string  `json:"name"`
	Start  num     `json:"start"`
	Step   num     `json:"step"`
	Layers [][]num `json:"layers"`
}

func newBenchData(doc model.Document) *benchData {
	names := bench.LayerNames()
	d := &benchData{Layers: names[:], Rows: []benchPlace{}, Trials: []benchTrial{}}
	most := -1.0
	for n, row := range bench.Fold(doc).Rows {
		d.Rows = append(d.Rows, benchPlace{row.Traffic, row.Way, row.Variant})
		if row.Share {
			continue
		}
		for _, i := range row.Trials {
			if len(d.Trials) == maxBenchTrials {
				d.Left++
				continue
			}
			r := doc.Results[i]
			trial := newBenchTrial(doc, r, n)
			if len(trial.Rates)+len(trial.Stacks) == 0 {
				continue
			}
			if r.Router != nil && r.Router.CPU != nil && len(trial.Stacks) > 0 && r.Router.CPU.Busy() > most {
				most, d.Chosen = r.Router.CPU.Busy(), len(d.Trials)
			}
			d.Trials = append(d.Trials, trial)
		}
	}
	return d
}

func newBenchTrial(doc model.Document, r model.Result, row int) benchTrial {
	t := benchTrial{Name: words.Shorten(bench.TrialName(doc, r), 80), Row: row, Rates: []benchRate{}, Stacks: []benchStack{}}
	if r.State != model.Valid {
		t.Name += " (" + words.Name(string(r.State)) + ")"
	}
	if r.Router != nil {
		for _, g := range r.Router.Gaps {
			t.Note = strings.TrimPrefix(t.Note+"; router "+words.Plain(g), "; ")
		}
	}
	line := bench.NewTimeline(r)
	for _, rate := range line.Rates {
		c := benchRate{Name: bench.Way(doc, rate.Flow), Start: num(rate.Start), Step: num(rate.Step), PPS: []num{}, BPS: []num{}}
		if len(rate.PPS) > 0 {
			c.Step, c.PPS = thin(model.Series{StepSeconds: rate.Step, Values: rate.PPS}, maxBenchPoints)
		}
		if len(rate.BPS) > 0 {
			c.Step, c.BPS = thin(model.Series{StepSeconds: rate.Step, Values: rate.BPS}, maxBenchPoints)
		}
		t.Rates = append(t.Rates, c)
	}
	stacks := busiestStacks(line.Stacks)
	t.Left = len(line.Stacks) - len(stacks)
	for _, s := range stacks {
		c := benchStack{Name: "whole router", Start: num(s.Start), Step: num(s.Step)}
		if s.Core >= 0 {
			c.Name = "core " + strconv.Itoa(s.Core)
		}
		for _, values := range s.Layers {
			if len(values) == 0 {
				c.Layers = append(c.Layers, []num{})
				continue
			}
			step, thinned := thin(model.Series{StepSeconds: s.Step, Values: values}, maxBenchPoints)
			for i, v := range thinned {
				thinned[i] = num(math.Round(float64(v)*1e4) / 1e4) // ticks of a router are coarser
			}
			c.Step = step
			c.Layers = append(c.Layers, thinned)
		}
		t.Stacks = append(t.Stacks, c)
	}
	return t
}

// busiestStacks keeps the whole router and as many cores as a page can hold, in
// the order of their numbers.
func busiestStacks(all []bench.Stack) []bench.Stack {
	if len(all) <= maxBenchCores+1 {
		return all
	}
	load := func(s bench.Stack) (sum float64) {
		for _, layer := range s.Layers {
			for _, v := range layer {
				if finite(v) {
					sum += v
				}
			}
		}
		return sum
	}
	cores := slices.Clone(all[1:])
	slices.SortStableFunc(cores, func(a, b bench.Stack) int { return cmp.Compare(load(b), load(a)) })
	cores = cores[:maxBenchCores]
	slices.SortFunc(cores, func(a, b bench.Stack) int { return cmp.Compare(a.Core, b.Core) })
	return append([]bench.Stack{all[0]}, cores...)
}
