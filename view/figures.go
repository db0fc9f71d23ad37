package view

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

// Figures are all metrics of each flow of each trial: the table that --csv writes. A
// column stands for each setting of the cells and for each metric that any trial has.
func Figures(d *model.Document) Table {
	rows := table.Rows(d)
	keys := append(table.Settings(rows), table.KeyOf("repeat"), table.KeyOf("state"), table.KeyOf("engine"))
	for _, name := range []string{"flow", "protocol", "payload_bytes", "frame_bytes", "streams", "receivers", "from",
		"to"} {
		if name == "from" && !slices.ContainsFunc(keys, func(k table.Key) bool { return k.Name == "pair" }) {
			break
		}
		if !slices.ContainsFunc(keys, func(k table.Key) bool { return k.Name == name }) {
			keys = append(keys, table.KeyOf(name))
		}
	}
	metrics := slices.DeleteFunc(table.Metrics(), func(m *table.Metric) bool {
		return !slices.ContainsFunc(rows, func(r table.Row) bool { _, ok := m.Value(r); return ok })
	})
	columns := settingColumns(keys)
	for _, m := range metrics {
		columns = append(columns, column{Column{Name: m.Name, Label: m.Label, Unit: m.Unit},
			func(g table.Group, _ int) Cell {
				if v, ok := m.Value(g.Rows[0]); ok {
					return Cell{Value: v}
				}
				return Cell{Value: math.NaN()}
			}})
	}
	why := cells("why", "Why", func(g table.Group, _ int) Cell {
		return Cell{Text: finding.WhyIn(g.Language(), g.Rows[0].Trial.Why)}
	})
	var each []table.Group
	for _, g := range table.By(rows, keys...) {
		for _, r := range g.Rows {
			each = append(each, table.Group{Keys: g.Keys, Levels: g.Levels, Rows: []table.Row{r}})
		}
	}
	return rowsOf("Figures of each flow", each, columns, why)
}

// settingColumns shows the levels of keys as files have them.
func settingColumns(keys []table.Key) (out []column) {
	for _, k := range keys {
		out = append(out, column{Column{Name: k.Name, Label: k.Label, Unit: k.Unit}, func(g table.Group, _ int) Cell {
			l := g.Level(k.Name)
			switch {
			case !l.Known:
				return Cell{Value: math.NaN()}
			case l.Text == "" && k.Unit != unit.Word:
				return Cell{Value: l.Number}
			}
			return Cell{Text: l.String(), Value: math.NaN()}
		}})
	}
	return out
}

// SeriesLines yields what --series writes: a line of names, then a line for each second of each
// trial, or whatever the step of its series is. A line begins with the trial's number, from
// 1, and the seconds after the start of the measured part. A value that nobody heard is "".
func SeriesLines(d *model.Document) iter.Seq[[]string] {
	header, columns := []string{"trial", "start_s"}, map[string]int{}
	for _, ofFlow := range []bool{true, false} { // what became of the packets stands before what the hosts did
		for _, r := range d.Results {
			for _, s := range r.Series {
				name := seriesLabel(s)
				if _, known := columns[name]; (s.Flow != "") == ofFlow && !known && s.StepSeconds > 0 {
					columns[name] = len(header)
					header = append(header, name)
				}
			}
		}
	}
	return func(yield func([]string) bool) {
		if !yield(header) {
			return
		}
		for i := range d.Results {
			lines := map[float64][]string{}
			for _, s := range d.Results[i].Series {
				column := columns[seriesLabel(s)]
				for j, v := range s.Values {
					// Samples within a microsecond are one line.
					at := math.Round((s.StartSeconds+float64(j)*s.StepSeconds)*1e6) / 1e6
					if s.StepSeconds <= 0 || math.IsNaN(at-at) || math.IsNaN(v-v) { // not finite
						continue
					}
					if lines[at] == nil {
						lines[at] = make([]string, len(header))
						lines[at][0], lines[at][1] = strconv.Itoa(i+1), plainNumber(at)
					}
					lines[at][column] = plainNumber(v)
				}
			}
			for _, at := range slices.Sorted(maps.Keys(lines)) {
				if !yield(lines[at]) {
					return
				}
			}
		}
	}
}

func plainNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// seriesLabel tells a series from the others of its trial, as in
// up.lost_pps.router.network.QDISC_DROP or router.cpu_softirq_ratio.core0.
func seriesLabel(s model.Series) string {
	parts := []string{s.At, s.Metric}
	if s.Flow != "" {
		parts[0] = s.Flow
		if s.Layer != "" {
			parts = append(parts, s.At)
		}
	}
	parts = append(parts, s.Layer, s.Cause)
	if s.Core != nil {
		parts = append(parts, fmt.Sprintf("core%d", *s.Core))
	}
	if s.Stream != nil {
		parts = append(parts, fmt.Sprintf("stream%d", *s.Stream))
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ".")
}

// LedgerFigures is the ledger of each flow of each trial: a row for each place where packets ended.
func LedgerFigures(d *model.Document) Table {
	rows := table.Rows(d)
	keys := append(table.Settings(rows), table.KeyOf("trial"), table.KeyOf("state"), table.KeyOf("flow"),
		table.KeyOf("layer"), table.KeyOf("host"), table.KeyOf("cause"), table.KeyOf("confidence"))
	return rowsOf("Ledgers", table.By(table.Lines(rows), keys...), settingColumns(keys),
		metricColumns("ended_packets", "ended_ratio", "attempted_packets"))
}
