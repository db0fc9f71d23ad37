package view

import (
	"pelt/finding"
	"pelt/model"
	"pelt/table"
)

// Runs is the page of several runs of one plan, oldest first.
func Runs(runs []*model.Document) Page {
	newest := runs[len(runs)-1]
	kind := finding.KindOf(newest)
	if kind.Cycles != nil {
		return Run(finding.JoinRuns(runs))
	}
	rows := finding.RowsOfRuns(runs)
	p := Page{Language: newest.Language, Title: kind.Title, Subject: subject(finding.JoinRuns(runs))}
	found := finding.OfRuns(runs)
	p.say(finding.Shown(found))
	groups := finding.TimesGroups(rows)
	if len(groups) == 0 {
		return p.translated()
	}
	runsOf := cells("runs_count", "Runs", func(g table.Group, _ int) Cell {
		return Cell{Value: float64(len(table.By(g.Rows, table.KeyOf("repeat"))))}
	})
	worst := cells("loss_ratio", "Worst run", func(g table.Group, _ int) Cell {
		most := Cell{}
		for _, run := range table.By(g.Rows, table.KeyOf("repeat")) {
			if c := lossOf(run.Rows); c.Value > most.Value {
				most = c
			}
		}
		return most
	})
	columns := [][]column{keyColumns(groups[0].Keys...), runsOf}
	times := Times{Title: "Run by run, the settings that change most"}
	var lanes []Lane
	for _, metric := range finding.TimesMetrics(table.RowsOf(groups)) {
		m := table.MetricOf(metric)
		lane := Lane{Label: m.Label, Unit: m.Unit}
		for _, g := range mostChanged(withFigure(groups, metric), metric) {
			lane.add(g.Name(), Plain, finding.CycleSeries(g, metric, len(runs)))
		}
		lanes = append(lanes, lane)
		if len(withFigure(groups, metric)) > 0 {
			columns = append(columns, bare(metricColumns(metric)))
		}
		if metric == "loss_ratio" {
			columns = append(columns, worst)
		}
	}
	times.show(newest.Language, lanes...)
	p.Sections = shown(changesTable(found), rowsOf("All runs, the median of each setting", groups, columns...), times,
		ledgerOf(newest.Language.Say("Every packet"), table.Group{Rows: table.RowsOf(groups)}))
	return p.translated()
}

// changesTable lists the changes of several runs.
func changesTable(found []finding.Finding) Table {
	t := listing("What changed", "since Since", "setting Setting", "figure Figure", "before Before", "after After")
	for _, f := range found {
		if f.Code != "times.change" {
			continue
		}
		m := table.MetricOf(f.Words["metric"])
		before, _ := f.Number(m.Name, "before")
		after, _ := f.Number(m.Name, "after")
		t.add(f.Words["since"], f.Words["what"], f.Language.Say(m.Label), m.Format(before), m.Format(after))
	}
	return t
}
