package finding

import (
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/words"
)

func ControlDoubts(rows []table.Row) []Finding {
	c := CompareControls(rows)
	if len(c.Groups) == 0 {
		return nil
	}
	var out []Finding
	var held, other []string
	worst := 0.0
	for _, g := range c.Groups {
		if v := g.Middle("tcp_held_back_ratio"); v >= table.HeldOften {
			held, worst = append(held, g.Name()), max(worst, v)
		}
		asked := strings.Split(g.Level("control").Text, model.MixSeparator)
		for _, r := range g.Rows {
			for used := range strings.SplitSeq(r.Flow.TCP.Control, model.MixSeparator) {
				if used != "" && !slices.Contains(asked, used) && !slices.Contains(other, used) {
					other = append(other, used)
				}
			}
		}
	}
	if len(held) > 0 {
		out = append(out, say("cc.held", Doubt).number("tcp_held_back_ratio", "worst", worst).
			word("where", span(table.Language(rows), held)))
	}
	if len(other) > 0 {
		out = append(out, say("cc.other", Doubt).word("who", span(table.Language(rows), other)))
	}
	d, from := c.Groups[0].Rows[0].Doc, c.Groups[0].Rows[0].Flow.From
	if slices.ContainsFunc(d.Host, func(h model.Host) bool {
		return h.Node == from && h.TCPSettings["no_metrics_save"] == "0"
	}) {
		out = append(out, say("cc.memory", Doubt).word("host", from))
	}
	return out
}

func ControlStreams(rows []table.Row) []Finding {
	c := CompareControls(rows)
	var out []Finding
	for _, g := range c.Groups {
		fair := g.Middle("stream_fairness_index")
		if g.Rows[0].Flow.Streams < 2 || math.IsNaN(fair) {
			continue
		}
		f := say("cc.fair", Fact, g).word("who", ControlOf(g)).
			word("where", c.Where(g))
		if fair < evenShares {
			f.Code = "cc.unfair"
		}
		if parts := table.By(table.Mixes(g.Rows), table.KeyOf("control_part")); len(parts) > 1 {
			ranked := table.Rank(table.MetricOf("goodput_bps"), parts)
			most, least := ranked[0], ranked[len(ranked)-1]
			f.Code, f.Words["who"], f.Words["base"] = "cc.share", most.Name(), least.Name()
			if len(Of(out, Answer)) == 0 {
				f.Level = Answer
			}
			f = f.place("most", most).place("least", least)
		}
		out = append(out, f)
	}
	return out
}

// evenShares is Jain's index from which on shares count as even.
const evenShares = 0.9

// usualSpread is how far repeats of a transfer under random loss differ, as a share: the
// standard deviation that a plan reckons with.
const usualSpread = 0.2

// worthTelling is the difference that a plan must be able to tell: twice as fast.
const worthTelling = 1.0

// TooFewToTell says before a run whether its repeats are too few to tell controls apart
// of which one is twice as fast, and how many are needed. Fewer than three always are.
func TooFewToTell(repeats, comparisons int) (need int, yes bool) {
	need = table.LeastRepeats
	for need < model.MaxRepeats && table.SmallestProvable(need, comparisons, usualSpread) > worthTelling {
		need++
	}
	return need, repeats < need
}

// BeforeControls says before a run of congestion controls what its repeats can tell, and
// how long enough of them would take.
func BeforeControls(p *model.Plan) []Finding {
	controls, cells := 1, 1
	for _, f := range p.Factors {
		cells *= max(len(f.Levels), 1)
		if f.Knob == "control" {
			controls = max(len(f.Levels), 1)
		}
	}
	comparisons := cells / controls * (controls - 1)
	if comparisons == 0 {
		return nil
	}
	repeats := p.Design.Repeats
	need, few := TooFewToTell(repeats, comparisons)
	t := p.Timing
	f := say("cc.before", SetUp).number("repeats_count", "", float64(repeats))
	if !few {
		least := twoDigits(100*table.SmallestProvable(repeats, comparisons, usualSpread), math.Ceil) / 100
		return []Finding{f.number("least_ratio", "", least)}
	}
	f.Code, f.Level = "cc.before-few", Doubt
	seconds := float64(cells*need) * (t.WarmupSeconds + t.MeasureSeconds + t.DrainSeconds)
	return []Finding{f.number("need_count", "", float64(need)).word("time", length(words.English, seconds))}
}
