package finding

import (
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
)

func controlDoubts(rows []table.Row) []Finding {
	c := CompareControls(rows)
	var out []Finding
	held := only(c.Groups, func(g table.Group) bool { return g.Middle("tcp_held_back_ratio") >= table.HeldOften })
	if len(held) > 0 {
		out = append(out, say("cc.held", Doubt, "worst", Largest(held, "tcp_held_back_ratio"),
			"where", span(table.Language(rows), namesOf(held))))
	}
	for _, g := range c.Groups {
		if used := unasked(g); len(used) > 0 {
			out = append(out, say("cc.other", Doubt, "who", ControlOf(g), "used", Names(g.Language(), used)))
		}
	}
	return append(out, c.memory()...)
}

// unasked are the congestion controls that the trials of a group used in place of its own: an iperf3 server whose
// kernel lacks one uses what it has.
func unasked(g table.Group) (names []string) {
	key := table.KeyOf("control")
	asked := strings.Split(g.Level(key.Name).Text, model.MixSeparator)
	for _, r := range g.Rows {
		for used := range strings.SplitSeq(r.Flow.TCP.Control, model.MixSeparator) {
			name := key.Format(table.Level{Value: model.Word(used), Known: true})
			if used != "" && !slices.Contains(asked, used) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// memory doubts transfers between real hosts that begin with what those before them learnt.
func (c Controls) memory() []Finding {
	for _, g := range c.Groups {
		d, from := g.Rows[0].Doc, g.Rows[0].Flow.From
		if d.Lab == nil && slices.ContainsFunc(d.Host, func(h model.Host) bool {
			return h.Node == from && h.TCPSettings["no_metrics_save"] == "0"
		}) {
			return []Finding{say("cc.memory", Doubt, "host", g.Say(from))}
		}
	}
	return nil
}

func controlStreams(rows []table.Row) []Finding {
	c := CompareControls(rows)
	var out []Finding
	for _, g := range c.Groups {
		fair := g.Middle("stream_fairness_index")
		if g.Rows[0].Flow.Streams < 2 || math.IsNaN(fair) {
			continue
		}
		f := say("cc.unfair", Fact, "", g, "who", ControlOf(g), "where", c.Where(g))
		if parts := table.By(table.Mixes(g.Rows), table.KeyOf("control_part")); len(parts) > 1 {
			ranked := table.Rank(table.MetricOf("goodput_bps"), parts)
			most, least := ranked[0], ranked[len(ranked)-1]
			f.Code, f.Words["who"], f.Words["base"] = "cc.share", most.Name(), least.Name()
			if len(Of(out, Answer)) == 0 {
				f.Level = Answer
			}
			f = f.with("most", most, "least", least)
		}
		if f.Code == "cc.share" || fair < evenShares {
			out = append(out, f)
		}
	}
	return out
}

// evenShares is Jain's index from which on shares count as even.
const evenShares = 0.9
