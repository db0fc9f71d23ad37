package run

import (
	"fmt"
	"slices"
	"time"

	"pelt/fleet"
	"pelt/model"
)

// heard returns the time of the oldest last sample of all ends that sent any.
func (s *soFar) heard() time.Time {
	until := s.begun
	for _, f := range s.now {
		for _, e := range f.ends {
			if !e.at.IsZero() && (until.Equal(s.begun) || e.at.Before(until)) {
				until = e.at
			}
		}
	}
	return until
}

// untilCut returns the account of a trial that was cut, up to the last samples; ok is false
// without samples.
func (s *soFar) untilCut(out fleet.Outcome) (known model.Result, ok bool) {
	if s == nil || s.begun.IsZero() || out.Cut == "" {
		return model.Result{}, false
	}
	return model.Unfinished([]model.Checkpoint{s.checkpoint(s.heard(), 0)}), true
}

// useCheckpoint replaces the figures of flows that lack the report of an end by those of the
// samples: otherwise all packets would count as lost, or none as sent.
func useCheckpoint(r *model.Result, out fleet.Outcome, known model.Result) {
	for i, o := range out.Flows {
		if i >= len(known.Flows) || known.Flows[i].Attempted == 0 || !missing(o) {
			continue
		}
		told := known.Flows[i]
		at := slices.IndexFunc(r.Flows, func(f model.FlowResult) bool { return f.Name == told.Name })
		if at < 0 { // one of a star's, whose ends are one machine
			continue
		}
		f := &r.Flows[at]
		told.SenderCPU, told.ReceiverCPU, told.SendGap, told.GapCounts, told.SendLate = f.SenderCPU, f.ReceiverCPU,
			f.SendGap, f.GapCounts, f.SendLate
		*f = told
		for _, x := range known.Series {
			if x.Flow == told.Name && !slices.ContainsFunc(r.Series,
				func(have model.Series) bool { return have.Flow == x.Flow && have.Metric == x.Metric }) {
				r.Series = append(r.Series, x)
			}
		}
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("flow %s: the account of one end is missing; the figures are what had been told until t=%.1f s",
				f.Name, f.DurationS))
	}
	sortSeries(r.Series)
}
