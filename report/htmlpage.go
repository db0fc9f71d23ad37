package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/controls"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// page is what the template shows. All text in it is plain; the template
// escapes it for HTML.
type page struct {
	table   rows.Table
	classes map[string]string // of causes of loss, by their words

	CSP          string
	Style        template.CSS
	Script, Data template.JS
	Title        string
	Verdict      string
	VerdictClass string // long and very long ones are set smaller
	Subtitle     []string
	Complete     bool
	Keys         []keyFigure
	Findings     []string
	Warnings     []string
	Troubles     []string
	TroubleTitle string
	HasCurve     bool
	HasDelay     bool
	HasSeries    bool
	MarkNote     string // what marks on the charts over time are
	SeriesLeft   int    // trials whose seconds only the JSON document has
	Axis         string
	Loss         lossChart
	Ledger       ledgerView
	Gaps         gapView
	Tables       []htmlTable
	Sweep        sweepView
	Bench        *benchView   // of a router bench
	Control      *controlView // of a comparison of congestion controls
	Hosts        hostTable
	Method       []pair
	Command      []string // the line, broken where it may wrap
	Note         string
	Footer       string
}

type pair struct{ Name, Text string }

type keyFigure struct{ Name, Value, Note string }

type htmlTable struct {
	Title   string
	Heads   []string
	Rows    []htmlRow
	Columns int
}

type htmlRow struct {
	Cells   []string
	Loss    string
	Invalid bool
}

func newPage(doc model.Document) page {
	t := rows.Fold(doc)
	p := page{table: t, Title: words.Headline(doc), Verdict: words.Headline(doc), Complete: doc.Complete, Axis: axisWords(t.Axis())}
	if len(doc.Findings) > 0 && doc.Findings[0].Text != "" {
		p.Verdict = words.Plain(doc.Findings[0].Text)
		for _, f := range doc.Findings[1:] {
			p.Findings = append(p.Findings, words.Plain(f.Text))
		}
	}
	p.VerdictClass = headlineClass(p.Verdict)
	for _, s := range []string{words.Headline(doc), words.Path(doc), words.Plan(doc), words.PathMTU(doc), words.Record(doc)} {
		if s != "" && s != p.Verdict {
			p.Subtitle = append(p.Subtitle, s)
		}
	}
	for _, w := range doc.Warnings {
		p.Warnings = append(p.Warnings, words.Plain(w))
	}
	p.Troubles, p.TroubleTitle = troubleGroups(doc, t), troubleTitle(doc)
	p.Keys = keyFigures(t)
	if keys := soakKeys(doc); len(keys) > 0 {
		p.Keys = keys
	}
	compared := controls.Is(doc)
	p.HasCurve = t.Axis() != "" && !rows.IsSweep(doc) && !bench.Is(doc) && !compared
	p.HasDelay = p.HasCurve && delayKind(t.Rows) != ""
	var classes map[string]string
	label := func(r rows.Row) string { return rowWords(t, r) }
	told := t // rows of which each loss is told
	if bench.Is(doc) {
		p.Keys = benchKeys(doc)
		told.Rows = bench.InOrder(doc, t.Rows)
		label = func(r rows.Row) string { return bench.RowName(doc, r) }
	}
	if rows.IsSweep(doc) {
		p.Sweep = newSweepView(doc, t)
		told = sweepExtremes(t, t.Best(doc.Findings))
	}
	if compared { // of TCP, what is lost is sent again
		p.Keys = controlKeys(doc)
	} else {
		p.Loss, classes = newLossChart(told, label)
		p.Ledger = newLedgerView(doc, told, classes, label)
		p.Ledger.Apart = len(t.Rows) - len(told.Rows)
	}
	p.classes = classes
	if !rows.IsSweep(doc) && !bench.Is(doc) && !compared {
		p.Gaps = newGapView(t)
		for _, of := range t.Groups() {
			p.Tables = append(p.Tables, newHTMLTable(t, of))
		}
	}
	p.Hosts = newHostTable(doc.Host)
	p.Method = method(doc)
	line, note := words.Command(doc.Plan)
	p.Command, p.Note = strings.Split(strings.ReplaceAll(line, " --", "\x00--"), "\x00"), note
	p.Footer = words.Run(doc)
	return p
}

