package run

import (
	"slices"

	"pelt/advice"
	"pelt/ledger"
	"pelt/model"
)

// background is the rate of other traffic by node and counter, from the first trial.
type background map[string]map[string]float64

// fill stores the idle rates of a trial that measured them. It copies them into the counters of other trials.
func (b background) fill(all []seen) {
	if b == nil {
		return
	}
	for _, s := range all {
		if s.Observation == nil {
			continue
		}
		if b[s.Name] == nil {
			b[s.Name] = map[string]float64{}
		}
		for i := range s.Observation.Counters {
			c := &s.Observation.Counters[i]
			if s.Observation.IdleS > 0 {
				b[s.Name][c.Name] = c.IdleHz
			} else {
				c.IdleHz = b[s.Name][c.Name]
			}
		}
	}
}

// nodesOf lists the path's nodes as a flow passes them.
func nodesOf(f model.Flow, all []seen) []ledger.Node {
	var nodes []ledger.Node
	for _, s := range all {
		if s.branch == "" || s.branch == f.From || s.branch == f.To {
			nodes = append(nodes, s.Node)
		}
	}
	if f.From != model.Sender {
		slices.Reverse(nodes)
		for i := range nodes {
			nodes[i].In, nodes[i].Out = nodes[i].Out, nodes[i].In
		}
	}
	return nodes
}

// addObserved adds to the result how each node was watched and which counters moved.
func addObserved(r *model.Result, all []seen) {
	told := map[string]bool{} // a kernel's counters of the whole host, which each of its namespaces shows
	for _, s := range all {
		o := model.Observed{Node: s.Name, Why: model.Doubts(s.why)}
		if w := s.Observation; w != nil {
			o.Mode, o.Why, o.IdleS = w.Mode, model.Doubts(w.Why), w.IdleS
			o.Unread, o.Unsettled = model.Doubts(w.Unread), w.Unsettled
			if d := w.Drops; d != nil {
				o.Unreadable, o.Overwritten, o.SitesLost, o.Missed = d.Unreadable, d.Overwritten, d.SitesLost,
					d.Missed
			}
			for _, c := range w.Counters {
				shared := w.Boot + " " + c.Name
				if c.Scope == "host" && w.Boot != "" && told[shared] {
					continue
				}
				if c.Whole > 0 || c.Reset {
					told[shared] = c.Scope == "host"
					c.Host = s.Name
					r.Counters = append(r.Counters, c)
				}
			}
		}
		r.Observed = append(r.Observed, o)
	}
}

// advise adds to each line of a flow's ledger the settings that would help.
func advise(r *model.FlowResult, path []ledger.Node) {
	for i := range r.Ledger.Lines {
		line := &r.Ledger.Lines[i]
		c := advice.ContextOf(r)
		for _, s := range path {
			if s.Name == line.Host && s.Observation != nil {
				c.Knobs = s.Observation.Knobs
			}
		}
		line.Advice = advice.For(*line, c)
	}
}
