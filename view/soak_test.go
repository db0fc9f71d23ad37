package view_test

import (
	"slices"
	"testing"

	"pelt/model"
	"pelt/test/sample"
	"pelt/view"
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

// A document from outside may have an idle_ratio that is no core's.
func TestSeriesOfNoCore(t *testing.T) {
	d := sample.LongSoak()
	d.Results[0].Series = append(d.Results[0].Series,
		model.Series{Metric: "idle_ratio", At: "router", StepSeconds: 1, Values: []float64{1}})
	if page := view.Run(&d); page.Verdict == "" {
		t.Error("no verdict")
	}
}
