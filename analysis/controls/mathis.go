package controls

import (
	"fmt"
	"math"

	"pelt/analysis/internal/links"
	"pelt/analysis/internal/stats"
	"pelt/model"
	"pelt/unit"
)

// mathisFactor is sqrt(3/2), of a receiver that acknowledges each segment: M. Mathis,
// J. Semke, J. Mahdavi, T. Ott, The macroscopic behavior of the TCP congestion
// avoidance algorithm, CCR 27 (1997).
const mathisFactor = 1.22

// mathis is what their model has a cell of Reno carry; nil for any other control,
// and where nothing is lost at random.
func (g *grid) mathis(c *cell, control string) *model.Mathis {
	if control != "reno" {
		return nil
	}
	var loss, rtt, measured []float64
	var segment, streams int
	for _, t := range c.trials {
		p, ok := lossOf(t)
		if !ok {
			continue
		}
		loss = append(loss, p)
		if x, ok := rtt50(t); ok {
			rtt = append(rtt, x.value)
		} else if s := t.tcp.RTTNanos / 1e9; s > 0 && within(s, mostSeconds) {
			rtt = append(rtt, s)
		}
		if x, ok := goodput(t); ok {
			measured = append(measured, x.value)
		}
		segment, streams = max(segment, t.tcp.SegmentSizeBytes), max(streams, t.flow.Streams, 1)
	}
	m := &model.Mathis{LossRatio: stats.Mean(loss), RTTSeconds: stats.Median(rtt), SegmentBytes: segment}
	if !(m.LossRatio > 0) || !(m.RTTSeconds > 0) || segment <= 0 || len(measured) == 0 {
		return nil
	}
	m.PredictedBPS = float64(streams) * 8 * mathisFactor * float64(segment) / (m.RTTSeconds * math.Sqrt(m.LossRatio))
	if !within(m.PredictedBPS, math.MaxFloat64) || m.PredictedBPS == 0 {
		return nil
	}
	m.Ratio = stats.Median(measured) / m.PredictedBPS
	if rate := g.pathRate(c); rate > 0 && rate < m.PredictedBPS {
		m.Above = fmt.Sprintf("the links carry %s, less than the model's %s", unit.FormatBits(rate), unit.FormatBits(m.PredictedBPS))
	}
	return m
}

// lossOf is what the links of a trial lost at random of the packets on the flow's way,
// over all hops; ok is false if they do not lead from its one end to its other.
func lossOf(t trial) (ratio float64, ok bool) {
	pass, at := 1.0, t.flow.From
	been := map[string]bool{}
	for at != t.flow.To && !been[at] {
		been[at] = true
		for _, l := range t.result.Links {
			if l.From != at || been[l.To] {
				continue
			}
			p := l.AskedRatio
			if l.Lost != nil && l.Frames > 0 {
				p = float64(*l.Lost) / float64(l.Frames)
			}
			if !within(p, 1) {
				return 0, false
			}
			pass, at = pass*(1-p), l.To
			break
		}
	}
	return 1 - pass, at == t.flow.To && len(t.result.Links) > 0
}

// pathRate is that of the slowest link on a cell's way, in bit/s; 0 if none has one.
func (g *grid) pathRate(c *cell) float64 {
	nodes := links.Nodes(g.doc)
	if len(c.trials) > 0 && c.trials[0].flow.From == nodes[len(nodes)-1] {
		nodes = reversed(nodes)
	}
	rate, _ := links.Slowest(links.Of(g.doc.Plan, c.setting), nodes)
	return rate
}

func reversed(nodes []string) (back []string) {
	for i := range nodes {
		back = append(back, nodes[len(nodes)-1-i])
	}
	return back
}
