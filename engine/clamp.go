package engine

import (
	"math"
	"slices"

	"pelt/engine/tcpinfo"
	"pelt/model"
)

// Bounds of what a report of another host may hold: it may run another's program.
const (
	// OvertimeSeconds is how long a sender may have been on beyond its order: it is stopped after 3.
	OvertimeSeconds = 15
	maxICMP         = 64
	maxQuoted       = 1024 // of one kind
	maxErrnos       = 256
	maxWarnings     = 64
	maxBars         = 256 // of a distribution of gaps
)

// Clamp limits a remote report to what a trial of that timing can hold, so that nothing after it meets a length or a
// ratio that cannot be.
func (r *Report) Clamp(t model.Timing) {
	model.Clamp(r)
	steps := int(math.Ceil(t.MeasureSeconds+t.WarmupSeconds+t.DrainSeconds)) + OvertimeSeconds
	if r.Engine != "tcp" && !slices.Contains(model.Engines, r.Engine) {
		r.Engine = ""
	}
	if n := len(r.Warnings); n > maxWarnings {
		r.Warnings = append(atMost(r.Warnings, maxWarnings),
			model.NewReason(model.MoreDoubts, "doubts", float64(n-maxWarnings)))
	}
	r.Warnings.Clip()
	r.Why = atMost(r.Why, maxWarnings)
	r.Why.Clip()
	r.Disturbed = slices.DeleteFunc(atMost(r.Disturbed, model.MaxStreams), func(d model.Reason) bool {
		return !slices.Contains([]string{model.HostSlept, model.InterfaceGone, model.InterfaceMTU}, d.Code)
	})
	for i, d := range r.Disturbed {
		r.Disturbed[i] = model.Reason{Code: d.Code, Name: d.Name, Numbers: d.Numbers}
	}
	if s := r.Send; s != nil {
		s.PerStep, s.GapCounts = atMost(s.PerStep, steps), atMost(s.GapCounts, maxBars)
		if s.Asked != nil {
			s.Asked.GapCounts = atMost(s.Asked.GapCounts, maxBars)
		}
		s.Series = slices.DeleteFunc(model.ClampSeries(s.Series, t.WarmupSeconds+t.MeasureSeconds+OvertimeSeconds),
			func(x model.Series) bool { return !tcpinfo.IsMetric(x.Metric) })
		if s.TCP != nil {
			s.TCP.PerStream = atMost(s.TCP.PerStream, min(len(s.Streams), model.MaxStreams))
		}
		if c := s.Connections; c != nil {
			c.PerSecond, c.OpenMax = atMost(c.PerSecond, steps), min(c.OpenMax, model.MaxConnections)
		}
		s.Refused, s.Errnos = atMost(s.Refused, len(s.Streams)), atMost(s.Errnos, maxErrnos)
		s.ICMP = atMost(s.ICMP, maxICMP)
		for i, e := range s.ICMP {
			s.ICMP[i].Of = slices.DeleteFunc(atMost(e.Of, maxQuoted), func(x model.Span) bool {
				return x.Stream < 0 || x.Stream >= len(s.Streams) || x.Count != 1
			})
		}
		s.Silent, s.Moved = min(max(s.Silent, 0), len(s.Streams)), clampMoves(s.Moved)
	}
	if in := r.Receive; in != nil {
		if in.TCP != nil {
			in.TCP.PerStream = atMost(in.TCP.PerStream, model.MaxStreams)
		}
		in.Missing, in.Moved = atMost(in.Missing, model.MaxStreams), clampMoves(in.Moved)
		in.Tally.PerStep, in.Tally.StepBytes = atMost(in.Tally.PerStep, steps), atMost(in.Tally.StepBytes, steps)
	}
	if p := r.Probe; p != nil && p.Facts != nil {
		p.Facts.Sent = min(p.Facts.Sent, uint64(steps*maxProbePPS))
		p.Facts.Answered = min(p.Facts.Answered, p.Facts.Sent)
	}
}

func clampMoves(list []Move) []Move {
	return slices.DeleteFunc(atMost(list, MostMoves), func(m Move) bool {
		return m.Stream < 0 || m.Stream >= model.MaxStreams || !m.From.IsValid() || !m.To.IsValid()
	})
}

func atMost[T any](list []T, n int) []T { return list[:min(len(list), n)] }
