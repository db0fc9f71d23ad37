package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
)

// Bounds of what a report of another host may hold.
const (
	overtimeSeconds = 15   // that a sender may have been on beyond its order: it is stopped after 3
	maxWatchSeries  = 4096 // of one host: some metrics of each core
	maxErrnos       = 256
	maxBars         = 256 // of a distribution of gaps
)

// impossible says what in the accounts of a flow cannot be, "" if nothing. The
// ends may be other people's programs, or broken.
func impossible(f model.Flow, t model.Timing, o fleet.FlowOutcome) string {
	if o.Send == nil || o.Send.Send == nil || o.Receive == nil || o.Receive.Receive == nil {
		return fmt.Sprintf("flow %s: the account of one end is missing", f.Name)
	}
	s, in := o.Send.Send, o.Receive.Receive.Tally
	longest := (t.MeasureSeconds + overtimeSeconds) * 1e9
	span := float64(in.LastNanos) - float64(in.FirstNanos)
	var sum uint64
	for _, n := range s.Streams {
		sum += n
	}
	switch {
	case s.DurationNanos < 0 || float64(s.DurationNanos) > longest:
		return fmt.Sprintf("flow %s: the sender says it measured for %.3g s", f.Name, float64(s.DurationNanos)/1e9)
	case (s.Connections == nil) != (f.Connections == ""):
		return fmt.Sprintf("flow %s: the sender's account is of another kind of flow", f.Name)
	case s.Connections != nil && s.Connections.Established > s.Attempted:
		return fmt.Sprintf("flow %s: the sender says that %d of %d connections were established", f.Name, s.Connections.Established, s.Attempted)
	case s.Accepted > s.Attempted || sum != s.Attempted || len(s.Streams) != f.Streams:
		return fmt.Sprintf("flow %s: the sender's account does not add up: %d attempted, %d accepted, %d in %d streams", f.Name, s.Attempted, s.Accepted, sum, len(s.Streams))
	case span < 0 || span > longest+(t.WarmupSeconds+t.DrainSeconds)*1e9:
		return fmt.Sprintf("flow %s: the receiver says packets came for %.3g s", f.Name, span/1e9)
	case f.Protocol == model.UDP && (in.Received > s.Attempted || in.Bytes/uint64(f.PayloadBytes) != in.Received || in.Bytes%uint64(f.PayloadBytes) != 0):
		return fmt.Sprintf("flow %s: the receiver's account does not add up: %d packets and %d B of %d attempted", f.Name, in.Received, in.Bytes, s.Attempted)
	case f.Bytes > 0 && in.Bytes > f.Bytes:
		return fmt.Sprintf("flow %s: the receiver says it read %d B of %d", f.Name, in.Bytes, f.Bytes)
	case !ordered(s.Gap) || s.Asked != nil && !(ordered(s.Asked.Gap) && ordered(s.Asked.Late)) || !ordered(in.Delay) || !(in.JitterNanos >= 0):
		return fmt.Sprintf("flow %s: a distribution of times is out of order", f.Name)
	}
	return ""
}

// ordered says whether percentiles can be those of a distribution.
func ordered(p *model.Percentiles) bool {
	if p == nil {
		return true
	}
	last := 0.0
	for _, v := range []float64{p.Min, p.P50, p.P90, cmp.Or(p.P95, p.P90), p.P99, p.P999, p.Max} { // those of before have no P95
		if !(v >= last) {
			return false
		}
		last = v
	}
	return true
}

// tame bounds the figures of a report in place of the account that holds them,
// so that nothing after it meets a length or a ratio that cannot be.
func tame(o fleet.FlowOutcome, t model.Timing) fleet.FlowOutcome {
	steps := int(math.Ceil(t.MeasureSeconds+t.WarmupSeconds+t.DrainSeconds)) + overtimeSeconds
	cut := func(s []uint64) []uint64 { return s[:min(len(s), steps)] }
	load := func(r *engine.Report) *engine.Report {
		if r == nil {
			return nil
		}
		c := *r
		c.CPU.ThreadRatio = ratio(c.CPU.ThreadRatio)
		if !slices.Contains([]string{"", "udp", "tcp", "xdp"}, c.Engine) {
			c.Engine = ""
		}
		c.Why = c.Why[:min(len(c.Why), maxText)]
		if c.Send != nil {
			s := *c.Send
			s.PerStep = cut(s.PerStep)
			if s.Asked != nil {
				asked := *s.Asked
				asked.GapCounts = asked.GapCounts[:min(len(asked.GapCounts), maxBars)]
				s.Asked, s.GapCounts = &asked, s.GapCounts[:min(len(s.GapCounts), maxBars)]
			}
			if s.TCP != nil {
				s.TCP = tameTCP(*s.TCP, min(len(s.Streams), model.MaxStreams))
			}
			if s.Connections != nil {
				s.Connections = tameConnections(*s.Connections, steps)
			}
			s.Refused, s.Errnos = s.Refused[:min(len(s.Refused), len(s.Streams))], s.Errnos[:min(len(s.Errnos), maxErrnos)]
			if len(s.Unsent) > maxErrnos {
				s.Unsent = nil
			}
			c.Send = &s
		}
		if c.Receive != nil {
			in := *c.Receive
			if in.TCP != nil {
				in.TCP = tameTCP(*in.TCP, model.MaxStreams)
			}
			in.Missing = in.Missing[:min(len(in.Missing), model.MaxStreams)]
			in.Tally.PerStep, in.Tally.StepBytes = cut(in.Tally.PerStep), cut(in.Tally.StepBytes)
			c.Receive = &in
		}
		return &c
	}
	return fleet.FlowOutcome{Send: load(o.Send), Receive: load(o.Receive)}
}

// watched bounds what an agent saw of its host.
func watched(w fleet.Watched, t model.Timing) fleet.Watched {
	c := &w.CPU
	c.HostRatio, c.SoftirqRatio, c.BusiestRatio = ratio(c.HostRatio), ratio(c.SoftirqRatio), ratio(c.BusiestRatio)
	var kept []model.Series
	for _, s := range w.Series {
		whole := t.MeasureSeconds + overtimeSeconds
		if len(kept) == maxWatchSeries || !(s.StepSeconds > 0.01 && s.StepSeconds <= whole) || !(s.StartSeconds >= 0 && s.StartSeconds <= whole) {
			continue
		}
		s.Values = s.Values[:min(len(s.Values), int(whole/s.StepSeconds)+1)]
		kept = append(kept, s)
	}
	w.Series = kept
	return w
}

func ratio(r float64) float64 {
	if !(r > 0) { // not a number, too
		return 0
	}
	return min(r, 1)
}
