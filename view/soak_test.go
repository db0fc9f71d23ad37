package view_test

import (
	"testing"

	"pelt/model"
	"pelt/test/sample"
	"pelt/view"
)

// day is a soak of 24 h with many cores watched, which loses 43 % from 14.4 h on.
func day() *model.Document {
	d := sample.LongSoak()
	r := &d.Results[0]
	const n, from = 86400, 51840
	series := func(metric, flow, at string, core *int, before, after float64) model.Series {
		s := model.Series{Metric: metric, Flow: flow, At: at, Core: core, StepSeconds: 1, Values: make([]float64,
			n)}
		for i := range s.Values {
			s.Values[i] = before
			if i >= from {
				s.Values[i] = after
			}
		}
		return s
	}
	lost := series("lost_pps", "up", "router", nil, 0, 17200)
	lost.Layer, lost.Cause = "network", "QDISC_DROP"
	r.Series = []model.Series{series("send_pps", "up", "sender", nil, 40e3, 40e3), series("receive_pps", "up",
		"receiver", nil, 40e3, 22800),
		series("lost_pps", "up", "sender", nil, 0, 17200), lost, series("delay_p50_ns", "up", "receiver", nil,
			1e5, 3e6)}
	for core := range 8 {
		r.Series = append(r.Series, series("cpu_idle_ratio", "", "router", &core, 0.8-float64(core)/100, 0.05))
	}
	r.Changes = []model.Change{{Kind: model.ChangeShift, Metric: "receive_pps", Flow: "up", StartS: from,
		StartLowS: from, StartHighS: from,
		EndS: n, Before: 40e3, After: 22800, Size: -17200}}
	f := &r.Flows[0]
	f.DurationS, f.Attempted, f.Lost = n, n*40e3, 17200*(n-from)
	f.Received = f.Attempted - f.Lost
	f.ReceivePPS, f.LossRatio = float64(f.Received)/n, float64(f.Lost)/float64(f.Attempted)
	f.Ledger = model.Ledger{Lost: f.Lost, Lines: []model.Line{{Layer: "network", Host: "router",
		Cause: "QDISC_DROP", Packets: f.Lost}}}
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
