package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
)

// SeriesCSV writes a header and a row for each second of each trial, or whatever the
// step of its series is: the trial's number from 1, when the step began, in seconds after
// the start of the measured part, and a column for each series. A column has the name of
// the flow or the node, the metric, and what else tells it from others, as in
// up.lost_pps.router.network.QDISC_DROP or router.cpu_softirq_ratio.core0. A value that
// nobody heard is empty.
func SeriesCSV(w io.Writer, doc model.Document) error {
	columns := map[seriesKey]int{}
	header := []string{"trial", "start_s"}
	taken := map[string]int{}
	name := func(s model.Series) {
		key := keyOf(s)
		if _, known := columns[key]; known || !timed(s) {
			return
		}
		columns[key] = len(header)
		name := csvText(key.name())
		if taken[name]++; taken[name] > 1 {
			name += fmt.Sprintf(" (%d)", taken[name])
		}
		header = append(header, name)
	}
	for _, ofFlow := range []bool{true, false} { // what became of the packets stands before what the hosts did
		for _, r := range doc.Results {
			for _, s := range r.Series {
				if (s.Flow != "") == ofFlow {
					name(s)
				}
			}
		}
	}
	out := csv.NewWriter(w)
	_ = out.Write(header) // an error stays until Error
	for i, r := range doc.Results {
		writeSeconds(out, i+1, r, columns, len(header))
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}

// seriesKey tells the series of a trial apart.
type seriesKey struct {
	metric, flow, at, layer, cause string
	core, stream                   int // -1: of none
}

func keyOf(s model.Series) seriesKey {
	k := seriesKey{metric: s.Metric, flow: s.Flow, at: s.At, layer: s.Layer, cause: s.Cause, core: -1, stream: -1}
	if s.Core != nil {
		k.core = *s.Core
	}
	if s.Stream != nil {
		k.stream = *s.Stream
	}
	return k
}

func (k seriesKey) name() string {
	parts := []string{cmp.Or(k.flow, k.at), k.metric}
	if k.layer != "" || k.cause != "" {
		if k.flow != "" {
			parts = append(parts, k.at)
		}
		parts = append(parts, k.layer, k.cause)
	}
	if k.core >= 0 {
		parts = append(parts, "core"+strconv.Itoa(k.core))
	}
	if k.stream >= 0 {
		parts = append(parts, "stream"+strconv.Itoa(k.stream))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ".")
}

// timed reports whether a series has a place in time.
func timed(s model.Series) bool {
	return len(s.Values) > 0 && s.StepSeconds > 0 && finite(s.StepSeconds) && finite(s.StartSeconds)
}

// writeSeconds writes one trial's rows in the order of time; a series may have steps of
// its own.
func writeSeconds(out *csv.Writer, number int, r model.Result, columns map[seriesKey]int, width int) {
	type cursor struct {
		series model.Series
		column int
		next   int // of its values
	}
	var all []cursor
	for _, s := range r.Series {
		if timed(s) {
			all = append(all, cursor{s, columns[keyOf(s)], 0})
		}
	}
	const together = 1e-6 // steps that begin within so many seconds of each other are one row
	for {
		at := math.Inf(1)
		for _, c := range all {
			if c.next < len(c.series.Values) {
				at = min(at, c.series.StartSeconds+c.series.StepSeconds*float64(c.next))
			}
		}
		if math.IsInf(at, 1) {
			return
		}
		record := make([]string, width)
		record[0], record[1] = strconv.Itoa(number), csvFloat(math.Round(at*1e6)/1e6)
		for i := range all {
			c := &all[i]
			for c.next < len(c.series.Values) && c.series.StartSeconds+c.series.StepSeconds*float64(c.next) <= at+together {
				record[c.column] = csvFloat(c.series.Values[c.next])
				c.next++
			}
		}
		_ = out.Write(record)
	}
}
