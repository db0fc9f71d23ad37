package model

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of what one host may tell of itself: it may run another's program.
const (
	maxCounters = 16384
	maxSysctls  = 1024
	maxSites    = 4096 // as many as a watch's table holds
	maxUnread   = 64
	maxGaps     = 64
	maxSeries   = 8192
	maxValues   = 1 << 17
	maxGapText  = 4 * maxTextLength
	maxLines    = 256      // of a router's facts
	maxTexts    = 64       // of a router
	maxText     = 64 << 10 // bytes of one of them
)

// Clip cuts a text of another host to the longest that a report shows.
func Clip(text string) string { return text[:min(len(text), maxTextLength)] }

// Clamp limits an observation of another host to what a trial of these flows can hold.
func (o *Observation) Clamp(flows []Flow) {
	o.Counters = slices.DeleteFunc(o.Counters[:min(len(o.Counters), maxCounters)], func(c Counter) bool {
		return len(c.Name) > maxTextLength || len(c.Scope) > maxTextLength || len(c.Unit) > maxTextLength || c.Name == ""
	})
	for i := range o.Counters {
		c := &o.Counters[i]
		c.Host, c.Measure, c.IdleHz = "", min(c.Measure, c.Whole), notNegative(c.IdleHz)
	}
	o.Knobs = slices.DeleteFunc(o.Knobs[:min(len(o.Knobs), maxSysctls)], func(k HostSetting) bool {
		return len(k.Name) > maxTextLength || len(k.Value) > maxTextLength
	})
	o.Unread = clipAll(o.Unread, maxUnread, maxTextLength)
	o.Why, o.Boot, o.IdleS = Clip(o.Why), Clip(o.Boot), notNegative(o.IdleS)
	if o.Mode != DropsSeq && o.Mode != DropsCount {
		o.Mode = DropsOff
	}
	if o.Router != nil {
		o.Router.Clamp()
	}
	if d := o.Drops; d != nil {
		d.Flows = slices.DeleteFunc(d.Flows, func(told FlowDrops) bool {
			return !slices.ContainsFunc(flows, func(f Flow) bool {
				return f.Name == told.Flow && len(told.Streams) <= f.Streams && len(told.Counts) <= maxSites &&
					(told.Way == "" || len(told.Streams) == 0 && (told.Way == WayAsks || told.Way == WayAnswers))
			})
		})
		if len(d.Sites) > maxSites || slices.ContainsFunc(d.Sites, func(s Site) bool {
			return len(s.Reason) > maxTextLength || len(s.Function) > maxTextLength || len(s.Interface) > maxTextLength
		}) {
			o.Drops = nil
		}
	}
}

func (c *CPU) Clamp() {
	for _, share := range []*float64{&c.ThreadRatio, &c.HostRatio, &c.SoftirqRatio, &c.BusiestRatio, &c.StealRatio} {
		*share = min(notNegative(*share), 1)
	}
}

// Ordered reports whether percentiles can be those of a distribution; nil can.
func (p *Percentiles) Ordered() bool {
	if p == nil {
		return true
	}
	p95 := cmp.Or(p.P95, p.P90) // runs of before have none
	list := []float64{0, p.Min, p.P50, p.P90, p95, p.P99, p.P999, p.Max}
	return slices.IsSorted(list) && !slices.ContainsFunc(list, math.IsNaN)
}

// Clamp limits the account of at most so many probes; nil has none.
func (p *ProbeFacts) Clamp(most uint64) {
	if p == nil {
		return
	}
	p.Sent = min(p.Sent, most)
	p.Answered = min(p.Answered, p.Sent)
	p.JitterNS, p.IdleNS = notNegative(p.JitterNS), notNegative(p.IdleNS)
	for _, way := range []**Percentiles{&p.Up, &p.Down} {
		if !(*way).Ordered() {
			*way = nil
		}
	}
}

func (w *RouterWatch) Clamp() {
	w.Gaps, w.Cores = clipAll(w.Gaps, maxGaps, maxGapText), w.Cores[:min(len(w.Cores), maxSeries)]
}

// Clamp limits what another host tells of the router that it is.
func (f *RouterFacts) Clamp() {
	for _, text := range []*string{&f.Node, &f.Source, &f.System, &f.Model, &f.Firmware, &f.Kernel, &f.CPU} {
		*text = Clip(*text)
	}
	f.Cores = max(f.Cores, 0)
	for _, lines := range []*[]string{&f.Offload, &f.Tuning, &f.Untold} {
		*lines = clipAll(*lines, maxLines, maxGapText)
	}
	for _, texts := range []*[]Text{&f.Before, &f.After} {
		*texts = (*texts)[:min(len(*texts), maxTexts)]
		for i, t := range *texts {
			(*texts)[i] = Text{Clip(t.Name), t.Text[:min(len(t.Text), maxText)]}
		}
	}
}

// ClampSeries keeps the series of a host that lie within a trial of so many seconds.
func ClampSeries(all []Series, seconds float64) []Series {
	kept := slices.DeleteFunc(all[:min(len(all), maxSeries)], func(s Series) bool {
		return len(s.Metric) > maxTextLength || !(s.StepSeconds >= 0.001 && s.StepSeconds <= seconds) ||
			s.Stream != nil && (*s.Stream < 0 || *s.Stream >= MaxStreams) ||
			!(s.StartSeconds >= 0 && s.StartSeconds <= seconds)
	})
	for i := range kept {
		s := &kept[i]
		s.Values = s.Values[:min(len(s.Values), maxValues, int(seconds/s.StepSeconds)+1)]
	}
	return kept
}

func clipAll(texts []string, lines, length int) []string {
	texts = texts[:min(len(texts), lines)]
	for i, text := range texts {
		texts[i] = text[:min(len(text), length)]
	}
	return texts
}

// notNegative is the number, or 0 if it is none that can be.
func notNegative(f float64) float64 {
	if !(f >= 0) || math.IsInf(f, 0) { // NaN too
		return 0
	}
	return f
}
