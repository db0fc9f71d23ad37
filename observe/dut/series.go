package dut

import (
	"maps"
	"math"
	"slices"
	"time"

	"pelt/model"
	"pelt/observe/counters"
)

// metric is what one series tells of the time between two samples; NaN if nothing.
type metric struct {
	name  string
	value func(a, b *reading) float64
}

// coreMetrics are those that each core has.
func coreMetrics(number int) []metric {
	split := func(pick func(model.CPUSplit) float64) func(a, b *reading) float64 {
		return func(a, b *reading) float64 {
			if s, ok := b.Core(a.Processors, number); ok {
				return pick(s)
			}
			return math.NaN()
		}
	}
	return []metric{
		{"cpu_user_ratio", split(func(s model.CPUSplit) float64 { return s.User })},
		{"cpu_system_ratio", split(func(s model.CPUSplit) float64 { return s.System })},
		{"cpu_nice_ratio", split(func(s model.CPUSplit) float64 { return s.Nice })},
		{"cpu_idle_ratio", split(func(s model.CPUSplit) float64 { return s.Idle })},
		{"cpu_iowait_ratio", split(func(s model.CPUSplit) float64 { return s.IOWait })},
		{"cpu_irq_ratio", split(func(s model.CPUSplit) float64 { return s.IRQ })},
		{"cpu_softirq_ratio", split(func(s model.CPUSplit) float64 { return s.Softirq })},
		{"cpu_steal_ratio", split(func(s model.CPUSplit) float64 { return s.Steal })},
	}
}

// routerMetrics are those of the whole router. A level is the mean of both ends.
var routerMetrics = []metric{
	{"cpu_busy_ratio", func(a, b *reading) float64 {
		if s, ok := b.All.Since(a.All, -1); ok {
			return s.Busy()
		}
		return math.NaN()
	}},
	{"softnet_dropped_pps", func(a, b *reading) float64 {
		if dropped, _, ok := backlog(a, b); ok {
			return float64(dropped) / (b.up - a.up)
		}
		return math.NaN()
	}},
	{"softnet_squeezed_hz", func(a, b *reading) float64 {
		if _, squeezed, ok := backlog(a, b); ok {
			return float64(squeezed) / (b.up - a.up)
		}
		return math.NaN()
	}},
	{"conntrack_entries", func(a, b *reading) float64 {
		if a.connections == nil || b.connections == nil {
			return math.NaN()
		}
		return (float64(*a.connections) + float64(*b.connections)) / 2
	}},
	{"clock_hz", func(a, b *reading) float64 { return (a.clockHz + b.clockHz) / 2 }},
	{"temperature_c", func(a, b *reading) float64 { return (a.temperatureC + b.temperatureC) / 2 }},
}

// longestGap is how far apart two samples may be, in seconds, to tell of the time between.
func (r *Router) longestGap() float64 { return 1.5*r.period.Seconds() + uptimeStep }

// series are of the times that were observed: between samples of one life of the router
// that are not much further apart than a period.
func (w *Watch) series(all []timed, measured time.Duration) (out []model.Series) {
	step := w.r.period.Seconds()
	n := int(measured.Seconds()/step + 1e-6)
	add := func(m metric, core *int) {
		var spans []counters.Span
		for i := 1; i < len(all); i++ {
			a, b := all[i-1], all[i]
			if a.boots == b.boots && b.up > a.up && b.up-a.up <= w.r.longestGap() {
				spans = append(spans, counters.Span{From: a.t, To: b.t, Value: m.value(a.reading, b.reading)})
			}
		}
		values := counters.Resample(spans, n, step, 0.5)
		if slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) }) {
			s := model.Series{Metric: m.name, At: w.r.node, Core: core, StepSeconds: step, Values: values}
			out = append(out, s)
		}
	}
	for _, m := range routerMetrics {
		add(m, nil)
	}
	cores := map[int]bool{}
	for _, s := range all {
		for number := range s.Cores {
			cores[number] = true
		}
	}
	for _, number := range slices.Sorted(maps.Keys(cores)) {
		for _, m := range coreMetrics(number) {
			add(m, &number)
		}
	}
	return out
}
