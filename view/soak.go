package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

func soakPage(rows []table.Row, found []finding.Finding) []Section {
	rows = finding.SoakTrial(rows)
	times := timesOf(rows, found)
	out := []Section{soakTiles(rows, found, times.Changes), times}
	parts := partsOf("Over time", rows, table.Parts(rows[0], mostParts/len(rows)))
	if cuts := table.ChangeCuts(rows[0].Trial); len(cuts) > 0 {
		parts = partsOf("Between the changes", rows, cuts)
	}
	out = append(append(out, parts), paths(rows)...)
	return append(out, ledgers(rows)...)
}

// mostParts is into how many parts a soak's time is cut: they fit on a screen.
const mostParts = 6

func soakTiles(rows []table.Row, found []finding.Finding, marks []Change) Tiles {
	g, l := table.Group{Rows: rows}, table.Language(rows)
	unplanned := 0
	for _, m := range marks {
		if m.Tone == Bad {
			unplanned++
		}
	}
	changes := Tile{Label: "Changes", Value: fmt.Sprint(len(marks)),
		Note: l.Sayf("%d planned, %d not", len(marks)-unplanned, unplanned)}
	if len(marks) == 0 {
		changes.Note = ""
	}
	if more := first(found, "soak.more"); more.Code != "" {
		changes.Note = l.Sayf("and %s more", more.N("changes_count", ""))
	}
	if rows[0].Flow.Protocol == model.TCP {
		return Tiles{{Label: "Goodput", Value: figure(g, "total_goodput_bps"), Note: "mean of the whole time"},
			{Label: "Sent again", Value: figure(g, "retransmit_ratio")}, changes}
	}
	lost := g.Sum("lost_packets")
	worst := Tile{Label: "Worst second", Note: "losses are not known by the second"}
	if f := greatest(found, "soak.second", "lost_packets", "worst"); f.Code != "" {
		worst = tile(worst.Label, f, "{lost_packets:worst}", "packets lost at {at_s:worst moment}")
		worst.Tone = Bad
	}
	if lost == 0 {
		worst.Value, worst.Note = "0", "packets lost"
	}
	share := Tile{Label: "Lost", Value: unit.Ratio.Format(lost / g.Sum("attempted_packets")),
		Note: l.Sayf("%s packets", unit.Count.Format(lost))}
	return Tiles{{Label: "Received", Value: figure(g, "total_receive_pps"), Note: "mean of the whole time"},
		share, worst, changes}
}

func partsOf(title string, rows []table.Row, cuts []float64) Table {
	var windows []table.Row
	causes := map[string][]finding.LossCause{}
	for _, r := range rows {
		windows = append(windows, table.Windows(r, cuts)...)
		causes[r.Flow.Name] = finding.LossCauses(r)
	}
	keys := []table.Key{table.KeyOf("window_s")}
	if len(rows) > 1 {
		keys = append(keys, table.KeyOf("flow"))
	}
	parts := append(table.By(windows, keys...), table.By(rows, keys...)...)
	mostly := cells("mostly", "Mostly lost at", func(g table.Group, _ int) Cell {
		r := g.Rows[0]
		if r.Window == nil {
			r.Window = &table.Window{EndS: math.Inf(1)}
		}
		return mostlyOf(*r.Window, causes[r.Flow.Name])
	})
	columns := [][]column{keyColumns(keys...), metricColumns("receive_pps", "loss_ratio"), mostly,
		details(metricColumns("send_pps"))}
	if rows[0].Flow.Protocol == model.TCP {
		columns = [][]column{keyColumns(keys...), metricColumns("goodput_bps")}
	}
	out := rowsOf(title, parts, columns...)
	for i, g := range parts {
		if g.Rows[0].Window == nil {
			out.Rows[i][0].Text = "whole time"
			if g.Rows[0].Flow.Unheard != nil {
				out.Rows[i][0].Text = "while heard"
			}
		}
	}
	return out
}

// mostOfAll is the share of losses from which on one cause stands for all.
const mostOfAll = 0.95

func mostlyOf(w table.Window, causes []finding.LossCause) Cell {
	name, most, all := "", 0.0, 0.0
	for _, c := range causes {
		lost := 0.0
		for i, v := range c.Values {
			if at := c.StartSeconds + c.StepSeconds*float64(i); at >= w.StartS-1e-6 && at < w.EndS-1e-6 && v > 0 {
				lost += v
			}
		}
		if all += lost; lost > most {
			name, most = c.Name, lost
		}
	}
	cell := Cell{Text: name}
	if most < mostOfAll*all {
		cell.Note = unit.Ratio.Format(most / all)
	}
	return cell
}

