package run

import (
	"pelt/lab"
	"pelt/model"
)

// account is what a lab's router has done by its setup so far; nil where it
// does nothing of the kind, or does not tell.
func (r *router) account() *lab.RouterAccount {
	if r.lab == nil {
		return nil
	}
	a, err := r.lab.RouterAccount()
	if err != nil {
		return nil
	}
	return &a
}

// accountCounters returns the figures of an account as counters.
func accountCounters(a *lab.RouterAccount) []model.Counter {
	list := []model.Counter{{Name: "log.packets", Unit: "skb", After: a.Logged},
		{Name: "log.lines", Unit: "event", After: a.Lines}, {Name: "log.missed", Unit: "skb", After: a.Missed}}
	for _, c := range a.Fast {
		list = append(list, model.Counter{Name: "fastpath." + c.Reason, Unit: "frame", After: c.Frames})
	}
	return list
}

// addAccount tells in a result what the router did by its setup in a trial, the
// warm-up included, and what its log missed.
func addAccount(r *model.Result, node string, before, after *lab.RouterAccount) {
	if before == nil || after == nil || before.Setup != after.Setup {
		return
	}
	for i, from := range accountCounters(before) {
		c := accountCounters(after)[i]
		c.Host, c.Scope, c.Before = node, "device", from.After
		if c.Reset = c.After < c.Before; !c.Reset {
			c.Whole, c.Measure = c.After-c.Before, c.After-c.Before
		}
		if c.Whole > 0 || c.Reset {
			r.Counters = append(r.Counters, c)
		}
	}
	missed, logged := after.Missed-min(before.Missed, after.Missed), after.Logged-min(before.Logged, after.Logged)
	if missed > 0 && logged > 0 {
		r.Warnings = append(r.Warnings, model.Reason{Code: model.LogMissed, Node: node,
			Numbers: map[string]float64{"missed_ratio": min(1, float64(missed)/float64(logged))}})
	}
}
