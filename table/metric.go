package table

import (
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

type Better int

const (
	Neutral Better = 0 // neither way is better by itself
	Higher  Better = +1
	Lower   Better = -1
)

type Metric struct {
	Name   string // in files, base unit at the end
	Label  string // of columns and axes
	Unit   unit.Unit
	Better Better
	// Resolution is the largest difference that does not matter to anybody: a share,
	// or, of a metric in Ratio, a difference of ratios.
	Resolution float64
	// Value is the row's figure in base units; ok is false if the row has none, or
	// if nobody measured it. It looks at no state: an invalid trial has values, too.
	Value func(Row) (v float64, ok bool)
}

func (m *Metric) Format(v float64) string { return m.Unit.Format(v) }

// Points reports whether differences of the metric are told in points: of shares
// of a whole, which may be 0, a ratio says little.
func (m *Metric) Points() bool { return m.Unit == unit.Ratio }

func Metrics() []*Metric { return slices.Clone(metrics) }

// MetricOf returns a metric by its name. An unknown name is a bug.
func MetricOf(name string) *Metric {
	m, ok := FindMetric(name)
	if !ok {
		panic("no metric " + name)
	}
	return m
}

func FindMetric(name string) (m *Metric, ok bool) {
	i := slices.IndexFunc(metrics, func(m *Metric) bool { return m.Name == name })
	if i < 0 {
		return nil, false
	}
	return metrics[i], true
}

// The words that users write for metrics beside names and labels, as in --metric and --fail-if.
var shortWords = []struct {
	word  string
	names []string
}{
	{"pps", []string{"receive_pps"}},
	{"loss_free", []string{"throughput_pps"}},
	{"goodput", []string{"goodput_bps"}},
	{"loss", []string{"loss_ratio", "retransmit_ratio"}},
	{"delay", []string{"delay_p50_ns", "delay_p99_ns", "round_trip_p50_ns", "round_trip_p99_ns"}},
	{"delay_p50", []string{"delay_p50_ns", "round_trip_p50_ns"}},
	{"delay_p99", []string{"delay_p99_ns", "round_trip_p99_ns"}},
	{"cpu", []string{"router_busy_ratio"}},
	{"softirq", []string{"router_softirq_ratio"}},
	{"goodput_per_cpu", []string{"goodput_per_core_bps"}},
}

// Words lists the short words for metrics, in display order.
func Words() []string {
	var words []string
	for _, s := range shortWords {
		words = append(words, s.word)
	}
	return words
}

// Named returns the metrics that a user's text names: by name, by label or by a
// short word, in any case of letters. One that both sides lack is passed over by
// its callers, so "delay" may name one-way delays and round trips.
func Named(text string) []*Metric {
	text = strings.TrimSpace(text)
	var found []*Metric
	for _, s := range shortWords {
		if strings.EqualFold(text, s.word) {
			for _, name := range s.names {
				found = append(found, MetricOf(name))
			}
			return found
		}
	}
	for _, m := range metrics {
		if strings.EqualFold(text, m.Name) || strings.EqualFold(text, m.Label) {
			return []*Metric{m}
		}
	}
	return nil
}

// Measured reports whether a flow sent anything: else its zeros are no figures.
func Measured(f *model.FlowResult) bool {
	return f.Attempted > 0 || len(f.Told) > 0 || f.TCP != nil && (f.TCP.Writes > 0 || f.TCP.Completion != nil)
}
