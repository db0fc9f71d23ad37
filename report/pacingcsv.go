package report

import (
	"slices"

	"pelt/model"
)

// paced reports whether any flow was sent by a profile.
func paced(doc model.Document) bool {
	return slices.ContainsFunc(doc.Results, func(r model.Result) bool {
		return slices.ContainsFunc(r.Flows, func(f model.FlowResult) bool { return f.Pacing != nil })
	})
}

// pacingColumns are what profiles asked, and how far from that packets left.
func pacingColumns() []column {
	of := func(get func(*model.Pacing) *model.Percentiles) func(model.FlowResult) *model.Percentiles {
		return func(f model.FlowResult) *model.Percentiles {
			if f.Pacing == nil {
				return nil
			}
			return get(f.Pacing)
		}
	}
	columns := []column{
		{"send_profile", func(_ model.Result, f model.FlowResult) string {
			if f.Pacing == nil {
				return ""
			}
			return csvText(f.Pacing.Profile)
		}},
		{"gap_distance_ratio", func(_ model.Result, f model.FlowResult) string {
			if f.Pacing == nil || f.Pacing.Distance == nil {
				return ""
			}
			return csvFloat(*f.Pacing.Distance)
		}},
	}
	columns = append(columns, quantileColumns("asked_gap", of(func(p *model.Pacing) *model.Percentiles { return p.AskedGap }))...)
	return append(columns, quantileColumns("send_late", of(func(p *model.Pacing) *model.Percentiles { return p.Late }))...)
}
