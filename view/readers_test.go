package view_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/finding"
	"pelt/model"
	"pelt/render"
	"pelt/render/draw"
	"pelt/render/plain"
	"pelt/test/sample"
	"pelt/unit"
	"pelt/view"
)

// likeThese are the documents whose figures the property tests change.
var likeThese = map[string]func() model.Document{
	"curve": sample.Router, "curve both": sample.Both, "curve tcp": sample.TCP, "curve rates": sample.Rates,
	"curve loss": sample.Loss, "curve streams": sample.Streams, "curve roundtrip": sample.RoundTrip,
	"sweep": sample.SmallSweep, "sweep both": func() model.Document { return asSweep(sample.Both()) },
	"sweep tcp":   func() model.Document { return asSweep(sample.TCP()) },
	"sweep rates": func() model.Document { return asSweep(sample.Rates()) },
	"star":        sample.ConditionSweep, "cc": sample.Controls, "cc mix": sample.ControlMix,
	"cc hostile": sample.ControlHostile,
	"router":     sample.Bench, "router lab": sample.BenchLab, "router variants": sample.Variants, "soak": sample.Soak, "latency": sample.Latency,
	"mesh": sample.Mesh, "mesh cycles": sample.MeshCycles,
	"soak long": sample.LongSoak, "soak cut": sample.CutSoak,
}

// document draws a run of any kind: one to six repeats, some cells or one, trials that are
// invalid or cut, and figures that repeat well or badly.
func document(t *rapid.T) model.Document {
	names := make([]string, 0, len(likeThese))
	for name := range likeThese {
		names = append(names, name)
	}
	slices.Sort(names)
	name := rapid.SampledFrom(names).Draw(t, "like")
	d := likeThese[name]()
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	spread := rapid.SampledFrom([]float64{0, 0.005, 0.05, 0.5}).Draw(t, "spread")
	lost := rapid.SampledFrom([]float64{-1, 0, 1e-5, 0.02, 0.6, 1}).Draw(t, "lost") // -1: as they are
	unfit := rapid.SampledFrom([]float64{0, 0, 0.2, 0.7, 1}).Draw(t, "unfit")
	if strings.HasPrefix(name, "soak") {
		unfit = min(unfit, 0.5)
	}
	repeats := rapid.IntRange(1, 6).Draw(t, "repeats")
	cells := cellsOf(d.Results)
	kept := cells
	if rapid.Bool().Draw(t, "few cells") {
		kept = rapid.SliceOfNDistinct(rapid.SampledFrom(cells), 1, min(3, len(cells)), rapid.ID).Draw(t, "cells")
	}
	var results []model.Result
	for repeat := range repeats {
		for _, cell := range kept {
			of := slices.DeleteFunc(slices.Clone(d.Results), func(q model.Result) bool { return fmt.Sprint(q.Cell) != cell })
			again := of[repeat%len(of)]
			again.Repeat, again.Flows = repeat, slices.Clone(again.Flows)
			for i := range again.Flows {
				vary(r, &again.Flows[i], spread, lost)
			}
			if r.Float64() < unfit {
				again.State = []model.State{model.Invalid, model.Aborted}[r.IntN(2)]
				again.Why = model.Reasons{{Code: model.TrialCut, Text: "interrupted"}}
				if again.State == model.Aborted && r.IntN(2) == 0 {
					again.Flows = nil
				}
			}
			results = append(results, again)
		}
	}
	d.Results, d.Plan.Design.Repeats = results, repeats
	return d
}

// cellsOf are the cells of trials, in their order.
func cellsOf(results []model.Result) []string {
	var out []string
	for _, r := range results {
		if cell := fmt.Sprint(r.Cell); !slices.Contains(out, cell) {
			out = append(out, cell)
		}
	}
	return out
}

