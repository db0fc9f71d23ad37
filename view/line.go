package view

import (
	"strings"

	"pelt/model"
	"pelt/table"
)

var lineMetrics = []string{"send_pps", "receive_pps", "connections_per_s", "completion_s", "goodput_bps",
	"loss_ratio", "retransmit_ratio", "router_busy_ratio"}

// mostWhy is how much of a reason fits into a line; the whole stands in the report.
const mostWhy = 90

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
		}
		text := strings.Join(figures, ", ")
		if len(rows) > 1 {
			text = partOf(g) + " " + text
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "; ")
	if name := trialName(rows); name != "" {
		text = name + ": " + text
	}
	if trial.State == model.Valid {
		return text
	}
	text += " (" + string(trial.State)
	if why := []rune(trial.Why.String()); len(why) > mostWhy {
		text += ": " + string(why[:mostWhy]) + "…"
	} else if len(why) > 0 {
		text += ": " + string(why)
	}
	return text + ")"
}

// trialName is the setting of a trial, with its repeat from the second on.
func trialName(rows []table.Row) string {
	if len(rows) == 0 {
		return ""
	}
	keys := table.Settings(rows)
	if rows[0].Trial.Repeat > 0 {
		keys = append(keys, table.KeyOf("repeat"))
	}
	return table.By(rows[:1], keys...)[0].Name()
}

// Setting names the settings of a trial: "64 B, every 1 ms".
func Setting(t model.Trial) string {
	var flows []model.FlowResult
	for _, f := range t.Flows {
		flows = append(flows, model.FlowResult{Name: f.Name, Protocol: f.Protocol, PayloadBytes: f.PayloadBytes, Streams: f.Streams,
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
