package changes

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/model"
)

const (
	// near is how many seconds apart two series may move to have moved together, beyond
	// the doubt of the change itself.
	near = 3.0
	// context is how many seconds before and after are looked at, at most.
	context = 60.0
	// full is the share of a core that leaves nothing to it, and idle what is then
	// left.
	full, idle = 0.95, 0.05
	// fits is the least fit that is told, and mostMovers how many are.
	fits       = 0.25
	mostMovers = 8
	// movedBy is how many standard errors a mover must have moved.
	movedBy = 4.0
)

// movers are the series that moved with a change, the best fit first.
func movers(f found, all []model.Series) (out []model.Mover) {
	for k := range all {
		if s := &all[k]; natureOf(*s, nil) != aside && !itself(f.Change, *s) && timed(*s) {
			if m, ok := f.mover(s); ok {
				out = append(out, m)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b model.Mover) int { return cmp.Compare(b.Fit, a.Fit) })
	return out[:min(len(out), mostMovers)]
}

// itself reports whether a series is the change's own, or says the same in other
// words: what was lost is what was sent and not received.
func itself(c model.Change, s model.Series) bool {
	switch {
	case s.Metric == c.Metric && s.Flow == c.Flow && s.At == c.At && s.Layer == c.Layer && s.Cause == c.Cause && s.Core == nil && s.Stream == nil:
		return true
	case strings.HasPrefix(s.Metric, "tcp_"), s.Flow != "" && c.Flow != "" && s.Flow != c.Flow:
		return true
	}
	// What arrived is an effect of what was sent and lost, never the reason.
	return s.Metric == "receive_pps" || s.Metric == "goodput_bps" || s.Metric == "lost_pps" && s.Layer == "" && c.Metric == "send_pps"
}

// mover says how a series moved at the time of a change.
func (f found) mover(s *model.Series) (model.Mover, bool) {
	v, c := view{s}, f.Change
	start := c.StartS
	var before, after sample
	switch c.Kind {
	case model.ChangeDrift:
		edge := (c.EndS - c.StartS) / 8
		before, after = v.sample(c.StartS-edge, c.StartS+edge), v.sample(c.EndS-edge, c.EndS+edge)
	case model.ChangeShift:
		start = v.jump(c)
		before = v.sample(max(start, c.StartS)-context, min(start, c.StartS))
		after = v.sample(max(start, c.StartS), min(max(c.EndS, start+near), max(start, c.StartS)+context))
	default:
		before, after = v.beside(f.moments)
	}
	if strings.HasSuffix(s.Metric, "_ratio") {
		after.mean = max(0, min(after.mean, 1))
	}
	size := after.mean - before.mean
	error := math.Sqrt(before.variance/max(before.n, 1) + after.variance/max(after.n, 1))
	if before.n == 0 || after.n == 0 || size == 0 || math.Abs(size) < movedBy*error || math.Abs(size) < natureOf(*s, nil).least(before.mean, s.StepSeconds) {
		return model.Mover{}, false
	}
	apart := max(0, c.StartLowS-start, start-c.StartHighS)
	fit := min(1, sizeFit(c, s, before.mean, after.mean)/(1+apart/near))
	if apart > near || !(fit >= fits) {
		return model.Mover{}, false
	}
	return model.Mover{Metric: s.Metric, Flow: s.Flow, At: s.At, Core: s.Core, Stream: s.Stream, Layer: s.Layer, Cause: s.Cause,
		StartS: start, Before: before.mean, After: after.mean, Fit: fit}, true
}

// sizeFit says how much of a change a series' own move comes to. Packets are
// compared with packets: what was sent and did not come, or was lost in place of what was
// received. A processor counts by how full it became, if it had been less full before.
func sizeFit(c model.Change, s *model.Series, before, after float64) float64 {
	size := after - before
	packets := func(metric string) bool { return strings.HasSuffix(metric, "_pps") }
	switch {
	case packets(s.Metric) && packets(c.Metric):
		same := s.Metric == "send_pps" || c.Metric == "lost_pps" || c.Metric == "send_pps" && s.Metric == "send_pps" // else a rise of loss is a fall of the rate
		if (size*c.Size > 0) != same {
			return 0
		}
		a, b := math.Abs(size), math.Abs(c.Size)
		return min(a, b) / max(a, b)
	case packets(s.Metric):
		return min(1, math.Abs(size)/max(math.Abs(before), math.Abs(after)))
	case strings.HasSuffix(s.Metric, "idle_ratio"):
		return processor(1-before, 1-after)
	case strings.HasPrefix(s.Metric, "cpu_"):
		return processor(before, after)
	case strings.HasSuffix(s.Metric, "_ratio"):
		return min(1, math.Abs(size))
	}
	return 0.5 * min(1, math.Abs(size)/max(math.Abs(before), math.Abs(after)))
}

// processor is how well a share of a core explains a change: fully if the core became full, else
// by how far it moved.
func processor(before, after float64) float64 {
	if after >= full && before < full-idle {
		return max(0.9, after-before)
	}
	return min(1, math.Abs(after-before))
}

// sample is the values of a series over some time.
type sample struct {
	n, mean, variance float64
}

// view looks at a series by time.
type view struct{ s *model.Series }

// place of the first value that begins at a time or later.
func (v view) place(t float64) int {
	x := math.Ceil((t-v.s.StartSeconds)/v.s.StepSeconds - 1e-9)
	return int(max(0, min(x, float64(len(v.s.Values)))))
}

func (v view) sample(from, to float64) (out sample) {
	a, b := v.place(from), v.place(to)
	if a >= b {
		return out
	}
	return summed(v.s.Values[a:b])
}

func summed(values []float64) (out sample) {
	var squares float64
	for _, x := range values {
		if !believed(x) {
			continue
		}
		out.n++
		off := x - out.mean
		out.mean += off / out.n
		squares += off * (x - out.mean)
	}
	if out.n > 1 {
		out.variance = squares / (out.n - 1)
	}
	return out
}

// beside are the values between moments, within a few seconds of one, and those within them. A
// second of one node is not quite one of another, so what lies next to a moment counts to it as far
// as it differs.
func (v view) beside(moments [][2]float64) (outside, inside sample) {
	const margin, reach = 2.0, 12.0
	var around, within []float64
	for i, m := range moments {
		low, high := m[0]-reach, m[1]+reach
		if i > 0 {
			low = max(low, moments[i-1][1]+margin)
		}
		if i+1 < len(moments) {
			high = min(high, moments[i+1][0]-margin)
		}
		a, b, c, d := v.place(low), v.place(m[0]-margin), v.place(m[1]+margin), v.place(high)
		around = append(around, v.s.Values[a:max(a, b)]...)
		around = append(around, v.s.Values[c:max(c, d)]...)
	}
	outside = summed(around)
	for _, m := range moments {
		a, b := v.place(m[0]-v.s.StepSeconds), v.place(m[1]+v.s.StepSeconds)
		strayed, n := 0.0, 0
		for _, x := range v.s.Values[a:max(a, b)] {
			if believed(x) {
				strayed += x - outside.mean
				n++
			}
		}
		if length := max(1, math.Round((m[1]-m[0])/v.s.StepSeconds)); n > 0 {
			within = append(within, outside.mean+strayed/length)
		}
	}
	inside = summed(within)
	inside.variance = max(inside.variance, outside.variance)
	return outside, inside
}

// jump is when the series itself moved most within a few seconds around the begin of a change: where two
// means differ most, in standard errors.
func (v view) jump(c model.Change) float64 {
	from, to := v.place(c.StartLowS-2*near), v.place(c.StartHighS+2*near)
	low, high := v.place(c.StartLowS-context), v.place(min(c.EndS, c.StartHighS+context))
	best, at := -1.0, c.StartS
	for k := max(from, low+1); k <= min(to, high-1); k++ {
		a, b := summed(v.s.Values[max(low, k-20):k]), summed(v.s.Values[k:min(high, k+20)])
		if a.n == 0 || b.n == 0 {
			continue
		}
		d := math.Abs(a.mean-b.mean) * math.Sqrt(a.n*b.n/(a.n+b.n))
		if d > best*(1+1e-9) {
			best, at = d, v.s.StartSeconds+float64(k)*v.s.StepSeconds
		}
	}
	return at
}
