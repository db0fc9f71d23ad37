package plan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode"

	"pelt/model"
	"pelt/unit"
)

const maxWord = 40 // characters of one number in a trace

// timeColumns are what a header may call the time, in the order in which one of several is taken. The
// times are in seconds, or in the unit behind the name.
var timeColumns = []string{"gap", "gap_s", "gap_ms", "gap_us", "gap_ns", "time", "time_s", "time_ms", "time_us",
	"time_ns", "send_s", "send_ns", "send_time_ns", "sent_ns"}

// readTrace reads when the packets of a recorded flow left, and makes a profile of it with the rate that it has.
// The text has a line for each packet with its time in seconds (with gaps, the time to the next packet), or it is
// CSV with a header, as pelt's records are. Sizes are not read: each packet has the flow's.
func readTrace(r io.Reader, name string, gaps bool) (p model.Profile, rate unit.Rate, err error) {
	t := &trace{gaps: gaps, nanos: 1e9}
	number := 0
	lines := bufio.NewScanner(r)
	for err == nil && lines.Scan() {
		number++
		err = t.line(lines.Text())
	}
	if err == nil && lines.Err() != nil {
		if number, err = number+1, lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("the line is longer than %d bytes; want one time a line", bufio.MaxScanTokenSize)
		}
	}
	if err != nil {
		return p, rate, fmt.Errorf("%s:%d: %w", name, number, err)
	}
	p = model.Profile{Kind: model.TraceProfile, File: name, Gaps: gaps}
	list, err := t.done()
	if err == nil {
		p.Trace, err = model.TraceText(list)
	}
	if err != nil {
		return p, rate, fmt.Errorf("%s: %w", name, err)
	}
	total := int64(0)
	for _, g := range list {
		total += g
	}
	own := big.NewRat(int64(len(list)), total)
	rate, err = unit.ParseRate(own.Mul(own, big.NewRat(1e9, 1)).RatString() + "pps")
	if err != nil {
		err = fmt.Errorf("%s: has %d packets in %d ns: %w", name, len(list), total, err)
	}
	return p, rate, err
}

type trace struct {
	gaps   bool
	column int      // of the time
	width  int      // columns that a header named; 0 without one
	apart  []int    // columns of what is one in all lines: trial and flow
	one    []string // what these are in the first line
	nanos  int64    // of 1
	values []int64  // ns
}

func (t *trace) line(text string) error {
	text = strings.TrimPrefix(text, "\ufeff")
	if bare := strings.TrimSpace(text); bare == "" || bare[0] == '#' {
		return nil
	}
	fields := strings.Split(strings.NewReplacer(";", ",", "\t", ",").Replace(strings.Trim(text, " \r")), ",")
	for len(fields) > max(t.width, 1) && fields[len(fields)-1] == "" {
		fields = fields[:len(fields)-1]
	}
	if t.width == 0 {
		filled := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return f == "" })
		if len(t.values) == 0 && len(filled) > 0 && isName(filled[0]) {
			return t.header(fields)
		}
		fields = filled
	}
	switch {
	case t.width == 0 && len(fields) != 1:
		return fmt.Errorf("has %d columns; want one, the time, or a header that names it (--payload says the size)", len(fields))
	case t.width > 0 && len(fields) != t.width:
		return fmt.Errorf("has %d columns, the header %d", len(fields), t.width)
	case len(t.values) > model.MaxTracePackets:
		return model.ErrTraceLong
	}
	var one []string
	for _, at := range t.apart {
		one = append(one, fields[at])
	}
	if len(t.values) == 0 {
		t.one = one
	}
	value, ok := t.read(fields[t.column])
	last := t.values[max(len(t.values)-1, 0):]
	switch {
	case !slices.Equal(one, t.one):
		return errors.New("is of another trial or flow than the lines above it; want the lines of one")
	case !ok:
		return fmt.Errorf("%.40q is not a time in seconds, as 0.000125", fields[t.column])
	case len(last) > 0 && !t.gaps && value < last[0] && t.width == 0:
		return fmt.Errorf("%s is before the time above it; if these are the times between packets, say gaps=FILE",
			fields[t.column])
	case t.gaps && value < 0:
		return fmt.Errorf("%s is less than no time", fields[t.column])
	}
	t.values = append(t.values, value)
	return nil
}

// isName tells a name of a column from a number as 1e-3.
func isName(text string) bool {
	letter := func(r rune) bool { return unicode.IsLetter(r) || r == '_' }
	return strings.IndexFunc(strings.Trim(text, `" `), letter) == 0
}

// header finds the column of the time.
func (t *trace) header(fields []string) error {
	for i, f := range fields {
		fields[i] = strings.ToLower(strings.Trim(strings.TrimSpace(f), `"`))
	}
	for _, name := range []string{"trial", "flow"} { // of a record's CSV
		if at := slices.Index(fields, name); at >= 0 {
			t.apart = append(t.apart, at)
		}
	}
	for _, name := range timeColumns {
		at, gap := slices.Index(fields, name), strings.HasPrefix(name, "gap")
		if at < 0 || t.gaps && !gap {
			continue
		}
		t.gaps, t.column, t.width = gap, at, len(fields)
		if nanos := map[string]int64{"_ms": 1e6, "_us": 1e3, "_ns": 1}[name[len(name)-3:]]; nanos > 0 {
			t.nanos = nanos
		}
		return nil
	}
	return fmt.Errorf("no column of %.40q is one of %s", strings.Join(fields, ","), strings.Join(timeColumns, ", "))
}

// read reads a decimal number, exactly: times since 1970 have more digits than a float64.
func (t *trace) read(text string) (int64, bool) {
	text = strings.Trim(strings.TrimSpace(text), `"`)
	if len(text) > maxWord || strings.Trim(text, "0123456789.-+eE") != "" {
		return 0, false
	}
	if _, power, ok := strings.Cut(strings.ToLower(text), "e"); ok && len(strings.Trim(power, "+-")) > 2 {
		return 0, false // a big number would take the memory
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	v.Mul(v, big.NewRat(t.nanos, 1))
	n := new(big.Int).Quo(v.Num(), v.Denom())
	return n.Int64(), n.IsInt64() && n.Int64() <= math.MaxInt64/2 && n.Int64() >= -math.MaxInt64/2
}

// done makes gaps of what was read.
func (t *trace) done() ([]int64, error) {
	n := len(t.values)
	switch {
	case t.gaps && n == 0:
		return nil, errors.New("has no gaps")
	case t.gaps:
		return t.values, nil
	case n < 2:
		return nil, fmt.Errorf("has %d times; want two at least", n)
	}
	slices.Sort(t.values) // of several streams, a record's lines are not in order
	whole := t.values[n-1] - t.values[0]
	if whole == 0 {
		return nil, errors.New("all times are one; if they are the times between packets, say gaps=FILE")
	}
	var list []int64
	for i := 1; i < n; i++ {
		list = append(list, t.values[i]-t.values[i-1])
	}
	return append(list, whole/int64(n-1)), nil // until it is repeated, the mean gap
}
