package view

import (
	"slices"

	"pelt/finding"
	"pelt/table"
)

func latencyPage(rows []table.Row, found []finding.Finding) []Section {
	loads, full := finding.LatencyLoads(rows), finding.LatencyFull(rows)
	trips := lines("Round trip of small packets beside a load", rows, []table.Key{table.KeyOf("direction")},
		table.KeyOf("load_ratio"), "round_trip_p50_ns")
	trips.X.Log, trips.X.Label = false, "Load, of the loss-free rate"
	trips.Note = "Delay rises where the median round trip has doubled, or grown by 5 ms, and by 1 ms at least."
	trips.Marks = []Mark{{At: 1, Text: "loss-free rate"}}
	few := full
	if idle := finding.LatencyIdle(rows); len(idle.Rows) > 0 {
		few = append([]table.Group{idle}, full...)
	}
	// A load without losses has no bar; its name would only take the room of others.
	lost := table.MetricOf("loss_ratio")
	losing := slices.DeleteFunc(slices.Clone(loads), func(g table.Group) bool { return !(g.Stat(lost).Median > 0) })
	out := []Section{latencyTiles(found), hero(trips), delays("Round trip, idle and loaded", few),
		losses("Packets of the load lost", losing)}
	out = append(out, paths(table.RowsOf(loads))...)
	return append(append(out, delays("By load", loads)), ledgers(table.RowsOf(loads))...)
}

func latencyTiles(found []finding.Finding) Tiles {
	grade, knee := first(found, "latency."), first(found, "latency.knee")
	worst := greatest(found, "latency.loaded", "round_trip_p50_ns", "")
	graded := Tile{Label: "Grade"}
	switch grade.Code {
	case "latency.grade":
		graded.Value, graded.Note = grade.W("grade"), "DSLReports scale"
	case "latency.light":
		graded.Note = "no load at 100 % of the loss-free rate"
	}
	at := tile("Delay rises at", knee, "{load_ratio}", "of the loss-free rate, {send_pps} {way}")
	if first(found, "latency.flat").Code != "" {
		at.Value = "no load"
	}
	return Tiles{graded, tile("Round trip, idle", grade, "{round_trip_p50_ns:idle}", "median"),
		tile("Round trip, loaded", worst, "{round_trip_p50_ns}", "{way}, {load_ratio} of the loss-free rate"), at}
}

// delays has the times of a thin flow beside each load.
func delays(title string, groups []table.Group) Table {
	load := cells("setting", "Load", func(g table.Group, _ int) Cell {
		if len(g.Keys) == 0 {
			return Cell{Text: "idle"}
		}
		return Cell{Text: g.Name()}
	})
	load[0].Key = true
	t := rowsOf(title, groups, load,
		short("round_trip_p50_ns", "Median"), short("round_trip_increase_ns", "Added"),
		short("round_trip_p95_ns", "95 %"), short("round_trip_p99_ns", "99 %"), short("probe_loss_ratio", "Lost"),
		short("up_increase_p50_ns", "Up adds"), short("down_increase_p50_ns", "Down adds"),
		details(short("round_trip_p999_ns", "99.9 %"), short("round_trip_min_ns", "Least"),
			short("send_pps", "Load sent"), short("loss_ratio", "Load lost"),
			short("probe_jitter_ns", "Jitter"), short("round_trips_per_minute", "A minute")))
	t.Note = "Times and losses are those of the small packets. Added is what the load adds to the median; Up adds and " +
		"Down adds are the parts of each way."
	return t
}

func short(metric, label string) []column {
	out := bare(metricColumns(metric))
	out[0].Label = label
	return out
}
