package controls

import (
	"math"
	"slices"
	"strconv"

	"pelt/model"
	"pelt/report/internal/words"
)

// Line is one figure of a trial over time. A value is the mean of its step.
type Line struct {
	Stream      string // "", or which of several it is
	Start, Step float64
	Values      []float64
}

// Timeline is what a trial's seconds show.
type Timeline struct {
	Goodput []Line // bit/s
	Source  string // what the goodput is taken from
	RTT     []Line // ns, of the transfer's own TCP
	Window  []Line // segments
	Left    int    // streams beyond mostStreams
}

// mostStreams bounds the lines of one trial.
const mostStreams = 8

// Sources of a timeline's goodput, the best first.
const (
	SourceAcked    = "bytes acknowledged"
	SourceDelivery = "TCP's own estimate of its delivery rate"
	SourceReceiver = "payload that arrived"
)

func drawable(r model.Result) bool {
	return slices.ContainsFunc(r.Series, func(s model.Series) bool {
		return usable(s) && (s.Metric == "tcp_acked_bytes" || s.Metric == "tcp_delivery_bps" || s.Metric == "goodput_bps" || s.Metric == "tcp_rtt_ns")
	})
}

func usable(s model.Series) bool {
	return len(s.Values) > 0 && s.Core == nil && s.StepSeconds > 0 && finite(s.StepSeconds) && finite(s.StartSeconds)
}

// NewTimeline takes a trial's series apart.
func NewTimeline(r model.Result) Timeline {
	var t Timeline
	flow := ""
	if f := Flow(r); f != nil {
		flow = f.Name
	}
	pick := func(metric string, change func(model.Series) model.Series) (out []Line, left int) {
		for _, s := range r.Series {
			if s.Metric != metric || s.Flow != flow || !usable(s) {
				continue
			}
			if len(out) == mostStreams {
				left++
				continue
			}
			if change != nil {
				s = change(s)
			}
			out = append(out, Line{streamName(r, s.Stream), s.StartSeconds, s.StepSeconds, s.Values})
		}
		return out, left
	}
	for _, source := range []struct {
		metric, words string
		change        func(model.Series) model.Series
	}{{"tcp_acked_bytes", SourceAcked, growth}, {"tcp_delivery_bps", SourceDelivery, nil}, {"goodput_bps", SourceReceiver, nil}} {
		if t.Goodput, t.Left = pick(source.metric, source.change); len(t.Goodput) > 0 {
			t.Source = source.words
			break
		}
	}
	t.RTT, _ = pick("tcp_rtt_ns", nil)
	t.Window, _ = pick("tcp_cwnd_segments", nil)
	return t
}

// streamName tells streams apart: "1 cubic".
func streamName(r model.Result, stream *int) string {
	if stream == nil {
		return ""
	}
	text := strconv.Itoa(*stream + 1)
	if f := Flow(r); f != nil && *stream >= 0 && *stream < len(f.TCP.PerStream) {
		text += " " + words.Name(f.TCP.PerStream[*stream].Control)
	}
	return text
}

// growth makes bits a second of bytes since the start. A reading that is missing
// leaves a gap, and what came in it counts for all of its steps.
func growth(s model.Series) model.Series {
	out := make([]float64, max(0, len(s.Values)-1))
	for i := range out {
		out[i] = math.NaN()
	}
	last := -1
	for i, v := range s.Values {
		if !finite(v) {
			continue
		}
		if last >= 0 {
			rate := (v - s.Values[last]) * 8 / (float64(i-last) * s.StepSeconds)
			if rate < 0 {
				rate = math.NaN()
			}
			for n := last; n < i; n++ {
				out[n] = rate
			}
		}
		last = i
	}
	s.Values = out
	return s
}
