package finding

import (
	"cmp"
	"slices"

	"pelt/model"
	"pelt/plan"
	"pelt/table"
)

func sweepKind() Kind {
	return Kind{
		Preset: plan.Sweep,
		Use:    "sweep TARGET",
		Short:  "Find the best packet size, interval and buffers for a path",
		Long: `sweep sends packets with every combination of values, several times in shuffled order. It
shows which carried most, which are as good, and what the others lost.

TARGET is as for pelt curve. Sizes, rates, intervals, streams, receivers, buffers and --link
take lists; --profile is repeatable.`,
		Example: `  pelt sweep lab:direct --payload 256..1472/256,1472 --interval 0..4ms/1ms \
    --link rate=10mbit,loss=1% --quick
  pelt sweep lab:star --receivers 100 --payload 512,1472 --interval 5ms,9ms \
    --link-receiver rate=1mbit --quick`,
		Title:   "Sweep of settings",
		Rules:   []Rule{sweepRule},
		Repeats: "goodput_bps",
	}
}

// Parts of sentences.
const (
	sweepGets = `{best} ({goodput_bps:best} through[, {loss_ratio:best} lost]).`
	sweepBest = `Best: ` + sweepGets
)

var sweepSentences = map[string]string{
	"sweep.best": sweepBest + `¶{others_count The other setting is/All # other settings are} slower` +
		`[{missed ?}, or does not reach all receivers].`,
	"sweep.first": sweepBest + `¶No other setting[{missed ?} that reaches all receivers] comes within ` +
		`{resolution_ratio} of it.`,
	"sweep.tied": sweepBest + `¶{tied_count # other setting is/# other settings are} tied with it (within ` +
		`{resolution_ratio}); none of these sends less.`,
	"sweep.near": sweepBest + `¶{tied_count # other setting comes/# other settings come} within ` +
		`{resolution_ratio} of it; none of these sends less.`,
	"sweep.only":    sweepGets + `¶No other setting was measured.`,
	"sweep.under":   `Best ({under}): ` + sweepGets,
	"sweep.nothing": `Nothing arrived[ ({under})] at any setting.`,
	"sweep.all": `Best under {all}: {best}.¶It gets [{goodput_bps:worst} ({worst}) to {goodput_bps:best} ` +
		`({under})|{goodput_bps:best}] through.`,
	"sweep.unfair": `Receivers differ most at {at}: {receiver_goodput_min_bps:at} to {receiver_goodput_max_bps:at}, ` +
		`a fairness of {receiver_fairness_index:at} (1 is even).`,
	"sweep.waste": `{most} sends {times_index} times as much and gets {goodput_bps:most} through[, with a median ` +
		`delay of {*delay:most} in place of {*delay:best}].`,
	"sweep.brief": `At {best} all packets came within {arriving_s}: queues and buffers may have held them. Longer ` +
		`trials, with --time 1s, tell what the path carries.`,
	"sweep.missing": `{missing_count} of {planned_count} settings {missing_count has/have} no usable trial.`,
	"sweep.open":    `Too few repeats to be sure of {open_count} of the slower settings.`,
}

// Ranking is a condition of a sweep with its settings as places, in order of merit: those as good as the best by what
// they send, the least first, then the others by goodput. The first is the answer. Settings of different conditions are
// not compared: nobody chooses what a path is like.
type Ranking struct {
	table.Condition
	Tied int // settings as good as the best, itself included
}

// Rankings compares the settings under each condition. All conditions share the chance of a false alarm.
func Rankings(rows []table.Row) (out []Ranking) {
	l, m := table.Lay(table.Usable(rows)), table.MetricOf("goodput_bps")
	l.Rank(m, deadEnd)
	l.Compare(m)
	for _, c := range l.Conditions {
		out = append(out, newRanking(c, m))
	}
	return out
}

func newRanking(under table.Condition, m *table.Metric) Ranking {
	var good, others []table.Place
	ranked := under.Tried()
	for i, p := range ranked {
		near := p.Middle(m.Name) >= (1-m.Resolution)*ranked[0].Middle(m.Name)
		alike := p.Effects[m].Verdict == table.Tied || p.Effects[m].Verdict == table.TooFew && near
		if i == 0 || alike && deadEnd(p.Group) == deadEnd(ranked[0].Group) {
			good = append(good, p)
		} else {
			others = append(others, p)
		}
	}
	slices.SortStableFunc(good, func(a, b table.Place) int {
		return cmp.Compare(a.Middle("send_bps"), b.Middle("send_bps"))
	})
	under.Places = slices.Concat(good, others)
	return Ranking{under, len(good)}
}

