package view

import (
	"fmt"
	"math"
	"slices"

	"pelt/finding"
	"pelt/table"
	"pelt/unit"
)

// rfc2544 is the report of RFC 2544 section 26, for the first goal.
func rfc2544(searches []table.Row) []Section {
	goal := searches[0].Search.Goal
	searches = slices.DeleteFunc(slices.Clone(searches), func(r table.Row) bool { return r.Search.Goal != goal })
	size, load := table.KeyOf("frame_bytes"), table.KeyOf("load_ratio")
	others := slices.DeleteFunc(finding.SearchKeys(searches), ofSize)
	if slices.ContainsFunc(searches, func(r table.Row) bool { return len(r.Trial.Flows) > 1 }) {
		others = append(others, table.KeyOf("flow"))
	}
	keys := append(slices.Clone(others), size)
	rates := lines("Throughput by frame size", searches, others, size, "throughput_pps")
	rates.Series = append(rates.Series, theory(lines("", searches, others, size, "link_pps").Series)...)
	out := []Section{Heading{"Report of RFC 2544, section 26"}, rates,
		rowsOf("Throughput, and the delay at it", table.By(searches, keys...), keyColumns(keys...),
			metricColumns("throughput_pps", "link_pps", "delay_p50_ns", "delay_p999_ns", "delay_variation_ns"),
			details(metricColumns("round_trip_p50_ns", "round_trip_p999_ns")))}

	for _, g := range table.By(searches, others...) {
		title := "Frame loss rate"
		if name := g.Name(); name != "" {
			title += ", " + name
		}
		c := lines(title, falling(g.Rows), []table.Key{size}, load, "loss_ratio")
		c.X.Log = false
		out = append(out, c)
	}
	return append(out, fallingTable(table.By(searches, keys...), keys),
		rowsOf("Back-to-back frames", table.By(searches, keys...), keyColumns(keys...),
			cells("burst_packets", "Without loss", longestBurst), metricColumns("burst_s", "buffer_s", "burst_pps"),
			cells("bursts_count", "Repeats", func(g table.Group, _ int) Cell {
				return Cell{Value: float64(len(g.Rows[0].Search.Bursts))}
			})))
}

// theory are the lines of the links, of which those that are alike are one.
func theory(links []Series) (out []Series) {
	for _, s := range links {
		s.Tone = Muted
		if len(out) > 0 && slices.EqualFunc(s.Points, out[0].Points, func(a, b Point) bool { return a.X == b.X && a.Y == b.Y }) {
			out[0].Name = "theoretical"
			continue
		}
		if s.Name = "theoretical, " + s.Name; len(links) == 1 {
			s.Name = "theoretical"
		}
		out = append(out, s)
	}
	return out
}

func falling(searches []table.Row) (out []table.Row) {
	for _, r := range searches {
		out = append(out, r.Falling()...)
	}
	return finding.Usable(out)
}

// fallingTable has a column for each load that was tried, the highest first.
func fallingTable(groups []table.Group, keys []table.Key) Table {
	load := table.KeyOf("load_ratio")
	loads := table.By(falling(table.RowsOf(groups)), load)
	var columns []column
	for _, l := range slices.Backward(loads) {
		share := l.Level(load.Name)
		name := fmt.Sprintf("loss_%.0f_ratio", 100*share.Number)
		columns = append(columns, cells(name, unit.Ratio.Format(share.Number), func(g table.Group, _ int) Cell {
			rows := slices.DeleteFunc(falling(g.Rows), func(r table.Row) bool { return load.Of(r) != share })
			lost := table.Group{Rows: rows}.Stat(table.MetricOf("loss_ratio")).Median
			return Cell{Value: lost, Tone: lossTone(lost)}
		})...)
	}
	return rowsOf("Frame loss rate by load", groups, keyColumns(keys...), columns)
}

// longestBurst says so where no burst was too long.
func longestBurst(g table.Group, _ int) Cell {
	c := Cell{Value: g.Stat(table.MetricOf("burst_packets")).Median}
	if g.Rows[0].Search.Unlost && !math.IsNaN(c.Value) {
		c.Note = "or more"
	}
	return c
}
