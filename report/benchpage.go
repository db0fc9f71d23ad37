package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/internal/words"
	"pelt/unit"
)

// mostBars bounds the rows of the bars; the table has all of them.
const mostBars = 60

// benchView is what the page of a router bench has instead of curves and tables.
type benchView struct {
	Facts  string
	State  []string // of its fast paths
	Tuning []string
	Untold []string
	Watch  string
	Gaps   []string
	Apart  string

	Heads  []benchHead
	Rows   []benchRow
	Bars   []benchBar
	Scales [2]string // what the full width of a rate's bar means
	Left   int       // rows without bars
	Before []benchText
	After  []benchText
	Trials int // with seconds to draw
	Unseen int // trials beyond those
	Key    string
}

type benchHead struct {
	Text, Title string
	Words       bool
}

type benchRow struct {
	Class string
	Row   int // number, as the script knows it; -1 for a share, which has no chart of its own
	Cells []sweepCell
}

// benchBar is one row of bars: rates, and the processor's time.
type benchBar struct {
	Label, Variant string // Label is "" below the first of a group
	Bits, Packets  benchRateBar
	CPU            []lossPart
	Peak           string // where the busiest core is, "" if unknown
	Idle           string
	Title          string
}

type benchRateBar struct {
	Text  string
	Parts []lossPart
}

// benchText is a text in the router's own words.
type benchText struct{ Name, Text string }

func newBenchView(doc model.Document, charts chartData) *benchView {
	t := bench.Fold(doc)
	v := &benchView{Facts: bench.Facts(doc), State: bench.State(doc), Untold: bench.Untold(doc), Watch: bench.Watch(doc), Gaps: bench.Gaps(doc), Apart: t.Apart(), Key: benchKey(t)}
	if charts.Bench != nil {
		v.Trials, v.Unseen = len(charts.Bench.Trials), charts.Bench.Left
	}
	v.fillTable(t)
	v.fillBars(t)
	if f := doc.Router; f != nil {
		for _, l := range f.Tuning {
			v.Tuning = append(v.Tuning, words.Plain(l))
		}
		v.Before, v.After = benchTexts(f.Before), benchTexts(f.After)
	}
	return v
}

func benchTexts(of []model.Text) []benchText {
	var out []benchText
	for _, t := range of {
		lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(t.Text, "·"), "\n"), "\n")
		for i, l := range lines {
			lines[i] = strings.TrimRightFunc(strings.Map(func(r rune) rune {
				if r == '\t' {
					return r
				}
				return []rune(words.Plain(string(r)))[0]
			}, l), unicode.IsSpace)
		}
		out = append(out, benchText{words.Shorten(words.Plain(t.Name), 80), strings.Join(lines, "\n")})
	}
	return out
}

func (v *benchView) fillTable(t bench.Table) {
	columns := t.Columns()
	several := len(t.Variants) > 1
	v.Heads = []benchHead{{"path, traffic", "direction of the flow; frame size, or TCP", true}}
	if several {
		v.Heads = append(v.Heads, benchHead{"variant", "how the router was set up", true})
	}
	for _, c := range columns {
		v.Heads = append(v.Heads, benchHead{c.Head, c.Says, false})
	}
	for n, r := range t.Rows {
		row := benchRow{Row: n, Cells: []sweepCell{{r.Way + " " + r.Traffic, strconv.Itoa(n), true}}}
		switch {
		case r.Share: // the script draws the sum's trials
			row.Class, row.Row, row.Cells[0].Text = "share", -1, "both: "+r.Way+" "+r.Traffic
		case r.State != model.Valid:
			row.Class = "invalid"
		}
		if r.State != model.Valid {
			row.Cells[0].Text += "!"
		}
		if several {
			row.Cells = append(row.Cells, sweepCell{r.Variant, "", true})
		}
		for _, c := range columns {
			cell := sweepCell{Text: c.Cell(r)}
			if x := c.Value(r); finite(x) && cell.Text != "" && cell.Text != "–" {
				cell.Value = strconv.FormatFloat(x, 'g', 8, 64)
			}
			row.Cells = append(row.Cells, cell)
		}
		v.Rows = append(v.Rows, row)
	}
}

