package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// mostPanels bounds the settings whose path is drawn: each takes some 10 kB.
const mostPanels = 40

// ledgerView is the section with the path's pictures and ledgers.
type ledgerView struct {
	Panels []ledgerPanel
	Rules  template.CSS // show the panel that is chosen, without a script
	Left   int          // settings that have no panel, because they lost less
	Apart  int          // settings of a sweep that have none either
	Ask    string       // the command that tells of them
}

// ledgerPanel is one setting of one flow.
type ledgerPanel struct {
	Number   int
	Label    string
	Lost     string // beside the label: "5.9 %"
	Chosen   bool
	Title    string
	Sentence string
	Pictures []picture
	Lines    []ledgerLine
	Sum      []sumLine
	Checks   string
	Broken   []string
	Held     []string
	Watched  []pair
	Note     string
}

// ledgerLine is one line of loss with all that stands behind it.
type ledgerLine struct {
	Class    string
	Where    string
	Text     string
	Share    string
	Packets  string
	Sure     string
	Facts    []string
	Evidence []evidenceLine
	Read     bool // some evidence has readings before and after
	Foreign  bool // some counter also moved for others' packets
	Advice   []adviceView
}

type evidenceLine struct{ Counter, Scope, Before, After, Delta, Excess, Role string }

type adviceView struct{ Where, Knob, Present, Value, Why, Command, Undo, Note string }

type sumLine struct{ Name, Share, Packets, Note string }

// newLedgerView makes a panel for each row of a UDP flow; the one that lost
// most is chosen. Where there are too many, those that lost least have none.
func newLedgerView(doc model.Document, t rows.Table, classes map[string]string, label func(rows.Row) string) ledgerView {
	var of []rows.Row
	for _, r := range t.Rows {
		if !noLedger(r) {
			of = append(of, r)
		}
	}
	v := ledgerView{Ask: "pelt explain " + words.RunRef(doc.ID) + " --all"}
	if v.Left = len(of) - mostPanels; v.Left > 0 {
		worst := slices.Clone(of)
		slices.SortStableFunc(worst, lostMost)
		least, _ := worst[mostPanels-1].LossRatio()
		kept := of[:0]
		for _, r := range of {
			if ratio, _ := r.LossRatio(); ratio >= least && len(kept) < mostPanels {
				kept = append(kept, r)
			}
		}
		of = kept
	}
	v.Left = max(v.Left, 0)
	if len(of) == 0 {
		return v
	}
	chosen := slices.MinFunc(of, lostMost)
	var rules strings.Builder
	for i, r := range of {
		p := newLedgerPanel(doc, r, classes)
		p.Number, p.Label = i, label(r)
		p.Chosen = r.Flow == chosen.Flow && r.Cell.Equal(chosen.Cell) && slices.Equal(r.Trials, chosen.Trials)
		v.Panels = append(v.Panels, p)
		fmt.Fprintf(&rules, "#path-%d:checked~.panels>#panel-%d{display:block}#path-%d:checked~.sizes>[for=path-%d]{background:var(--ink);color:var(--card);border-color:var(--ink)}#path-%d:focus-visible~.sizes>[for=path-%d]{outline:2px solid var(--hue0);outline-offset:2px}\n", i, i, i, i, i, i)
	}
	v.Rules = template.CSS(rules.String()) // numbers in our own words
	return v
}

func newLedgerPanel(doc model.Document, r rows.Row, classes map[string]string) ledgerPanel {
	at := worstTrial(doc, r)
	p := ledgerPanel{Lost: lossCell(r), Title: flowTitle(r), Sentence: cmp.Or(words.Below(r), "nothing lost")}
	route := newRoute(doc, r, classes)
	p.Pictures = []picture{route.wide(), route.tall()}
	parts := map[int]words.Part{}
	for _, part := range words.LossParts(r) {
		parts[part.Line] = part
	}
	for i, l := range r.Ledger.Lines {
		if part, ok := parts[i]; ok {
			p.Lines = append(p.Lines, newLedgerLine(r, l, part, classes))
		}
	}
	p.Sum = balance(r)
	p.addChecks(doc, r, at)
	for _, o := range r.Observed {
		p.Watched = append(p.Watched, pair{words.Name(o.Node), strings.Join(watchWords(o), "; ")})
	}
	if n := len(r.Trials); n > 1 {
		p.Note = fmt.Sprintf("Figures are of %d trials together.", n)
	}
	return p
}

func newLedgerLine(r rows.Row, l model.Line, part words.Part, classes map[string]string) ledgerLine {
	v := ledgerLine{Class: classes[part.Words], Where: words.Name(l.Layer), Text: part.Words, Share: part.Amount(), Packets: unit.FormatCount(l.Packets), Sure: words.Sure(l)}
	if l.Host != "" {
		v.Where += " of " + words.Name(l.Host)
	}
	if l.Function != "" {
		v.Facts = append(v.Facts, "dropped by the kernel's "+words.Name(l.Function))
	}
	if l.Interface != "" {
		v.Facts = append(v.Facts, "interface "+words.Name(l.Interface))
	}
	if text := sequencesText(l, r.Streams > 1); text != "" {
		v.Facts = append(v.Facts, text)
	}
	for _, e := range l.Evidence {
		one := evidenceLine{Counter: words.Shorten(words.Plain(e.Counter), 60), Scope: words.Name(e.Scope), Role: words.Name(e.Role),
			Delta: strings.TrimSpace(unit.FormatCount(e.Delta) + " " + unitOf(e.Unit))}
		if e.Host != "" {
			one.Counter = words.Name(e.Host) + ": " + one.Counter
		}
		if e.Before != 0 || e.After != 0 {
			v.Read = true
			one.Before, one.After = unit.FormatCount(e.Before), unit.FormatCount(e.After)
		}
		if e.Excess > 0 {
			v.Foreign = true
			one.Excess = unit.FormatCount(e.Excess)
		}
		v.Evidence = append(v.Evidence, one)
	}
	for _, a := range l.Advice {
		v.Advice = append(v.Advice, adviceView{words.Name(a.Host), words.Name(a.Knob), orUnknown(a.Present), words.Plain(a.Value), words.Plain(a.Why), words.Plain(a.Command), words.Plain(a.Undo), words.Plain(a.Note)})
	}
	return v
}

