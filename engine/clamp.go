package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"pelt/engine/tcpinfo"
	"pelt/model"
)

// Bounds of what a report of another host may hold: it may run another's program.
const (
	// OvertimeSeconds is how long a sender may have been on beyond its order: it is stopped after 3.
	OvertimeSeconds = 15
	maxErrnos       = 256
	maxWarnings     = 64
	maxBars         = 256 // of a distribution of gaps
)

// Clamp limits each figure of a remote report to its possible range, so that nothing after
// it meets a length or a ratio that cannot be.
func (r *Report) Clamp(t model.Timing) {
	steps := int(math.Ceil(t.MeasureSeconds+t.WarmupSeconds+t.DrainSeconds)) + OvertimeSeconds
	r.CPU.Clamp()
	if r.Engine != "tcp" && !slices.Contains(model.Engines, r.Engine) {
		r.Engine = ""
	}
	r.Why = model.Clip(r.Why)
	if n := len(r.Warnings); n > maxWarnings {
		r.Warnings = append(atMost(r.Warnings, maxWarnings), fmt.Sprintf("%d more warnings are left out", n-maxWarnings))
	}
	for i, w := range r.Warnings {
		r.Warnings[i] = model.Clip(w)
	}
	r.Disturbed = slices.DeleteFunc(atMost(r.Disturbed, model.MaxStreams), func(d model.Reason) bool {
		return !slices.Contains([]string{model.HostSlept, model.InterfaceGone, model.InterfaceMTU}, d.Code)
	})
	for i, d := range r.Disturbed {
		r.Disturbed[i] = model.Reason{Code: d.Code, Name: model.Clip(d.Name), Numbers: d.Numbers}
	}
	if s := r.Send; s != nil {
		s.PerStep, s.GapCounts = atMost(s.PerStep, steps), atMost(s.GapCounts, maxBars)
		if s.Asked != nil {
			s.Asked.GapCounts = atMost(s.Asked.GapCounts, maxBars)
		}
		s.Series = slices.DeleteFunc(model.ClampSeries(s.Series, t.WarmupSeconds+t.MeasureSeconds+OvertimeSeconds),
			func(x model.Series) bool { return !tcpinfo.IsMetric(x.Metric) })
		clampTCP(s.TCP, min(len(s.Streams), model.MaxStreams))
		clampConnections(s.Connections, steps)
		s.Refused, s.Errnos = atMost(s.Refused, len(s.Streams)), atMost(s.Errnos, maxErrnos)
		s.Silent = min(max(s.Silent, 0), len(s.Streams))
		for i, name := range s.Errnos {
			s.Errnos[i] = model.Clip(name)
		}
		clampCounts(s.Errors)
		clampCounts(s.Unsent)
	}
	if in := r.Receive; in != nil {
		clampTCP(in.TCP, model.MaxStreams)
		in.Missing = atMost(in.Missing, model.MaxStreams)
		in.Tally.PerStep, in.Tally.StepBytes = atMost(in.Tally.PerStep, steps), atMost(in.Tally.StepBytes, steps)
	}
	if p := r.Probe; p != nil {
		if !p.RoundTrip.Ordered() {
			p.RoundTrip = nil
		}
		p.Facts.Clamp(uint64(steps * maxProbePPS))
	}
}

func atMost[T any](list []T, n int) []T { return list[:min(len(list), n)] }

func clampTCP(f *model.TCPFacts, streams int) {
	if f == nil {
		return
	}
	f.PerStream, f.Control = atMost(f.PerStream, streams), model.Clip(f.Control)
	for i := range f.PerStream {
		s := &f.PerStream[i]
		s.Control, s.StartSeconds, s.GoodputBPS = model.Clip(s.Control), max(s.StartSeconds, 0), max(s.GoodputBPS, 0)
	}
	for _, s := range []*float64{&f.BusyS, &f.RwndLimitedS, &f.SndbufLimitedS} {
		if !(*s >= 0 && *s < 1e12) {
			*s = 0
		}
	}
	if c := f.Completion; c != nil && !(c.Seconds >= 0 && c.Seconds < 1e9) {
		f.Completion = nil
	}
}

func clampConnections(c *model.ConnectionFacts, steps int) {
	if c == nil {
		return
	}
	c.Mode, c.Ended, c.PerSecond = model.Clip(c.Mode), model.Clip(c.Ended), atMost(c.PerSecond, steps)
	c.OpenMax = min(c.OpenMax, model.MaxConnections)
	if !c.SetUp.Ordered() {
		c.SetUp = nil
	}
	clampCounts(c.Failed)
}

// clampCounts leaves out counts whose names are long, or that are too many.
func clampCounts(of map[string]uint64) {
	maps.DeleteFunc(of, func(name string, _ uint64) bool { return model.Clip(name) != name })
	for _, name := range slices.Sorted(maps.Keys(of))[min(len(of), maxErrnos):] {
		delete(of, name)
	}
}
