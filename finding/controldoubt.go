package finding

import (
	"math"

	"pelt/table"
)

func ControlDoubts(rows []table.Row) []Finding {
	c := CompareControls(rows)
	held := only(c.Groups, func(g table.Group) bool { return g.Middle("tcp_held_back_ratio") >= table.HeldOften })
	if len(held) == 0 {
		return nil
	}
	return []Finding{say("cc.held", Doubt, "worst", largest(held, "tcp_held_back_ratio"),
		"where", span(table.Language(rows), namesOf(held)))}
}

func ControlStreams(rows []table.Row) []Finding {
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
