package view

import (
	"slices"

	"pelt/finding"
	"pelt/table"
	"pelt/unit"
)

// inTerminal is how many figures of a plain page a terminal has room for; the others are details.
const inTerminal = 8

// plainPage is the page of a kind without one of its own, as of a test that another tool measured: its figures by what
// varies, over the time of a trial, and where packets were lost.
func plainPage(k finding.Kind) page {
	return func(rows []table.Row, _ []finding.Finding) []Section {
		keys, metrics := table.Vary(rows), metricColumns(lineMetrics(k)...)
		if len(keys) == 0 {
			keys = []table.Key{table.KeyOf("flow")}
		}
		first := min(inTerminal, len(metrics))
		figures := rowsOf("Figures", table.By(rows, keys...), keyColumns(keys...), metrics[:first],
			details(metrics[first:]))
		out := []Section{figures, plainTimes(rows)}
		if rows[0].Doc.Tool.Name != "" { // another tool's file has no ledger
			return out
		}
		return slices.Concat(out, paths(rows), ledgers(rows))
	}
}

// plainTimes is the first trial over its time.
func plainTimes(rows []table.Row) Times {
	l := table.Language(rows)
	out := Times{Title: "Over time"}
	lanes := []Lane{{Label: "Goodput", Unit: unit.BPS}, {Label: "Sent bits", Unit: unit.BPS},
		{Label: "Lost per second", Unit: unit.PPS}, {Label: "Round trip", Unit: unit.Nanos}}
	metrics := [][]string{{"goodput_bps"}, {"send_bps"}, {"lost_pps"}, {"round_trip_ns", "tcp_rtt_ns"}}
	for _, r := range rows {
		if r.TrialNumber() != rows[0].TrialNumber() {
			continue
		}
		for i, names := range metrics {
			for _, name := range names {
				lanes[i].add(l.Say(r.Flow.Name), Plain, table.FlowSeries(r, name))
			}
		}
	}
	out.show(l, lanes...)
	return out
}
