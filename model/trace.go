package model

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"pelt/words"
)

// Bounds of a trace: a plan, and an order to an agent, hold all of it.
const (
	MaxTracePackets = 1 << 20
	MaxTraceText    = 6     // strings, of at most
	maxTracePart    = 60000 // characters: a line of a plan holds more
	maxTraceGap     = 24 * time.Hour
)

// ErrTraceLong is of a trace that no plan holds.
var ErrTraceLong = words.Errorf("is too long: a plan holds at most %d packets and at most %d kB compressed; want a shorter one, "+
	"which is repeated as often as a trial needs", MaxTracePackets, MaxTraceText*maxTracePart*3/4000)

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

func ReadTraceText(parts []string) ([]int64, error) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if len(parts) == 0 || size > MaxTraceText*maxTracePart {
		return nil, words.Errorf("want the gaps of a trace, as pelt writes them into a plan")
	}
	packed, err := base64.RawStdEncoding.DecodeString(strings.Join(parts, ""))
	if err != nil {
		return nil, words.Errorf("is not in base64")
	}
	const most = MaxTracePackets * binary.MaxVarintLen64
	numbers, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), most))
	if err != nil {
		return nil, words.Errorf("is not compressed as RFC 1951 says")
	}
	var gaps []int64
	for len(numbers) > 0 {
		g, n := binary.Uvarint(numbers)
		if n <= 0 || g > math.MaxInt64 || len(gaps) == MaxTracePackets {
			return nil, words.Errorf("want at most %d gaps in nanoseconds", MaxTracePackets)
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
			return words.Errorf("gap %d is %v; want 0 to %v", i+1, time.Duration(g), maxTraceGap)
		}
		if sum += g; sum > MaxMeasure.Nanoseconds() {
			return words.Errorf("the gaps take more than %v", MaxMeasure)
		}
	}
	if sum == 0 {
		return words.Errorf("all packets of the trace leave at one time: want a gap above 0")
	}
	return nil
}

// tracePeak is the most packets of any second of a trace that is stretched to a mean rate, packets per second.
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
