package view_test

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/finding"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/render"
	"pelt/render/draw"
	"pelt/render/plain"
	"pelt/test/sample"
	"pelt/unit"
	"pelt/view"
	"pelt/words"
)

// TestWhatReadersGet: of any run, verdict and tiles have the figures of the tables, no sentence
// lacks a part, the short form fits on a screen, and every output is written.
func TestWhatReadersGet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := sample.Any(t)
		page := view.Run(&d)
		checkSentences(t, page)
		if d.Plan.Design.Repeats > 1 && strings.Contains(strings.Join(page.Doubts, " "), "once") {
			t.Fatal(page.Doubts)
		}
		checkFigures(t, page)
		checkAccounts(t, page)
		checkStored(t, &d)
		checkBars(t, page)
		checkBrief(t, page)
		checkOutputs(t, &d, page)
		account := explain(t, &d, finding.Ask{All: true})
		checkSentences(t, account)
		checkBrief(t, account)
	})
}

// TestOddFigures: whatever figures a document holds, and whatever text a line of its ledger lacks, no page lacks a word
// or says what is no number.
func TestOddFigures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := sample.Odd(t)
		for _, page := range []view.Page{view.Run(&d), explain(t, &d, finding.Ask{All: true})} {
			var b bytes.Buffer
			testenv.Must(t, render.Text(&b, page, render.Terminal{All: true}))
			bad := regexp.MustCompile(`<no [^>]*>?|NaN|Inf\b|%!`).FindString(b.String())
			if page.Verdict == "" || bad != "" {
				t.Fatalf("the verdict is %q, and the page says %q", page.Verdict, bad)
			}
		}
	})
}

// TestGoldenPagesReadWell holds the golden pages to the same rules.
func TestGoldenPagesReadWell(t *testing.T) {
	for name, page := range allPages(t, words.English) {
		t.Run(name, func(t *testing.T) {
			checkSentences(t, page)
			checkHeadline(t, page)
			checkBrief(t, page)
			checkAccounts(t, page)
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
			// nothing to draw
			if _, times := page.Sections[1].(view.Times); len(tiles) > 4 || !chart.Hero && !times &&
				name != "bench-idle" {
				t.Errorf("%d tiles, then %T", len(tiles), page.Sections[1])
			}
		})
	}
}

