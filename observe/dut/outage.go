package dut

import (
	"fmt"
	"time"
)

// outage is a time in which a router was not watched.
type outage struct {
	from, to time.Time // to is zero while it lasts
	why      string
	lost     bool   // the connection was gone, and not only slow
	missed   int    // samples that were due and not asked for
	tries    int    // to connect again
	last     string // why the last try came to nothing
}

// outages are those of a Router, the oldest first.
type outages struct {
	list    []outage
	dropped int // the oldest, forgotten
}

// maxOutages bounds what a connection that keeps failing leaves behind.
const maxOutages = 1000

func (o *outages) now() *outage {
	if n := len(o.list); n > 0 && o.list[n-1].to.IsZero() {
		return &o.list[n-1]
	}
	return nil
}

// begin notes that nothing comes any more; a slow answer may turn out to be a lost
// connection.
func (o *outages) begin(at time.Time, why string, lost bool) {
	if now := o.now(); now != nil {
		if lost && !now.lost {
			now.why, now.lost = why, true
		}
		return
	}
	if len(o.list) == maxOutages {
		o.list = append(o.list[:0], o.list[1:]...)
		o.dropped++
	}
	o.list = append(o.list, outage{from: at, why: why, lost: lost})
}

func (o *outages) miss() {
	if now := o.now(); now != nil {
		now.missed++
	}
}

func (o *outages) tried(err error) {
	if now := o.now(); now != nil {
		if now.tries++; err != nil {
			now.last = err.Error()
		}
	}
}

func (o *outages) end(at time.Time) {
	if now := o.now(); now != nil {
		now.to = at
	}
}

// during says in a line each when nothing came in a time that began at zero, which
// is t=0.
func (o *outages) during(zero time.Time, length time.Duration) (lines []string) {
	end := zero.Add(length)
	for _, g := range o.list {
		if !g.from.Before(end) || !g.to.IsZero() && !g.to.After(zero) {
			continue
		}
		line := fmt.Sprintf("not observed from t=%.1f s", max(0, g.from.Sub(zero).Seconds()))
		if !g.to.IsZero() && g.to.Before(end) {
			line += fmt.Sprintf(" to t=%.1f s", g.to.Sub(zero).Seconds())
		}
		line += ": " + g.why
		if g.missed > 0 {
			line += fmt.Sprintf("; %d %s", g.missed, plural(g.missed, "sample was due", "samples were due"))
		}
		if g.tries > 0 {
			line += fmt.Sprintf("; %d %s to connect again", g.tries, plural(g.tries, "try", "tries"))
			if g.last != "" {
				line += ", the last one: " + g.last
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func plural(n int, one, many string) string {
	return map[bool]string{true: one, false: many}[n == 1]
}

// account is what the watch took of the router, by the router's own account, over
// all trials: its unit is too coarse for one.
type account struct {
	ticks, seconds float64
	// Since the period was last judged.
	judgedTicks, judgedSeconds float64
	backedOff                  []backOff
}

type backOff struct {
	at     time.Time
	period time.Duration
	cost   float64
}

const (
	tickHz = 100 // USER_HZ, the unit of /proc/PID/stat on all of Linux's usual machines
	// costSpan is the least time, in seconds, over which the cost is judged: several
	// processes' figures, each up to a tick wrong, are below 1 % of it.
	costSpan = 5
)

// add takes what passed between two samples of one connection. It returns the period
// from now on.
func (a *account) add(from, to sample, at time.Time, period time.Duration, maxCost float64) time.Duration {
	if !from.spentKnown || !to.spentKnown || to.spent < from.spent || to.up <= from.up {
		return period
	}
	ticks, seconds := float64(to.spent-from.spent), to.up-from.up
	a.ticks, a.seconds = a.ticks+ticks, a.seconds+seconds
	a.judgedTicks, a.judgedSeconds = a.judgedTicks+ticks, a.judgedSeconds+seconds
	if a.judgedSeconds < max(costSpan, 3*period.Seconds()) {
		return period
	}
	cost := a.judgedTicks / tickHz / a.judgedSeconds
	a.judgedTicks, a.judgedSeconds = 0, 0
	if cost <= maxCost || period >= mostPeriod {
		return period
	}
	period = min(2*period, mostPeriod)
	a.backedOff = append(a.backedOff, backOff{at, period, cost})
	return period
}

// ratio is the cost as a part of one core; nil while it is not known.
func (a *account) ratio() *float64 {
	if a.seconds < costSpan {
		return nil
	}
	cost := a.ticks / tickHz / a.seconds
	return &cost
}

// during says in a line each when the watch backed off within a time.
func (a *account) during(zero time.Time, length time.Duration, maxCost float64) (lines []string) {
	for _, b := range a.backedOff {
		if !b.at.Before(zero) && b.at.Before(zero.Add(length)) {
			lines = append(lines, fmt.Sprintf("sampled only every %v from t=%.1f s: the watch took %.1f %% of a core, above %.1f %%",
				b.period, b.at.Sub(zero).Seconds(), 100*b.cost, 100*maxCost))
		}
	}
	return lines
}