// headlineClass keeps a long verdict from filling the screen.
func headlineClass(text string) string {
	switch n := utf8.RuneCountInString(text); {
	case n > 200:
		return "longer"
	case n > 90:
		return "long"
	}
	return ""
}

// keyFigures are the few numbers a reader looks for first.
func keyFigures(t rows.Table) []keyFigure {
	var keys []keyFigure
	for _, of := range t.Groups() {
		of = slices.DeleteFunc(slices.Clone(of), func(r rows.Row) bool { return r.State != model.Valid })
		if len(of) == 0 {
			continue
		}
		where := func(r rows.Row) string {
			text := unit.FormatSize(r.Payload)
			if rest := words.Setting(r.Flow, t.Rest(r.Cell, rows.PayloadKey)); rest != "" {
				text += ", " + rest
			}
			return words.Shorten(text, 60)
		}
		prefix := ""
		if len(t.Flows) > 1 {
			prefix = words.Name(of[0].Flow) + ": "
		}
		keys = append(keys, flowKeys(of, prefix, where)...)
	}
	return keys
}

func flowKeys(of []rows.Row, prefix string, where func(rows.Row) string) []keyFigure {
	top := func(get func(rows.Row) float64) rows.Row {
		return slices.MaxFunc(of, func(a, b rows.Row) int { return cmp.Compare(get(a), get(b)) })
	}
	fast := top(func(r rows.Row) float64 { return r.Carried().Median })
	wide := top(func(r rows.Row) float64 { return r.GoodputBPS.Median })
	name, rate := "Most packets", unit.FormatPPS
	if fast.TCP != nil {
		name, rate = "Most segments", words.PerSecond
	}
	keys := []keyFigure{
		{prefix + name, figure(fast.Carried(), rate), "at " + where(fast)},
		{prefix + "Most goodput", figure(wide.GoodputBPS, unit.FormatBits), "at " + where(wide)},
	}
	lossy := top(func(r rows.Row) float64 { l, _ := r.LossRatio(); return l })
	if l, ok := lossy.LossRatio(); ok && lossy.TCP == nil {
		text := "at " + where(lossy)
		if l == 0 {
			text = "nowhere"
		}
		keys = append(keys, keyFigure{prefix + "Worst loss", unit.FormatRatio(l), text})
	} else if lossy.TCP != nil {
		keys = append(keys, keyFigure{prefix + "Sent again", unit.FormatRatio(l), "at " + where(lossy)})
	}
	slow := top(func(r rows.Row) float64 {
		if d := rowDelay(r); d != nil {
			return d.P50.Median
		}
		return 0
	})
	if d := rowDelay(slow); d != nil {
		kind := "Longest delay"
		if slow.Delay == nil {
			kind = "Longest round trip"
		}
		keys = append(keys, keyFigure{prefix + kind, figure(d.P50, unit.FormatNanos), "median at " + where(slow) + "; 99 % within " + figure(d.P99, unit.FormatNanos)})
	}
	return keys
}

func newHTMLTable(t rows.Table, of []rows.Row) htmlTable {
	h := htmlTable{Title: flowTitle(of[0])}
	fields := knobFields(of, t.Keys)
	if of[0].TCP != nil {
		fields = append(fields, tcpFields(of)...)
	} else {
		fields = append(fields, udpFields(of)...)
	}
	var kept []field
	for _, f := range append(fields, moreFields(of)...) {
		if !f.empty() {
			kept = append(kept, f)
			h.Heads = append(h.Heads, f.head)
		}
	}
	h.Columns = len(kept)
	for i, r := range of {
		row := htmlRow{Loss: words.Below(r), Invalid: r.State != model.Valid}
		for _, f := range kept {
			row.Cells = append(row.Cells, f.cells[i])
		}
		h.Rows = append(h.Rows, row)
	}
	return h
}