// faults are what no sentence may have: hedges, empty slots, numbers that are none, a unit twice, one of several.
var faults = regexp.MustCompile(`at most roughly|1-\(1-p\)|<no |<nil>|\(\)|, ,|,,|  | [,.;)]|\( |\.\.|;\.|NaN|` +
	`Inf\b|%!|(pps|bit/s|%|/s|[µmn]s)[ )]+(pps|bit/s|%|/s|[µmn]s)\b|\d B B\b|MiB/s|KiB/s|` +
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

// mostWords are the words of a headline: readers take it in at a glance.
const mostWords = 16

var (
	grouped = regexp.MustCompile(`([0-9]) ([0-9]{3})\b`)                      // 1 000 000 is one word
	moment  = regexp.MustCompile(`[0-9]+ h [0-9]+ min( [0-9]+ s)?`)           // and a time of day two
	named   = regexp.MustCompile(`Xiaomi Mi Router \w+|TP-Link WR841N|·+\S*`) // a name is one, however long it is
)

// checkHeadline: the answer of a page is one sentence of at most 16 words.
func checkHeadline(t rapid.TB, page view.Page) {
	t.Helper()
	text := named.ReplaceAllString(plain.Spaces(page.Verdict), "NAME")
	text = moment.ReplaceAllString(grouped.ReplaceAllString(grouped.ReplaceAllString(text, "$1$2"), "$1$2"), "9 h")
	if n := len(strings.Fields(text)); n > mostWords {
		t.Errorf("%d words: %s", n, page.Verdict)
	}
	if strings.Contains(page.Verdict, ". ") {
		t.Errorf("more than one sentence: %s", page.Verdict)
	}
}

// figure is a number of a sentence with its unit, or a count of packets, which a table prints likewise.
var figure = regexp.MustCompile(`[0-9][0-9.]* (?:[kMG]?pps\b|[kMGT]?bit/s|%|[µmn]s\b|B\b)|` +
	`[0-9]+(?: [0-9]{3}\b)+|[0-9]+ (?:of [0-9 ]+)?(?:packets|segments)\b`)

// counted is what follows a count.
var counted = regexp.MustCompile(` (of|packets|segments).*`)

// given are figures that nobody measured: what counts as tied, and settings; and shares of what was lost, where tables
// have those of what was sent.
var given = regexp.MustCompile(`(?m)Lost[^:\n]*: .*$|within [0-9.]+ %|more than 0.1 %|99 % within|` +
	`\(link at [^)]*\)|link of [0-9.]+ [kMGT]?bit/s|` +
	`about [0-9.]+ k?B|buffer of [0-9.]+ [kM]?B`)

// checkFigures: a table of the page has each rate, share, delay and count of packets of the verdict, of the sentence
// behind it, and of the tiles.
func checkFigures(t rapid.TB, page view.Page) {
	t.Helper()
	if strings.HasPrefix(page.Verdict, "No usable result") {
		return // and no table
	}
	var printed []string
	sent := 0.0
	for _, s := range page.Sections {
		table, _ := s.(view.Table)
		for _, row := range table.Rows {
			for i, c := range row {
				u := table.Columns[i].Unit
				printed = append(printed, c.Text, c.Note, u.Format(c.Value), u.Format(c.Low), u.Format(c.High),
					u.Exact(c.Value), unit.Ratio.Format(math.Abs(c.Low)), unit.Ratio.Format(math.Abs(c.High)))
			}
			if row[0].Text == "Received" { // of a ledger: the rest was lost
				printed = append(printed, unit.Ratio.Format(1-row[2].Value), unit.Count.Format(sent-row[1].Value))
			} else if row[0].Text == "Attempted" || row[0].Text == "Sent" {
				sent = row[1].Value
			}
		}
	}
	all := strings.Join(printed, "\n")
	said := page.Verdict + "\n" + page.Why
	for _, s := range page.Sections {
		if tiles, ok := s.(view.Tiles); ok {
			for _, tile := range tiles {
				if tile.Label != "Knee" && tile.Label != "Worst second" { // charts show these
					said += "\n" + tile.Value + "\n" + tile.Note
				}
			}
		}
	}
	said = given.ReplaceAllString(moment.ReplaceAllString(plain.Spaces(said), ""), "")
	all = plain.Spaces(all)
	for _, f := range figure.FindAllString(said, -1) {
		f = counted.ReplaceAllString(f, "")
		if !regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(f)).MatchString(all) {
			t.Errorf("%s is in no table; said:\n%s", f, said)
		}
	}
}

// checkAccounts: the lines of an account add up to what was sent, and pictures are of the same packets.
func checkAccounts(t rapid.TB, page view.Page) {
	t.Helper()
	accounts := map[uint64]bool{}
	for _, s := range page.Sections {
		table, _ := s.(view.Table)
		if len(table.Columns) < 2 || table.Columns[0].Name != "cause" || table.Columns[1].Name != "packets_count" {
			continue
		}
		sum := 0.0
		for _, row := range table.Rows[1:] {
			sum += row[1].Value
		}
		sent := table.Rows[0][1].Value
		if accounts[uint64(sent)] = true; sum != sent {
			t.Errorf("%s: the lines have %.0f packets, sent were %.0f", table.Title, sum, sent)
		}
	}
	for _, s := range page.Sections {
		if path, ok := s.(view.Path); ok && !accounts[path.Sent] {
			t.Errorf("%s: %d sent are in no account", path.Title, path.Sent)
		}
	}
}

// checkStored: what a file keeps of findings has the same words.
func checkStored(t rapid.TB, d *model.Document) {
	t.Helper()
	for _, f := range finding.OfRun(d) {
		kept := finding.FromStored(f.Stored(false), d.Language)
		if kept.Text() != f.Text() || kept.Command() != f.Command() {
			t.Errorf("a file says %q, %q; want %q, %q", kept.Text(), kept.Command(), f.Text(), f.Command())
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
			if got := unit.Ratio.Format(sum); sum > 0 && !lost[got] && !lost[unit.Ratio.Format(sum+1e-12)] &&
				!lost[unit.Ratio.Format(sum-1e-12)] {
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
	testenv.Must(t, render.Text(&b, page, render.Terminal{Width: 80, More: "pelt report last --all"}))
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
