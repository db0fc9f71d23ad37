package controls

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
)

// Command names a run of pelt cc in its plan.
const Command = "cc"

// Is reports whether a document holds a comparison that can be shown as one.
func Is(doc model.Document) bool {
	t := doc.Control
	return doc.Plan.Command == Command && t != nil && len(t.Conditions) > 0 && len(t.Controls) > 0
}

// Table is a whole comparison.
type Table struct {
	Metric     Metric
	Baseline   string // safe to print
	Controls   []Control
	Conditions []Condition // in the order of the document
	Of         *model.ControlTable
}

// Control is one of those that were compared, in the order of the plan.
type Control struct {
	Name string // safe to print
	Mix  bool   // several that compete
}

// Condition is one setting of everything but the control.
type Condition struct {
	Name    string // "1 % loss"; "" where nothing else varies
	Verdict string
	Cells   []Cell // one for each control, in their order
}

// Cell is one control under one condition. What nobody measured is NaN.
type Cell struct {
	Control  int // place in the table's controls
	Baseline bool
	Of       model.ControlCell
	Metric   Metric
	Contrast *model.ControlContrast
	// Against is the baseline's cell under the same condition; nil of itself.
	Against *Cell
	Trials  []Trial // valid ones, by repeat
	Median  int     // place in the document's results of the trial in the middle; -1 if there is none
	Series  int     // trials with series beside that one
}

// Trial is one valid trial of a cell.
type Trial struct {
	Value float64 // of the metric
	Bound bool    // cut before its end: the value is a lower bound
	// Goodput and RTT95 are in bit/s and seconds; NaN if they cannot be told trial by trial.
	Goodput, RTT95 float64
}

// Fold makes the table of a document that Is one.
func Fold(doc model.Document) Table {
	of := doc.Control
	t := Table{Metric: newMetric(*of), Baseline: words.Name(of.Baseline), Of: of}
	for _, name := range of.Controls {
		t.Controls = append(t.Controls, Control{words.Name(name), strings.Contains(name, model.MixSeparator)})
	}
	results := byCell(doc)
	for n, c := range of.Conditions {
		out := Condition{Name: words.Shorten(words.Plain(c.Text), 60), Verdict: words.Plain(c.Verdict)}
		base := -1
		for i, name := range of.Controls {
			cell := Cell{Control: i, Baseline: name == of.Baseline, Metric: t.Metric, Median: -1}
			if found := of.Cell(n, name); found != nil {
				cell.Of = *found
			}
			if found := of.Contrast(n, name); found != nil && !cell.Baseline {
				cell.Contrast = found
			}
			cell.fill(doc, results[place{n, name}])
			if cell.Baseline && base < 0 {
				base = i
			}
			out.Cells = append(out.Cells, cell)
		}
		for i := range out.Cells {
			if base >= 0 && i != base {
				out.Cells[i].Against = &out.Cells[base]
			}
		}
		t.Conditions = append(t.Conditions, out)
	}
	return t
}

type place struct {
	condition int
	control   string
}

// byCell sorts the results into the table's cells, each by repeat.
func byCell(doc model.Document) map[place][]int {
	out := map[place][]int{}
	for i, r := range doc.Results {
		p := place{-1, controlOf(doc, r)}
		for n, c := range doc.Control.Conditions {
			if within(c.Cell, r.Cell) {
				p.condition = n
				break
			}
		}
		out[p] = append(out[p], i)
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(doc.Results[a].Repeat, doc.Results[b].Repeat) })
	}
	return out
}

func controlOf(doc model.Document, r model.Result) string {
	if v, ok := r.Cell["control"]; ok {
		return v.Text
	}
	if len(doc.Plan.Flows) > 0 && doc.Plan.Flows[0].Control != "" {
		return doc.Plan.Flows[0].Control
	}
	if len(doc.Control.Controls) == 1 {
		return doc.Control.Controls[0]
	}
	return ""
}

// within reports whether a trial's cell has all levels of a condition.
func within(condition, cell model.Cell) bool {
	for k, v := range condition {
		if got, ok := cell[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Flow is the transfer of a trial; nil if it has none.
func Flow(r model.Result) *model.FlowResult {
	for i := range r.Flows {
		if r.Flows[i].TCP != nil {
			return &r.Flows[i]
		}
	}
	return nil
}

// fill adds the trials: their values are the estimate's, which trials were cut the
// results know.
func (c *Cell) fill(doc model.Document, results []int) {
	est := c.Estimate()
	if est == nil {
		return
	}
	cut, known := c.cut(doc, results)
	goodput, delay := values(c.Of.Goodput, len(est.Values)), values(c.Of.RTT95, len(est.Values))
	for i, v := range est.Values {
		t := Trial{Value: v, Goodput: goodput(i), RTT95: delay(i)}
		if c.Metric.Completion {
			t.Bound = known && cut[i] || !known && c.amongLongest(est.Values, i)
		}
		c.Trials = append(c.Trials, t)
	}
	c.chooseMedian(doc, results, est.Median)
}

// cut tells of each valid trial whether its time was over first; known is false
// where the results are not those of the estimate.
func (c *Cell) cut(doc model.Document, results []int) (cut []bool, known bool) {
	for _, i := range results {
		r := doc.Results[i]
		if f := Flow(r); r.State == model.Valid && f != nil && f.TCP.Completion != nil {
			cut = append(cut, !f.TCP.Completion.Done)
		}
	}
	return cut, len(cut) == len(c.Estimate().Values)
}

// amongLongest: trials that were cut ran for the whole of their time.
func (c *Cell) amongLongest(all []float64, i int) bool {
	longer := 0
	for n, v := range all {
		if v > all[i] || v == all[i] && n < i {
			longer++
		}
	}
	return longer < c.Of.Unfinished
}

func values(e *model.Estimate, n int) func(int) float64 {
	if e == nil || len(e.Values) != n {
		return func(int) float64 { return math.NaN() }
	}
	return func(i int) float64 { return e.Values[i] }
}

// chooseMedian finds the valid trial with series that is nearest to the median;
// the first of equals.
func (c *Cell) chooseMedian(doc model.Document, results []int, median float64) {
	least := math.Inf(1)
	for _, i := range results {
		r := doc.Results[i]
		f := Flow(r)
		if r.State != model.Valid || f == nil || !drawable(r) {
			continue
		}
		c.Series++
		v := f.GoodputBPS
		if c.Metric.Completion {
			if v = math.NaN(); f.TCP.Completion != nil {
				v = f.TCP.Completion.Seconds
			}
		}
		off := math.Abs(v - median)
		if math.IsNaN(off) {
			off = math.MaxFloat64
		}
		if off < least {
			least, c.Median = off, i
		}
	}
	c.Series = max(0, c.Series-1)
}

// Estimate is that of the table's metric; nil if no trial has it.
func (c *Cell) Estimate() *model.Estimate {
	if c.Metric.Completion {
		return c.Of.Completion
	}
	return c.Of.Goodput
}