// vary changes the figures of a flow and keeps its account balanced.
func vary(r *rand.Rand, f *model.FlowResult, spread, lost float64) {
	by := math.Exp(spread * r.NormFloat64())
	if f.Protocol == model.TCP {
		f.GoodputBPS, f.SendGoodputBPS = f.GoodputBPS*by, f.SendGoodputBPS*by
		if f.TCP != nil && f.TCP.Completion != nil {
			again, done := *f.TCP, *f.TCP.Completion
			done.Seconds /= by
			again.Completion = &done
			f.TCP = &again
		}
		return
	}
	share := f.LossRatio * by
	if lost >= 0 {
		share = lost * by
	}
	share = min(share, 1)
	total := func(n uint64) uint64 { return uint64(math.Round(float64(n) * share)) }
	f.Attempted = uint64(float64(f.Attempted) * math.Exp(spread*r.NormFloat64()/3))
	f.Planned, f.Accepted, f.Lost = f.Attempted, f.Attempted, total(f.Attempted)
	if len(f.Receivers) > 0 {
		f.Receivers, f.Attempted, f.Lost = slices.Clone(f.Receivers), 0, 0
		for i := range f.Receivers {
			one := &f.Receivers[i]
			one.Received = one.Attempted - total(one.Attempted)
			f.Attempted, f.Lost = f.Attempted+one.Attempted, f.Lost+total(one.Attempted)
		}
	}
	f.Received = f.Attempted - f.Lost
	f.LossRatio = float64(f.Lost) / float64(max(f.Attempted, 1))
	f.SendPPS = float64(f.Attempted) / f.DurationS
	f.ReceivePPS = float64(f.Received) / f.DurationS
	bits := 8 * float64(f.PayloadBytes)
	f.SendGoodputBPS, f.GoodputBPS = f.SendPPS*bits, f.ReceivePPS*bits
	for i := range f.Receivers {
		f.Receivers[i].GoodputBPS = float64(f.Receivers[i].Received) / f.DurationS * bits
	}
	f.SenderCPU.ThreadRatio, f.ReceiverCPU.ThreadRatio = r.Float64(), r.Float64()
	f.Ledger.Lost, f.Ledger.Unattributed = f.Lost, f.Lost
	f.Ledger.Lines = slices.Clone(f.Ledger.Lines)
	for i := range f.Ledger.Lines {
		n := min(total(f.Ledger.Lines[i].Packets), f.Ledger.Unattributed)
		f.Ledger.Lines[i].Packets, f.Ledger.Unattributed = n, f.Ledger.Unattributed-n
	}
}

// TestWhatReadersGet: of any run, verdict and tiles have the figures of the tables, no sentence
// lacks a part, the short form fits on a screen, and every output is written.
func TestWhatReadersGet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := document(t)
		page := view.Run(&d)
		checkSentences(t, page)
		if d.Plan.Design.Repeats > 1 && strings.Contains(strings.Join(page.Doubts, " "), "once") {
			t.Fatal(page.Doubts)
		}
		checkFigures(t, page)
		checkBars(t, page)
		checkBrief(t, page)
		checkOutputs(t, &d, page)
		account := explain(t, &d, finding.Ask{All: true})
		checkSentences(t, account)
		checkBrief(t, account)
	})
}

// TestGoldenPagesReadWell holds the golden pages to the same rules.
func TestGoldenPagesReadWell(t *testing.T) {
	for name, page := range allPages(t) {
		t.Run(name, func(t *testing.T) {
			checkSentences(t, page)
			checkBrief(t, page)
			if !strings.Contains(name, "hostile") && !strings.HasPrefix(name, "explain") {
				checkFigures(t, page)
			}
			if len(page.Sections) == 0 {
				return
			}
			tiles, opens := page.Sections[0].(view.Tiles)
			if !opens {
				return
			}
			chart, _ := page.Sections[1].(view.Chart)
			if _, times := page.Sections[1].(view.Times); len(tiles) > 4 || !chart.Hero && !times && name != "bench-idle" { // nothing to draw
				t.Errorf("%d tiles, then %T", len(tiles), page.Sections[1])
			}
		})
	}
}

// faults are what no sentence may have: hedges, empty slots, numbers that are none, a unit twice, one of several.
var faults = regexp.MustCompile(`at most roughly|1-\(1-p\)|<no |<nil>|\(\)|, ,|,,|  | [,.;)]|\( |\.\.|;\.|NaN|Inf\b|%!|` +
	`(pps|bit/s|%|/s|[µmn]s)[ )]+(pps|bit/s|%|/s|[µmn]s)\b|\d B B\b|MiB/s|KiB/s|` +
	`\b1 (repeats|settings|packets|fragments|changes|comparisons|others)\b`)

func checkSentences(t rapid.TB, page view.Page) {
	t.Helper()
	all := slices.Concat([]string{page.Verdict}, page.Facts, page.Doubts)
	for _, s := range page.Next {
		all = append(all, s.Text, s.Command)
	}
	for _, s := range page.Sections {
		if tiles, ok := s.(view.Tiles); ok {
			for _, tile := range tiles {
				all = append(all, tile.Label, tile.Value, tile.Note)
			}
		}
	}
	if page.Verdict == "" || strings.HasPrefix(page.Verdict, "No usable result") && len(page.Next) == 0 {
		t.Errorf("verdict %q and no next step", page.Verdict)
	}
	for _, s := range all {
		if fault := faults.FindString(s); fault != "" {
			t.Errorf("%q in %q", fault, s)
		}
	}
}

