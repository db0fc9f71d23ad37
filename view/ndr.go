package view

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/table"
)

func ndrPage(rows []table.Row, found []finding.Finding) []Section {
	searches := finding.TypicalSearches(rows)
	if len(searches) == 0 {
		return curvePage(rows, found)
	}
	return append([]Section{ndrTiles(found)}, searched(rows, searches)...)
}

// ndrTiles has a tile for each of the first two answers: two directions, or two goals.
func ndrTiles(found []finding.Finding) Tiles {
	var out Tiles
	for _, f := range finding.Of(found, finding.Answer) {
		if len(out) < 2 && strings.HasPrefix(f.Code, "free.") {
			out = append(out, freeTile(f))
		}
	}
	answer := first(found, "free.")
	if _, flooded := answer.Places["flood"]; flooded {
		out = append(out, tile("Saturates at", answer, "{receive_pps:flood}", "[{receive_pps:flood ?}when flooded]"))
	}
	return append(out, Tile{Label: "Limited by", Value: answer.Words["limit"]})
}

// freeTile is the highest rate without loss that a search found.
func freeTile(f finding.Finding) Tile {
	t := tile(f.Say("[At most {loss_ratio:goal} lost to|Loss-free to]"), f, "{throughput_pps}", "")
	t.Note = f.Language.Names(f.Say("[{place}][ {each}]"),
		cmp.Or(f.Say("next run: {holds_pps:next to fails_pps:next}"), f.Say("fails at {fails_pps:fails}")))
	if f.Code == "free.none" {
		t.Value = "none"
	} else if t.Value != "" && !slices.Contains([]string{"free.found", "free.link", "free.cut"}, f.Code) {
		t.Value = "≥ " + t.Value
	}
	return t
}

// freeLines are the rates that searches found by the size of the packets, a line for each other setting.
func freeLines(searches []table.Row) []Series {
	others := slices.DeleteFunc(finding.SearchKeys(searches), ofSize)
	found := lines("", searches, others, table.KeyOf("payload_bytes"), "throughput_pps").Series
	for i := range found {
		switch name := found[i].Name; {
		case len(found) == 1:
			found[i].Name = "Loss-free"
		case !slices.ContainsFunc(others, func(k table.Key) bool { return k.Name == "goal_loss_ratio" }):
			l := table.Language(searches)
			found[i].Name = l.Names(l.Say("Loss-free"), name)
		}
	}
	return found
}

func ofSize(k table.Key) bool { return k.Name == "payload_bytes" || k.Name == "frame_bytes" }

// searched shows what searches found beside what floods got through, and the trials of the search that counts first.
func searched(rows, searches []table.Row) []Section {
	size, l := table.KeyOf("payload_bytes"), table.Language(searches)
	var out []Section
	if len(table.By(searches, size)) > 1 {
		c := lines("Packets received by payload", table.Unsearched(rows), finding.Curves(rows).Under, size,
			"receive_pps")
		for i := range c.Series {
			c.Series[i].Name = l.Sayf("Flood, %s", c.Series[i].Name)
			if c.Series[i].Name == l.Sayf("Flood, %s", l.Say("Received")) {
				c.Series[i].Name = l.Say("Flood")
			}
		}
		c.Series = append(freeLines(searches), c.Series...)
		out = append(out, hero(c))
	}
	first := table.By(searches, finding.SearchKeys(searches)...)[0]
	one, at := first.Rows[0], first.Name()
	rates := finding.Rates(one)
	titled := func(title string) string { return l.Names(l.Say(title), at) }
	tried := lines(titled("Packets received at each rate"), table.RowsOf(rates), nil, table.KeyOf("rate_pps"),
		"receive_pps")
	tried.Hero = len(out) == 0
	out = append(out, tried, searchTable(searches, finding.SearchKeys(searches)))
	beyond := finding.AboveLimit(one)
	for _, section := range append(paths(beyond), ledgers(beyond)...) {
		switch s := section.(type) {
		case Path:
			s.Title = l.Names(l.Sayf("%s at the rate that fails", l.Say(s.Title)), at)
			section = s
		case Table:
			s.Title = l.Names(l.Sayf("%s at the rate that fails", l.Say(s.Title)), at)
			section = s
		}
		out = append(out, section)
	}
	bounds := one.At(one.Search.Lower, one.Search.Upper)
	each := []table.Key{table.KeyOf("rate_pps"), table.KeyOf("trial"), table.KeyOf("flow")}
	return append(out,
		rowsOf(titled("Rates tried"), rates, keyColumns(table.KeyOf("rate_pps")),
			cells("trials_count", "Trials", func(g table.Group, _ int) Cell {
				valid, _, _ := g.Trials()
				return Cell{Value: float64(valid)}
			}), cells("failed_count", "Failed", func(g table.Group, _ int) Cell {
				return Cell{Value: float64(one.Search.Failed(g.Level("rate_pps").Number))}
			}), metricColumns("loss_ratio", "send_pps"),
			details(metricColumns("delay_p50_ns", "delay_p99_ns", "round_trip_p50_ns"))),
		rowsOf(titled("Each trial at the rates that hold and fail"), table.By(bounds, each...), keyColumns(each...),
			metricColumns("duration_s", "loss_ratio", "lost_packets")))
}

// atLeast marks the rates of searches that found no rate at which the path loses too much.
func atLeast(rates []column) []column {
	show, unit := rates[0].cell, rates[0].Unit
	rates[0].cell = func(g table.Group, row int) Cell {
		c := show(g, row)
		if !math.IsNaN(c.Value) && finding.AtLeast(g.Rows[0]) {
			c.Text = "≥ " + unit.Format(c.Value)
		}
		return c
	}
	return rates
}

// searchTable is what the searches that count found for each of the keys' levels.
func searchTable(searches []table.Row, keys []table.Key) Table {
	if len(keys) == 0 {
		keys = []table.Key{table.KeyOf("payload_bytes")}
	}
	flood := func(g table.Group, _ int) Cell {
		return Cell{Value: finding.Saturation(g).Middle("receive_pps")}
	}
	limit := func(g table.Group, _ int) Cell { return Cell{Text: finding.SearchLimit(g.Rows[0])} }
	groups, every := table.By(searches, keys...), table.By(table.Searches(searches), keys...)
	next := func(_ table.Group, row int) Cell { return Cell{Text: finding.NextRun(every[row])} }
	t := rowsOf("Rates without loss", groups, keyColumns(keys...),
		atLeast(metricColumns("throughput_pps")), metricColumns("fails_pps"),
		cells("saturates_pps", "Saturates at", flood),
		cells("limit", "Limited by", limit), metricColumns("router_busy_ratio"),
		details(cells("next_run", "Next run", next), metricColumns("throughput_bps", "loss_ratio", "delay_p50_ns",
			"delay_p99_ns", "round_trip_p50_ns", "search_trials", "search_s")))
	for _, g := range groups {
		if g.Rows[0].Search.Goal == groups[0].Rows[0].Search.Goal {
			t.Lead++
		}
	}
	return t
}
