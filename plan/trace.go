package plan

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// Columns of a trace that a header may name, in the order in which one of several
// is taken: times count from anywhere. Both are in seconds, or in the unit behind
// the name.
var traceColumns = []string{"gap", "gap_s", "gap_ms", "gap_us", "gap_ns", "time", "time_s", "time_ms", "time_us", "time_ns", "send_s", "send_ns", "send_time_ns", "sent_ns"}

// ReadTrace reads when the packets of a recorded flow left, and makes a profile
// of it with the rate that it has. The text has a line for each packet with its
// time in seconds (with gaps, the time to the next packet), or it is CSV with a header, of
// which it takes the first column that is named gap or time, or as pelt's records
// name the time of sending, with _s, _ms, _us or _ns behind. Empty lines and those that begin
// with # are left out. Each packet has the flow's payload: sizes are not read. An
// error is one line with the name and the number of the line.
func ReadTrace(r io.Reader, name string, gaps bool) (model.Profile, unit.Rate, error) {
	t := &traceReader{name: name, gaps: gaps, scale: big.NewRat(1e9, 1)}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if err := t.line(lines.Text()); err != nil {
			return model.Profile{}, unit.Rate{}, err
		}
	}
	if err := lines.Err(); err != nil {
		return model.Profile{}, unit.Rate{}, fmt.Errorf("%s:%d: %w", name, t.number+1, err)
	}
	list, err := t.done()
	if err != nil {
		return model.Profile{}, unit.Rate{}, err
	}
	text, err := model.TraceText(list)
	if err != nil {
		return model.Profile{}, unit.Rate{}, fmt.Errorf("%s: %w", name, err)
	}
	total := int64(0)
	for _, g := range list {
		total += g
	}
	own := big.NewRat(int64(len(list)), total)
	rate, err := unit.ParseRate(own.Mul(own, big.NewRat(1e9, 1)).RatString() + "pps")
	if err != nil {
		return model.Profile{}, unit.Rate{}, fmt.Errorf("%s: has %d packets in %d ns: %w", name, len(list), total, err)
	}
	return model.Profile{Kind: model.TraceProfile, File: name, Gaps: gaps, Trace: text}, rate, nil
}

type traceReader struct {
	name   string
	gaps   bool
	number int
	column int      // of the time
	width  int      // columns that a header named; 0 without one
	apart  []int    // columns of what is one in all lines: trial and flow
	one    []string // what these are in the first line
	scale  *big.Rat // nanoseconds of 1
	values []int64  // ns
}

func (t *traceReader) wrong(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", t.name, t.number, fmt.Sprintf(format, args...))
}

func (t *traceReader) line(text string) error {
	t.number++
	text = strings.TrimPrefix(text, "\ufeff")
	if bare := strings.TrimSpace(text); bare == "" || bare[0] == '#' {
		return nil
	}
	fields := strings.Split(strings.Map(separator, strings.Trim(text, " \r")), ",")
	for len(fields) > max(t.width, 1) && fields[len(fields)-1] == "" {
		fields = fields[:len(fields)-1]
	}
	if t.width == 0 {
		filled := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return f == "" })
		if len(t.values) == 0 && len(filled) > 0 && strings.ContainsFunc(filled[0], func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' }) && !t.isNumber(filled[0]) {
			return t.header(fields)
		}
		fields = filled
	}
	switch {
	case t.width == 0 && len(fields) != 1:
		return t.wrong("has %d columns; want one, the time, or a header that names it: sizes are not replayed, --payload says the one", len(fields))
	case t.width > 0 && len(fields) != t.width:
		return t.wrong("has %d columns, the header %d", len(fields), t.width)
	case len(t.values) > model.MaxTracePackets:
		return t.wrong("%v", model.ErrTraceLong)
	}
	for i, at := range t.apart {
		if len(t.values) == 0 {
			t.one = append(t.one, fields[at])
		} else if fields[at] != t.one[i] {
			return t.wrong("is of another trial or flow than the lines above it: keep the lines of one, whose times are of one clock")
		}
	}
	value, ok := t.nanos(fields[t.column])
	if !ok {
		return t.wrong("%q is not a time in seconds, as 0.000125", clipped(fields[t.column]))
	}
	if n := len(t.values); n > 0 && !t.gaps && value < t.values[n-1] && t.width == 0 {
		return t.wrong("%s is before the time above it; if these are the times between packets, say gaps=FILE", clipped(fields[0]))
	}
	if t.gaps && value < 0 {
		return t.wrong("%s is less than no time", clipped(fields[t.column]))
	}
	t.values = append(t.values, value)
	return nil
}