// EffectOf is how the goodput of a place compares with what it is compared with.
func EffectOf(p table.Place) table.Effect { return p.Effects[table.MetricOf("goodput_bps")] }

// Effects are those of places with choices; nil: nothing was to be chosen.
func Effects(places []table.Place) (out []table.Effect) {
	for _, p := range places {
		if len(p.Choice.Keys) > 0 {
			out = append(out, EffectOf(p))
		}
	}
	return out
}

// deadEnd reports whether a receiver of a star got nothing, whatever the others got: such a setting is not the best.
func deadEnd(g table.Group) bool {
	return slices.ContainsFunc(g.Rows, func(r table.Row) bool {
		return len(r.Flow.Receivers) > 0 && len(r.Flow.DeadStreams) > 0
	})
}

// Headlines are the rankings that a verdict tells of: the first, and the one that gets least through.
func Headlines(all []Ranking) []Ranking {
	if len(all) < 2 {
		return all
	}
	goodput := func(c Ranking) float64 { return c.Places[0].Middle("goodput_bps") }
	worst := slices.MinFunc(all, func(a, b Ranking) int { return cmp.Compare(goodput(a), goodput(b)) })
	if worst.Name() == all[0].Name() {
		return all[:1]
	}
	return []Ranking{all[0], worst}
}

func sweepRule(rows []table.Row) []Finding {
	rankings := Rankings(rows)
	if len(rankings) == 0 {
		return nil
	}
	var out []Finding
	if out = everywhere(rankings); out == nil {
		for _, c := range Headlines(rankings) {
			out = append(out, c.answer(len(rankings)))
		}
	}
	if c := About(rankings, out[0]); c.Places[0].Middle("goodput_bps") > 0 {
		settings := c.Choices()
		i := slices.IndexFunc(settings, func(g table.Group) bool { return g.Name() == out[0].Places["best"].Name() })
		best := settings[max(i, 0)]
		most := settings[c.Tied-1] // of those that are as good it sends most, so it shows the limit
		out = slices.Concat(out, waste(most, best), []Finding{heldBackBy(most.Limit(), most)}, c.shares(), brief(best))
	}
	return append(out, doubts(rows, rankings)...)
}

func About(rankings []Ranking, answer Finding) Ranking {
	i := slices.IndexFunc(rankings, func(c Ranking) bool { return c.Name() == answer.Words["under"] })
	return rankings[max(i, 0)]
}

func (c Ranking) answer(rankings int) Finding {
	settings := c.Choices()
	best, others := settings[0], len(settings)-1
	f := say("sweep.best", Answer, "best", best, "under", c.Name(), "others_count", others,
		"tied_count", c.Tied-1, "resolution_ratio", table.MetricOf("goodput_bps").Resolution)
	if last := settings[others]; deadEnd(last) && !deadEnd(best) {
		f = f.with("missed", last)
	}
	proven := !slices.ContainsFunc(c.Places[:c.Tied], tooFew)
	switch {
	case !(best.Middle("goodput_bps") > 0):
		f.Code = "sweep.nothing"
	case rankings > 1:
		f.Code = "sweep.under"
	case others == 0:
		f.Code = "sweep.only"
	case c.Tied > 1 && proven:
		f.Code = "sweep.tied"
	case c.Tied > 1:
		f.Code = "sweep.near"
	case c.open() > 0:
		f.Code = "sweep.first"
	}
	return f
}

func tooFew(p table.Place) bool { return EffectOf(p).Verdict == table.TooFew }

func (c Ranking) open() int { return len(only(c.Places[c.Tied:], tooFew)) }

