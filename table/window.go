package table

import (
	"math"
	"slices"

	"pelt/model"
)

// Window is a stretch of a trial's measured part, in seconds after its start.
type Window struct {
	StartS, EndS float64
}

// Windows cuts a row's flow at the given times into rows with the figures of the
// time between: rates, losses and packets, from the series of whole seconds. A
// window in which nothing was heard has none.
func Windows(r Row, cuts []float64) []Row {
	sent, received := FlowSeries(r, "send_pps"), FlowSeries(r, "receive_pps")
	goodput, lost := FlowSeries(r, "goodput_bps"), FlowSeries(r, "lost_pps")
	if len(lost.Values) == 0 {
		lost = difference(sent, received)
	}
	end := max(seriesEnd(sent), seriesEnd(received))
	times := slices.Compact(slices.Sorted(slices.Values(append([]float64{0, end}, cuts...))))
	times = slices.DeleteFunc(times, func(t float64) bool { return !(t >= 0 && t <= end) })
	whole := r.Flow.Lost == 0 && r.Flow.Received > 0
	var out []Row
	for i := 1; i < len(times); i++ {
		w := Window{times[i-1], times[i]}
		f := r.Flow.Bare()
		f.DurationS = w.EndS - w.StartS
		f.SendPPS, f.ReceivePPS, f.GoodputBPS = w.mean(sent), w.mean(received), w.mean(goodput)
		missing := w.mean(lost)
		bits := 8 * float64(f.PayloadBytes)
		if math.IsNaN(f.GoodputBPS) && f.Protocol == model.UDP {
			f.GoodputBPS = f.ReceivePPS * bits
		}
		if whole && missing > 0 { // what was on its way at the cut arrived
			missing = 0
		}
		f.SendGoodputBPS, f.LossRatio = f.SendPPS*bits, min(1, max(0, missing/f.SendPPS))
		f.Attempted, f.Lost = packets(f.SendPPS*f.DurationS), packets(missing*f.DurationS)
		f.Received = f.Attempted - min(f.Lost, f.Attempted)
		if len(sent.Values) == 0 { // a sender that is no pelt tells its sum only
			f.Received = packets(f.ReceivePPS * f.DurationS)
			if f.Attempted = f.Received; whole {
				f.LossRatio = 0
			}
		}
		r.Window, r.Flow = &w, &f
		out = append(out, r)
	}
	return out
}

// partLengths are lengths that people count in, in seconds.
var partLengths = []float64{
	1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400,
}

// Parts are the cuts that make at most so many equal windows of a row's time, of
// a length that people count in; the last may be shorter.
func Parts(r Row, most int) []float64 {
	end := max(seriesEnd(FlowSeries(r, "send_pps")), seriesEnd(FlowSeries(r, "receive_pps")))
	length := partLengths[len(partLengths)-1]
	if i := slices.IndexFunc(partLengths, func(l float64) bool { return end <= l*float64(most) }); i >= 0 {
		length = partLengths[i]
	}
	for end > length*float64(most) {
		length *= 2
	}
	var cuts []float64
	for t := length; t < end; t += length {
		cuts = append(cuts, t)
	}
	return cuts
}

// ChangeCuts are the times at which a trial changed, in order: as planned, and where a
// level shifted or drifted by itself. A planned change takes effect within a second, so
// it is cut where a shift was found there, else where that second begins.
func ChangeCuts(t *model.Result) []float64 {
	var cuts, found []float64
	for _, c := range t.Changes {
		if c.Kind == model.ChangeShift || c.Kind == model.ChangeDrift {
			found = append(found, c.StartS, c.EndS)
		}
	}
	within := func(seconds, at float64) func(float64) bool {
		return func(other float64) bool { return math.Abs(other-at) <= seconds }
	}
	for _, m := range t.Made {
		at := math.Floor(m.AtS - m.TookS)
		if i := slices.IndexFunc(found, within(1, at)); i >= 0 {
			at = found[i]
		}
		if len(m.Failure) == 0 {
			cuts = append(cuts, at)
		}
	}
	for _, at := range found {
		if !slices.ContainsFunc(cuts, within(model.Together, at)) {
			cuts = append(cuts, at)
		}
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}

// longestSeries is more than any trial lasts, in seconds.
const longestSeries = 1e9

// FlowSeries is a series of a row's whole flow; without values if there is none.
func FlowSeries(r Row, metric string) model.Series {
	for _, s := range r.Trial.Series {
		part := s.Core != nil || s.Stream != nil || s.Layer != "" || s.Cause != ""
		if s.Metric == metric && s.Flow == r.Flow.Name && !part && s.StepSeconds > 0 && seriesEnd(s) < longestSeries {
			return s
		}
	}
	return model.Series{}
}

// difference is what was sent and not received in each step of which both are known.
// Packets on their way at its end count in the next one.
func difference(sent, received model.Series) model.Series {
	if sent.StartSeconds != received.StartSeconds || sent.StepSeconds != received.StepSeconds {
		return model.Series{}
	}
	values := make([]float64, min(len(sent.Values), len(received.Values)))
	for i := range values {
		values[i] = sent.Values[i] - received.Values[i]
	}
	sent.Values = values
	return sent
}

func seriesEnd(s model.Series) float64 {
	if len(s.Values) == 0 {
		return 0
	}
	return s.StartSeconds + s.StepSeconds*float64(len(s.Values))
}

// mean of the steps of a series that begin within the window; NaN if none was heard.
func (w Window) mean(s model.Series) float64 {
	if len(s.Values) == 0 {
		return math.NaN()
	}
	step := func(at float64) int {
		return int(min(max(math.Ceil((at-s.StartSeconds)/s.StepSeconds-1e-6), 0), float64(len(s.Values))))
	}
	return mean(s.Values[step(w.StartS):step(w.EndS)])
}

// packets is a number of them that may be unknown.
func packets(n float64) uint64 {
	if !(n > 0) {
		return 0
	}
	return uint64(min(n+0.5, 1e18))
}
