package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

var (
	//go:embed assets/compare.html.tmpl
	compareTemplate string
	//go:embed assets/compare.css
	compareCSS string
)

// CompareHTML writes a comparison as one file that fetches nothing and needs no
// script: the sides beside each other with bars and intervals, then every effect.
func CompareHTML(w io.Writer, c model.Comparison) error {
	t, err := template.New("compare").Funcs(template.FuncMap{"keep": keepUnits}).Parse(compareTemplate)
	if err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	p := newComparePage(c)
	style := htmlCSS + compareCSS
	p.Style = template.CSS(style) // our own assets
	p.CSP = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src " + cspHash(style)
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	return nil
}

// comparePage is what the template shows; all text in it is plain.
type comparePage struct {
	CSP          string
	Style        template.CSS
	Title        string
	Verdict      string
	VerdictClass string
	Subtitle     []string
	Differ       []string
	Places       []comparePlace
	CPU          bool // some router was watched
	Facts        hostTable
	Tables       []compareTable
	Legend       []string
	Findings     []string
	Limits       []limitView
	LeftOut      []string
	Warnings     []string
	Notes        []string
	Footer       string
}

// comparePlace is one setting with all sides beside each other.
type comparePlace struct {
	Name  string
	Sides []compareSide
}

// compareSide is one side's bars. Lengths are percentages of the full width.
type compareSide struct {
	Name                    string
	First                   bool // the baseline
	Rate, RateText          string
	Low, Wide, RateTitle    string // of the interval
	Mark                    string // against the baseline: "−78 %"
	Unsure                  bool   // cannot be told from the baseline
	Softirq, Busy, CPUText  string
	CPULow, CPUWide, CPUTip string
	Loss                    string
}

type compareTable struct {
	Title     string
	Separable bool
	Heads     []string
	Rows      [][]string
}

type limitView struct {
	Class, Text string
}

func newComparePage(c model.Comparison) comparePage {
	p := comparePage{Title: compareTitle(c), Verdict: words.Plain(c.Verdict)}
	p.VerdictClass = headlineClass(p.Verdict)
	p.Subtitle = append([]string{p.Title}, sideLines(c)...)
	plain := func(list []string) (out []string) {
		for _, t := range list {
			out = append(out, words.Plain(t))
		}
		return out
	}
	p.Differ, p.Findings, p.LeftOut, p.Notes, p.Warnings = plain(c.Differ), plain(c.Findings), plain(c.LeftOut), plain(c.Notes), plain(c.Warnings)
	p.Places = comparePlaces(c)
	for _, place := range p.Places {
		p.CPU = p.CPU || slices.ContainsFunc(place.Sides, func(s compareSide) bool { return s.CPUText != "" })
	}
	p.Facts = routerTable(c)
	for _, separable := range []bool{true, false} {
		for side := range c.Sides {
			if list := shownEffects(c, side, separable); len(list) > 0 {
				p.Tables = append(p.Tables, newCompareTable(c, side, separable, list))
			}
		}
	}
	if slices.ContainsFunc(c.Effects, func(e model.Effect) bool { return !e.Separable }) {
		p.Legend = append(p.Legend, compareLegend)
	}
	if slices.ContainsFunc(c.Effects, func(e model.Effect) bool { return e.SameAs != "" }) {
		p.Legend = append(p.Legend, sameLegend)
	}
	for _, l := range c.Limits {
		p.Limits = append(p.Limits, limitView{l.State, words.Plain(limitText(l))})
	}
	p.Footer = strings.TrimSpace("pelt " + words.Name(c.Tool.Version))
	return p
}

