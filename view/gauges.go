package view

import (
	"regexp"
	"slices"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
)

// Gauge is one figure for programs that watch it, in the units and names of Prometheus.
type Gauge struct {
	Name, Help string
	Samples    []Sample
	Counter    bool // it only grows
}

// Sample is a gauge's value under some labels.
type Sample struct {
	Labels []Label
	Value  float64
}

// Label is a name, and which of the samples this is.
type Label struct{ Name, Value string }

// measuredGauges are the gauges that are metrics of flows. A count is the sum of the valid trials, another figure
// their median. A gauge that has several lines has them beside each other.
var measuredGauges = []struct {
	name, help, metric, quantile string
	scale                        float64 // from the metric's unit
	sum                          bool
}{
	{"pelt_sent_packets", "Packets sent.", "attempted_packets", "", 1, true},
	{"pelt_received_packets", "Packets received, without duplicates.", "received_packets", "", 1, true},
	{"pelt_reordered_packets", "Packets received out of order.", "reordered_packets", "", 1, true},
	{"pelt_duplicate_packets", "Packets received again.", "duplicate_packets", "", 1, true},
	{"pelt_loss_ratio", "Share of the sent packets that were lost.", "loss_ratio", "", 1, false},
	{"pelt_receive_packets_per_second", "Rate of received packets.", "receive_pps", "", 1, false},
	{"pelt_goodput_bits_per_second", "Received payload.", "goodput_bps", "", 1, false},
	{"pelt_loss_free_packets_per_second", "Highest rate that meets the goal of a search.", "throughput_pps", "", 1, false},
	{"pelt_delay_seconds", "One-way delay.", "delay_p50_ns", "0.5", 1e-9, false},
	{"pelt_delay_seconds", "One-way delay.", "delay_p99_ns", "0.99", 1e-9, false},
	{"pelt_round_trip_seconds", "Round trip.", "round_trip_p50_ns", "0.5", 1e-9, false},
	{"pelt_round_trip_seconds", "Round trip.", "round_trip_p99_ns", "0.99", 1e-9, false},
	{"pelt_jitter_seconds", "Jitter (RFC 3550).", "jitter_ns", "", 1e-9, false},
	{"pelt_tcp_resent_ratio", "Share of TCP segments that were sent again.", "retransmit_ratio", "", 1, false},
	{"pelt_router_cpu_busy_ratio", "Share of the router's processor time in use.", "router_busy_ratio", "", 1, false},
	{"pelt_router_softirq_ratio", "Share of the router's processor time in softirq.", "router_softirq_ratio", "", 1,
		false},
}

// Gauges are the figures of a run. What was not measured is absent.
func Gauges(doc *model.Document) []Gauge {
	target := []Label{{"target", doc.Plan.Target}}
	gauge := func(name, help string, value float64, more ...Label) Gauge {
		return Gauge{Name: name, Help: help, Samples: []Sample{{append(slices.Clone(target), more...), value}}}
	}
	ran := slices.ContainsFunc(doc.Results, func(r model.Result) bool { return r.State != model.Aborted })
	list := []Gauge{gauge("pelt_up", "1 if the far end took part in a trial, else 0.", oneIf(ran))}
	if doc.Tool.Version != "" && doc.Tool.Name == "" {
		list = append(list, gauge("pelt_build_info", "The version of pelt that ran the test.", 1,
			Label{"version", doc.Tool.Version}))
	}
	if len(doc.Results) == 0 {
		return list
	}
	failed, trials := finding.Failed(doc)
	list = append(list,
		gauge("pelt_run_valid", "1 if every trial ran as ordered, else 0.", oneIf(failed == 0)),
		gauge("pelt_run_trials", "Trials of the run.", float64(trials)),
		gauge("pelt_run_start_timestamp_seconds", "When the run began.", float64(doc.Started.UnixMilli())/1e3))

	all := table.Rows(doc)
	rows := append(table.Unsearched(all), finding.TypicalSearches(all)...)
	groups := table.By(rows, gaugeKeys(rows)...)
	for _, m := range measuredGauges {
		g := Gauge{Name: m.name, Help: m.help}
		for _, group := range groups {
			stat := group.Stat(table.MetricOf(m.metric))
			if stat.N == 0 {
				continue
			}
			s := Sample{append(slices.Clone(target), groupLabels(group)...), stat.Median * m.scale}
			if m.sum {
				s.Value = group.Sum(m.metric)
			}
			if m.quantile != "" {
				s.Labels = append(s.Labels, Label{"quantile", m.quantile})
			}
			g.Samples = append(g.Samples, s)
		}
		list = append(list, g)
	}
	list = slices.DeleteFunc(append(list, lostGauge(groups, target)), func(g Gauge) bool { return g.Samples == nil })
	return JoinGauges(list)
}

// JoinGauges are the figures of several runs of different targets: a gauge that several have stands once.
func JoinGauges(lists ...[]Gauge) (all []Gauge) {
	for _, g := range slices.Concat(lists...) {
		i := slices.IndexFunc(all, func(o Gauge) bool { return o.Name == g.Name })
		if i < 0 {
			all = append(all, Gauge{Name: g.Name, Help: g.Help, Counter: g.Counter})
			i = len(all) - 1
		}
		all[i].Samples = append(all[i].Samples, g.Samples...)
	}
	return all
}

// lostGauge has the lost packets by layer, host and cause: of UDP they add up to all that were lost.
func lostGauge(groups []table.Group, target []Label) Gauge {
	lost := Gauge{Name: "pelt_lost_packets", Help: "Lost packets, by where and why they were lost."}
	for _, group := range groups {
		labels := append(slices.Clone(target), groupLabels(group)...)
		add := func(layer, host, cause string, packets float64) {
			lost.Samples = append(lost.Samples, Sample{append(slices.Clone(labels), Label{"layer", layer},
				Label{"host", host}, Label{"cause", cause}), packets})
		}
		for _, l := range table.Losses(group.Rows) {
			if l.Layer != table.Unattributed {
				add(l.Layer, l.Host, l.Cause, l.Packets)
			}
		}
		// Also where it is 0: a dashboard shows that nothing was lost, not a gap.
		if group.Stat(table.MetricOf("unattributed_packets")).N > 0 {
			add(table.Unattributed, "", "", group.Sum("unattributed_packets"))
		}
	}
	return lost
}

// gaugeKeys are what tells the samples of a run apart: the settings of its cells, and each flow.
func gaugeKeys(rows []table.Row) []table.Key {
	keys := table.Settings(rows, "pair")
	for _, name := range []string{"from", "to", "flow", "payload_bytes", "goal_loss_ratio"} {
		if !slices.ContainsFunc(keys, func(k table.Key) bool { return k.Name == name }) {
			keys = append(keys, table.KeyOf(name))
		}
	}
	return keys
}

// gaugeLabels are the labels whose names are not those of keys. Which way a flow goes is its direction; the setting
// of that name may be "both".
var gaugeLabels = map[string]string{"flow": "direction", "direction": "set_direction", "payload_bytes": "payload"}

var notInLabel = regexp.MustCompile(`[^a-zA-Z0-9_]`)

func groupLabels(g table.Group) (labels []Label) {
	for i, k := range g.Keys {
		l := g.Levels[i]
		if !l.Known {
			continue
		}
		name, ok := gaugeLabels[k.Name]
		if !ok {
			name = notInLabel.ReplaceAllString(k.Name, "_")
		}
		labels = append(labels, Label{name, l.String()})
	}
	return labels
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