// moreFields are the columns that a terminal has no room for.
func moreFields(of []rows.Row) []field {
	share := func(v float64) string {
		if v == 0 {
			return ""
		}
		return unit.FormatRatio(v)
	}
	delay := func(get func(*rows.Delays) rows.Stat) func(rows.Row) string {
		return func(r rows.Row) string {
			if d := rowDelay(r); d != nil {
				return figure(get(d), unit.FormatNanos)
			}
			return ""
		}
	}
	return []field{
		col(of, "p99.9", 0, delay(func(d *rows.Delays) rows.Stat { return d.P999 })),
		col(of, "jitter", 0, func(r rows.Row) string {
			if r.JitterNanos.Median == 0 {
				return ""
			}
			return figure(r.JitterNanos, unit.FormatNanos)
		}),
		col(of, "sender CPU", 0, func(r rows.Row) string { return share(r.SenderCPU.ThreadRatio) }),
		col(of, "receiver CPU", 0, func(r rows.Row) string { return share(r.ReceiverCPU.BusiestRatio) }),
		col(of, "trials", 0, func(r rows.Row) string { return strconv.Itoa(len(r.Trials)) }),
	}
}

// method says how it was measured.
func method(doc model.Document) []pair {
	var out []pair
	add := func(name, text string) {
		if text != "" {
			out = append(out, pair{name, text})
		}
	}
	p := doc.Plan
	add("Plan", words.Plan(doc))
	if p.Timing.MeasureSeconds > 0 {
		add("Timing of a trial", fmt.Sprintf("%s of warm-up outside the figures, %s measured, then up to %s for packets still on their way",
			words.Seconds(p.Timing.WarmupSeconds), words.Seconds(p.Timing.MeasureSeconds), words.Seconds(p.Timing.DrainSeconds)))
	}
	order := "shuffled within each repeat"
	if p.Design.Ordered {
		order = "as given"
	}
	if p.Design.Kind != "" {
		if p.Design.SideBySide > 1 {
			order += fmt.Sprintf(", %d at a time in labs of their own", p.Design.SideBySide)
		}
		add("Order", fmt.Sprintf("%s, %d of each setting, interleaved; order %s, seed %d", words.Name(p.Design.Kind), p.Design.Repeats, order, p.Design.Seed))
	}
	reasons := map[string]bool{}
	for _, r := range doc.Results {
		text := words.Plain(r.Engine)
		if r.EngineReason != "" {
			text += ": " + words.Plain(r.EngineReason)
		}
		if text != "" && !reasons[text] {
			reasons[text] = true
			add("Engine", text)
		}
	}
	for _, b := range words.Lab(doc) {
		add("Emulated link", b)
	}
	if kind := delayKind(rows.Fold(doc).Rows); kind == "one-way delay" {
		add("Delay", "one way, both ends read one clock")
	} else if kind != "" {
		add("Delay", "round trip, of a thin flow beside the test or as TCP saw it: the two clocks are not one")
	}
	for _, v := range p.Variants {
		how := "the router as it was"
		switch {
		case doc.Lab != nil:
			how = "the lab's router, so made before each trial"
		case v.Command != "":
			how = words.Shorten(words.Plain(v.Command), 300)
		}
		add("Variant "+words.Name(v.Name), how)
	}
	if bench.Is(doc) {
		add("Router's CPU", "from its own counters, mean of the measured part; usr sys nic idle io irq sirq as top names them")
	}
	add("CPU", "of the sender its busiest thread, of the receiver its busiest core")
	if controls.Is(doc) { // of TCP, what is lost is sent again
		return out
	}
	add("Loss", "each packet is numbered; lost = sent − received, split by the counters that moved; what no counter explains is unattributed")
	return out
}
