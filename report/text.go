package report

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/controls"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/report/seconds"
	"pelt/unit"
)

// Widths of a terminal that Text lays out for, in characters.
const (
	minWidth = 40
	maxWidth = 160
	maxBar   = 24
	minBar   = 5
)

// Text writes the run for a terminal of width characters: what ran, a line per
// cell, what its losses were, findings, warnings. colour adds ANSI styles.
func Text(w io.Writer, doc model.Document, width int, colour bool) error {
	return SweepText(w, doc, width, colour, SweepOptions{})
}

// SweepText is Text with a choice of what a sweep's table shows; other runs have
// no such table. An *AskError means that the run has no such column.
func SweepText(w io.Writer, doc model.Document, width int, colour bool, o SweepOptions) error {
	s := newScreen(width, colour)
	t := rows.Fold(doc)
	s.head(doc)
	if bench.Is(doc) {
		s.benchFacts(doc)
	}
	findings := s.verdict(doc)
	switch {
	case rows.IsSweep(doc):
		if err := s.sweep(doc, t, o); err != nil {
			return err
		}
	case bench.Is(doc):
		s.bench(doc, t)
	case controls.Is(doc):
		s.controls(doc)
	default:
		for _, of := range t.Groups() {
			s.flow(t, of)
		}
		s.soak(doc)
	}
	if len(doc.Results) == 0 {
		s.line("", "")
		s.line("", "No trial was finished.")
	}
	s.troubles(doc, t)
	listOf(s, "", "Findings", findings, func(f model.Finding) string { return f.Text })
	listOf(s, styleYellow, "Warnings", doc.Warnings, func(t string) string { return t })
	if err := s.flush(w); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

func (s *screen) head(doc model.Document) {
	s.wrap(styleBold, "", words.Headline(doc))
	s.wrap("", "", words.Path(doc))
	s.wrap("", "", words.Plan(doc))
	s.wrap("", "", words.PathMTU(doc))
	s.wrap("", "", words.Record(doc))
	for _, l := range words.Lab(doc) {
		s.wrap(styleDim, "  ", l)
	}
	s.wrap(styleDim, "", words.Run(doc))
}

// verdict writes the answer above the tables, and returns what it rests on.
func (s *screen) verdict(doc model.Document) []model.Finding {
	if len(doc.Findings) == 0 || doc.Findings[0].Text == "" {
		return doc.Findings
	}
	s.line("", "")
	s.wrap(styleVerdict, "", words.Plain(doc.Findings[0].Text))
	return doc.Findings[1:]
}

// flow writes the table of one flow.
func (s *screen) flow(t rows.Table, of []rows.Row) {
	s.line("", "")
	title := flowTitle(of[0])
	if trials := trialsOf(of); trials != "" {
		title += "; rates: middle and range of " + trials + ", loss: of all"
	}
	s.wrap(styleBold, "", title)
	fields := udpFields(of)
	if of[0].TCP != nil {
		fields = tcpFields(of)
	}
	if of[0].Connections != nil {
		fields = connectionFields(of)
	}
	s.table(of, append(knobFields(of, t.Keys), fields...))
}

// trialsOf says how many trials the figures of a flow are of.
func trialsOf(of []rows.Row) string {
	var counts []int
	for _, r := range of {
		counts = append(counts, len(r.Trials))
	}
	return words.Trials(counts)
}

// flowTitle names a flow: "up: sender to receiver, UDP".
func flowTitle(r rows.Row) string {
	what := strings.ToUpper(string(r.Protocol))
	if r.Connections != nil {
		what += " connections"
	}
	return fmt.Sprintf("%s: %s to %s, %s", words.Name(r.Flow), words.Name(r.From), words.Name(r.To), what)
}

func (s *screen) table(of []rows.Row, fields []field) {
	fields = fit(fields, s.width)
	gap, used := " ", -1
	for _, f := range fields {
		used += f.width() + 1
	}
	if used+len(fields)-1 <= s.width {
		gap, used = "  ", used+len(fields)-1
	}
	room := min(s.width-used-len(gap), maxBar)
	s.line(styleDim, lay(fields, func(f field) string { return f.head }, gap))
	for i, r := range of {
		text := lay(fields, func(f field) string { return f.cells[i] }, gap)
		if room >= minBar && r.State == model.Valid {
			text += gap + bar(r.Share, room)
		}
		style := ""
		if r.State != model.Valid {
			style = styleYellow
		}
		s.line(style, text)
		if sentence := words.Below(r); sentence != "" {
			s.wrap(styleDim, strings.Repeat(" ", min(fields[0].width()+len(gap), 10)), sentence)
		}
		if sentence := words.Pacing(r); sentence != "" {
			s.wrap(styleDim, strings.Repeat(" ", min(fields[0].width()+len(gap), 10)), sentence)
		}
	}
}

// col makes one table column from the rows.
func col(of []rows.Row, head string, drop int, cell func(rows.Row) string) field {
	f := field{head: head, drop: drop}
	for _, r := range of {
		f.cells = append(f.cells, words.Shorten(cell(r), 24))
	}
	return f
}

func knobFields(of []rows.Row, keys []string) []field {
	var fields []field
	for _, k := range keys {
		if k == "payload_bytes" || k == "frame_bytes" {
			continue // every table has them
		}
		f := col(of, words.Plain(knobHead(k)), 0, func(r rows.Row) string {
			v, ok := r.Cell[k]
			if !ok {
				return "–"
			}
			return words.Shorten(knobCell(k, v), 14)
		})
		fields = append(fields, f)
	}
	return fields
}

func knobHead(key string) string {
	if what, _, link := model.LinkKnobWords(key, model.Value{}); link {
		return words.Shorten(words.Plain(what), 24)
	}
	for _, suffix := range []string{"_pps", "_ns", "_ratio", "_bytes"} {
		key = strings.TrimSuffix(key, suffix)
	}
	return words.Shorten(strings.ReplaceAll(key, "_", " "), 12)
}

func knobCell(key string, v model.Value) string {
	switch {
	case v.Text != "":
		return words.Plain(v.Text)
	case strings.HasSuffix(key, "_pps"):
		return unit.FormatPPS(v.Number)
	case strings.HasSuffix(key, "_ns"):
		return unit.FormatNanos(v.Number)
	case strings.HasSuffix(key, "_ratio"):
		return unit.FormatRatio(v.Number)
	}
	if _, value, link := model.LinkKnobWords(key, v); link {
		return words.Plain(value)
	}
	return v.String()
}

func udpFields(of []rows.Row) []field {
	return []field{
		col(of, "payload", 0, func(r rows.Row) string { return strconv.Itoa(r.Payload) + mark(r) }),
		col(of, "frame", 6, frameCell),
		col(of, "sent", 0, func(r rows.Row) string { return figure(r.SendPPS, unit.FormatPPS) }),
		col(of, "received", 0, func(r rows.Row) string { return figure(r.ReceivePPS, unit.FormatPPS) }),
		col(of, "range", 4, func(r rows.Row) string { return spread(r.ReceivePPS) }),
		col(of, "best", 3, shareCell),
		col(of, "loss", 0, lossCell),
		col(of, "goodput", 0, func(r rows.Row) string { return figure(r.GoodputBPS, unit.FormatBits) }),
		delayCol(of, "delay", 1, func(r rows.Row) *rows.Delays { return r.Delay }, func(d *rows.Delays) rows.Stat { return d.P50 }),
		delayCol(of, "p99", 2, func(r rows.Row) *rows.Delays { return r.Delay }, func(d *rows.Delays) rows.Stat { return d.P99 }),
		delayCol(of, "RTT", 1, func(r rows.Row) *rows.Delays { return r.RoundTrip }, func(d *rows.Delays) rows.Stat { return d.P50 }),
		delayCol(of, "p99", 2, func(r rows.Row) *rows.Delays { return r.RoundTrip }, func(d *rows.Delays) rows.Stat { return d.P99 }),
	}
}

func tcpFields(of []rows.Row) []field {
	return []field{
		col(of, "write", 0, func(r rows.Row) string { return strconv.Itoa(r.Payload) + mark(r) }),
		col(of, "writes", 0, func(r rows.Row) string { return figure(r.TCP.WritesPerSecond, words.PerSecond) }),
		col(of, "segments", 0, func(r rows.Row) string { return figure(r.TCP.SegmentsPerSecond, words.PerSecond) }),
		col(of, "goodput", 0, func(r rows.Row) string { return figure(r.GoodputBPS, unit.FormatBits) }),
		col(of, "range", 4, func(r rows.Row) string { return spread(r.GoodputBPS) }),
		col(of, "best", 3, shareCell),
		col(of, "resent", 0, func(r rows.Row) string { return unit.FormatCount(r.TCP.Retransmits) }),
		col(of, "RTT", 1, func(r rows.Row) string {
			if r.TCP.RTTNanos.N > 0 {
				return unit.FormatNanos(r.TCP.RTTNanos.Median)
			}
			return ""
		}),
		col(of, "control", 5, func(r rows.Row) string { return words.Plain(r.TCP.Control) }),
	}
}

// mark marks a row that says nothing about the path; the reason follows below.
func mark(r rows.Row) string {
	if r.State != model.Valid {
		return "!"
	}
	return ""
}

func lossCell(r rows.Row) string {
	if ratio, ok := r.LossRatio(); ok {
		return unit.FormatRatio(ratio)
	}
	return "–"
}

func frameCell(r rows.Row) string {
	if r.Pieces > 1 {
		return fmt.Sprintf("%d/%d", r.Frame, r.Pieces)
	}
	return strconv.Itoa(r.Frame)
}

func shareCell(r rows.Row) string {
	if math.IsNaN(r.Share) {
		return "–"
	}
	return unit.FormatRatio(math.Round(r.Share*100) / 100)
}

func figure(s rows.Stat, format func(float64) string) string {
	if s.N == 0 {
		return "–"
	}
	return format(s.Median)
}

func delayCol(of []rows.Row, head string, drop int, get func(rows.Row) *rows.Delays, stat func(*rows.Delays) rows.Stat) field {
	return col(of, head, drop, func(r rows.Row) string {
		if d := get(r); d != nil {
			return figure(stat(d), unit.FormatNanos)
		}
		return ""
	})
}

// spread is the range of a figure in the unit of its middle: "398..409".
func spread(s rows.Stat) string {
	if !s.Spread() {
		return ""
	}
	div := 1.0
	for v := math.Abs(s.Median); v >= 999.5 && div < 1e12; v /= 1000 {
		div *= 1000
	}
	return digits(s.Min/div) + ".." + digits(s.Max/div)
}

// digits prints three significant digits without an exponent.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// troubles says which trials count for nothing, and why; equal reasons once.
func (s *screen) troubles(doc model.Document, t rows.Table) {
	if len(t.Trouble) == 0 {
		return
	}
	s.line("", "")
	s.line(styleBold, troubleTitle(doc))
	for _, g := range troubleGroups(doc, t) {
		s.wrap(styleYellow, "  ! ", g)
	}
}

// troubleTitle heads the reasons: of a soak's one trial the figures are told all the same.
func troubleTitle(doc model.Document) string {
	if seconds.Is(doc) {
		return "Not as planned"
	}
	return "Not counted"
}

func troubleGroups(doc model.Document, t rows.Table) []string {
	cells := map[string][]string{}
	figures := regexp.MustCompile(`[0-9][0-9.]*( [kMGµmn]?(pps|s)\b)?`) // with the scale of their unit
	first := map[string]string{}                                        // reason in full, of those that differ in figures only
	var order []string
	for _, x := range t.Trouble {
		r := doc.Results[x.Result]
		reason := words.Plain(string(r.State))
		if r.Why != "" {
			reason += ": " + words.Plain(r.Why)
		}
		kind := figures.ReplaceAllString(reason, "#")
		if cells[kind] == nil {
			order = append(order, kind)
			first[kind] = reason
		}
		cells[kind] = append(cells[kind], trialWords(doc, r))
	}
	var out []string
	for _, kind := range order {
		names := cells[kind]
		slices.Sort(names)
		if len(names) > 6 {
			names = append(names[:5], fmt.Sprintf("%d more", len(names)-5))
		}
		out = append(out, strings.Join(names, "; ")+": "+first[kind])
	}
	return out
}

func trialWords(doc model.Document, r model.Result) string {
	if bench.Is(doc) {
		return bench.TrialName(doc, r)
	}
	if controls.Is(doc) {
		return controls.TrialName(doc, r)
	}
	text := words.Cell(r.Cell)
	if doc.Plan.Design.Repeats > 1 {
		text += fmt.Sprintf(" trial %d", r.Repeat+1)
	}
	return text
}

// listOf writes one of the lists below the tables.
func listOf[T any](s *screen, style, title string, items []T, text func(T) string) {
	if len(items) == 0 {
		return
	}
	s.line("", "")
	s.line(styleBold, title)
	for _, x := range items {
		s.wrap(style, "  - ", words.Plain(text(x)))
	}
}