// figure is a number of a sentence with its unit, which a table prints likewise.
var figure = regexp.MustCompile(`[0-9][0-9.]* (?:[kMG]?pps|[kMGT]?bit/s|%|[µmn]s)`)

// given are figures that nobody measured: what counts as tied, and settings.
var given = regexp.MustCompile(`within [0-9.]+ %|more than 0.1 %|99 % within|\(router limited to [^)]*\)|link of [0-9.]+ [kMGT]?bit/s`)

// checkFigures: a table of the page has each rate, share and delay of the verdict and of the tiles.
func checkFigures(t rapid.TB, page view.Page) {
	t.Helper()
	if strings.HasPrefix(page.Verdict, "No usable result") {
		return // and no table
	}
	var printed []string
	for _, s := range page.Sections {
		table, _ := s.(view.Table)
		for _, row := range table.Rows {
			for i, c := range row {
				u := table.Columns[i].Unit
				printed = append(printed, c.Text, c.Note, u.Format(c.Value), u.Format(c.Low), u.Format(c.High),
					u.Exact(c.Value), unit.Ratio.Format(math.Abs(c.Low)), unit.Ratio.Format(math.Abs(c.High)))
			}
			if row[0].Text == "Received" { // of a ledger: the rest was lost
				printed = append(printed, unit.Ratio.Format(1-row[3].Value))
			}
		}
	}
	all := strings.Join(printed, "\n")
	said := page.Verdict
	for _, s := range page.Sections {
		if tiles, ok := s.(view.Tiles); ok {
			for _, tile := range tiles {
				said += "\n" + tile.Value + "\n" + tile.Note
			}
		}
	}
	said = given.ReplaceAllString(plain.Spaces(said), "")
	for _, f := range figure.FindAllString(said, -1) {
		if !regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(f)).MatchString(all) {
			t.Errorf("%s is in no table; said:\n%s", f, said)
		}
	}
}

// checkBars: the parts of a bar of losses are shares of all that was sent, and add up to a loss of a table.
func checkBars(t rapid.TB, page view.Page) {
	t.Helper()
	lost := map[string]bool{}
	for _, s := range page.Sections {
		if table, ok := s.(view.Table); ok {
			for i, c := range table.Columns {
				for _, row := range table.Rows {
					lost[c.Unit.Format(row[i].Value)] = true
				}
			}
		}
	}
	for _, s := range page.Sections {
		c, ok := s.(view.Chart)
		if !ok || c.Kind != view.Stack || !strings.HasPrefix(c.Title, "Packets lost") {
			continue
		}
		for i, name := range c.X.Categories {
			sum := 0.0
			for _, part := range c.Series {
				for _, p := range part.Points {
					if p.X == float64(i) {
						sum += p.Y
					}
				}
			}
			if got := unit.Ratio.Format(sum); sum > 0 && !lost[got] && !lost[unit.Ratio.Format(sum+1e-12)] && !lost[unit.Ratio.Format(sum-1e-12)] {
				t.Errorf("the bar of %q shows %s, which no table has", name, got)
			}
		}
	}
}

// checkBrief: the short form has at most 12 lines of 80 columns. A command is not cut: its line may
// be longer, and counts as what it takes on the screen.
func checkBrief(t rapid.TB, page view.Page) {
	t.Helper()
	var b bytes.Buffer
	if err := render.Text(&b, page, render.Terminal{Width: 80, More: "pelt report last --all"}); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(b.String()) {
		width := plain.Width(strings.TrimSuffix(line, "\n"))
		lines += max(1, (width+79)/80)
		if width > 80 && !strings.HasPrefix(line, "  pelt ") {
			t.Errorf("%d columns: %s", width, line)
		}
	}
	if lines > 12 {
		t.Errorf("%d lines:\n%s", lines, b.String())
	}
}

func checkOutputs(t rapid.TB, d *model.Document, page view.Page) {
	t.Helper()
	var b bytes.Buffer
	if err := render.HTML(&b, page); err != nil {
		t.Errorf("HTML: %v", err)
	}
	for _, table := range []view.Table{view.Figures(d), view.LedgerFigures(d)} {
		if err := render.CSV(&b, table); err != nil {
			t.Errorf("CSV: %v", err)
		}
	}
	if err := render.Records(&b, view.SeriesLines(d)); err != nil {
		t.Errorf("series: %v", err)
	}
	if sheet, ok := draw.Sheet(page, 1000); ok {
		if err := render.SVG(&b, sheet); err != nil {
			t.Errorf("SVG: %v", err)
		}
	}
	for _, bad := range []string{"NaN", "ZgotmplZ", "Infinity"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%s in an output", bad)
		}
	}
}
