package analysis

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

// Table is what somebody else measured: of each setting how fast it was received.
type Table struct {
	Name  string
	knobs []string // columns that a sweep may vary, beside size and pace
	rows  []tableRow
}

type tableRow struct {
	payload  int
	interval float64 // s; below 0 where the table has none
	flow     string  // "" where the table has none
	speed    float64 // payload bit/s
	levels   string  // of the table's knobs, each behind a zero byte
}

// tableColumns are the names that a table's columns may have, and what one of
// their unit is.
var tableColumns = map[string]map[string]float64{
	"payload":  {"payload_bytes": 1, "size_bytes": 1, "payload": 1, "size": 1},
	"interval": {"interval_ns": 1e-9, "interval_us": 1e-6, "interval_ms": 1e-3, "interval_s": 1},
	"rate":     {"rate_pps": 1},
	"speed":    {"goodput_bps": 1, "recv_kib_s": 8192, "receive_kib_s": 8192, "recv_mbit_s": 1e6, "receive_mbit_s": 1e6},
}

// paceAndSize are the knobs that a table's columns tell in units of their own.
var paceAndSize = map[string]bool{"payload_bytes": true, "frame_bytes": true, "interval_ns": true, "rate_pps": true}

// mostRows bounds what is read of a table.
const mostRows = 100_000

// ReadTable reads comma-separated values with a line of names first: payload_bytes
// or size_bytes, goodput_bps or recv_kib_s, and interval_ns, _us, _ms or _s, or rate_pps (a
// number or max), if that differs. Columns named as knobs are what else differs. A column
// state says which lines are valid, a column flow (name, beside state) of several directions of which one a line is; others are passed over. pelt's own --csv of a
// sweep is one.
// The error names the line.
func ReadTable(name string, r io.Reader) (Table, error) {
	in := csv.NewReader(r)
	in.Comment = '#'
	in.TrimLeadingSpace = true
	names, err := in.Read()
	if err != nil {
		return Table{}, fmt.Errorf("%s: want a table of comma-separated values with a line of names first: %w", name, err)
	}
	type column struct {
		at   int
		unit float64
	}
	columns := map[string]column{}
	for i, n := range names {
		for what, known := range tableColumns {
			if unit, ok := known[strings.TrimSpace(strings.ToLower(n))]; ok {
				if _, twice := columns[what]; twice {
					return Table{}, fmt.Errorf("%s: column %q says the %s once more", name, n, what)
				}
				columns[what] = column{i, unit}
			}
		}
	}
	state, flow := slices.Index(names, "state"), slices.Index(names, "flow")
	if flow < 0 && state >= 0 {
		flow = slices.Index(names, "name") // as pelt's own tables call it
	}
	for _, what := range []string{"payload", "speed"} {
		if _, ok := columns[what]; !ok {
			return Table{}, fmt.Errorf("%s: no column of the %s; want %s", name, what, strings.Join(slices.Sorted(maps.Keys(tableColumns[what])), ", "))
		}
	}
	t := Table{Name: name}
	var knobs []int // their columns
	for i, n := range names {
		_, _, link := model.SplitLinkKnob(n)
		if !paceAndSize[n] && (link || slices.Contains(model.KnobNames(), n)) {
			t.knobs, knobs = append(t.knobs, n), append(knobs, i)
		}
	}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Table{}, fmt.Errorf("%s: %w", name, err)
		}
		if state >= 0 && fields[state] != string(model.Valid) {
			continue
		}
		number := func(what string) (float64, error) {
			c, ok := columns[what]
			if !ok {
				return -1, nil
			}
			x, err := strconv.ParseFloat(strings.TrimSpace(fields[c.at]), 64)
			if err != nil || !(x >= 0 && x < 1e15) {
				line, _ := in.FieldPos(c.at)
				return 0, fmt.Errorf("%s, line %d: %s %q is not a number of at least 0", name, line, names[c.at], fields[c.at])
			}
			return x * c.unit, nil
		}
		payload, err := number("payload")
		if err != nil {
			return Table{}, err
		}
		interval, err := number("interval")
		if err != nil {
			return Table{}, err
		}
		if c, ok := columns["rate"]; ok && interval < 0 {
			if interval = 0; strings.TrimSpace(fields[c.at]) != "max" {
				pps, err := number("rate")
				if err != nil {
					return Table{}, err
				}
				if pps > 0 {
					interval = 1 / pps
				}
			}
		}
		speed, err := number("speed")
		if err != nil {
			return Table{}, err
		}
		if len(t.rows) == mostRows {
			return Table{}, fmt.Errorf("%s: want at most %d lines", name, mostRows)
		}
		row := tableRow{payload: int(payload), interval: interval, speed: speed}
		if flow >= 0 {
			row.flow = fields[flow]
		}
		for _, i := range knobs {
			row.levels += "\x00" + fields[i]
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) == 0 {
		return Table{}, fmt.Errorf("%s: the table has no lines", name)
	}
	return t, nil
}

