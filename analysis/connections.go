package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// connected is what the trials of one flow of connections came to.
type connected struct {
	keep      bool
	trials    int
	endings   []string // why no more were kept, each once
	timed     int      // trials whose time was over before that
	host      int      // trials in which that was the sender's host
	per, open float64
	setUp     []float64
	attempted uint64
	failed    map[string]uint64
}

// connectedOf is nil for flows that are not of connections.
func connectedOf(flows []model.FlowResult) *connected {
	c := &connected{failed: map[string]uint64{}}
	var per, open []float64
	for _, f := range flows {
		x := f.Connections
		if x == nil {
			continue
		}
		c.keep = x.Mode == model.ConnectionKeep
		c.trials++
		switch {
		case x.Ended == "":
			c.timed++
		case x.HostLimit:
			c.host++
		}
		if x.Ended != "" && !slices.Contains(c.endings, x.Ended) {
			c.endings = append(c.endings, x.Ended)
		}
		c.attempted += f.Attempted
		per, open = append(per, f.ReceivePPS), append(open, float64(x.OpenMax))
		for name, n := range x.Failed {
			c.failed[name] += n
		}
		if x.SetUp != nil {
			c.setUp = append(c.setUp, x.SetUp.P50)
		}
	}
	if len(per) == 0 {
		return nil
	}
	c.per, c.open = median(per), median(open)
	return c
}

func (c *connected) values() map[string]float64 {
	v := map[string]float64{"connections_per_second": c.per, "open_max": c.open, "attempted_connections": float64(c.attempted)}
	if len(c.setUp) > 0 {
		v["set_up_ns"] = median(c.setUp)
	}
	return v
}

// figures are the answer in some words.
func (c *connected) figures() string {
	if !c.keep {
		return perSecond(c.per) + " new connections"
	}
	n := unit.FormatCount(uint64(c.open)) + " connections at a time"
	if c.timed+c.host > 0 {
		return "at least " + n
	}
	return n
}

// does is the answer as what a path does.
func (c *connected) does() string {
	n := unit.FormatCount(uint64(c.open))
	switch {
	case !c.keep:
		return fmt.Sprintf("sets up %s new connections", perSecond(c.per))
	case c.host > 0:
		return fmt.Sprintf("holds %s connections at a time or more: the sender could open no more%s", n, c.of(c.host))
	case c.timed > 0:
		return fmt.Sprintf("holds %s connections at a time or more: the time was over before one failed%s", n, c.of(c.timed))
	}
	return fmt.Sprintf("holds %s connections at a time", n)
}

// of says in how many trials, if not in all.
func (c *connected) of(n int) string {
	if n == c.trials {
		return ""
	}
	return fmt.Sprintf(" in %d of %d trials", n, c.trials)
}

// finding is the answer with what it rests on, without its full stop.
func (c *connected) finding() string {
	took := ""
	if len(c.setUp) > 0 {
		took = fmt.Sprintf(", set up in %s in the middle", unit.FormatNanos(median(c.setUp)))
	}
	if c.keep {
		text := fmt.Sprintf("%s connections were open at a time%s", unit.FormatCount(uint64(c.open)), took)
		if len(c.endings) > 0 {
			text += "; what stopped the next one: " + strings.Join(c.endings, "; in another trial: ")
		}
		return text
	}
	text := "none failed"
	if len(c.failed) > 0 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(c.failed)) {
			list = append(list, fmt.Sprintf("%s with %s", unit.FormatCount(c.failed[name]), name))
		}
		text = fmt.Sprintf("of %s attempts failed %s", unit.FormatCount(c.attempted), strings.Join(list, ", "))
	}
	return fmt.Sprintf("%s new connections were established%s; %s", perSecond(c.per), took, text)
}

// connections tells what a flow of connections found; ok is false for any other.
func (a *analyst) connections(c curve) (out answer, ok bool) {
	var flows []model.FlowResult
	for _, p := range c.points {
		for _, t := range p.trials {
			flows = append(flows, t.flow)
		}
	}
	x := connectedOf(flows)
	if x == nil {
		return answer{}, false
	}
	a.add(KindConnections, x.values(), "%s.", x.finding())
	return answer{values: x.values(), figures: x.figures(), text: fmt.Sprintf("%s %s.", a.path(), x.does())}, true
}

// routerConnections adds what a bench found of connections, and returns its part of
// the verdict, "" for none.
func (a *analyst) routerConnections() string {
	var did []string
	for _, cell := range a.doc.Plan.Design.Cells {
		if cell["connections"].Text == "" {
			continue
		}
		var flows []model.FlowResult
		for _, r := range a.doc.Results {
			if r.State == model.Valid && r.Cell.Equal(cell) {
				flows = append(flows, r.Flows...)
			}
		}
		x := connectedOf(flows)
		if x == nil {
			continue
		}
		before, values := "", x.values()
		if v := cell["variant"].Text; v != "" {
			before = v + ": "
			values = map[string]float64{}
			for name, n := range x.values() {
				values[slug(v)+"_"+name] = n
			}
		}
		a.add(KindConnections, values, "%s%s.", before, x.finding())
		did = append(did, before+x.figures())
	}
	if len(did) == 0 {
		return ""
	}
	return "TCP from LAN to WAN: " + strings.Join(did, "; ") + "."
}
