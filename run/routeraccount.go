package run

import (
	"fmt"

	"pelt/lab"
	"pelt/model"
	"pelt/unit"
)

// account is what a lab's router has done by its character so far; nil where it
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

// addAccount tells in a result what the router did by its character in a trial, the
// warm-up included, and what its log missed.
func addAccount(r *model.Result, node string, before, after *lab.RouterAccount) {
	if before == nil || after == nil || before.Character != after.Character {
		return
	}
	add := func(name, unit string, from, to uint64) {
		c := model.Counter{Host: node, Name: name, Scope: "device", Unit: unit, Before: from, After: to}
		if c.Reset = to < from; !c.Reset {
			c.Whole = to - from
			c.Measure = c.Whole
		}
		if c.Whole > 0 || c.Reset {
			r.Counters = append(r.Counters, c)
		}
	}
	add("log.packets", "skb", before.Logged, after.Logged)
	add("log.lines", "event", before.Lines, after.Lines)
	add("log.missed", "skb", before.Missed, after.Missed)
	for i, c := range after.Fast {
		if i < len(before.Fast) && before.Fast[i].Reason == c.Reason {
			add("fastpath."+c.Reason, "frame", before.Fast[i].Frames, c.Frames)
		}
	}
	missed, logged := after.Missed-min(before.Missed, after.Missed), after.Logged-min(before.Logged, after.Logged)
	if missed > 0 && logged > 0 {
		share := unit.FormatRatio(min(1, float64(missed)/float64(logged)))
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: its log missed %s of the packets that it was to write: "+
			"they cost it less than a line does", node, share))
	}
}
