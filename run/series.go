package run

import (
	"cmp"
	"slices"

	"pelt/engine"
	"pelt/fleet"
	"pelt/ledger"
	"pelt/model"
)

// hostSeries returns the processor loads of the hosts. For receivers of a star that are hosts of their own, it is the
// busiest one's.
func hostSeries(placed fleet.Trial, out fleet.Outcome) (list []model.Series) {
	told := map[string]bool{}
	busiest, node := engine.Load{}, ""
	for _, f := range placed.Flows {
		for _, end := range []struct{ node, agent string }{{f.Flow.From, f.From}, {f.Flow.To, f.To}} {
			w := out.Load[end.agent]
			if model.NodeGroup(end.node) != end.node {
				if !placed.OneClock && w.CPU.BusiestRatio > busiest.CPU.BusiestRatio {
					busiest, node = w, end.node
				}
				continue
			}
			if told[end.node] {
				continue
			}
			told[end.node] = true
			for _, s := range w.Series {
				s.At = end.node
				list = append(list, s)
			}
		}
	}
	for _, s := range busiest.Series {
		s.At = node
		list = append(list, s)
	}
	return list
}

// flowSeries keeps whole steps only: a last one cut short would look like a
// fall of the rate. A trial shorter than a step is one step of its own length.
func flowSeries(f model.Flow, t model.Timing, seconds float64, o fleet.FlowOutcome) []model.Series {
	var out []model.Series
	step := float64(engine.StepNanos) / 1e9
	whole := int(seconds/step + 0.01)
	add := func(metric, at string, counts []uint64, factor float64) {
		s := model.Series{Metric: metric, Flow: f.Name, At: at, StepSeconds: step}
		if whole == 0 {
			s.StepSeconds = seconds
		}
		for _, n := range counts[:min(len(counts), max(whole, 1))] {
			s.Values = append(s.Values, float64(n)*factor/s.StepSeconds)
		}
		if len(s.Values) > 0 && s.StepSeconds > 0 {
			out = append(out, s)
		}
	}
	sent := o.Send != nil && o.Send.Send != nil
	if sent {
		out = append(out, tcpSeries(f, t, *o.Send.Send)...)
		add("send_pps", f.From, o.Send.Send.PerStep, 1)
	}
	if o.Receive != nil && o.Receive.Receive != nil {
		tally := o.Receive.Receive.Tally
		packets, bytes := slices.Clone(tally.PerStep), slices.Clone(tally.StepBytes)
		// The receiver's series ends with the last packet; after it nothing came.
		until := min(whole, int(t.MeasureSeconds/step+0.01))
		for sent && f.Protocol == model.UDP && o.Receive.Receive.Peer == nil && len(packets) < until {
			packets, bytes = append(packets, 0), append(bytes, 0)
		}
		add("receive_pps", f.To, packets, 1)
		add("goodput_bps", f.To, bytes, 8)
	}
	return out
}

// lossSeries are the lost packets by the second in which they were sent: all, and by line.
// They keep whole steps only; a trial below a step has none.
func lossSeries(f model.Flow, seconds float64, courses []ledger.Course) (list []model.Series) {
	step := float64(engine.StepNanos) / 1e9
	whole := int(seconds/step + 0.01)
	for _, c := range courses {
		s := model.Series{Metric: "lost_pps", Flow: f.Name, At: f.From, Layer: c.Layer, Cause: c.Cause,
			StepSeconds: step}
		if c.Host != "" {
			s.At = c.Host
		}
		for _, n := range c.Lost[:min(len(c.Lost), whole)] {
			s.Values = append(s.Values, float64(n)/step)
		}
		if len(s.Values) > 0 {
			list = append(list, s)
		}
	}
	return list
}

func sortSeries(series []model.Series) {
	core := func(s model.Series) int {
		if s.Core == nil {
			return -1
		}
		return *s.Core
	}
	slices.SortStableFunc(series, func(a, b model.Series) int {
		return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.At, b.At),
			cmp.Compare(core(a), core(b)))
	})
}
