package view_test

import (
	"slices"

	"pelt/model"
	"pelt/test/sample"
)

// day is a soak of 24 h with many cores watched, which loses 43 % from 14.4 h on.
func day() *model.Document {
	const n, from = 86400, 51840
	d, r := sample.Soaking(n)
	r.Series = r.Series[:3]
	sample.Spill(r, model.Line{Layer: "network", Host: "router", Cause: "QDISC_DROP"}, from, n,
		func(int) float64 { return 17200 })
	add := func(metric, flow, at string, core *int, before, after float64) {
		r.Series = append(r.Series, model.Series{Metric: metric, Flow: flow, At: at, Core: core, StepSeconds: 1,
			Values: slices.Concat(slices.Repeat([]float64{before}, from), slices.Repeat([]float64{after}, n-from))})
	}
	add("delay_p50_ns", "up", "receiver", nil, 1e5, 3e6)
	for core := range 8 {
		add("cpu_idle_ratio", "", "router", &core, 0.8-float64(core)/100, 0.05)
	}
	r.Changes = []model.Change{{Kind: model.ChangeShift, Metric: "receive_pps", Flow: "up", StartS: from,
		StartLowS: from, StartHighS: from, EndS: n, Before: 40e3, After: 22800, Size: -17200}}
	return &d
}
