package view_test

import (
	"strings"
	"testing"

	"pelt/finding"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
	"pelt/view"
	"pelt/words"
)

// comparePages are the comparisons that are golden files.
func comparePages(t *testing.T, l words.Language) map[string]view.Page {
	t.Helper()
	out := map[string]view.Page{}
	var metrics []*table.Metric
	for _, word := range strings.Split(finding.DefaultMetrics, ",") {
		metrics = append(metrics, table.Named(word)...)
	}
	variants, routers := sample.Variants(), sample.Routers()
	twice := sample.Variants()
	twice.Results = nil
	for _, r := range sample.Variants().Results {
		if r.Repeat < 2 && r.Cell["frame_bytes"] == model.Number(64) && r.Cell["direction"].Text == "up" {
			twice.Results = append(twice.Results, r)
		}
	}
	limit, err := table.ParseBound("goodput < -5%")
	testenv.Must(t, err)
	for name, q := range map[string]finding.Question{
		"compare-variants": {Docs: []*model.Document{&variants}},
		"compare-routers":  {Docs: []*model.Document{&routers[0], &routers[1]}, Limits: []table.Bound{limit}},
		"compare-twice":    {Docs: []*model.Document{&twice}, Base: "log"},
	} {
		q.Metrics = metrics
		c, err := finding.Compare(q.In(l))
		testenv.Must(t, err)
		out[name] = view.Compare(c)
	}
	return out
}
