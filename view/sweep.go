package view

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/words"
)

func sweepPage(rows []table.Row, found []finding.Finding) []Section {
	rankings := finding.Rankings(rows)
	answer := first(found, "sweep.")
	best, about := *answer.Places["best"], finding.About(rankings, answer)
	receivers := table.By(table.Receivers(best.Rows), table.KeyOf("receiver"))
	if len(receivers) == 1 {
		receivers = nil
	}
	out := append([]Section{sweepTiles(found, about)}, sweepCharts(rows, finding.Headlines(rankings))...)
	out = append(out, losses("Packets lost by setting", telling(about)))
	out = append(out, paths(rows)...)
	if len(rankings) > 1 {
		out = append(out, conditionTable(rankings))
	}
	for _, c := range rankings {
		out = append(out, settingTable(c))
	}
	each := rowsOf(best.Sayf("Each receiver at %s", best.Name()), receivers, keyColumns(table.KeyOf("receiver")),
		metricColumns("goodput_bps", "loss_ratio"),
		details(metricColumns("attempted_packets", "received_packets")))
	each.Fold = true
	out = append(out, each)
	return append(out, ledgers(rows)...)
}

func sweepTiles(found []finding.Finding, c finding.Ranking) Tiles {
	answer := first(found, "sweep.")
	least := tile("Sends", answer, "{send_bps:best}", "")
	if c.Tied > 1 && c.Name() == "" {
		most := figure(c.Places[c.Tied-1].Choice, "send_bps")
		least.Label, least.Note = "Sends least", answer.Language.Sayf("others as good send up to %s", most)
	}
	return Tiles{tile("Best setting", answer, "{goodput_bps:best}", "{best}[, {under}]"),
		tile("Lost there", answer, "{loss_ratio:best}", ""), least, limitTile(first(found, "limit."))}
}

// sweepCharts draws goodput over the settings: as shades over two keys, as lines over
// one that is a number, else with intervals.
func sweepCharts(rows []table.Row, heads []finding.Ranking) []Section {
	l := table.Lay(rows)
	under, keys := l.Under, l.Choice
	noNumber := func(g table.Group) bool { return !(g.Levels[0].Number > 0) || g.Levels[0].Text != "" }
	if len(keys) == 1 && len(heads[0].Places) > 1 && !slices.ContainsFunc(heads[0].Choices(), noNumber) {
		in := table.Language(rows)
		title := in.Sayf("Goodput by %s", lowered(in, keys[0].Label))
		return []Section{hero(lines(title, rows, under, keys[0], "goodput_bps"))}
	}
	var out []Section
	for i, c := range heads {
		title := "Goodput of each setting"
		if len(heads) > 1 {
			title = table.Language(rows).Names(table.Language(rows).Say(title), c.Name())
		}
		chart := intervals(title, c.Choices(), "goodput_bps", finding.Effects(c.Places))
		if len(keys) == 2 {
			chart = heatMap(title, table.By(c.Rows, keys...), keys[1], keys[0], "goodput_bps")
		}
		chart.Hero = i == 0
		out = append(out, chart)
	}
	return out
}

// mostBars is how many settings a chart of losses shows: the first ones, and some of the others that lose most.
const mostBars, mostLossy = 12, 4

// telling are the settings whose losses are worth a look.
func telling(c finding.Ranking) []table.Group {
	settings := c.Choices()
	if len(settings) <= mostBars {
		return settings
	}
	n := mostBars - mostLossy
	lossy := table.Rank(table.MetricOf("loss_ratio"), settings[n:])
	return slices.Concat(settings[:n], lossy[len(lossy)-mostLossy:])
}

