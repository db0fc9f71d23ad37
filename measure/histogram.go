package measure

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"pelt/model"
)

// What a histogram holds: 0 ns to a minute, to three digits.
const (
	histogramMax    = 60_000_000_000
	histogramDigits = 3
)

// Histogram gathers durations in parts that do not share memory, so that each
// of several threads may record into its own. All parts together hold what is
// counted; values outside 0 to 60 s are counted as out of range.
type Histogram struct{ parts []*durations }

// durations is one part. Minimum and maximum are kept exactly.
type durations struct {
	_        padding
	hdr      *hdrhistogram.Histogram
	min, max int64
	out      uint64
	_        padding
}

// padding keeps the state of different threads in different cache lines
// (128 B: adjacent-line prefetch pulls lines in pairs).
type padding [128]byte

// NewHistogram makes a histogram with the given number of parts, 220 KB each.
func NewHistogram(parts int) *Histogram {
	h := &Histogram{parts: make([]*durations, parts)}
	for i := range h.parts {
		h.parts[i] = newDurations()
	}
	return h
}

func newDurations() *durations {
	return &durations{
		hdr: hdrhistogram.New(1, histogramMax, histogramDigits),
		min: math.MaxInt64, max: math.MinInt64,
	}
}

// Record adds n values of the given nanoseconds to one part. It may be called
// concurrently for different parts, never for the same one.
func (h *Histogram) Record(part int, nanos, n int64) { h.parts[part].record(nanos, n) }

func (d *durations) record(nanos, n int64) {
	if n <= 0 {
		return
	}
	if nanos < 0 || nanos > histogramMax || d.hdr.RecordValues(nanos, n) != nil {
		d.out += uint64(n)
		return
	}
	d.min, d.max = min(d.min, nanos), max(d.max, nanos)
}

// sum joins all parts into a new one.
func (h *Histogram) sum() *durations {
	all := newDurations()
	for _, p := range h.parts {
		all.add(p)
	}
	return all
}

func (d *durations) add(p *durations) {
	d.out += p.out
	if p.hdr.TotalCount() > 0 {
		d.hdr.Merge(p.hdr)
		d.min, d.max = min(d.min, p.min), max(d.max, p.max)
	}
}

// Percentiles sums up all parts; nil if nothing was recorded. It must not run
// beside Record.
func (h *Histogram) Percentiles() *model.Percentiles { return h.sum().percentiles() }

func (d *durations) percentiles() *model.Percentiles {
	n := d.hdr.TotalCount()
	if n == 0 && d.out == 0 {
		return nil
	}
	p := &model.Percentiles{Count: uint64(n), Out: d.out}
	if n == 0 {
		return p
	}
	at := func(percent float64) float64 {
		return float64(min(max(d.hdr.ValueAtPercentile(percent), d.min), d.max))
	}
	p.Min, p.Max = float64(d.min), float64(d.max)
	p.P50, p.P90, p.P95, p.P99, p.P999 = at(50), at(90), at(95), at(99), at(99.9)
	p.Mean = d.hdr.Mean()
	return p
}

// Buckets returns the distribution of all parts in ten bars a decade, from the
// last empty one before the smallest value to the one of the largest. Values
// out of range are in none. It must not run beside Record.
func (h *Histogram) Buckets() []model.Bucket { return h.sum().buckets() }

// bounds within one decade, in tenths: the R10 series of ISO 3.
var decade = [...]int64{10, 13, 16, 20, 25, 32, 40, 50, 63, 80}

func (d *durations) buckets() []model.Bucket {
	if d.hdr.TotalCount() == 0 {
		return nil
	}
	var bars []hdrhistogram.Bar
	for _, b := range d.hdr.Distribution() {
		if b.Count > 0 {
			bars = append(bars, b)
		}
	}
	var out []model.Bucket
	below := model.Bucket{}
	for bound := boundsFrom(0); len(bars) > 0; {
		b := model.Bucket{UpToNanos: bound()}
		// A bar that straddles the bound by the histogram's own resolution counts below it.
		for len(bars) > 0 && bars[0].From <= b.UpToNanos {
			b.Count += uint64(bars[0].Count)
			bars = bars[1:]
		}
		switch {
		case len(out) > 0:
			out = append(out, b)
		case b.Count > 0:
			out = append(out, below, b)
		default:
			below = b
		}
	}
	return out
}

// boundsFrom walks over the bounds above last: 1, 2, 3, ... 10, 13, 16, 20, ...
// nanoseconds. They are whole, so the first decade has fewer.
func boundsFrom(last int64) func() int64 {
	power, i := int64(1), 0
	return func() int64 {
		for {
			v := decade[i] * power / 10
			if i++; i == len(decade) {
				power, i = power*10, 0
			}
			if v > last {
				last = v
				return v
			}
		}
	}
}
