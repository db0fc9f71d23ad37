package measure

import (
	"math"

	"pelt/model"
)

// What a histogram holds: 0 ns to a minute, to a thousandth.
const (
	histogramMax       = 60_000_000_000
	histogramBins Bins = 10
)

// Histogram gathers durations in parts that do not share memory, so that each
// of several threads may record into its own. All parts together hold what is
// counted; values outside 0 to 60 s are counted as out of range.
type Histogram struct{ parts []*durations }

// durations is one part. Minimum and maximum are kept exactly.
type durations struct {
	_          padding
	bins       []uint64
	count, out uint64
	min, max   int64
	_          padding
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
	return &durations{bins: make([]uint64, histogramBins.Of(histogramMax)+1), min: math.MaxInt64, max: math.MinInt64}
}

// Record adds n values of the given nanoseconds to one part. It may be called
// concurrently for different parts, never for the same one.
func (h *Histogram) Record(part int, nanos, n int64) { h.parts[part].record(nanos, n) }

func (d *durations) record(nanos, n int64) {
	if n <= 0 {
		return
	}
	if nanos < 0 || nanos > histogramMax {
		d.out += uint64(n)
		return
	}
	d.bins[histogramBins.Of(uint64(nanos))] += uint64(n)
	d.count += uint64(n)
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
	for i, n := range p.bins {
		d.bins[i] += n
	}
	d.count, d.out = d.count+p.count, d.out+p.out
	d.min, d.max = min(d.min, p.min), max(d.max, p.max)
}

// Percentiles sums up all parts; nil if nothing was recorded. It must not run
// beside Record.
func (h *Histogram) Percentiles() *model.Percentiles { return h.sum().percentiles() }

func (d *durations) percentiles() *model.Percentiles {
	if d.count == 0 && d.out == 0 {
		return nil
	}
	p := &model.Percentiles{Count: d.count, Out: d.out}
	if d.count == 0 {
		return p
	}
	p.Min, p.Max = float64(d.min), float64(d.max)
	p.P50, p.P90, p.P95, p.P99, p.P999 = d.at(50), d.at(90), d.at(95), d.at(99), d.at(99.9)
	for bin, n := range d.bins {
		least, size := histogramBins.Span(bin)
		p.Mean += float64(n) * float64(least+size/2) / float64(d.count)
	}
	p.Mean = min(max(p.Mean, p.Min), p.Max) // the middle of a bin may lie beyond
	return p
}

// at is the largest duration of the bin that completes a part of all.
func (d *durations) at(percent float64) float64 {
	rank, sum := max(uint64(percent/100*float64(d.count)+0.5), 1), uint64(0)
	for bin, n := range d.bins {
		if sum += n; sum >= rank {
			least, size := histogramBins.Span(bin)
			return float64(min(max(least+size-1, d.min), d.max))
		}
	}
	return float64(d.max)
}

// Buckets returns the distribution of all parts in ten bars a decade, from the
// last empty one before the smallest value to the one of the largest. Values
// out of range are in none. It must not run beside Record.
func (h *Histogram) Buckets() []model.Bucket { return h.sum().buckets() }

// bounds within one decade, in tenths: the R10 series of ISO 3.
var decade = [...]int64{10, 13, 16, 20, 25, 32, 40, 50, 63, 80}

func (d *durations) buckets() []model.Bucket {
	if d.count == 0 {
		return nil
	}
	var out []model.Bucket
	below, bin, last := model.Bucket{}, 0, histogramBins.Of(uint64(d.max))
	for bound := boundsFrom(0); bin <= last; {
		b := model.Bucket{UpToNanos: bound()}
		for ; bin <= last; bin++ {
			if least, _ := histogramBins.Span(bin); least > b.UpToNanos { // a bin that straddles it counts below it
				break
			}
			b.Count += d.bins[bin]
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
