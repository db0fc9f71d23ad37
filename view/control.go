package view

import (
	"math"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

func controlPage(rows []table.Row, found []finding.Finding) []Section {
	c := finding.CompareControls(rows)
	if len(c.Groups) == 0 {
		trial := table.KeyOf("trial")
		return []Section{rowsOf("Trials", table.By(rows, trial), keyColumns(trial), metricColumns("goodput_bps"))}
	}
	keys := c.Groups[0].Keys
	first, second := timeColumn(), metricColumns("goodput_bps")
	if c.Metric.Name == "goodput_bps" {
		first, second = second, first
	}
	out := []Section{controlTiles(c, found), hero(intervals(c.Metric.Label, c.Groups, c.Metric.Name, c.Speeds))}
	if len(c.Under) > 0 {
		out = append(out, matrix(c, first[0]))
	}
	out = append(out, rowsOf("By setting", c.Groups, nameColumn(keys), first,
		effectColumn(table.Language(rows).Sayf("Speed against %s", c.Baseline), c.Speeds),
		metricColumns("retransmit_ratio", "queueing_p95_ns"), second, cutColumn(),
		details(metricColumns("round_trip_p50_ns", "round_trip_p95_ns", "tcp_held_back_ratio",
			"stream_fairness_index", "sender_cpu_thread_ratio", "receiver_cpu_thread_ratio"))))
	keys = append(slices.Clone(keys), table.KeyOf("control_part"))
	parts := table.By(table.Mixes(rows), keys...)
	out = append(out, intervals("Shares side by side", parts, "control_share_ratio", nil),
		rowsOf("Streams side by side", parts, keyColumns(keys...),
			metricColumns("control_share_ratio", "goodput_bps")))
	return append(out, overTime(c)...)
}

func controlTiles(c finding.Controls, found []finding.Finding) Tiles {
	limit, queue := first(found, "limit."), first(found, "cc.queue")
	fastest := *limit.Places["limited"]
	speed := Tile{Label: fastest.Sayf("Against %s", c.Baseline)}
	if answer := finding.Of(found, finding.Answer)[0]; answer.Places[""] != nil {
		name := answer.Places[""].Name()
		i := slices.IndexFunc(c.Groups, func(g table.Group) bool { return g.Name() == name })
		if cell := effectCell(limit.Language, c.Speeds[i]); cell.Note != "" {
			speed.Value, speed.Tone, speed.Note = changeOf(c.Speeds[i]), cell.Tone, name
			if cell.Tone == Plain || cell.Tone == Muted {
				speed.Note = limit.Language.Names(name, limit.Language.Say(cell.Text))
			}
		}
	}
	wait := tile("Queueing", queue, "{queueing_p95_ns:most}", "{most}[; {queueing_p95_ns:least} with {base}]")
	best := Tile{Label: "Fastest", Value: figure(fastest, c.Metric.Name), Note: finding.ControlOf(fastest)}
	if len(c.Under) > 0 {
		best.Label = limit.Language.Names(limit.Language.Say(best.Label), c.Where(fastest))
	}
	return Tiles{best, speed, wait, limitTile(limit)}
}

// matrix has a row for each condition and a column for each control, with its speed against the baseline.
func matrix(c finding.Controls, figure column) Table {
	var columns []column
	for i, p := range c.Conditions[0].Places {
		control, label := p.Choice, p.Choice.Name()
		if i > 0 {
			label = p.Sayf("%s (against %s)", label, c.Baseline)
		}
		of := func(_ table.Group, row int) Cell {
			p := c.Conditions[row].Places[i]
			if len(p.Rows) == 0 {
				return Cell{Value: math.NaN()}
			}
			return compared(figure.cell(p.Group, row), p.Effects[c.Metric])
		}
		columns = append(columns, cells(control.Level("control").Text+"_"+c.Metric.Name, label, of)...)
	}
	t := rowsOf(c.Metric.Label, table.By(table.RowsOf(c.Groups), c.Under...), keyColumns(c.Under...), columns)
	l := table.Language(table.RowsOf(c.Groups))
	t.Note = l.Sayf("In brackets: speed against %s. What has a ? is not proven.", c.Baseline)
	return t
}

// cutColumn counts the transfers that were cut before their end, if any were.
func cutColumn() []column {
	out := cells("cut", "Cut", func(g table.Group, _ int) Cell {
		all := g.Sample(table.MetricOf("unfinished_ratio")).Values
		cut := 0.0
		for _, v := range all {
			cut += v
		}
		if cut == 0 {
			return Cell{}
		}
		return Cell{Text: g.Sayf("%.0f of %d", cut, len(all)), Tone: Bad}
	})
	out[0].Right = true
	return out
}

// timeColumn shows how long transfers took: more than the time shown where half of them
// or more were cut before their end.
func timeColumn() []column {
	whole := metricColumns("completion_s")[0]
	return cells(whole.Name, whole.Label, func(g table.Group, row int) Cell {
		c := whole.cell(g, row)
		if s := g.Stat(table.MetricOf("unfinished_ratio")); s.N > 0 && s.Median > 0 {
			c.Text, c.Low, c.High = "> "+unit.Seconds.Format(c.Value), 0, 0
		}
		return c
	})
}

// Bounds of the charts over time: conditions, and streams of a trial.
const (
	mostOverTime = 6
	mostStreams  = 8
)

func overTime(c finding.Controls) []Section {
	var out []Section
	in := c.Groups[0].Language()
	for _, under := range c.Conditions {
		rate, trip := Lane{Label: "Acknowledged", Unit: unit.BPS}, Lane{Label: "Round trip", Unit: unit.Nanos}
		for _, g := range under.Choices() {
			r := g.Rows[0]
			for _, s := range r.Trial.Series {
				switch {
				case s.Flow != r.Flow.Name || s.Stream != nil && *s.Stream >= mostStreams:
				case s.Metric == "tcp_acked_bytes":
					rate.add(streamName(g, s.Stream), Plain, growth(s))
				case s.Metric == "tcp_rtt_ns":
					trip.add(streamName(g, s.Stream), Plain, s)
				}
			}
		}
		t := Times{Title: "Rate and round trip over time", Note: "The first trial of each control."}
		if name := under.Name(); name != "" {
			t.Title = in.Names(in.Say(t.Title), name)
		}
		t.show(in, rate, trip)
		out = append(out, t)
	}
	out = shown(out...)
	return out[:min(len(out), mostOverTime)]
}

// streamName names a stream of a group's first trial, with its control where they differ.
func streamName(g table.Group, stream *int) string {
	f := g.Rows[0].Flow
	if stream == nil || f.Streams < 2 {
		return g.Name()
	}
	name := g.Sayf("%s, stream %d", g.Name(), *stream+1)
	if i := *stream; strings.Contains(g.Name(), model.MixSeparator) && i >= 0 && i < len(f.TCP.PerStream) {
		own := table.Level{Value: model.Word(f.TCP.PerStream[i].Control), Known: true}
		name += " " + table.KeyOf("control").Format(own)
	}
	return name
}

func growth(s model.Series) model.Series {
	values := make([]float64, max(len(s.Values)-1, 0))
	for i := range values {
		if values[i] = 8 * (s.Values[i+1] - s.Values[i]) / s.StepSeconds; values[i] < 0 {
			values[i] = math.NaN()
		}
	}
	s.Values = values
	return s
}
