package dut

import (
	"math"
	"slices"
	"time"

	"pelt/model"
)

// metric is what one series tells of the time between two samples; NaN if nothing.
type metric struct {
	name  string
	value func(a, b *taken) float64
}

// coreMetrics are those that each core has.
func coreMetrics(number int) []metric {
	split := func(pick func(model.CPUSplit) float64) func(a, b *taken) float64 {
		return func(a, b *taken) float64 {
			from, ok1 := a.core(number)
			to, ok2 := b.core(number)
			if s, ok := to.ticks.Since(from.ticks, number); ok && ok1 && ok2 {
				return pick(s)
			}
			return math.NaN()
		}
	}
	softirqs := func(pick func(core) uint32) func(a, b *taken) float64 {
		return func(a, b *taken) float64 {
			from, _ := a.core(number)
			to, _ := b.core(number)
			if !from.softirq || !to.softirq {
				return math.NaN()
			}
			n, ok := increase(pick(from), pick(to))
			if !ok {
				return math.NaN()
			}
			return float64(n) / (b.up - a.up)
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
		{"softirq_net_rx_hz", softirqs(func(c core) uint32 { return c.rx })},
		{"softirq_net_tx_hz", softirqs(func(c core) uint32 { return c.tx })},
	}
}

// routerMetrics are those of the whole router. A level is the mean of both ends.
var routerMetrics = []metric{
	{"cpu_busy_ratio", func(a, b *taken) float64 {
		if s, ok := b.all.Since(a.all, -1); ok {
			return s.Busy()
		}
		return math.NaN()
	}},
	{"softnet_dropped_pps", func(a, b *taken) float64 {
		if dropped, _, ok := backlog(a, b); ok {
			return float64(dropped) / (b.up - a.up)
		}
		return math.NaN()
	}},
	{"softnet_squeezed_hz", func(a, b *taken) float64 {
		if _, squeezed, ok := backlog(a, b); ok {
			return float64(squeezed) / (b.up - a.up)
		}
		return math.NaN()
	}},
	{"conntrack_entries", func(a, b *taken) float64 {
		if a.connections == nil || b.connections == nil {
			return math.NaN()
		}
		return (float64(*a.connections) + float64(*b.connections)) / 2
	}},
	{"clock_hz", func(a, b *taken) float64 { return (a.clockHz + b.clockHz) / 2 }},
	{"temperature_c", func(a, b *taken) float64 { return (a.temperatureC + b.temperatureC) / 2 }},
}

// span is the time between two samples that lie together.
type span struct{ a, b timed }

// spans are the times that were observed: between samples of one life of the router
// that are not much further apart than was asked for.
func spans(all []timed) (out []span) {
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.boots == b.boots && b.up > a.up && b.up-a.up <= longestGap(b.period) {
			out = append(out, span{a, b})
		}
	}
	return out
}

// longestGap is how far apart two samples of a period may be, in seconds, to tell of the time between.
func longestGap(period time.Duration) float64 { return 1.5*period.Seconds() + uptimeStep }

func (w *Watch) series(all []timed, measured time.Duration) (out []model.Series) {
	step := w.r.asked.Seconds()
	n := int(measured.Seconds()/step + 1e-6)
	observed := spans(all)
	add := func(m metric, core *int) {
		values := resample(observed, n, step, m.value)
		if slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) }) {
			s := model.Series{Metric: m.name, At: w.r.node, Core: core, StepSeconds: step, Values: values}
			out = append(out, s)
		}
	}
	for _, m := range routerMetrics {
		add(m, nil)
	}
	var cores []int
	for _, s := range all {
		for _, c := range s.cores {
			if at, found := slices.BinarySearch(cores, c.number); !found {
				cores = slices.Insert(cores, at, c.number)
			}
		}
	}
	for _, number := range cores {
		for _, m := range coreMetrics(number) {
			add(m, &number)
		}
	}
	return out
}

// resample spreads what is known of spans over n steps: the mean of a step, by the
// time that each span shares with it. A step of which less than half was observed is
// NaN.
func resample(observed []span, n int, step float64, value func(a, b *taken) float64) []float64 {
	sum, shared := make([]float64, n), make([]float64, n)
	for _, s := range observed {
		from, to := s.a.t, s.b.t
		if to <= 0 || from >= float64(n)*step {
			continue
		}
		v := value(s.a.taken, s.b.taken)
		if math.IsNaN(v) {
			continue
		}
		for i := max(0, int(from/step)); i < n && float64(i)*step < to; i++ {
			if both := min(to, float64(i+1)*step) - max(from, float64(i)*step); both > 0 {
				sum[i], shared[i] = sum[i]+v*both, shared[i]+both
			}
		}
	}
	for i := range sum {
		if shared[i] < step/2 {
			sum[i] = math.NaN()
		} else {
			sum[i] /= shared[i]
		}
	}
	return sum
}
