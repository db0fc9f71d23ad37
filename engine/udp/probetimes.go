package udp

import (
	"math"
	"slices"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
)

// probeTimes are the times of a probe flow. The clocks of the two ends need not agree: what a
// direction takes is compared with the median of the lead, in which nothing else is sent. Over the seconds of a
// trial the clocks drift by microseconds.
type probeTimes struct {
	lead, from, to  int64 // of this host's clock: the end of the lead, and the measured part
	trip, out, back *measure.Histogram
	idle            [3][]int64 // round trip, out and back of the lead
	asked, heard    uint64     // of the measured part
	longest, last   int64      // round trips; last is -1 for none
	jitter          float64
	timing          model.Timing
}

func newProbeTimes(t model.Timing) *probeTimes {
	p := &probeTimes{trip: measure.NewHistogram(1), last: -1, timing: t}
	if t.LeadSeconds > 0 {
		p.out, p.back = measure.NewHistogram(1), measure.NewHistogram(1)
	}
	return p
}

func (p *probeTimes) begin(now int64) {
	p.lead = now + p.timing.Lead().Nanoseconds()
	p.from = p.lead + p.timing.Warmup().Nanoseconds()
	p.to = p.from + p.timing.Measure().Nanoseconds()
}

func (p *probeTimes) measured(sent int64) bool { return sent >= p.from && sent < p.to }

// sent counts a probe, and reports whether its answer is timed.
func (p *probeTimes) sent(at int64) bool {
	if p.measured(at) {
		p.asked++
	}
	return p.measured(at) || at < p.lead
}

// answered takes four moments of a probe: of this clock when it left and when its answer came, of the echo's when it
// came and when the answer left. It reports whether the probe is of the measured part.
func (p *probeTimes) answered(left, came, answered, back int64) bool {
	trip, way := back-left-(answered-came), came-left
	if back <= p.lead {
		for i, v := range [3]int64{trip, way, back - answered} {
			p.idle[i] = append(p.idle[i], v)
		}
	}
	if !p.measured(left) {
		return false
	}
	p.heard++
	p.trip.Record(0, trip, 1)
	if p.longest = max(p.longest, trip); p.last >= 0 { // RFC 3550 section 6.4.1
		p.jitter += (math.Abs(float64(trip-p.last)) - p.jitter) / 16
	}
	p.last = trip
	if len(p.idle[0]) > 0 {
		p.out.Record(0, max(way-middle(p.idle[1]), 0), 1)
		p.back.Record(0, max(back-answered-middle(p.idle[2]), 0), 1)
	}
	return true
}

// unanswered takes back a probe that was not answered at the end and may still be: it is not lost.
func (p *probeTimes) unanswered(sent, now int64) {
	if p.measured(sent) && now-sent < max(2*p.longest, leastWait) {
		p.asked--
	}
}

// leastWait is how long a probe waits at least until it counts as lost.
const leastWait = 100_000_000

// middle is the median, 0 of nothing. It sorts the list.
func middle(list []int64) int64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

func (p *probeTimes) report() *engine.ProbeReport {
	r := &engine.ProbeReport{RoundTrip: p.trip.Percentiles(), Facts: &model.ProbeFacts{
		Sent: p.asked, Answered: p.heard, JitterNS: p.jitter, IdleNS: float64(middle(p.idle[0]))}}
	if len(p.idle[0]) > 0 {
		r.Facts.Up, r.Facts.Down = p.out.Percentiles(), p.back.Percentiles()
	}
	return r
}
