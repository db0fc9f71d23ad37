package view

import (
	"cmp"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

func meshPage(rows []table.Row, found []finding.Finding) []Section {
	ways := finding.MeshWays(rows)
	delay := finding.DelayOf(rows)
	grid, of := meshGrid(ways)
	in := table.Language(rows)
	from, to := table.KeyOf("from"), table.KeyOf("to")
	out := []Section{meshTiles(rows, ways, found, delay),
		hero(heatMap(in.Say("Packets lost from host to host")+of, summed(grid), to, from, "loss_ratio"))}
	out = append(out, meshPairs(ways, delay),
		heatMap(in.Sayf("%s, from host to host", in.Say(table.MetricOf(delay).Label))+of, grid, to, from, delay))
	if len(table.By(rows, table.KeyOf("repeat"))) > 1 {
		out = append(out, meshTimes(ways, delay), meshParts(rows))
	}
	return append(out, ledgerOf(in.Say("Every packet"), table.Group{Rows: rows}))
}

// summed are groups with one row each, in which the packets of all their rows add up.
func summed(groups []table.Group) (out []table.Group) {
	for _, g := range groups {
		if len(g.Rows) > 0 {
			g.Rows = []table.Row{table.Summed(g.Rows)}
		}
		out = append(out, g)
	}
	return out
}

// lossOf is the share of their packets that some rows lost.
func lossOf(rows []table.Row) Cell {
	v, _ := table.MetricOf("loss_ratio").Value(table.Summed(rows))
	return Cell{Value: v, Tone: lossTone(v)}
}

func wayName(g table.Group) string {
	return g.Sayf("%s to %s", g.Level("from").Text, g.Level("to").Text)
}

func meshTiles(rows []table.Row, ways []table.Group, found []finding.Finding, delay string) Tiles {
	answer, in := first(found, "mesh."), table.Language(rows)
	hosts := len(rows[0].Doc.Plan.Hosts)
	all := max(hosts*(hosts-1), len(ways))
	slowest := Tile{Label: in.Sayf("Slowest %s", lowered(in, table.MetricOf(delay).Label))}
	if slow := table.Rank(table.MetricOf(delay), withFigure(ways, delay)); len(slow) > 0 {
		last := slow[len(slow)-1]
		slowest.Value, slowest.Note = figure(last, delay), wayName(last)
	}
	return Tiles{{Label: "Pairs measured", Value: in.Sayf("%d of %d", len(ways), all)},
		tile("Worst loss", answer, "{loss_ratio}", "{from} to {to}"),
		tile("Pairs that lose", answer, "{pairs_count:lossy}", "more than {loss_ratio:most}"),
		slowest}
}

// mostGrid is up to how many hosts a grid can be read.
const mostGrid = 24

// meshGrid has a group for each host and each other, also where nothing was measured. Of too many hosts it has those
// that lose most; of says so behind a title.
func meshGrid(ways []table.Group) (grid []table.Group, of string) {
	hosts, loss := slices.Clone(ways[0].Rows[0].Doc.Plan.Hosts), map[string]float64{}
	at := map[[2]string]table.Group{}
	for _, g := range ways {
		from, to := g.Level("from").Text, g.Level("to").Text
		at[[2]string{from, to}] = g
		for _, host := range []string{from, to} {
			if loss[host] += lossOf(g.Rows).Value; !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	if n := len(hosts); n > mostGrid {
		worst := slices.Clone(hosts)
		slices.SortStableFunc(worst, func(a, b string) int { return cmp.Compare(loss[b], loss[a]) })
		hosts = slices.DeleteFunc(hosts, func(host string) bool { return !slices.Contains(worst[:mostGrid], host) })
		of = ways[0].Sayf(", the %d of %d hosts that lose most", mostGrid, n)
	}
	for _, from := range hosts {
		for _, to := range hosts {
			g := at[[2]string{from, to}]
			g.Keys = ways[0].Keys
			g.Levels = []table.Level{{Value: model.Word(from), Known: true}, {Value: model.Word(to), Known: true}}
			grid = append(grid, g)
		}
	}
	return grid, of
}

// mostPairs is how many pairs a page lists: the grid and --csv have all.
const mostPairs = 40

func meshPairs(ways []table.Group, delay string) Table {
	title := "Pairs, the worst first"
	ways = table.Rank(table.MetricOf(delay), ways)
	slices.Reverse(ways) // the slowest first, of those that lose alike
	lost := map[string]float64{}
	for _, g := range ways {
		lost[g.Name()] = lossOf(g.Rows).Value
	}
	slices.SortStableFunc(ways, func(a, b table.Group) int { return cmp.Compare(lost[b.Name()], lost[a.Name()]) })
	if n := len(ways); n > mostPairs {
		in := ways[0].Language()
		ways, title = ways[:mostPairs], in.Sayf("%s (%d of %d)", in.Say(title), mostPairs, n)
	}
	label := table.MetricOf("loss_ratio").Label
	loss := cells("loss_ratio", label, func(g table.Group, _ int) Cell { return lossOf(g.Rows) })
	where := cells("where", "Mostly lost at", func(g table.Group, _ int) Cell { return Cell{Text: mostly(g.Rows)} })
	t := rowsOf(title, ways, keyColumns(table.KeyOf("from"), table.KeyOf("to")), loss, where,
		bare(metricColumns(delay)), details(bare(metricColumns(strings.Replace(delay, "p50", "p99", 1), "jitter_ns"))))
	t.Lead = lead
	return t
}

// mostTraces is how many pairs a chart over time tells apart.
const mostTraces = 5

// meshTimes are the pairs that differ most from cycle to cycle. A round trip is the same both ways.
func meshTimes(ways []table.Group, delay string) Times {
	out := Times{Title: "Cycle by cycle, the pairs that change most"}
	lost, cycles := Lane{Label: "Lost in a cycle", Unit: unit.Count}, 0
	for _, r := range table.RowsOf(ways) {
		cycles = max(cycles, r.Trial.Repeat+1)
	}
	for _, g := range mostChanged(ways, "loss_ratio") {
		lost.add(wayName(g), Plain, finding.CycleSeries(g, "lost_packets", cycles))
	}
	times := Lane{Label: table.MetricOf(delay).Label, Unit: unit.Nanos}
	if delay == "round_trip_p50_ns" {
		ways = slices.DeleteFunc(slices.Clone(ways),
			func(g table.Group) bool { return g.Rows[0].Flow.From == model.Receiver })
	}
	for _, g := range mostChanged(ways, delay) {
		times.add(wayName(g), Plain, finding.CycleSeries(g, delay, cycles))
	}
	out.show(table.Language(table.RowsOf(ways)), lost, times)
	return out
}

// mostChanged are the few ways of which a metric differs most from cycle to cycle, and by more than does not matter.
func mostChanged(ways []table.Group, metric string) []table.Group {
	m := table.MetricOf(metric)
	spread := func(g table.Group) float64 {
		values := g.Sample(m).Values
		switch {
		case len(values) == 0:
			return 0
		case m.Points():
			return slices.Max(values) - slices.Min(values)
		}
		return slices.Max(values)/max(slices.Min(values), 1) - 1
	}
	out := slices.DeleteFunc(slices.Clone(ways), func(g table.Group) bool { return spread(g) <= m.Resolution })
	slices.SortStableFunc(out, func(a, b table.Group) int { return cmp.Compare(spread(b), spread(a)) })
	return out[:min(mostTraces, len(out))]
}

// meshParts tells of the cycles in a few parts of the time.
func meshParts(rows []table.Row) Table {
	t := listing("Over time", "*window Time", "cycles_count Cycles", "pairs_count Pairs that lose",
		"loss_ratio Worst loss", "worst Worst pair")
	cycles := table.By(rows, table.KeyOf("repeat"))
	for part := range slices.Chunk(cycles, (len(cycles)+mostParts-1)/mostParts) {
		ways := finding.MeshWays(table.RowsOf(part))
		worst, lossy := table.Group{}, 0
		for _, g := range ways {
			v := lossOf(g.Rows).Value
			if lossTone(v) == Bad {
				lossy++
			}
			if worst.Rows == nil || v > lossOf(worst.Rows).Value {
				worst = g
			}
		}
		begin := table.Language(rows).Time("2 January, 15:04", part[0].Rows[0].Trial.Started)
		t.add(begin, len(part), lossy, lossOf(worst.Rows), wayName(worst))
	}
	return t
}