func conditionTable(rankings []finding.Ranking) Table {
	var best []table.Group
	for _, c := range rankings {
		best = append(best, c.Places[0].Choice)
	}
	condition := cells("condition", "Condition", func(_ table.Group, row int) Cell {
		return Cell{Text: rankings[row].Name()}
	})
	condition[0].Key = true
	tied := cells("tied_count", "Tied with it", func(_ table.Group, row int) Cell {
		return Cell{Value: float64(rankings[row].Tied - 1)}
	})
	return rowsOf("The best under each condition", best, condition, nameColumn(best[0].Keys),
		metricColumns("goodput_bps"), bare(metricColumns("loss_ratio", "send_bps")), details(tied))
}

// lead is how many settings the short form shows.
const lead = 5

// settingTable has all settings of a ranking. Those who sort by one setting find it in a column of its own.
func settingTable(c finding.Ranking) Table {
	settings := c.Choices()
	keys, loss := settings[0].Keys, "loss_ratio"
	if settings[0].Rows[0].Flow.Protocol == model.TCP {
		loss = "retransmit_ratio"
	}
	verdict := cells("verdict", "Verdict", func(_ table.Group, row int) Cell { return verdictOf(c, row) })
	more := metricColumns("receive_pps", "send_pps", "receiver_goodput_min_bps", "receiver_goodput_median_bps",
		"receiver_goodput_max_bps", "receiver_fairness_index", "reordered_ratio")
	if len(keys) > 1 {
		for _, k := range keyColumns(keys...) {
			k.Key = false
			more = append(more, k)
		}
	}
	t := rowsOf("Settings, the best first", settings, nameColumn(keys), metricColumns("goodput_bps"),
		bare(metricColumns(loss, "send_bps")), verdict,
		metricColumns("delay_p50_ns", "delay_p99_ns", "round_trip_p50_ns"),
		details(more))
	if under := c.Name(); under != "" {
		t.Title = c.Language().Names(c.Say(t.Title), under)
	}
	t.Lead = lead
	return t
}

// leastShown is the smallest difference that a verdict tells of, as a share.
const leastShown = 0.001

// verdictOf says how a setting compares with the highest goodput of its ranking.
func verdictOf(c finding.Ranking, i int) Cell {
	e := finding.EffectOf(c.Places[i])
	cell := effectCell(c.Language(), e)
	cell.Note = ""
	switch {
	case c.Tied > 1 && i == 0:
		cell.Text, cell.Tone = "sends least", Good
	case c.Tied > 1 && e.Verdict == table.Best:
		cell.Text, cell.Tone = "highest", Plain
	case e.Verdict == table.TooFew && i < c.Tied:
		cell.Text = "near"
	}
	if i >= c.Tied && math.Abs(e.Change) >= leastShown {
		cell.Note = changeOf(e)
	}
	return cell
}

// Sorted is the report of a run with its settings in the order of a column, the largest first: a metric by
// its name in files or in short, or a setting by its name.
func Sorted(d *model.Document, by string) (Page, error) {
	p := Run(d)
	names := []string{by}
	for _, m := range table.Named(by) {
		names = append(names, m.Name)
	}
	sorted := false
	for i, s := range p.Sections {
		t, ok := s.(Table)
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return slices.Contains(names, c.Name) })
		if !ok || at < 0 {
			continue
		}
		if sorted = true; len(t.Rows) < 2 { // it is in any order
			continue
		}
		slices.SortStableFunc(t.Rows, func(a, b []Cell) int { return compareCells(a[at], b[at]) })
		t.Title = d.Language.Sayf("%s, sorted by %s", t.Title, strings.ToLower(t.Columns[at].Label))
		p.Sections[i] = t
	}
	if !sorted {
		return p, words.Errorf("no table of this report can be sorted by %q", by)
	}
	return p, nil
}

// compareCells orders two cells, the larger figure first, else by their words; one without a figure comes last.
func compareCells(a, b Cell) int {
	last := func(c Cell) int { return map[bool]int{true: 1}[math.IsNaN(c.Value)] }
	return cmp.Or(last(a)-last(b), cmp.Compare(b.Value, a.Value), strings.Compare(a.Text, b.Text))
}
