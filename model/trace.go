package model

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode"

	"pelt/unit"
)

// Bounds of a trace: a plan, and an order to an agent, hold all of it.
const (
	MaxTracePackets = 1 << 20
	MaxTraceText    = 6     // strings, of at most
	maxTracePart    = 60000 // characters: a line of a plan holds more
	maxTraceGap     = 24 * time.Hour
	maxTraceWord    = 40 // characters of one number
)

// ErrTraceLong is of a trace that no plan holds.
var ErrTraceLong = fmt.Errorf("is more than a plan holds: %d packets, or %d kB compressed; want a shorter one, "+
	"which is repeated as often as a trial needs", MaxTracePackets, MaxTraceText*maxTracePart*3/4000)

// traceColumns are what a header may call the time, in the order in which one of several is taken. Both
// are in seconds, or in the unit behind the name.
var traceColumns = []string{"gap", "gap_s", "gap_ms", "gap_us", "gap_ns", "time", "time_s", "time_ms", "time_us",
	"time_ns", "send_s", "send_ns", "send_time_ns", "sent_ns"}

// ReadTrace reads when the packets of a recorded flow left, and makes a profile of it with the rate that it has.
// The text has a line for each packet with its time in seconds (with gaps, the time to the next packet), or it is
// CSV with a header, as pelt's records are. Empty lines and those that begin with # are left out. Sizes are not
// read: each packet has the flow's. An error is one line with the name and the number of the line.
func ReadTrace(r io.Reader, name string, gaps bool) (Profile, unit.Rate, error) {
	t := &traceReader{gaps: gaps, scale: big.NewRat(1e9, 1)}
	number, err := 0, error(nil)
	lines := bufio.NewScanner(r)
	for err == nil && lines.Scan() {
		number++
		err = t.line(lines.Text())
	}
	if err == nil {
		number, err = number+1, lines.Err()
	}
	if err != nil {
		return Profile{}, unit.Rate{}, fmt.Errorf("%s:%d: %w", name, number, err)
	}
	p := Profile{Kind: TraceProfile, File: name, Gaps: gaps}
	list, err := t.done()
	if err == nil {
		p.Trace, err = TraceText(list)
	}
	if err != nil {
		return Profile{}, unit.Rate{}, fmt.Errorf("%s: %w", name, err)
	}
	total := int64(0)
	for _, g := range list {
		total += g
	}
	own := big.NewRat(int64(len(list)), total)
	rate, err := unit.ParseRate(own.Mul(own, big.NewRat(1e9, 1)).RatString() + "pps")
	if err != nil {
		return Profile{}, unit.Rate{}, fmt.Errorf("%s: has %d packets in %d ns: %w", name, len(list), total, err)
	}
	return p, rate, nil
}

type traceReader struct {
	gaps   bool
	column int      // of the time
	width  int      // columns that a header named; 0 without one
	apart  []int    // columns of what is one in all lines: trial and flow
	one    []string // what these are in the first line
	scale  *big.Rat // nanoseconds of 1
	values []int64  // ns
}

