package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

// CompareText writes a comparison for a terminal of width characters: the verdict,
// what is separable, then what is not. colour adds ANSI styles.
func CompareText(w io.Writer, c model.Comparison, width int, colour bool) error {
	s := newScreen(width, colour)
	s.wrap(styleBold, "", compareTitle(c))
	for _, line := range sideLines(c) {
		s.wrap(styleDim, "", line)
	}
	for _, d := range c.Differ {
		s.wrap("", "  ", words.Plain(d))
	}
	s.line("", "")
	s.wrap(styleVerdict, "", words.Plain(c.Verdict))
	for _, separable := range []bool{true, false} {
		for side := range c.Sides {
			s.effects(c, side, separable)
		}
	}
	if slices.ContainsFunc(c.Effects, func(e model.Effect) bool { return !e.Separable }) {
		s.line("", "")
		s.wrap(styleDim, "", compareLegend)
	}
	if slices.ContainsFunc(c.Effects, func(e model.Effect) bool { return e.SameAs != "" }) {
		s.line("", "")
		s.wrap(styleDim, "", sameLegend)
	}
	listOf(s, "", "What changed", moreFindings(c), func(t string) string { return t })
	listOf(s, "", "Limits", c.Limits, func(l model.JudgedLimit) string { return limitText(l) })
	listOf(s, styleYellow, "Not compared", c.LeftOut, func(t string) string { return t })
	listOf(s, styleYellow, "Warnings of the runs", c.Warnings, func(t string) string { return t })
	listOf(s, "", "How sure this is", c.Notes, func(t string) string { return t })
	if err := s.flush(w); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

const (
	compareLegend = "hidden: how large a change could be there unseen; 5 % needs: repeats that would show a change of 5 %, or of 5 points"
	sameLegend    = "Packets are of one size in each setting: their goodput changes as packets/s do, and is the same comparison."
)

// mostFindings is how many a terminal has beside the verdict.
const mostFindings = 5

// moreFindings are those that the verdict has not told.
func moreFindings(c model.Comparison) []string {
	list := slices.DeleteFunc(slices.Clone(c.Findings), func(f string) bool { return strings.Contains(c.Verdict, f) })
	if n := len(list); n > mostFindings {
		list = append(list[:mostFindings-1], fmt.Sprintf("%d more in the HTML and JSON reports.", n-mostFindings+1))
	}
	return list
}

func limitText(l model.JudgedLimit) string {
	return fmt.Sprintf("%s: %s: %s", l.Limit, strings.ReplaceAll(l.State, "-", " "), l.Text)
}

// OneLine makes text with names from a document safe on one line of a terminal.
func OneLine(text string) string { return words.Plain(text) }

// compareTitle names what is compared: "pelt compare: lab:nat by variant".
func compareTitle(c model.Comparison) string {
	if len(c.Sides) == 0 {
		return "pelt compare"
	}
	if c.Interleaved {
		return fmt.Sprintf("pelt compare: %s by %s", words.Name(c.Sides[0].Target), words.Name(c.By))
	}
	var names []string
	for _, s := range c.Sides[1:] {
		names = append(names, words.Name(s.Name))
	}
	return fmt.Sprintf("pelt compare: %s against %s", words.And(names), words.Name(c.Sides[0].Name))
}

// sideLines say what stands behind each side.
func sideLines(c model.Comparison) []string {
	var lines []string
	if c.Interleaved && len(c.Sides) > 0 {
		s := c.Sides[0]
		lines = append(lines, fmt.Sprintf("run %s, pelt %s, %s; against %s", words.Name(s.Run), words.Name(s.Command), started(s), words.Name(s.Name)))
		return lines
	}
	for i, s := range c.Sides {
		text := fmt.Sprintf("%s: run %s, pelt %s %s, %s, %d valid trials", words.Name(s.Name), words.Name(s.Run), words.Name(s.Command), words.Name(s.Target), started(s), s.Valid)
		if i == 0 {
			text += "; the baseline"
		}
		lines = append(lines, text)
	}
	return lines
}

func started(s model.ComparedSide) string { return s.Started.UTC().Format("2006-01-02 15:04 UTC") }

// shownEffects are a side's rows: goodput that packets per second stand for is left out.
func shownEffects(c model.Comparison, side int, separable bool) []model.Effect {
	told := map[string]bool{}
	place := func(e model.Effect, metric string) string { return e.Cell.Key() + "\x00" + e.Flow + "\x00" + metric }
	for _, e := range c.Effects {
		if e.Side == side && e.SameAs != "" {
			told[place(e, e.SameAs)] = true
		}
	}
	var list []model.Effect
	for _, e := range c.Effects {
		if e.Side == side && e.Separable == separable && !told[place(e, e.Metric)] {
			list = append(list, e)
		}
	}
	return list
}

func (s *screen) effects(c model.Comparison, side int, separable bool) {
	list := shownEffects(c, side, separable)
	if len(list) == 0 {
		return
	}
	base, name := words.Name(c.Sides[0].Name), words.Name(c.Sides[side].Name)
	head := fmt.Sprintf("%s against %s: separable", name, base)
	if !separable {
		head = fmt.Sprintf("%s against %s: cannot be told apart", name, base)
	}
	s.line("", "")
	s.wrap(styleBold, "", head)
	fields := effectFields(list, base, name, separable)
	fields = fit(fields, s.width)
	gap := " "
	used := -2
	for _, f := range fields {
		used += f.width() + 2
	}
	if used <= s.width {
		gap = "  "
	}
	s.line(styleDim, lay(fields, func(f field) string { return f.head }, gap))
	for i := range list {
		s.line("", lay(fields, func(f field) string { return f.cells[i] }, gap))
	}
}

func effectFields(list []model.Effect, base, name string, separable bool) []field {
	column := func(head string, drop int, left bool, cell func(model.Effect) string) field {
		f := field{head: head, drop: drop, left: left}
		for _, e := range list {
			f.cells = append(f.cells, cell(e))
		}
		return f
	}
	base, name = words.Shorten(base, 11), words.Shorten(name, 11)
	if base == name {
		base, name = "baseline", "this run"
	}
	change, interval := 0, 2
	if !separable {
		change, interval = 3, 4
	}
	fields := []field{
		column("setting", 0, true, func(e model.Effect) string { return words.Shorten(words.Plain(e.Where), 32) }),
		column("figure", 0, true, func(e model.Effect) string { return figureName(e.Metric) }),
		column(base, 0, false, func(e model.Effect) string { return figureText(e.Metric, e.Baseline.Mean) }),
		column(name, 0, false, func(e model.Effect) string { return figureText(e.Metric, e.Other.Mean) }),
		column("change", change, false, func(e model.Effect) string { return changeText(e.Kind, e.Change) }),
		column("95 % interval", interval, false, func(e model.Effect) string { return rangeText(e) }),
	}
	if separable {
		return append(fields, column("p of all", 3, false, func(e model.Effect) string { return chanceText(e.FamilyP) }))
	}
	return append(fields,
		column("hidden", 0, false, func(e model.Effect) string { return strings.TrimPrefix(changeText(e.Kind, e.Hidden), "+") }),
		column("5 % needs", 0, false, neededCell))
}

// figureName heads the figure of an effect in a table.
func figureName(metric string) string {
	switch metric {
	case "receive_pps":
		return "packets/s"
	case "goodput_bps":
		return "goodput"
	case "loss_ratio":
		return "loss"
	case "delay_p50_ns":
		return "delay p50"
	case "delay_p99_ns":
		return "delay p99"
	case "round_trip_p50_ns":
		return "RTT p50"
	case "round_trip_p99_ns":
		return "RTT p99"
	case "router_cpu_busy_ratio":
		return "CPU"
	case "router_cpu_softirq_ratio":
		return "softirq"
	case "goodput_per_cpu_percent_bps":
		return "per CPU %"
	}
	return words.Name(metric)
}

func figureText(metric string, v float64) string {
	switch {
	case strings.HasSuffix(metric, "_pps"):
		return unit.FormatPPS(v)
	case strings.HasSuffix(metric, "_bps"):
		return unit.FormatBits(v)
	case strings.HasSuffix(metric, "_ns"):
		return unit.FormatNanos(v)
	case v > 0 && v < 0.0005:
		return unit.FormatRatio(v)
	}
	return strconv.FormatFloat(v*100, 'f', 1, 64) + " %"
}

// changeText prints a change with its sign: "−78 %", "+12 pt", "×4.5".
func changeText(kind string, x float64) string {
	if kind == model.Relative && x >= 1 {
		return "×" + digits(1+x)
	}
	text := signed(x * 100)
	if kind == model.Points {
		return text + " pt"
	}
	return text + " %"
}

// signed prints a number of percent with as many digits as anybody reads.
func signed(v float64) string {
	sign := "+"
	if v < 0 {
		sign, v = "−", -v
	}
	switch {
	case v >= 9.95:
		return sign + strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 0.0995:
		return sign + strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.005:
		return sign + strconv.FormatFloat(v, 'f', 2, 64)
	}
	return "0"
}

func rangeText(e model.Effect) string {
	if e.Kind == model.Relative && e.Change >= 1 {
		return "×" + digits(1+e.Low) + "..×" + digits(1+e.High)
	}
	text := signed(e.Low*100) + ".." + signed(e.High*100)
	if e.Kind == model.Points {
		return text + " pt"
	}
	return text + " %"
}

// chanceText prints a probability.
func chanceText(p float64) string {
	if p < 0.001 {
		return "<0.001"
	}
	return strconv.FormatFloat(p, 'f', 3, 64)
}

// mostRepeatsTold is beyond which a number of repeats is none that anybody makes.
const mostRepeatsTold = 1000

func neededCell(e model.Effect) string {
	switch {
	case e.Needed > mostRepeatsTold:
		return fmt.Sprintf(">%d", mostRepeatsTold)
	case e.Needed > 0:
		return strconv.Itoa(e.Needed)
	}
	return "enough"
}