// everywhere finds the setting that is as good as the best under each of several conditions, if there is one.
func everywhere(rankings []Ranking) []Finding {
	if len(rankings) < 2 {
		return nil
	}
	for _, first := range rankings[0].Choices()[:rankings[0].Tied] {
		var all []table.Group
		for _, c := range rankings {
			for _, g := range c.Choices()[:c.Tied] {
				if g.Name() == first.Name() {
					all = append(all, table.Group{Keys: c.Keys, Levels: c.Levels, Rows: g.Rows})
				}
			}
		}
		if most := largest(all, "goodput_bps"); len(all) == len(rankings) && most.Middle("goodput_bps") > 0 {
			least := smallest(all, "goodput_bps")
			f := say("sweep.all", Answer, "best", table.Group{Keys: first.Keys, Levels: first.Levels, Rows: most.Rows},
				"under", most.Name(), "all", most.Say("both conditions"))
			if len(all) > 2 {
				f.Words["all"] = most.Sayf("all %d conditions", len(all))
			}
			if m := table.MetricOf("goodput_bps"); m.Format(least.Middle(m.Name)) != m.Format(most.Middle(m.Name)) {
				f = f.with("worst", least)
			}
			return []Finding{f}
		}
	}
	return nil
}

const (
	wasteful = 2   // times of what is needed
	slower   = 1.2 // times of a delay
)

// waste tells of a setting that is as good as the answer, best, and sends much more.
func waste(most, best table.Group) []Finding {
	times := most.Middle("send_bps") / best.Middle("send_bps")
	if !(times >= wasteful) {
		return nil
	}
	f := say("sweep.waste", Fact, "most", most, "best", best, "times_index", times)
	for _, m := range []string{"delay_p50_ns", "round_trip_p50_ns"} {
		if most.Middle(m) > slower*best.Middle(m) {
			return []Finding{f.with("delay", m)}
		}
	}
	return []Finding{f}
}

// Packets that arrive within this time may all have waited in queues and buffers: they do not tell what the path
// carries.
const leastArriving = 0.1 // s

// brief doubts an answer whose packets, counted by the plan, came within a moment.
func brief(best table.Group) []Finding {
	counted := func(f model.Flow) bool { return f.Packets > 0 }
	longest := 0.0
	for _, r := range best.Rows {
		if f := r.Flow; f.ReceivePPS > 0 {
			longest = max(longest, float64(f.Received)/f.ReceivePPS)
		}
	}
	if longest == 0 || longest >= leastArriving || !slices.ContainsFunc(best.Rows[0].Doc.Plan.Flows, counted) {
		return nil
	}
	return []Finding{say("sweep.brief", Doubt, "best", best, "arriving_s", longest)}
}

const fairEnough = 0.99

// shares tells of the setting under which the receivers of a star got most unlike shares.
func (c Ranking) shares() []Finding {
	const fairness = "receiver_fairness_index"
	unfair := only(c.Choices(), func(g table.Group) bool { return g.Middle(fairness) < fairEnough })
	if len(unfair) == 0 {
		return nil
	}
	return []Finding{say("sweep.unfair", Fact, "at", smallest(unfair, fairness))}
}

func doubts(rows []table.Row, rankings []Ranking) []Finding {
	var out []Finding
	measured, open, needed := 0, 0, 0
	for _, c := range rankings {
		open += c.open()
		for _, p := range c.Places {
			measured++
			if e := EffectOf(p); tooFew(p) && e.Needed < table.MostNeeded {
				needed = max(needed, e.Needed+p.Stat(table.MetricOf("goodput_bps")).N)
			}
		}
	}
	plan := rows[0].Doc.Plan
	if planned := settingsOf(plan, rows); planned > measured {
		out = append(out, say("sweep.missing", Doubt, "missing_count", float64(planned-measured),
			"planned_count", float64(planned)))
	}
	if open > 0 && plan.Design.Repeats > 1 {
		out = append(out, say("sweep.open", Doubt, "open_count", float64(open)))
	}
	if measured > 1 && needed > 0 {
		out = append(out, runAgain(max(needed, table.LeastRepeats)))
	}
	return out
}

func settingsOf(plan model.Plan, rows []table.Row) int {
	tried := len(table.Lay(rows).Tried())
	planned := 1
	for _, f := range plan.Factors {
		planned *= len(f.Levels)
	}
	if len(plan.Design.Cells) > 0 {
		planned = len(plan.Design.Cells)
	}
	return max(planned, tried)
}