// newExplainPage shows the trials at the given indices of the document's
// results, or, when there is none, each setting with its trials taken together.
func newExplainPage(doc model.Document, chosen []int) page {
	p := newPage(doc)
	p.HasCurve, p.HasDelay, p.Keys, p.Findings, p.Tables, p.Sweep = false, false, nil, nil, nil, sweepView{}
	p.Title, p.Subtitle = "pelt explain: "+words.Headline(doc), nil
	for _, text := range []string{words.Headline(doc), words.Path(doc), words.Plan(doc)} {
		if text != "" {
			p.Subtitle = append(p.Subtitle, text)
		}
	}
	of, label := p.table, func(r rows.Row) string { return rowWords(p.table, r) }
	if len(chosen) > 0 {
		of = rows.Table{Keys: p.table.Keys, Flows: p.table.Flows}
		for _, i := range chosen {
			for _, f := range doc.Results[i].Flows {
				r := rows.Of(doc, doc.Results[i], f)
				r.Trials = []int{i}
				of.Rows = append(of.Rows, r)
			}
		}
		label = func(r rows.Row) string { return fmt.Sprintf("%s, trial %d", rowWords(of, r), r.Trials[0]+1) }
	}
	loss, classes := newLossChart(of, label)
	p.Loss, p.Ledger = loss, newLedgerView(doc, of, classes, label)
	p.Verdict = worstWords(of, label)
	p.VerdictClass = headlineClass(p.Verdict)
	return p
}

// worstWords says what was lost where most was: "64 B: 5.9 % lost, most of it
// receiver socket buffer full (SOCKET_RCVBUFF)".
func worstWords(t rows.Table, label func(rows.Row) string) string {
	of := slices.DeleteFunc(slices.Clone(t.Rows), func(r rows.Row) bool { return noLedger(r) || r.Lost == 0 })
	if len(of) == 0 {
		return "Nothing was lost"
	}
	worst := slices.MinFunc(of, lostMost)
	parts := words.LossParts(worst)
	text := label(worst) + ": " + words.Total(worst) + " lost"
	switch {
	case len(parts) == 0:
	case len(parts) == 1:
		text += ", all " + parts[0].Words
	default:
		text += ", most of it " + parts[0].Words
	}
	return text
}

// lostMost orders rows by their loss, the largest first.
func lostMost(a, b rows.Row) int {
	x, _ := a.LossRatio()
	y, _ := b.LossRatio()
	return cmp.Compare(y, x)
}

// noLedger reports whether a row's losses have no places.
func noLedger(r rows.Row) bool { return r.TCP != nil || r.Attempted == 0 }

// balance is the account's other entries: the lines, the rest and what arrived
// make up what was attempted.
func balance(r rows.Row) []sumLine {
	rest := sumLine{Name: words.Unattributed, Packets: unit.FormatCount(r.Ledger.Unattributed), Note: "no counter explains them"}
	if r.Ledger.Unattributed == 0 {
		rest.Note = "each lost packet is accounted for"
	}
	if r.Lost == 0 {
		rest.Note = ""
	}
	for _, p := range words.LossParts(r) {
		if p.Line < 0 {
			rest.Share = p.Share
		}
	}
	attempted := sumLine{Name: "attempted", Share: "", Packets: unit.FormatCount(r.Attempted)}
	if r.Planned > r.Attempted {
		attempted.Note = "of " + unit.FormatCount(r.Planned) + " planned"
	}
	return []sumLine{rest,
		{"lost", words.Total(r), unit.FormatCount(r.Lost), ""},
		{"arrived", arrivedShare(r), unit.FormatCount(r.Attempted - min(r.Lost, r.Attempted)), ""},
		attempted,
	}
}

// addChecks tells of all trials of a row what broke, and of the worst what held.
func (p *ledgerPanel) addChecks(doc model.Document, r rows.Row, worst int) {
	held := 0
	for _, i := range r.Trials {
		for _, f := range doc.Results[i].Flows {
			if f.Name != r.Flow {
				continue
			}
			for _, c := range f.Ledger.Checks {
				text := words.Plain(c.Text)
				switch {
				case !c.Held:
					p.Broken = append(p.Broken, fmt.Sprintf("trial %d: %s", i+1, strings.TrimPrefix(text, "broken: ")))
				case i == worst:
					p.Held = append(p.Held, fmt.Sprintf("trial %d: %s", i+1, text))
					fallthrough
				default:
					held++
				}
			}
		}
	}
	if held+len(p.Broken) > 0 {
		p.Checks = fmt.Sprintf("%d held, %d broken", held, len(p.Broken))
	}
}
