package change

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/model"
)

const (
	// Series that move at most so many seconds apart moved together, beyond the doubt of the change itself.
	near = 3.0
	// Seconds before and after a change that are looked at.
	context = 60.0
	// A core this busy has no time left, if it had some before.
	fullCore, hadTime = 0.95, 0.90
	// Movers fit so well at least and moved by so many standard errors.
	leastFit, movedBy = 0.25, 4.0
	mostMovers        = 8
)

func movers(f foundChange, all []model.Series) (out []model.Mover) {
	for i := range all {
		if s := &all[i]; useOf(*s, nil) != unused && !itself(f.Change, *s) && timed(*s) {
			if m, ok := f.mover(s); ok {
				out = append(out, m)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b model.Mover) int { return cmp.Compare(b.Fit, a.Fit) })
	return out[:min(len(out), mostMovers)]
}

// itself reports whether a series is the change's own or follows from it: what arrived
// is an effect of what was sent and lost, never the reason.
func itself(c model.Change, s model.Series) bool {
	whole := s.Core == nil && s.Stream == nil
	switch {
	case whole && s.Metric == c.Metric && s.Flow == c.Flow && s.At == c.At && s.Layer == c.Layer &&
		s.Cause == c.Cause:
		return true
	case strings.HasPrefix(s.Metric, "tcp_"), s.Flow != "" && c.Flow != "" && s.Flow != c.Flow:
		return true
	}
	return s.Metric == "receive_pps" || s.Metric == "goodput_bps" ||
		s.Metric == "lost_pps" && s.Layer == "" && c.Metric == "send_pps"
}

func (f foundChange) mover(s *model.Series) (model.Mover, bool) {
	c, start := f.Change, f.StartS
	var before, after moments
	switch c.Kind {
	case model.ChangeDrift:
		edge := (c.EndS - c.StartS) / 8
		before, after = momentsOf(s, c.StartS-edge, c.StartS+edge), momentsOf(s, c.EndS-edge, c.EndS+edge)
	case model.ChangeShift:
		start = jump(s, c)
		late := max(start, c.StartS)
		before = momentsOf(s, late-context, min(start, c.StartS))
		after = momentsOf(s, late, min(max(c.EndS, start+near), late+context))
	default:
		before, after = besideBursts(s, f.bursts)
	}
	if strings.HasSuffix(s.Metric, "_ratio") {
		after.mean = max(0, min(after.mean, 1))
	}
	size := math.Abs(after.mean - before.mean)
	doubt := math.Sqrt(before.variance/max(before.n, 1) + after.variance/max(after.n, 1))
	least := useOf(*s, nil).least(before.mean, s.StepSeconds)
	late := max(0, c.StartLowS-start, start-c.StartHighS)
	fit := min(1, fitOf(c, s, before.mean, after.mean)/(1+late/near))
	if before.n == 0 || after.n == 0 || size == 0 || size < movedBy*doubt || size < least || late > near ||
		!(fit >= leastFit) {
		return model.Mover{}, false
	}
	return model.Mover{Metric: s.Metric, Flow: s.Flow, At: s.At, Core: s.Core, Stream: s.Stream, Layer: s.Layer,
		Cause: s.Cause, StartS: start, Before: before.mean, After: after.mean, Fit: fit}, true
}

// fitOf says how much of a change the move of a series comes to. Packets are compared
// with packets, in the direction that explains the change; a processor counts by how
// full it became.
func fitOf(c model.Change, s *model.Series, before, after float64) float64 {
	size := after - before
	share := min(1, math.Abs(size)/max(math.Abs(before), math.Abs(after)))
	isPackets := strings.HasSuffix(s.Metric, "_pps")
	switch {
	case isPackets && strings.HasSuffix(c.Metric, "_pps"):
		same := s.Metric == "send_pps" || c.Metric == "lost_pps" // else a rise of loss is a fall of the rate
		if (size*c.Size > 0) != same {
			return 0
		}
		a, b := math.Abs(size), math.Abs(c.Size)
		return min(a, b) / max(a, b)
	case isPackets:
		return share
	case strings.HasSuffix(s.Metric, "_ratio"):
		if strings.HasSuffix(s.Metric, "idle_ratio") {
			before, after = 1-before, 1-after
		}
		if strings.HasPrefix(s.Metric, "cpu_") && after >= fullCore && before < hadTime {
			return 0.9
		}
		return min(1, math.Abs(size))
	}
	return 0.5 * share
}

type moments struct{ n, mean, variance float64 }

func (m *moments) add(values []float64) {
	squares := m.variance * max(m.n-1, 0)
	for _, x := range values {
		if Believed(x) {
			m.n++
			off := x - m.mean
			m.mean += off / m.n
			squares += off * (x - m.mean)
		}
	}
	m.variance = squares / max(m.n-1, 1)
}

// valuesFrom are the values of a series from one time to another, in seconds.
func valuesFrom(s *model.Series, from, to float64) []float64 {
	a, b := PlaceOf(s, from), PlaceOf(s, to)
	return s.Values[a:max(a, b)]
}

// PlaceOf is the place of the first value that begins at a time or later.
func PlaceOf(s *model.Series, at float64) int {
	return int(max(0, min(math.Ceil((at-s.StartSeconds)/s.StepSeconds-1e-9), float64(len(s.Values)))))
}

func momentsOf(s *model.Series, from, to float64) (m moments) {
	m.add(valuesFrom(s, from, to))
	return m
}

// besideBursts compares the values within bursts with those around them. A second of one
// node is not quite a second of another, so the bursts are taken one step earlier or later
// where that tells more.
func besideBursts(s *model.Series, bursts [][2]float64) (outside, inside moments) {
	const margin = 2.0
	from := bursts[0][0] - context
	for _, b := range bursts {
		outside.add(valuesFrom(s, max(from, b[0]-context), b[0]-margin))
		from = b[1] + margin
	}
	outside.add(valuesFrom(s, from, from+context))
	for _, shift := range []float64{0, -s.StepSeconds, s.StepSeconds} {
		var within moments
		for _, b := range bursts {
			within.add(valuesFrom(s, b[0]+shift, b[1]+shift))
		}
		if math.Abs(within.mean-outside.mean) > math.Abs(inside.mean-outside.mean) || inside.n == 0 {
			inside = within
		}
	}
	inside.variance = max(inside.variance, outside.variance)
	return outside, inside
}

// jump returns when a series itself moved most, in seconds around the begin of a change:
// where the means of 20 values on each side differ most, in standard errors.
func jump(s *model.Series, c model.Change) float64 {
	low, high := PlaceOf(s, c.StartLowS-context), PlaceOf(s, min(c.EndS, c.StartHighS+context))
	best, at := -1.0, c.StartS
	from, to := max(PlaceOf(s, c.StartLowS-2*near), low+1), min(PlaceOf(s, c.StartHighS+2*near), high-1)
	for k := from; k <= to; k++ {
		var a, b moments
		a.add(s.Values[max(low, k-20):k])
		b.add(s.Values[k:min(high, k+20)])
		d := math.Abs(a.mean-b.mean) * math.Sqrt(a.n*b.n/max(a.n+b.n, 1))
		if a.n > 0 && b.n > 0 && d > best*(1+1e-9) {
			best, at = d, s.StartSeconds+float64(k)*s.StepSeconds
		}
	}
	return at
}
