package finding

import (
	"maps"
	"math"

	"pelt/model"
	"pelt/plan"
	"pelt/table"
)

// Kind is one kind of test: its command, its plan, and what it looks for. Package view draws its page, one of its own
// or one as all kinds may have.
type Kind struct {
	plan.Preset
	Use, Short, Long, Example string // of its --help

	Title string
	Rules []Rule
	// Repeats is the metric of which a setting needs some repeats that agree; "" for none.
	Repeats string
	// Rows are the rows of a run; nil: those of table.Rows, but for the trials of searches.
	Rows     func(*model.Document) []table.Row
	Searches bool // floods only begin searches
	// Cycles finds what changed over several runs, which are shown as one run of so many cycles; nil: they are shown
	// side by side.
	Cycles Rule
	// Figures are the metrics of a trial's line, and of the table of a page that is not the kind's own; nil: the usual.
	Figures []string
}

// Kinds are all kinds of test, in display order. They are made by functions so that a build that runs none links none.
func Kinds() []Kind {
	return []Kind{curveKind(), ndrKind(), latencyKind(), sweepKind(), routerKind(), controlKind(), soakKind(),
		meshKind()}
}

// tables are what findings say, by code; see fill. A kind's own sentences stand beside its rules, in a table and not in
// its record: a build that only says errors links no rules.
var tables = []map[string]string{generalSentences, curveSentences, ndrSentences, latencySentences, sweepSentences,
	routerSentences, controlSentences, soakSentences, meshSentences, toolSentences}

var sentences = joined(tables)

func joined(tables []map[string]string) map[string]string {
	all := map[string]string{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// KindOf returns the kind of a run's test. A command without a kind of its own is told of as a curve.
func KindOf(d *model.Document) Kind {
	if d.Tool.Name != "" {
		return toolKind(d.Tool.Name)
	}
	for _, k := range Kinds() {
		if k.Command == d.Plan.Command {
			return k
		}
	}
	return curveKind()
}

// RowsOf are the rows of a run that its findings and its page are about.
func (k Kind) RowsOf(d *model.Document) []table.Row {
	if k.Rows != nil {
		return k.Rows(d)
	}
	return table.Unsearched(table.Rows(d))
}

// OfRun is what a run shows.
func OfRun(d *model.Document) []Finding {
	k := KindOf(d)
	if len(d.Results) == 0 {
		return noTrial(d)
	}
	rows := k.RowsOf(d)
	if d.Tool.Name != "" {
		return applied(rows, k.Rules...)
	}
	if NothingThrough(rows) {
		k.Rules, k.Repeats = nil, ""
	}
	rules := append([]Rule{nothingRule}, k.Rules...)
	if k.Repeats != "" {
		rules = append(rules, repeatsRule(k.Repeats))
	}
	return applied(rows, append(rules, generalRules()...)...)
}

// OfRuns are all changes from run to run of one plan, oldest first; of runs that are shown side by side also how they
// went. A reader is told some of them: see Shown.
func OfRuns(runs []*model.Document) []Finding {
	if cycles := KindOf(runs[len(runs)-1]).Cycles; cycles != nil {
		return applied(table.Rows(JoinRuns(runs)), cycles)
	}
	return applied(RowsOfRuns(runs), func(rows []table.Row) []Finding { return overRuns(runs, rows) })
}

// Failed counts the trials that are not valid and that an answer of the run lacks, and how many there are. Those that
// were cut count as none.
func Failed(d *model.Document) (failed, trials int) {
	found := map[string]bool{} // a rate for each goal, by the cell of the flood
	if KindOf(d).Searches {
		for _, r := range TypicalSearches(table.Rows(d)) {
			key := r.Trial.Cell.Key()
			before, known := found[key]
			found[key] = (before || !known) && !math.IsNaN(r.Search.Throughput)
		}
	}
	var rows []table.Row
	for i := range d.Results {
		r := &d.Results[i]
		if !r.Cell.Searching() && !r.Unkept() && (r.State != model.Invalid || !found[r.Cell.Key()]) {
			rows = append(rows, table.Row{Doc: d, Trial: r})
		}
	}
	valid, invalid, _ := table.Group{Rows: rows}.Trials()
	return invalid, valid + invalid
}
