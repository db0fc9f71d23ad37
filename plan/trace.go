package plan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// readTrace reads when the packets of a recorded flow left, and makes a profile of it with the rate that it has.
// The text has a line for each packet with its time in seconds or, with gaps, the time to the next packet.
func readTrace(r io.Reader, name string, gaps bool) (p model.Profile, rate unit.Rate, err error) {
	var list []int64
	number := 0
	lines := bufio.NewScanner(r)
	for err == nil && lines.Scan() {
		number++
		list, err = appendTime(list, lines.Text(), gaps)
	}
	if err == nil && lines.Err() != nil {
		if number, err = number+1, lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			err = words.Errorf("the line is longer than %d bytes; want one time a line", bufio.MaxScanTokenSize)
		}
	}
	if err != nil {
		return p, rate, &model.FileError{Name: name, Line: number, Err: err}
	}
	p = model.Profile{Kind: model.TraceProfile, File: name, Gaps: gaps}
	if !gaps {
		list, err = gapsBetween(list)
	} else if len(list) == 0 {
		err = words.Errorf("has no gaps")
	}
	if err == nil {
		p.Trace, err = model.TraceText(list)
	}
	if err != nil {
		return p, rate, &model.FileError{Name: name, Err: err}
	}
	total := int64(0)
	for _, g := range list {
		total += g
	}
	if rate, err = unit.ParseRate(fmt.Sprintf("%d/%dpps", int64(len(list))*1e9, total)); err != nil {
		err = words.Errorf("has %d packets in %d ns: %w", len(list), total, err)
		return p, rate, &model.FileError{Name: name, Err: err}
	}
	return p, rate, nil
}

// appendTime reads a line in nanoseconds. Empty lines and those that begin with # are left out.
func appendTime(list []int64, line string, gaps bool) ([]int64, error) {
	text := strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
	if text == "" || text[0] == '#' {
		return list, nil
	}
	nanos, ok := parseSeconds(text)
	switch {
	case !ok:
		return nil, words.Errorf("%.40q is not a time in seconds, such as 0.000125; want one a line", text)
	case len(list) > model.MaxTracePackets:
		return nil, model.ErrTraceLong
	case !gaps && len(list) > 0 && nanos < list[len(list)-1]:
		return nil, words.Errorf("%.40s is before the time above it; if these are the times between packets, say "+
			"gaps=FILE", text)
	case gaps && nanos < 0:
		return nil, words.Errorf("%.40s is negative", text)
	}
	return append(list, nanos), nil
}

// parseSeconds reads a decimal number exactly: times since 1970 have more digits than a float64.
func parseSeconds(text string) (nanos int64, ok bool) {
	whole, part, _ := strings.Cut(text, ".")
	nanos, err := strconv.ParseInt(whole+(part + "000000000")[:9], 10, 64)
	return nanos, err == nil && nanos <= math.MaxInt64/2 && nanos >= -math.MaxInt64/2 &&
		strings.Trim(part, "0123456789") == "" && text != "."
}

func gapsBetween(times []int64) (list []int64, err error) {
	n := len(times)
	if n < 2 {
		return nil, words.Errorf("has %d times; want two at least", n)
	}
	whole := times[n-1] - times[0]
	if whole == 0 {
		return nil, words.Errorf("all times are the same; if they are the times between packets, say gaps=FILE")
	}
	for i := range times[1:] {
		list = append(list, times[i+1]-times[i])
	}
	return append(list, whole/int64(n-1)), nil // until it is repeated, the mean gap
}
