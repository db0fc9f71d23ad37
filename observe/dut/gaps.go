package dut

import (
	"fmt"
	"time"

	"pelt/observe/counters"
)

// event is what kept a router from being watched, or changed how it is.
type event struct {
	at   time.Time
	text string
	gap  bool // explains a gap; else it is told by itself
}

// maxEvents bounds what a connection that keeps failing leaves behind; the oldest are forgotten.
const maxEvents = 1000

// outage notes why nothing comes of the router. mu is held.
func (r *Router) outage(why string) { r.note(event{time.Now(), why, true}) }

func (r *Router) note(e event) {
	if len(r.events) == maxEvents {
		r.events = append(r.events[:0], r.events[1:]...)
	}
	r.events = append(r.events, e)
}

// gaps says in a line each when the router was not observed in the measured part, and why. mu is held.
func (w *Watch) gaps(all []timed, measured time.Duration) (lines []string) {
	end := measured.Seconds()
	from, since := 0.0, w.measure // of what is not observed so far
	add := func(to float64, until time.Time, period time.Duration) {
		if to-from <= longestGap(period) || min(to, end)-max(from, 0) <= period.Seconds()/2 {
			return
		}
		line := fmt.Sprintf("not observed from t=%.1f s", max(0, from))
		if to < end {
			line += fmt.Sprintf(" to t=%.1f s", to)
		}
		lines = append(lines, line+": "+w.r.why(since, until))
	}
	for i, s := range all {
		if i > 0 || s.t > 0 {
			add(s.t, s.came, s.period)
		}
		from, since = s.t, s.sent
	}
	add(end, time.Now(), w.r.period)
	return lines
}

// why tells what kept the router from being watched in a time. mu is held.
func (r *Router) why(from, to time.Time) string {
	_ = r.current() // a loss that nobody noted yet
	why, last := "", ""
	for _, e := range r.events {
		if !e.gap || e.at.Before(from) || e.at.After(to) {
			continue
		}
		if last = e.text; why == "" {
			why = last
		}
	}
	switch {
	case why == "":
		return "the router did not answer in time"
	case last != why:
		why += "; then " + last
	}
	return why
}

// notes are the events of the measured part that are told by themselves. mu is held.
func (w *Watch) notes(measured time.Duration) (lines []string) {
	for _, e := range w.r.events {
		if at := e.at.Sub(w.measure); !e.gap && at >= 0 && at < measured {
			lines = append(lines, fmt.Sprintf("from t=%.1f s %s", at.Seconds(), e.text))
		}
	}
	return lines
}

// cost is what the watch took of the router's processors, by the router's own account.
type cost struct{ ticks, seconds float64 }

func (c *cost) add(ticks, seconds float64) { c.ticks, c.seconds = c.ticks+ticks, c.seconds+seconds }

// ratio is the cost as a part of one core.
func (c cost) ratio() float64 { return c.ticks / counters.TickHz / c.seconds }

// costSpan is the least time, in seconds, over which the cost is judged: several
// processes' figures, each up to a tick wrong, are below 1 % of it.
const costSpan = 5

// limitCost adds what passed between two samples of one connection to the cost, and asks less often if the watch
// costs too much, but for what a moment costs, which comes no less often then. mu is held.
func (r *Router) limitCost(from *reading, to sample) {
	if !from.spentKnown || !to.spentKnown || to.spent < from.spent || to.up <= from.up {
		return
	}
	ticks, seconds := float64(to.spent-from.spent), to.up-from.up
	r.cost.add(ticks, seconds)
	if !from.moment {
		r.recent.add(ticks, seconds)
	}
	if r.recent.seconds < max(costSpan, 3*r.period.Seconds()) {
		return
	}
	ratio := r.recent.ratio()
	r.recent = cost{}
	if ratio > r.maxCost && r.period < mostPeriod {
		r.period = min(2*r.period, mostPeriod)
		const format = "sampled only every %v: the watch took %.1f %% of a core, above %.1f %%"
		r.note(event{time.Now(), fmt.Sprintf(format, r.period, 100*ratio, 100*r.maxCost), false})
	}
}