// separator makes a comma of what else may stand between columns.
func separator(r rune) rune {
	if r == ';' || r == '\t' {
		return ','
	}
	return r
}

func (t *traceReader) isNumber(text string) bool { _, ok := t.nanos(text); return ok }

// header finds the column of the time.
func (t *traceReader) header(fields []string) error {
	column := func(name string) int {
		return slices.IndexFunc(fields, func(f string) bool { return strings.ToLower(strings.Trim(strings.TrimSpace(f), `"`)) == name })
	}
	for _, name := range []string{"trial", "flow"} { // of a record's CSV
		if at := column(name); at >= 0 {
			t.apart = append(t.apart, at)
		}
	}
	for _, name := range traceColumns {
		at := column(name)
		if at < 0 {
			continue
		}
		if gap := strings.HasPrefix(name, "gap"); t.gaps && !gap {
			continue
		} else if gap {
			t.gaps = true
		}
		t.column, t.width = at, len(fields)
		for suffix, nanos := range map[string]int64{"_ms": 1e6, "_us": 1e3, "_ns": 1} {
			if strings.HasSuffix(name, suffix) {
				t.scale = big.NewRat(nanos, 1)
			}
		}
		return nil
	}
	return t.wrong("no column of %q is one of %s", clipped(strings.Join(fields, ",")), strings.Join(traceColumns, ", "))
}

// nanos reads a decimal number, exactly: times since 1970 have more digits than a
// float64.
func (t *traceReader) nanos(text string) (int64, bool) {
	text = strings.Trim(strings.TrimSpace(text), `"`)
	if len(text) > maxName || strings.Trim(text, "0123456789.-+eE") != "" {
		return 0, false
	}
	if _, power, ok := strings.Cut(strings.ToLower(text), "e"); ok && len(strings.Trim(power, "+-")) > 2 {
		return 0, false // a big number would take the memory
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	v.Mul(v, t.scale)
	n := new(big.Int).Quo(v.Num(), v.Denom())
	if !n.IsInt64() || n.Int64() > math.MaxInt64/2 || n.Int64() < -math.MaxInt64/2 {
		return 0, false
	}
	return n.Int64(), true
}

// done makes gaps of what was read.
func (t *traceReader) done() ([]int64, error) {
	if t.gaps {
		if len(t.values) == 0 {
			return nil, fmt.Errorf("%s: has no gaps", t.name)
		}
		return t.values, nil
	}
	slices.SortFunc(t.values, cmp.Compare) // of several streams, a record's lines are not in order
	n := len(t.values)
	if n < 2 {
		return nil, fmt.Errorf("%s: has %d times; want two at least", t.name, n)
	}
	whole := t.values[n-1] - t.values[0]
	if whole == 0 {
		return nil, fmt.Errorf("%s: all times are one; if they are the times between packets, say gaps=FILE", t.name)
	}
	var list []int64
	for i := 1; i < n; i++ {
		list = append(list, t.values[i]-t.values[i-1])
	}
	return append(list, whole/int64(n-1)), nil // until it is repeated, the mean gap
}

func clipped(text string) string {
	if len(text) > maxName {
		return strings.ToValidUTF8(text[:maxName], "") + "…"
	}
	return text
}