func (t *traceReader) line(text string) error {
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
		return fmt.Errorf("has %d columns; want one, the time, or a header that names it: sizes are not replayed, "+
			"--payload says the one", len(fields))
	case t.width > 0 && len(fields) != t.width:
		return fmt.Errorf("has %d columns, the header %d", len(fields), t.width)
	case len(t.values) > MaxTracePackets:
		return ErrTraceLong
	}
	for i, at := range t.apart {
		if len(t.values) == 0 {
			t.one = append(t.one, fields[at])
		} else if fields[at] != t.one[i] {
			return errors.New("is of another trial or flow than the lines above it; want the lines of one, whose times " +
				"are of one clock")
		}
	}
	word := fields[t.column]
	value, ok := t.nanos(word)
	last := t.values[max(len(t.values)-1, 0):]
	switch {
	case !ok:
		return fmt.Errorf("%q is not a time in seconds, as 0.000125", clipWord(word))
	case len(last) > 0 && !t.gaps && value < last[0] && t.width == 0:
		return fmt.Errorf("%s is before the time above it; if these are the times between packets, say gaps=FILE", word)
	case t.gaps && value < 0:
		return fmt.Errorf("%s is less than no time", word)
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
func (t *traceReader) header(fields []string) error {
	for i, f := range fields {
		fields[i] = strings.ToLower(strings.Trim(strings.TrimSpace(f), `"`))
	}
	for _, name := range []string{"trial", "flow"} { // of a record's CSV
		if at := slices.Index(fields, name); at >= 0 {
			t.apart = append(t.apart, at)
		}
	}
	for _, name := range traceColumns {
		at, gap := slices.Index(fields, name), strings.HasPrefix(name, "gap")
		if at < 0 || t.gaps && !gap {
			continue
		}
		t.gaps, t.column, t.width = gap, at, len(fields)
		for suffix, nanos := range map[string]int64{"_ms": 1e6, "_us": 1e3, "_ns": 1} {
			if strings.HasSuffix(name, suffix) {
				t.scale = big.NewRat(nanos, 1)
			}
		}
		return nil
	}
	had := clipWord(strings.Join(fields, ","))
	return fmt.Errorf("no column of %q is one of %s", had, strings.Join(traceColumns, ", "))
}

// nanos reads a decimal number, exactly: times since 1970 have more digits than a float64.
func (t *traceReader) nanos(text string) (int64, bool) {
	text = strings.Trim(strings.TrimSpace(text), `"`)
	if len(text) > maxTraceWord || strings.Trim(text, "0123456789.-+eE") != "" {
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
	return n.Int64(), n.IsInt64() && n.Int64() <= math.MaxInt64/2 && n.Int64() >= -math.MaxInt64/2
}

// done makes gaps of what was read.
func (t *traceReader) done() ([]int64, error) {
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

func clipWord(text string) string {
	if len(text) > maxTraceWord {
		return strings.ToValidUTF8(text[:maxTraceWord], "") + "…"
	}
	return text
}

// TraceText writes gaps in nanoseconds, each the time to the packet after it, as a
// plan keeps them: variable-length numbers, compressed (RFC 1951), in base64.
func TraceText(gaps []int64) ([]string, error) {
	if err := checkGaps(gaps); err != nil {
		return nil, err
	}
	var numbers []byte
	for _, g := range gaps {
		numbers = binary.AppendUvarint(numbers, uint64(g))
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = w.Write(numbers)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress trace: %w", err)
	}
	var parts []string
	for part := range slices.Chunk([]byte(base64.RawStdEncoding.EncodeToString(packed.Bytes())), maxTracePart) {
		parts = append(parts, string(part))
	}
	if len(parts) > MaxTraceText {
		return nil, ErrTraceLong
	}
	return parts, nil
}

// ReadTraceText reads what TraceText wrote.
func ReadTraceText(parts []string) ([]int64, error) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if len(parts) == 0 || size > MaxTraceText*maxTracePart {
		return nil, errors.New("want the gaps of a trace, as pelt writes them into a plan")
	}
	packed, err := base64.RawStdEncoding.DecodeString(strings.Join(parts, ""))
	if err != nil {
		return nil, errors.New("is not in base64")
	}
	const most = MaxTracePackets * binary.MaxVarintLen64
	numbers, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), most))
	if err != nil {
		return nil, errors.New("is not compressed as RFC 1951 says")
	}
	var gaps []int64
	for len(numbers) > 0 {
		g, n := binary.Uvarint(numbers)
		if n <= 0 || g > math.MaxInt64 || len(gaps) == MaxTracePackets {
			return nil, fmt.Errorf("want at most %d gaps in nanoseconds", MaxTracePackets)
		}
		gaps, numbers = append(gaps, int64(g)), numbers[n:]
	}
	return gaps, checkGaps(gaps)
}

func checkGaps(gaps []int64) error {
	if len(gaps) > MaxTracePackets {
		return ErrTraceLong
	}
	sum := int64(0)
	for i, g := range gaps {
		if g < 0 || g > maxTraceGap.Nanoseconds() {
			return fmt.Errorf("gap %d is %v; want 0 to %v", i+1, time.Duration(g), maxTraceGap)
		}
		if sum += g; sum > MaxMeasure.Nanoseconds() {
			return fmt.Errorf("the gaps take more than %v", MaxMeasure)
		}
	}
	if sum == 0 {
		return errors.New("all packets of the trace leave at one time: want gaps that last")
	}
	return nil
}

// tracePeak is the most packets of any second of a trace that is stretched to a
// mean rate, packets per second.
func tracePeak(gaps []int64, mean float64) float64 {
	n, period := len(gaps), int64(0)
	for _, g := range gaps {
		period += g
	}
	window := mean * float64(period) / float64(n) // a second, in nanoseconds of the trace
	whole := math.Floor(window / float64(period))
	rest := int64(math.Ceil(window - whole*float64(period)))
	most, from, span := 0, 0, int64(0) // span is the time from packet from to packet i
	for i := range 2 * n {
		for ; span >= rest && from < i; from++ {
			span -= gaps[from%n]
		}
		if rest > 0 {
			most = max(most, min(i-from+1, n))
		}
		span += gaps[i%n]
	}
	return max(mean, whole*float64(n)+float64(most))
}