func newCompareTable(c model.Comparison, side int, separable bool, list []model.Effect) compareTable {
	base, name := words.Name(c.Sides[0].Name), words.Name(c.Sides[side].Name)
	t := compareTable{Title: fmt.Sprintf("%s against %s: cannot be told apart", name, base), Separable: separable}
	if separable {
		t.Title = fmt.Sprintf("%s against %s: separable", name, base)
	}
	fields := effectFields(list, base, name, separable)
	for _, f := range fields {
		t.Heads = append(t.Heads, f.head)
	}
	for i := range list {
		var row []string
		for _, f := range fields {
			row = append(row, f.cells[i])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// comparePlaces lists settings in the order of their effects' cells.
func comparePlaces(c model.Comparison) []comparePlace {
	type key struct {
		side               int
		cell, flow, metric string
	}
	found := map[key]model.Sampled{}
	effect := map[key]model.Effect{}
	type place struct {
		name, cell, flow string
		order            int
	}
	var places []place
	for _, e := range c.Effects {
		k := key{e.Side, e.Cell.Key(), e.Flow, e.Metric}
		found[k], effect[k] = e.Other, e
		k.side = 0
		found[k] = e.Baseline
		if at := (place{e.Where, k.cell, k.flow, 0}); e.Flow != "" && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	for i := range places {
		places[i].order = slices.Index(c.Settings, places[i].name)
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.order, b.order) })
	var out []comparePlace
	for _, at := range places {
		metric := "goodput_bps"
		if _, ok := found[key{0, at.cell, at.flow, "receive_pps"}]; ok {
			metric = "receive_pps"
		}
		most := 0.0
		for i := range c.Sides {
			most = max(most, found[key{i, at.cell, at.flow, metric}].High, found[key{i, at.cell, at.flow, metric}].Mean)
		}
		view := comparePlace{Name: words.Plain(at.name)}
		for i, s := range c.Sides {
			rate, ok := found[key{i, at.cell, at.flow, metric}]
			busy, watched := found[key{i, at.cell, "", "router_cpu_busy_ratio"}]
			if !ok && !watched {
				continue
			}
			v := compareSide{Name: words.Name(s.Name), First: i == 0, RateText: "–"}
			if ok && most > 0 {
				v.Rate, v.RateText = percent(rate.Mean/most), figureText(metric, rate.Mean)
				v.Low, v.Wide = percent(rate.Low/most), percent((rate.High-rate.Low)/most)
				v.RateTitle = fmt.Sprintf("%s: %s; 95 %%: %s to %s", v.Name, v.RateText, figureText(metric, rate.Low), figureText(metric, rate.High))
			}
			if e, told := effect[key{i, at.cell, at.flow, metric}]; told {
				v.Mark, v.Unsure = changeText(e.Kind, e.Change), !e.Separable
				if v.Unsure {
					v.Mark = "not separable"
				}
			}
			if watched {
				softirq := found[key{i, at.cell, "", "router_cpu_softirq_ratio"}].Mean
				v.Softirq, v.Busy, v.CPUText = percent(min(1, softirq)), percent(max(0, min(1, busy.Mean)-softirq)), figureText("ratio", busy.Mean)
				v.CPULow, v.CPUWide = percent(min(1, busy.Low)), percent(max(0, min(1, busy.High)-busy.Low))
				v.CPUTip = fmt.Sprintf("%s: softirq %s, other work %s, idle %s", v.Name, figureText("ratio", softirq), figureText("ratio", max(0, busy.Mean-softirq)), figureText("ratio", max(0, 1-busy.Mean)))
			}
			if loss, lossy := found[key{i, at.cell, at.flow, "loss_ratio"}]; lossy && finiteOr(loss.Mean) > 0 {
				v.Loss = unit.FormatRatio(loss.Mean) + " lost"
			}
			view.Sides = append(view.Sides, v)
		}
		if len(view.Sides) > 0 {
			out = append(out, view)
		}
	}
	return out
}

func finiteOr(v float64) float64 {
	if finite(v) {
		return v
	}
	return 0
}

// routerTable has what is known of each side's router, a column each.
func routerTable(c model.Comparison) hostTable {
	var t hostTable
	if c.Interleaved { // all sides are one router
		return t
	}
	known := false
	for _, s := range c.Sides {
		t.Nodes = append(t.Nodes, words.Name(s.Name))
		known = known || s.Router != nil
	}
	add := func(name string, get func(model.RouterFacts) string) {
		row, some := hostRow{Name: name}, false
		for _, s := range c.Sides {
			text := ""
			if s.Router != nil {
				text = words.Plain(get(*s.Router))
			}
			some = some || text != ""
			row.Cells = append(row.Cells, cmp.Or(text, "–"))
		}
		if some {
			t.Rows = append(t.Rows, row)
		}
	}
	if !known {
		return hostTable{}
	}
	add("model", func(r model.RouterFacts) string { return r.Model })
	add("system", func(r model.RouterFacts) string { return strings.TrimSpace(r.System + " " + r.Firmware) })
	add("kernel", func(r model.RouterFacts) string { return r.Kernel })
	add("processor", func(r model.RouterFacts) string {
		if r.Cores == 0 {
			return r.CPU
		}
		return fmt.Sprintf("%d × %s", r.Cores, cmp.Or(r.CPU, "core"))
	})
	add("memory", func(r model.RouterFacts) string {
		if r.MemoryBytes == 0 {
			return ""
		}
		return fmt.Sprintf("%d MiB", r.MemoryBytes>>20)
	})
	add("offload", func(r model.RouterFacts) string { return strings.Join(r.Offload, "; ") })
	add("watched by", func(r model.RouterFacts) string { return r.Source })
	return t
}
