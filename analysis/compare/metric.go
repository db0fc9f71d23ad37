package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
)

// metric is one figure that is compared.
type metric struct {
	name     string // in documents
	word     string // in --metric and --fail-if
	group    string // further word of --metric
	kind     string // model.Relative or model.Points
	ofRouter bool   // of a trial, not of a flow
	// resolution is a change that pelt's own measure is not sure of, however well
	// repeats agree: a ratio, or points.
	resolution float64
	value      func(model.Result, model.FlowResult) float64 // NaN if not measured
}

// Rates are counted packet by packet but end with a clock's tick, delays come from
// histograms with buckets of about 1 %, processor time from ticks of 10 ms in a
// trial of seconds.
const (
	rateResolution  = 0.001
	delayResolution = 0.01
	lossResolution  = 0.0001
	cpuResolution   = 0.005
)

// leastBusy is a share of busy processors below which goodput per percent of it is
// made of the ticks alone.
const leastBusy = 0.01

// metrics is the one table of what is compared, in the order it is told.
func metrics() []metric {
	return []metric{
		{"receive_pps", "pps", "", model.Relative, false, rateResolution, func(_ model.Result, f model.FlowResult) float64 {
			if f.Protocol == model.TCP {
				return math.NaN() // segments are joined on their way as hosts like
			}
			return f.ReceivePPS
		}},
		{"goodput_bps", "goodput", "", model.Relative, false, rateResolution, func(_ model.Result, f model.FlowResult) float64 { return f.GoodputBPS }},
		{"loss_ratio", "loss", "", model.Points, false, lossResolution, func(_ model.Result, f model.FlowResult) float64 {
			if f.Attempted == 0 {
				return math.NaN()
			}
			return f.LossRatio
		}},
		{"delay_p50_ns", "delay_p50", "delay", model.Relative, false, delayResolution, func(_ model.Result, f model.FlowResult) float64 { return quantile(f.Delay, false) }},
		{"delay_p99_ns", "delay_p99", "delay", model.Relative, false, delayResolution, func(_ model.Result, f model.FlowResult) float64 { return quantile(f.Delay, true) }},
		{"round_trip_p50_ns", "delay_p50", "delay", model.Relative, false, delayResolution, func(_ model.Result, f model.FlowResult) float64 {
			if f.Delay != nil {
				return math.NaN()
			}
			return quantile(f.RoundTrip, false)
		}},
		{"round_trip_p99_ns", "delay_p99", "delay", model.Relative, false, delayResolution, func(_ model.Result, f model.FlowResult) float64 {
			if f.Delay != nil {
				return math.NaN()
			}
			return quantile(f.RoundTrip, true)
		}},
		{"router_cpu_busy_ratio", "cpu", "cpu", model.Points, true, cpuResolution, func(r model.Result, _ model.FlowResult) float64 { return busy(r) }},
		{"router_cpu_softirq_ratio", "softirq", "cpu", model.Points, true, cpuResolution, func(r model.Result, _ model.FlowResult) float64 {
			if r.Router == nil || r.Router.CPU == nil {
				return math.NaN()
			}
			return r.Router.CPU.Softirq
		}},
		{"goodput_per_cpu_percent_bps", "goodput_per_cpu", "cpu", model.Relative, true, 2 * cpuResolution, func(r model.Result, _ model.FlowResult) float64 {
			sum := 0.0
			for _, f := range r.Flows {
				sum += f.GoodputBPS
			}
			if b := busy(r); b >= leastBusy {
				return sum / (b * 100)
			}
			return math.NaN()
		}},
	}
}

func quantile(p *model.Percentiles, high bool) float64 {
	switch {
	case p == nil || p.Count == 0:
		return math.NaN()
	case high:
		return p.P99
	}
	return p.P50
}

func busy(r model.Result) float64 {
	if r.Router == nil || r.Router.CPU == nil {
		return math.NaN()
	}
	return r.Router.CPU.Busy()
}

// DefaultMetrics are the words for everything.
const DefaultMetrics = "goodput,pps,loss,delay,cpu"

// MetricWords lists what ParseMetrics knows, in order.
func MetricWords() []string {
	var words []string
	for _, m := range metrics() {
		for _, w := range []string{m.group, m.word} {
			if w != "" && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words
}

// Metrics are those that a comparison makes, by their words.
type Metrics []string

// ParseMetrics reads words as "goodput,cpu"; cpu and delay stand for all of theirs. An
// *AskError names the first that is unknown.
func ParseMetrics(text string) (Metrics, error) {
	var list Metrics
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		known := false
		for _, m := range metrics() {
			if word == m.word || word == m.group {
				known = true
				if !slices.Contains(list, m.word) {
					list = append(list, m.word)
				}
			}
		}
		if !known || word == "" {
			return nil, &AskError{fmt.Sprintf("no metric %q; want some of %s", word, strings.Join(MetricWords(), ","))}
		}
	}
	return list, nil
}

func (l Metrics) has(m metric) bool { return slices.Contains(l, m.word) }

func findMetric(name string) metric {
	all := metrics()
	return all[slices.IndexFunc(all, func(m metric) bool { return m.name == name })]
}
