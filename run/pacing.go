package run

import (
	"fmt"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
	"pelt/unit"
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
func profileWarnings(f model.FlowResult) (list []string) {
	if d := f.Pacing.Distance; d != nil && *d > toldDistance {
		list = append(list,
			fmt.Sprintf("flow %s: %s or more of the gaps differ from the profile; a lower rate helps where they are short",
				f.Name, unit.FormatRatio(*d)))
	}
	if l := f.SendLate; l != nil && l.Max > stillNanos {
		list = append(list, fmt.Sprintf("flow %s: the sender paused for 0.1 s or longer", f.Name))
	}
	return list
}