func (v *benchView) fillBars(t bench.Table) {
	of := t.Pairs()
	v.Left = max(0, len(of)-mostBars)
	of = of[:len(of)-v.Left]
	bits, packets := 0.0, 0.0
	for _, r := range of {
		bits, packets = max(bits, r.BPS.Mean), max(packets, r.PPS.Mean)
	}
	v.Scales = [2]string{unit.FormatBits(bits), unit.FormatPPS(packets)}
	last := ""
	for _, r := range of {
		b := benchBar{Label: r.Way + ", " + r.Traffic, Variant: r.Variant, Idle: "not observed", Title: r.Name()}
		if len(t.Variants) < 2 {
			b.Variant = ""
		}
		if b.Label == last {
			b.Label = ""
		} else {
			last = b.Label
		}
		b.Bits = rateBar(r.BPS.Mean, bits, unit.FormatBits)
		b.Packets = rateBar(r.PPS.Mean, packets, unit.FormatPPS)
		if r.Load != nil {
			x := 0.0
			for i, share := range bench.Layers(r.Load.CPU) {
				share = min(max(share, 0), 1-x)
				if !(share > 0) {
					continue
				}
				name := bench.LayerNames()[i]
				b.CPU = append(b.CPU, lossPart{name, percent(x), percent(share), fmt.Sprintf("%s %s", name, unit.FormatRatio(share))})
				x += share
			}
			if top := r.Load.Busiest; top.N > 0 {
				b.Peak = percent(min(max(top.Mean, 0), 1))
				b.Title += fmt.Sprintf("; busiest core %s", wholePercent(top.Mean))
			}
			b.Idle = wholePercent(r.Load.Busy.Mean) + " busy"
		}
		v.Bars = append(v.Bars, b)
	}
}

func rateBar(value, most float64, format func(float64) string) benchRateBar {
	if !finite(value) {
		return benchRateBar{Text: "–"}
	}
	return benchRateBar{format(value), []lossPart{{"hue0", "0", percent(min(value/max(most, 1e-9), 1)), format(value)}}}
}

// benchKeys are the few numbers that a reader of a bench looks for first.
func benchKeys(doc model.Document) []keyFigure {
	t := bench.Fold(doc)
	of := slices.DeleteFunc(slices.Clone(t.Rows), func(r bench.Row) bool { return r.State != model.Valid || r.Share || r.PPS.N == 0 })
	full := slices.DeleteFunc(slices.Clone(of), func(r bench.Row) bool { return r.Light })
	if len(full) == 0 {
		return nil
	}
	top := func(get func(bench.Row) float64) bench.Row {
		return slices.MaxFunc(full, func(a, b bench.Row) int { return cmp.Compare(get(a), get(b)) })
	}
	fast := top(func(r bench.Row) float64 {
		if r.TCP {
			return -1
		}
		return r.PPS.Mean
	})
	wide := top(func(r bench.Row) float64 { return r.BPS.Mean })
	var keys []keyFigure
	if !fast.TCP {
		keys = append(keys, keyFigure{"Most packets", unit.FormatPPS(fast.PPS.Mean), fast.Name() + loadWords(fast)})
	}
	keys = append(keys, keyFigure{"Most goodput", unit.FormatBits(wide.BPS.Mean), wide.Name() + loadWords(wide)})
	hot := top(func(r bench.Row) float64 {
		if r.Load == nil {
			return -1
		}
		return r.Load.Busiest.Mean
	})
	if hot.Load != nil && hot.Load.Busiest.N > 0 {
		at := "its busiest core"
		if hot.Load.Core >= 0 {
			at = fmt.Sprintf("core %d", hot.Load.Core)
		}
		keys = append(keys, keyFigure{"Busiest core", wholePercent(hot.Load.Busiest.Mean), at + " at " + hot.Name()})
	}
	return append(keys, delayKey(of)...)
}

// delayKey sets the delay of the path while it is idle beside that under load.
func delayKey(of []bench.Row) []keyFigure {
	for _, light := range of {
		if !light.Light {
			continue
		}
		for _, full := range of {
			if full.Light || full.TCP || full.Way != light.Way || full.Variant != light.Variant || full.Cell["frame_bytes"] != light.Cell["frame_bytes"] {
				continue
			}
			kind, a, b := "Delay under load", light.Delay50, full.Delay50
			if a.N == 0 || b.N == 0 {
				kind, a, b = "Round trip under load", light.RTT50, full.RTT50
			}
			if a.N == 0 || b.N == 0 {
				continue
			}
			return []keyFigure{{kind, unit.FormatNanos(b.Mean), fmt.Sprintf("median at %s; %s while idle", full.Name(), unit.FormatNanos(a.Mean))}}
		}
	}
	return nil
}

func loadWords(r bench.Row) string {
	if r.Load == nil {
		return "; router not observed"
	}
	return fmt.Sprintf("; router %s idle, %s sirq", wholePercent(r.Load.CPU.Idle), wholePercent(r.Load.CPU.Softirq))
}

func wholePercent(ratio float64) string {
	if !finite(ratio) {
		return "–"
	}
	return strconv.FormatFloat(min(max(ratio, 0), 1)*100, 'f', 0, 64) + " %"
}
