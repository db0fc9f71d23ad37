package view

import (
	"math"
	"testing"

	"pelt/design"
	"pelt/model"
	"pelt/table"
)

// TestAtLeast: the rate of a search that found no limit of the path is marked in its cell, too.
func TestAtLeast(t *testing.T) {
	rate := atLeast(metricColumns("throughput_pps"))[0]
	for limit, want := range map[design.Limit]string{design.PathLimit: "", design.SenderLimit: "≥ 1.00 kpps",
		design.EndLimit: "≥ 1.00 kpps", design.FloodLimit: "≥ 1.00 kpps", design.AskedLimit: "≥ 1.00 kpps"} {
		trial := &model.Result{State: model.Valid, Flows: []model.FlowResult{{}}}
		a := design.Answer{Bounds: design.Bounds{Lower: 1000, Upper: math.NaN(), Throughput: 1000, Limit: limit},
			Done: true, Trials: []*model.Result{trial}, Seen: []design.Observation{{Flood: true}}}
		row := table.Row{Doc: &model.Document{}, Trial: trial, Flow: &trial.Flows[0], Search: &table.Search{Answer: a}}
		if got := rate.cell(table.Group{Rows: []table.Row{row}}, 0); got.Text != want || got.Value != 1000 {
			t.Errorf("limit %v: %q, %v", limit, got.Text, got.Value)
		}
	}
}
