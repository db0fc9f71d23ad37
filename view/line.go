package view

import (
	"fmt"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

var lineMetrics = []string{"send_pps", "receive_pps", "connections_per_s", "completion_s", "loss_ratio",
	"goodput_bps", "retransmit_ratio", "router_busy_ratio"}

// mostWhy is how much of a reason fits into a line; the whole stands in the report.
const mostWhy = 90

// TrialLine tells what a trial showed: its figures, or what it taught a search.
func TrialLine(d *model.Document, trial *model.Result) string {
	metrics, partOf := lineMetrics, table.Group.Name
	if k := kindOf(d); k.Line != nil {
		metrics, partOf = k.Line, k.LinePart
	}
	one := *d
	one.Results = []model.Result{*trial}
	rows := table.Rows(&one)
	var parts []string
	for _, g := range table.By(rows, table.KeyOf("flow")) {
		var figures []string
		for _, name := range metrics {
			m := table.MetricOf(name)
			if v, ok := m.Value(g.Rows[0]); ok {
				figures = append(figures, strings.ToLower(m.Label[:1])+m.Label[1:]+" "+m.Format(v))
			}
		}
		if len(figures) == 0 {
			figures = []string{"nothing measured"}
			if len(g.Rows[0].Flow.DeadStreams) > 0 {
				figures = []string{"nothing came through"}
			}
			if u := g.Rows[0].Flow.Unheard; u != nil {
				figures = []string{unit.FormatCount(u.Packets) + " packets sent, receiver not heard"}
			}
		}
		text := strings.Join(figures, ", ")
		if len(rows) > 1 {
			text = partOf(g) + " " + text
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "; ")
	if trial.Cell.Searching() && len(rows) > 0 {
		text = learnt(rows, table.Searches([]table.Row{{Doc: d}}))
	}
	if name := trialName(rows); name != "" {
		text = name + ": " + text
	}
	if trial.State == model.Valid || trial.Why.Has(model.NothingThrough) {
		return text
	}
	text += " (" + string(trial.State)
	if why := []rune(finding.Why(trial.Why)); len(why) > mostWhy {
		text += ": " + string(why[:mostWhy]) + "…"
	} else if len(why) > 0 {
		text += ": " + string(why)
	}
	return text + ")"
}

// learnt is what searches know of the rate of a trial by now, and what the trial lost: "fails, lost 0.2 % in 1 s". So
// far is what this trial says, and more are needed.
func learnt(rows, searches []table.Row) string {
	trial := rows[0].Trial
	var words, verdicts []string // what is known, and of which goal
	var last *table.Search
	lost := table.Group{Rows: rows}.Sum("lost_packets") / max(table.Group{Rows: rows}.Sum("attempted_packets"), 1)
	text := fmt.Sprintf("lost %s in %s", unit.Ratio.Format(lost), unit.Seconds.Format(trial.Cell["measure_s"].Number))
	for _, r := range searches {
		seen, holds, fails, ok := r.Search.OfTrial(trial)
		if !ok || r.Search == last {
			continue
		}
		last = r.Search
		if seen.Unsent && trial.State == model.Valid {
			return "nothing learnt: the sender did not keep this rate"
		} else if seen.Unsent {
			return "nothing learnt"
		}
		if held := seen.Loss - lost; len(verdicts) == 0 && held > leastHeld {
			text += ", " + unit.Ratio.Format(held) + " stayed in queues"
		}
		verdict := "holds"
		if !holds && (fails || seen.Loss > r.Search.Goal.LossRatio) {
			verdict = "fails"
		}
		if !holds && !fails {
			verdict += " so far"
		}
		with := " without loss"
		if r.Search.Goal.LossRatio > 0 {
			with = " with " + unit.Ratio.Format(r.Search.Goal.LossRatio) + " loss"
		}
		words, verdicts = append(words, verdict), append(verdicts, verdict+with)
	}
	if words = slices.Compact(words); len(words) == 1 {
		verdicts = words
	}
	return strings.Join(append(verdicts, text), ", ")
}

// leastHeld is the least share of the packets that a line tells of as staying in queues: less is rounding.
const leastHeld = 1e-5

// trialName is the setting of a trial, with its repeat from the second on; of a search, its rate.
func trialName(rows []table.Row) string {
	if len(rows) == 0 {
		return ""
	}
	keys := table.Settings(rows)
	if rows[0].Trial.Cell.Searching() {
		keys = slices.DeleteFunc(keys, func(k table.Key) bool { return k.Name == "measure_s" })
	} else if rows[0].Trial.Repeat > 0 {
		keys = append(keys, table.KeyOf("repeat"))
	}
	return table.By(rows[:1], keys...)[0].Name()
}

// Setting names the settings of a trial: "64 B, every 1 ms".
func Setting(t model.Trial) string {
	var flows []model.FlowResult
	for _, f := range t.Flows {
		flows = append(flows, model.FlowResult{Name: f.Name, Protocol: f.Protocol, PayloadBytes: f.PayloadBytes,
			Streams:    f.Streams,
			FrameBytes: model.FrameBytes(f.Protocol, f.Family, f.PayloadBytes)})
	}
	return trialName(table.Rows(&model.Document{Results: []model.Result{{Cell: t.Cell, Flows: flows}}}))
}

// Way is the nodes of a path in travel order; of very many, the first and the last.
func Way(nodes []string) string {
	if n := len(nodes); n > mostNodes {
		nodes = []string{nodes[0], "…", nodes[n-1]}
	}
	return strings.Join(nodes, " – ")
}
