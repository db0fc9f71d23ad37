package view

import (
	"pelt/finding"
	"pelt/table"
	"pelt/unit"
)

// toolPage is a test that another tool measured: what its file holds.
func toolPage(rows []table.Row, _ []finding.Finding) []Section {
	keys := table.Vary(rows)
	if len(keys) == 0 {
		keys = []table.Key{table.KeyOf("flow")}
	}
	figures := rowsOf("Figures", table.By(rows, keys...), keyColumns(keys...),
		metricColumns("goodput_bps", "receive_pps", "loss_ratio", "tcp_retransmits", "round_trip_p50_ns",
			"round_trip_p99_ns", "jitter_ns", "tcp_rtt_ns"),
		details(metricColumns("round_trip_max_ns", "send_bps", "attempted_packets", "lost_packets", "reordered_packets")))
	return []Section{figures, toolTimes(rows)}
}

// toolTimes is the first trial over its time.
func toolTimes(rows []table.Row) Times {
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