// Against compares the order that a sweep puts its settings in, by what was
// received, with a table's: of the sizes, each at its best, and of the settings
// that both have (Spearman's coefficient). ok is false for what is no sweep.
func Against(doc model.Document, t Table) (f model.Finding, ok bool) {
	if !isSweep(doc) {
		return f, false
	}
	var sizes, settings pairs
	theirs := t.settings()
	best := map[int]float64{}
	for _, r := range theirs {
		best[r.payload] = max(best[r.payload], r.speed)
	}
	mine := map[int]float64{}
	for _, s := range spots(doc) {
		mine[s.payload] = max(mine[s.payload], s.speed)
		own := intervalOf(doc.Plan, s)
		var same []float64
		for _, r := range theirs {
			if r.payload == s.payload && t.fits(r, s.cell) && (r.interval < 0 || math.Abs(r.interval-own) <= r.interval*1e-6+1e-12) {
				same = append(same, r.speed)
			}
		}
		if len(same) > 0 { // several where the table varies what the run does not
			settings.add(s.speed, stats.Mean(same))
		}
	}
	for _, payload := range slices.Sorted(maps.Keys(mine)) {
		if theirs, both := best[payload]; both {
			sizes.add(mine[payload], theirs)
		}
	}
	f = model.Finding{Kind: KindSweepAgainst, Values: map[string]float64{"sizes": float64(len(sizes.a)), "settings": float64(len(settings.a))}}
	var parts []string
	for _, x := range []struct {
		what  string
		pairs pairs
	}{{"size", sizes}, {"setting", settings}} {
		rho, known := stats.RankCorrelation(x.pairs.a, x.pairs.b)
		if !known {
			parts = append(parts, fmt.Sprintf("%s in both, too few to compare", counted(len(x.pairs.a), x.what)))
			continue
		}
		f.Values[x.what+"_rank_correlation"] = rho
		parts = append(parts, fmt.Sprintf("%s in both, rank correlation %.3f", counted(len(x.pairs.a), x.what), rho))
	}
	f.Text = fmt.Sprintf("Beside %s: %s (Spearman's, by what was received; each size at its best).", t.Name, strings.Join(parts, "; "))
	return f, true
}

// pairs are numbers of the same things in two measurements.
type pairs struct{ a, b []float64 }

func (p *pairs) add(a, b float64) { p.a, p.b = append(p.a, a), append(p.b, b) }

// settings are the table's, each once: of every flow the mean of its lines, and the
// sum of its flows.
func (t Table) settings() []tableRow {
	type sum struct {
		speed float64
		lines int
	}
	var list []tableRow
	var of []map[string]sum
	type setting struct {
		payload  int
		interval float64
		levels   string
	}
	at := map[setting]int{}
	for _, r := range t.rows {
		key := setting{r.payload, r.interval, r.levels}
		i, known := at[key]
		if !known {
			i = len(list)
			at[key], list, of = i, append(list, tableRow{payload: r.payload, interval: r.interval, levels: r.levels}), append(of, map[string]sum{})
		}
		s := of[i][r.flow]
		of[i][r.flow] = sum{s.speed + r.speed, s.lines + 1}
	}
	for i := range list {
		for _, s := range of[i] {
			list[i].speed += s.speed / float64(s.lines)
		}
	}
	return list
}

// fits reports whether a setting has no knob at another level than a row says.
func (t Table) fits(r tableRow, c model.Cell) bool {
	for i, level := range strings.Split(r.levels, "\x00")[1:] {
		if v, set := c[t.knobs[i]]; set && v.String() != strings.TrimSpace(level) {
			return false
		}
	}
	return true
}

// intervalOf is how far apart a setting's packets are sent in s, 0 as fast as can be.
func intervalOf(p model.Plan, s spot) float64 {
	if v, ok := s.cell["interval_ns"]; ok {
		return v.Number / 1e9
	}
	if v, ok := s.cell["rate_pps"]; ok {
		if v.Number > 0 {
			return 1 / v.Number
		}
		return 0
	}
	if len(p.Flows) > 0 {
		if pps, paced := p.Flows[0].Rate.PPS(s.payload); paced && pps > 0 {
			return 1 / pps
		}
	}
	return 0
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