func timesOf(rows []table.Row, found []finding.Finding) Times {
	l, out := table.Language(rows), Times{Title: "Second by second", Changes: changesOf(found)}
	rate, lost := Lane{Label: "Packets per second", Unit: unit.PPS}, Lane{Label: "Lost per second", Unit: unit.PPS}
	delay := Lane{Label: "Delay", Unit: unit.Nanos}
	for _, r := range rows {
		name := ""
		if len(rows) > 1 {
			name = l.Sayf("%s: ", l.Say(r.Flow.Name))
		}
		if r.Flow.Protocol == model.TCP {
			rate.Label, rate.Unit = "Goodput", unit.BPS
			rate.add(name+l.Say("Goodput"), Plain, table.FlowSeries(r, "goodput_bps"))
		} else {
			rate.add(name+l.Say("Received"), Plain, table.FlowSeries(r, "receive_pps"))
			rate.add(name+l.Say("Sent"), Muted, table.FlowSeries(r, "send_pps"))
		}
		for i, c := range finding.LossCauses(r) {
			lost.add(name+c.Name, map[bool]Tone{true: Bad}[i == 0], c.Series)
		}
		delay.add(name+l.Say("Median delay"), Plain, table.FlowSeries(r, "delay_p50_ns"))
		delay.add(name+l.Say("Round trip"), Plain, table.FlowSeries(r, "round_trip_ns"))
	}
	out.show(l, rate, lost, delay, processors(rows[0]))
	for _, o := range rows[0].Trial.Outages {
		out.Gaps = append(out.Gaps, Gap{o.StartS, o.StartS + o.DurationS, "no path"})
		out.Note = "Grey: there was no path."
	}
	for _, g := range rows[0].Trial.Gaps {
		if g.DurationS > 0 && g.StartS > -g.DurationS && !math.IsInf(g.StartS+g.DurationS, 0) {
			out.Gaps = append(out.Gaps, Gap{max(0, g.StartS), g.StartS + g.DurationS,
				l.Sayf("no control connection to %s", l.Join(g.Nodes))})
			if len(rows[0].Trial.Outages) == 0 {
				out.Note = "Grey: a control connection was lost. The test went on."
			}
		}
	}
	return out
}

// changesOf are the moments at which something changed, or was changed.
func changesOf(found []finding.Finding) []Change {
	var out []Change
	for _, f := range found {
		at, ok := f.Number("at_s", "")
		c := Change{At: at, Text: f.Words["what"]}
		if strings.HasPrefix(f.Code, "change.") {
			metric := f.W("metric")
			change := fmt.Sprintf(" %s → %s", f.N(metric, "before"), f.N(metric, "after"))
			c.Text, c.Tone = f.Language.Append(c.Text, change), Bad
		} else {
			ok = f.Code == "soak.made"
		}
		if ok && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	return out
}

// show adds the lanes that have something to show. One trace has no legend.
func (t *Times) show(in words.Language, lanes ...Lane) {
	for _, l := range lanes {
		l.Label = in.Say(l.Label)
		if len(l.Traces) == 1 && l.Label != l.Traces[0].Name {
			l.Label = in.Sayf("%s: %s", l.Label, l.Traces[0].Name)
		}
		if len(l.Traces) > 0 {
			t.Lanes = append(t.Lanes, l)
		}
	}
}

func (l *Lane) add(name string, tone Tone, s model.Series) {
	if len(s.Values) > 0 && s.StepSeconds > 0 {
		l.Traces = append(l.Traces, Trace{Name: name, Start: s.StartSeconds, Step: s.StepSeconds, Values: s.Values,
			Tone: tone})
	}
}

// processors shows each node that was watched, and the busiest core of each.
func processors(r table.Row) Lane {
	t, in, l := r.Trial, r.Language(), Lane{Label: "Processors", Unit: unit.Ratio}
	busiest, most := map[string]model.Series{}, map[string]float64{}
	for _, s := range t.Series {
		part, cpu := strings.CutPrefix(s.Metric, "cpu_")
		switch {
		case cpu && s.Core == nil:
			l.add(in.Names(in.Say(s.At), in.Say(strings.TrimSuffix(part, "_ratio"))), Plain, s)
		case cpu && part == "idle_ratio":
			busy, all := make([]float64, len(s.Values)), 0.0
			for i, v := range s.Values {
				if busy[i] = 1 - v; busy[i] > 0 {
					all += busy[i]
				}
			}
			if s.Values = busy; busiest[s.At].Core == nil || all > most[s.At] {
				busiest[s.At], most[s.At] = s, all
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(busiest)) {
		l.add(in.Sayf("%s, core %d", in.Say(node), *busiest[node].Core), Plain, busiest[node])
	}
	return l
}
