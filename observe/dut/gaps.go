package dut

import (
	"time"

	"pelt/model"
	"pelt/observe/counters"
)

// outage is what kept a router from being watched.
type outage struct {
	at  time.Time
	why string // see model.RouterGap, as of
	of  model.Reasons
}

// maxOutages bounds what a connection that keeps failing leaves behind; the oldest are forgotten.
const maxOutages = 1000

// note keeps why nothing comes of the router. mu is held.
func (r *Router) note(why string, of ...model.Reason) {
	if len(r.outages) == maxOutages {
		r.outages = append(r.outages[:0], r.outages[1:]...)
	}
	r.outages = append(r.outages, outage{time.Now(), why, of})
}

// gaps are when the router was not observed in the measured part, and when it restarted. mu is held.
func (w *Watch) gaps(all []timed, measured time.Duration) (list []model.RouterGap) {
	end := measured.Seconds()
	from, since := 0.0, w.measure // of what is not observed so far
	add := func(to float64, until time.Time) {
		if to-from <= w.r.longestGap() || min(to, end)-max(from, 0) <= w.r.period.Seconds()/2 {
			return
		}
		g := w.r.why(since, until)
		if g.FromS = max(0, from); to < end {
			g.ToS = to
		}
		list = append(list, g)
	}
	for i, s := range all {
		if i > 0 || s.t > 0 {
			add(s.t, s.came)
		}
		from, since = s.t, s.sent
	}
	add(end, time.Now())
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.boots != b.boots && b.t > 0 && a.t < end {
			list = append(list, model.RouterGap{Why: model.GapRestarted, FromS: max(0, a.t), ToS: b.t})
		}
	}
	return list
}

// why is what first kept the router from being watched in a time. mu is held.
func (r *Router) why(from, to time.Time) model.RouterGap {
	_ = r.current() // a loss that nobody noted yet
	for _, o := range r.outages {
		if !o.at.Before(from) && !o.at.After(to) {
			return model.RouterGap{Why: o.why, Of: o.of}
		}
	}
	return model.RouterGap{Why: model.GapLate}
}

// cost is what the watch took of the router's processors, by the router's own account.
type cost struct{ ticks, seconds float64 }

// ratio is the cost as a part of one core.
func (c cost) ratio() float64 { return c.ticks / counters.TickHz / c.seconds }

// costSpan is the least time, in seconds, over which the cost is judged: several
// processes' figures, each up to a tick wrong, are below 1 % of it.
const costSpan = 5

// addCost adds what passed between two samples of one connection. mu is held.
func (r *Router) addCost(from, to sample) {
	if from.spentKnown && to.spentKnown && to.spent >= from.spent && to.up > from.up {
		r.cost.ticks, r.cost.seconds = r.cost.ticks+float64(to.spent-from.spent), r.cost.seconds+to.up-from.up
	}
}
