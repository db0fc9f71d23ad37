package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/ledger"
	"pelt/model"
	"pelt/table"
)

// Explain makes the page of where the packets of a run ended. The trials are those that ask finds.
func Explain(d *model.Document, ask finding.Ask, trials []int) Page {
	p := Page{Language: d.Language, Title: "Where packets ended", Subject: subject(d)}
	p.say(finding.Explain(d, ask))
	if d.Tool.Name != "" {
		return p.translated()
	}
	groups := finding.Ledgers(d, ask)
	p.Sections = shown(lostTable(groups))
	of := map[int]int{} // of how many trials each lost most
	for _, g := range groups {
		for _, r := range g.Rows {
			if n := r.TrialNumber(); !ask.All && ask.Trial == 0 {
				of[n] = max(of[n], len(g.Rows))
			}
		}
	}
	rows, byTrial := table.Rows(d), map[int][]table.Row{}
	for _, r := range rows {
		byTrial[r.TrialNumber()] = append(byTrial[r.TrialNumber()], r)
	}
	for _, n := range trials {
		p.Sections = append(p.Sections, trialOf(&d.Results[n-1], byTrial[n], n, of[n])...)
	}
	p.Sections = append(p.Sections, leftOut(rows)...)
	return p.translated()
}

func lostTable(groups []table.Group) Table {
	t := listing("What was lost", "settings Setting", "loss_ratio Lost", "cause Mostly lost at",
		"trials Trials",
		"lost_packets Losses", "attempted_packets Of", "-unattributed_packets Unexplained")
	if len(groups) > 0 && groups[0].Rows[0].Flow.Protocol == model.TCP { // then all are
		t = listing("What TCP sent again", "settings Setting", "retransmit_ratio Again", "cause Mostly lost at",
			"trials Trials",
			"lost_packets Number", "attempted_packets Of", "-unattributed_packets Not known to be lost")
	}
	for _, g := range groups {
		name := g.Name()
		if name == "" && len(groups) > 1 && g.Rows[0].Doc.Plan.Design.Search != nil {
			name = g.Say("flood") // which has neither a rate nor a search
		}
		if valid, _, _ := g.Trials(); valid == 0 {
			name = g.Language().Names(name, g.Say("not valid"))
		}
		trials := trialNumbers(g)
		g.Rows = finding.AsValid(g.Rows)
		sent, lost := g.Sum("attempted_packets"), g.Sum("lost_packets")
		share, unattributed := Cell{Value: lost / sent, Tone: lossTone(lost / sent)}, uint64(0)
		for _, r := range g.Rows {
			unattributed += r.Flow.Ledger.Unattributed
		}
		t.add(name, share, mostly(g.Rows), trials, lost, sent, unattributed)
	}
	worst := slices.Clone(t.Rows)
	slices.SortStableFunc(worst, func(a, b []Cell) int { return cmp.Compare(b[1].Value, a[1].Value) })
	for _, row := range worst[:min(len(worst), mostWorst)] {
		row[1].Named = row[1].Value > 0
	}
	return t
}

// mostWorst is how many of the settings that lost most are shown where not all fit.
const mostWorst = 3

// trialNumbers lists the trials of a group: "1, 5".
func trialNumbers(g table.Group) string {
	var words []string
	for _, r := range g.Rows {
		words = append(words, fmt.Sprint(r.TrialNumber()))
	}
	if n := len(words); n > 4 {
		words = append(words[:3], "…", words[n-1])
	}
	return strings.Join(words, ", ")
}

// trialOf is all that is known of the packets of one trial, which lost most of so many.
func trialOf(trial *model.Result, rows []table.Row, number, of int) []Section {
	in := table.Language(rows)
	f := finding.Finding{Code: "explain.of", Words: map[string]string{"trial": fmt.Sprint(number),
		"state": in.Say(string(trial.State)), "why": finding.WhyIn(in, trial.Why)}, Language: in}
	cells := table.By(rows, append(table.Settings(rows), table.KeyOf("direction"))...)
	if len(cells) > 1 { // each flow below has its name
		cells = table.By(rows, table.Settings(rows)...)
	}
	if len(cells) > 0 {
		f.Words["cell"] = cells[0].Name()
	}
	if of > 1 {
		f.Words["of"] = fmt.Sprint(of)
	}
	out := []Section{Heading{f.Text()}}
	if trial.State != model.Valid {
		f.Code = "explain.invalid"
		out = append(out, Text{f.Text()})
	}
	for _, r := range finding.AsValid(rows) {
		one := []table.Row{r}
		if r.Flow.Attempted > 0 && (len(table.Accounted(one)) > 0 || len(finding.FirstStuck(one)) > 0) {
			out = append(out, flowOf(r)...)
		}
		for _, way := range finding.Meeting(r) {
			out = append(out, flowOf(way)...)
		}
		out = append(out, deadStreams(r)...)
	}
	for _, o := range trial.Observed {
		out = append(out, Text{finding.Watched(in, o).Text()})
	}
	return append(out, shown(movedTable(trial))...)
}

// flowOf is the account of one flow of one trial.
func flowOf(r table.Row) []Section {
	out := accountOf(r)
	for _, f := range finding.Account(r) {
		out = append(out, Text{f.Text()})
	}
	t := listing("Counters behind the losses", "counter Counter", "host Host", "moved_count Moved by", "unit Unit",
		"scope Scope", "excess_count Excess", "role Role", "-before_count Before", "-after_count After")
	told := map[[2]string]bool{}
	for i, l := range linesOf(r.Flow) {
		for _, e := range l.Evidence {
			key := [2]string{e.Host, e.Counter}
			if told[key] && i >= len(r.Flow.Ledger.Lines) {
				continue
			}
			told[key] = true
			excess := math.NaN()
			if e.Excess > 0 {
				excess = float64(e.Excess)
			}
			t.add(finding.CounterName(e.Counter), cmp.Or(e.Host, l.Host), e.Delta, e.Unit, e.Scope, excess, e.Role,
				e.Before, e.After)
		}
	}
	checks := listing("Checks between counters", "state State", "check Check")
	for _, c := range r.Flow.Ledger.Checks {
		checks.add(map[bool]string{true: "held", false: "broken"}[c.Held], ledger.LawIn(r.Language(), c))
	}
	return append(out, shown(t, checks)...)
}

// linesOf are the lines of a flow's ledger, and behind them what else its packets may be.
func linesOf(f *model.FlowResult) []model.Line {
	lines := slices.Clone(f.Ledger.Lines)
	for _, p := range f.Ledger.Possible {
		lines = append(lines, model.Line{Host: p.Host, Evidence: p.Evidence})
	}
	return lines
}

func movedTable(trial *model.Result) Table {
	t := listing("Other counters that moved, warm-up included", "host Host", "counter Counter", "before_count Before",
		"after_count After", "moved_count Moved by")
	t.Fold = true
	told := map[[2]string]bool{}
	for i := range trial.Flows {
		for _, l := range linesOf(&trial.Flows[i]) {
			for _, e := range l.Evidence {
				told[[2]string{e.Host, e.Counter}] = true
			}
		}
	}
	for _, c := range trial.Counters {
		if !told[[2]string{c.Host, c.Name}] && (c.Whole > 0 || c.Reset) {
			t.add(c.Host, c.Name, c.Before, c.After, c.Whole)
		}
	}
	return t
}
