package finding

import (
	"cmp"
	"slices"

	"pelt/table"
)

// toolTitles are the titles of tests that other tools measured.
var toolTitles = map[string]string{"iperf3": "Test of iperf3", "flent": "Test of flent"}

// toolKind is a test that another tool measured: what its file holds.
func toolKind(name string) Kind {
	return Kind{Title: cmp.Or(toolTitles[name], "Test of another tool"), Rules: []Rule{toolRule, leftOutRule},
		Figures: []string{"goodput_bps", "receive_pps", "loss_ratio", "tcp_retransmits", "round_trip_p50_ns",
			"round_trip_p99_ns", "jitter_ns", "tcp_rtt_ns", "round_trip_max_ns", "send_bps", "attempted_packets",
			"lost_packets", "reordered_packets"}}
}

var toolSentences = map[string]string{
	"foreign.rate": `{tool} received [{where ?}at most ]{goodput_bps:best}[ ({receive_pps:best})][, {where}]` +
		`[{whole ?}; none of these packets was lost|; {trials_count:lossy} of {trials_count} tests lost packets` +
		`|; {loss_ratio:best} of these packets were lost].`,
	"foreign.sent": `{tool} sent [{where ?}at most ]{send_bps:best}[, {where}]; [{receive_pps:best} arrived|the file ` +
		`does not say what arrived].`,
	"foreign.trip": `{tool}: [{where ?}longest ]median round trip {round_trip_p50_ns:best}[, 99 % within ` +
		`{round_trip_p99_ns:best}][, {where}].`,
	"foreign.cut": `{tool} did not finish this test.[¶Until then it received {goodput_bps:best}[, {where}].|` +
		`¶Until then it sent {send_bps:best}[, {where}].]`,
	"foreign.silent": `{tool} does not say where packets were lost.`,
	"foreign.next":   `Find where packets are lost on this path:¶$ pelt curve iperf3://{target argument}`,
	"foreign.made":   `Read from a file of {tool}[ {version}][, test {test}]; a figure that it lacks is absent here.`,
}

// toolRule says what a file of another tool holds: the highest rate that it measured, and the longest round trip.
func toolRule(rows []table.Row) []Finding {
	if len(rows) == 0 {
		return nil
	}
	d := rows[0].Doc
	all, usable := table.Settled(rows), table.Settled(table.Usable(rows))
	var out []Finding
	tell := func(code string, groups []table.Group, metric string) bool {
		groups = only(groups, func(g table.Group) bool { return g.Middle(metric) >= 0 })
		if len(groups) == 0 {
			return false
		}
		best := largest(groups, metric)
		f := say(code, Answer, "tool", d.Tool.Name, "best", best)
		switch lossy := len(only(best.Rows, anyLost)); {
		case best.Middle("loss_ratio") != 0:
		case lossy == 0:
			f = f.with("whole", "yes")
		default: // less than half of the tests: their middle does not show it
			f = f.with("trials_count:lossy", lossy, "trials_count", len(best.Rows))
		}
		if len(all) > 1 {
			f = f.with("where", best.Name())
		}
		out = append(out, f)
		return true
	}
	if !tell("foreign.rate", usable, "goodput_bps") {
		tell("foreign.sent", usable, "send_bps")
	}
	tell("foreign.trip", usable, "round_trip_p50_ns")
	if len(usable) == 0 {
		usable = table.Settled(AsValid(rows))
		if !tell("foreign.cut", usable, "goodput_bps") && !tell("foreign.cut", usable, "send_bps") {
			out = append(out, say("foreign.cut", Answer, "tool", d.Tool.Name))
		}
	}
	if slices.ContainsFunc(rows, anyLost) {
		out = append(out, say("foreign.silent", Fact, "tool", d.Tool.Name))
		if d.Tool.Name == "iperf3" && d.Plan.Target != "" {
			out = append(out, say("foreign.next", Next, "target", d.Plan.Target))
		}
	}
	return append(out, say("foreign.made", SetUp, "tool", d.Tool.Name, "version", d.Tool.Version,
		"test", d.Plan.Command))
}

// anyLost reports whether a flow lost something, by what the file tells.
func anyLost(r table.Row) bool {
	return r.Flow.Lost > 0 || r.Flow.LossRatio > 0 || r.Flow.TCP != nil && r.Flow.TCP.Retransmits > 0
}
