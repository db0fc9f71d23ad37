package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// connections tells what a flow of connections found; ok is false for any other.
func (a *analyst) connections(c curve) (out answer, ok bool) {
	failed, attempted := map[string]uint64{}, uint64(0)
	var per, open, setUp []float64
	var last *model.ConnectionFacts
	for _, p := range c.points {
		for _, t := range p.trials {
			x := t.flow.Connections
			if x == nil {
				continue
			}
			last = x
			attempted += t.flow.Attempted
			per, open = append(per, t.flow.ReceivePPS), append(open, float64(x.OpenMax))
			for name, n := range x.Failed {
				failed[name] += n
			}
			if x.SetUp != nil {
				setUp = append(setUp, x.SetUp.P50)
			}
		}
	}
	if last == nil {
		return answer{}, false
	}
	values := map[string]float64{"connections_per_second": median(per), "open_max": median(open), "attempted_connections": float64(attempted)}
	took := ""
	if len(setUp) > 0 {
		values["set_up_ns"] = median(setUp)
		took = fmt.Sprintf(", set up in %s in the middle", unit.FormatNanos(median(setUp)))
	}
	out.values = values
	if last.Mode == model.ConnectionKeep {
		n := unit.FormatCount(uint64(median(open)))
		out.figures = n + " connections at a time"
		if last.Ended == "" || last.HostLimit {
			out.figures = "at least " + out.figures
		}
		switch {
		case last.Ended == "":
			out.text = fmt.Sprintf("%s holds %s connections at a time or more: the time was over before one failed.", a.path(), n)
		case last.HostLimit:
			out.text = fmt.Sprintf("%s holds %s connections at a time or more: the sender could open no more.", a.path(), n)
		default:
			out.text = fmt.Sprintf("%s holds %s connections at a time.", a.path(), n)
		}
		text := fmt.Sprintf("%s connections were open at a time%s", n, took)
		if last.Ended != "" {
			text += "; what stopped the next one: " + last.Ended
		}
		a.add(KindConnections, values, "%s.", text)
		return out, true
	}
	out.figures = perSecond(median(per)) + " new connections"
	out.text = fmt.Sprintf("%s sets up %s new connections.", a.path(), perSecond(median(per)))
	text := "none failed"
	if len(failed) > 0 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(failed)) {
			list = append(list, fmt.Sprintf("%s with %s", unit.FormatCount(failed[name]), name))
		}
		text = fmt.Sprintf("of %s attempts failed %s", unit.FormatCount(attempted), strings.Join(list, ", "))
	}
	a.add(KindConnections, values, "%s new connections were established%s; %s.", perSecond(median(per)), took, text)
	return out, true
}
