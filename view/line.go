package view

import (
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

// lineMetrics are the metrics of the line that tells of a trial.
func lineMetrics(k finding.Kind) []string {
	if k.Figures != nil {
		return k.Figures
	}
	return []string{"send_pps", "receive_pps", "connections_per_s", "completion_s", "loss_ratio", "goodput_bps",
		"retransmit_ratio", "router_busy_ratio"}
}

// mostWhy is how much of a reason fits into a line; the whole stands in the report.
const mostWhy = 90

// TrialLine tells what a trial showed: its figures, or what it taught a search.
func TrialLine(d *model.Document, trial *model.Result) string {
	in, metrics := d.Language, lineMetrics(finding.KindOf(d))
	one := *d
	one.Results = []model.Result{*trial}
	rows := table.Rows(&one)
	var parts []string
	for _, g := range table.By(rows, table.KeyOf("pair"), table.KeyOf("flow")) {
		var figures []string
		for _, name := range metrics {
			m := table.MetricOf(name)
			if v, ok := m.Value(g.Rows[0]); ok {
				figures = append(figures, lowered(in, m.Label)+" "+m.Format(v))
			}
		}
		if len(figures) == 0 {
			figures = []string{in.Say("nothing measured")}
			if len(g.Rows[0].Flow.DeadStreams) > 0 {
				figures = []string{in.Say("nothing came through")}
			}
			if u := g.Rows[0].Flow.Unheard; u != nil {
				figures = []string{in.Sayf("%s packets sent, receiver not heard", unit.FormatCount(u.Packets))}
			}
		}
		text := in.Join(figures)
		if len(rows) > 1 {
			text = finding.PlaceName(g) + " " + text
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, in.Say("; "))
	if trial.Cell.Searching() && len(rows) > 0 {
		text = learnt(rows, table.Searches([]table.Row{{Doc: d}}))
	}
	if name := trialName(rows); name != "" {
		text = in.Sayf("%s: %s", name, text)
	}
	if trial.State == model.Valid || trial.Why.Has(model.NothingThrough) {
		return text
	}
	state := in.Say(string(trial.State))
	if why := []rune(finding.WhyIn(in, trial.Why)); len(why) > mostWhy {
		state = in.Sayf("%s: %s", state, string(why[:mostWhy])+"…")
	} else if len(why) > 0 {
		state = in.Sayf("%s: %s", state, string(why))
	}
	return in.Sayf("%s (%s)", text, state)
}

// learnt is what searches know of the rate of a trial by now, and what the trial lost: "fails, lost 0.2 % in 1 s". So
// far is what this trial says, and more are needed.
func learnt(rows, searches []table.Row) string {
	trial := rows[0].Trial
	var known, verdicts []string // what is known, and of which goal
	var last *table.Search
	lost := table.Group{Rows: rows}.Sum("lost_packets") / max(table.Group{Rows: rows}.Sum("attempted_packets"), 1)
	in := table.Language(rows)
	text := in.Sayf("lost %s in %s", unit.Ratio.Format(lost), unit.Seconds.Format(trial.Cell["measure_s"].Number))
	for _, r := range searches {
		seen, holds, fails, ok := r.Search.OfTrial(trial)
		if !ok || r.Search == last {
			continue
		}
		last = r.Search
		if seen.Unsent && trial.State == model.Valid {
			return in.Say("nothing learnt: the sender did not keep this rate")
		} else if seen.Unsent {
			return in.Say("nothing learnt")
		}
		if held := seen.Loss - lost; len(verdicts) == 0 && held > leastHeld {
			text = in.Sayf("%s, %s stayed in queues", text, unit.Ratio.Format(held))
		}
		verdict := "holds"
		if !holds && (fails || seen.Loss > r.Search.Goal.LossRatio) {
			verdict = "fails"
		}
		verdict = in.Say(verdict)
		if !holds && !fails {
			verdict = in.Sayf("%s so far", verdict)
		}
		with := in.Sayf("%s (goal: no loss)", verdict)
		if r.Search.Goal.LossRatio > 0 {
			with = in.Sayf("%s (goal: %s loss)", verdict, unit.Ratio.Format(r.Search.Goal.LossRatio))
		}
		known, verdicts = append(known, verdict), append(verdicts, with)
	}
	if known = slices.Compact(known); len(known) == 1 {
		verdicts = known
	}
	return in.Join(append(verdicts, text))
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

// TrialTitle names a trial of a run, which is counted from 0, by its settings.
func TrialTitle(d *model.Document, n int) string {
	one := *d
	one.Results = []model.Result{d.Results[n]}
	return trialName(table.Rows(&one))
}

// Setting names the settings of a trial: "64 B, every 1 ms".
func Setting(in words.Language, t model.Trial) string {
	var flows []model.FlowResult
	for _, f := range t.Flows {
		flows = append(flows, f.Result(f.Family))
	}
	return trialName(table.Rows(&model.Document{Language: in, Results: []model.Result{{Cell: t.Cell, Flows: flows}}}))
}

// Way is the nodes of a path in travel order; of very many, the first and the last.
func Way(in words.Language, nodes []string) string {
	if n := len(nodes); n > mostNodes {
		nodes = []string{nodes[0], "…", nodes[n-1]}
	}
	return strings.Join(in.SayAll(nodes), " – ")
}
