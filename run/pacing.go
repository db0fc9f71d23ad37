package run

import (
	"pelt/engine"
	"pelt/measure"
	"pelt/model"
)

// toldDistance is the share of gaps unlike the profile from which on a trial warns.
const toldDistance = 0.1

// addPacing puts what a flow's profile asked beside what its sender did.
func addPacing(r *model.FlowResult, f model.Flow, s engine.SendReport) {
	if f.Profile == nil || s.Asked == nil {
		return
	}
	p := &model.Pacing{Profile: f.Profile.Words(f.Rate), Seed: f.Profile.Seed, AskedGap: s.Asked.Gap,
		AskedGaps: s.Asked.GapCounts}
	if d, ok := measure.GapDistance(s.Asked.GapCounts, s.GapCounts); ok {
		p.Distance = &d
	}
	if f.Profile.Kind == model.TraceProfile {
		if gaps, err := model.ReadTraceText(f.Profile.Trace); err == nil {
			p.Rounds = float64(s.Planned) / float64(len(gaps))
		}
	}
	r.Pacing = p
}

// profileWarnings says how the gaps of a flow differ from its profile.
func profileWarnings(f model.FlowResult) (list model.Reasons) {
	if d := f.Pacing.Distance; d != nil && *d > toldDistance {
		list = append(list, model.NewReason(model.GapsDiffer, "flow", f.Name, "differ_ratio", *d))
	}
	if l := f.SendLate; l != nil && l.Max > stillNanos {
		list = append(list, model.Reason{Code: model.Paused, Flow: f.Name})
	}
	return list
}
