package finding

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/design"
	"pelt/model"
	"pelt/plan"
	"pelt/table"
	"pelt/unit"
)

// ndrKind is a search of the highest rates without loss.
func ndrKind() Kind {
	return Kind{
		Preset: plan.Ndr,
		Use:    "ndr TARGET",
		Short:  "Find the highest rate that a path carries without loss",
		Long: `ndr floods TARGET, up to --rate, and then searches the highest rate without loss for each
frame size by MLRsearch (RFC 9971), up, then down; with --direction both, both ways at once.

Each size is searched three times in turn (once with --goal csit or --strict): that tells
where the next run finds the rate. --max-loss 0,0.5% searches the rate with at most 0.5 %
loss, too. Full trials last 0.5 s, or --time. --goal csit is surer and takes longer: its
trials last 1 s. Those of --strict last 60 s, as in RFC 2544.

Loss at the hosts of the sender and the receiver does not lower the answer: it then says
"at least", and what to change.`,
		Example: `  pelt ndr lab:router --link-receiver rate=1gbit
  pelt ndr 192.168.1.5 --payload 18,1472 --max-loss 0,0.5%`,
		Title: "Loss-free rate",
		Rules: []Rule{searchRule(true, table.Settings)},
		Rows:  floodsOrHeld, Searches: true,
	}
}

// Parts of sentences.
const (
	freeLoss  = `[[{way}: at|At] most {loss_ratio:goal} lost|[{way}: no|No] loss]`
	freeOf    = freeLoss + ` up to {throughput_pps}[ {each}][ {where}]`
	freeAgain = ` (next run: {holds_pps:next to fails_pps:next})`
	freeNext  = `[ Of {searches_count} searches in turn, the [{lower ?}lower|{even ?}lower middle|middle] one counts` +
		`[{lower ?}|{two ?}, of two the lower one].][{range ?} The next run finds a rate in the range shown 19 times ` +
		`in 20, if the path changes no more than it did between the searches.]`
	freeFlood   = `[¶The path saturates at {receive_pps:flood range}.]`
	freeAtLeast = freeLoss + ` up to at least {throughput_pps}[ {each}][ {where}].`
)

var ndrSentences = map[string]string{
	"free.found": freeOf + `[` + freeAgain + `| (fails at {fails_pps:fails})| (fails just above)].` +
		`[¶First losses[ ({flow})]: {first}.|{queue ?}¶Above {throughput_pps} a queue on the path grows.]` + freeFlood +
		`[¶The link of {link_bps} carries no more.]`,
	"free.link": freeOf + `[` + freeAgain + `].[{below ?}|¶The link of {link_bps}[ to each of {receivers_count} ` +
		`receivers] carries no more.]`,
	"free.least": freeAtLeast,
	"free.asked": freeAtLeast + `¶No higher rate was tried (--rate).`,
	"free.end":   freeAtLeast + `¶Above {throughput_pps} a host loses packets[ ({first})], not the path.`,
	"free.none": `[{way}: no|No] rate [with at most {loss_ratio:goal} loss|without loss] was found[ {where}].[¶Even ` +
		`{holds_pps:least} loses {loss_ratio:least beyond goal}.|¶Even at {holds_pps:queue} a queue grows.|¶Rates below ` +
		`{holds_pps:lowest} are not tried.]` + freeFlood,
	"free.unknown": `[{way}: which|Which] rate [loses at most {loss_ratio:goal}|passes without loss] is not known` +
		`[ {where}].[¶Single trials passed up to {holds_pps:single}.]` + freeFlood,
	"free.wide": `The rates that hold and fail are more than {width_ratio} apart: perhaps trials at one rate differ ` +
		`too much.`,
	"free.cut": `[{way}: the|The] search is not complete[ {where}][: {holds_pps} holds, {fails_pps:fails} fails|` +
		`: {holds_pps} holds|: {fails_pps:fails} fails].`,
	"free.differ": `[{way}: ]{searches_count:such} of {searches_count} searches[ {where}] [{none ?}found no rate ` +
		`[with at most {loss_ratio:goal} loss|without loss]|{unknown ?}could not tell the rate|{least ?}found no rate that ` +
		`fails|found both a rate that holds and one that fails; the rest did not].`,
	"free.random": `Below {receive_pps:below} about {loss_ratio:typical} is lost at every rate, perhaps at ` +
		`random: a lower rate does not help.`,
	"free.explain": `See the first losses:¶$ pelt explain {run argument} --trial {trial}`,
	"free.allow":   `Find the highest rate with little loss: run it again with --max-loss {share argument}.`,
	"free.burst": `At {fails_pps} each of {trials_count} trials lost its packets within {burst_s}: perhaps a ` +
		`host or the router stalled, and the rate is not the limit.`,
	"setup.search": `Search by RFC 9971, goal {goal}. A rate is tried for {measure_s:sum}, in trials of ` +
		`{measure_s:final}. It holds if trials that together take {measure_s:good} lose no more than the goal ` +
		`allows. Rates that hold and fail are at most {width_ratio} apart. RFC 2544 asks for more (--strict).` + freeNext,
	"setup.search-strict": `Search by RFC 9971, goal {goal}. A rate holds if no trial of {measure_s:final} loses ` +
		`more than the goal allows. Rates that hold and fail are at most {width_ratio} apart.` + freeNext,
}

// floodsOrHeld are the rows of the floods that searches began with, or where none is usable those of the rates that
// hold.
func floodsOrHeld(d *model.Document) (rows []table.Row) {
	floods := table.Unsearched(table.Rows(d))
	if len(table.Usable(floods)) == 0 {
		for _, r := range TypicalSearches(floods) {
			rows = append(rows, r.At(r.Search.Lower)...)
		}
	}
	if len(table.Usable(rows)) == 0 {
		return floods
	}
	return rows
}

// searchRule says which rates searches found, of the first size, mostly the smallest, in each direction; alone, also
// where the path saturates. settings are those of a search.
func searchRule(alone bool, settings func(rows []table.Row, but ...string) []table.Key) Rule {
	return func(rows []table.Row) []Finding {
		searches := table.Searches(rows)
		return searched(searches, table.Varying(searches, settings(searches)...), alone)
	}
}

func searched(searches []table.Row, settings []table.Key, alone bool) []Finding {
	if len(searches) == 0 {
		return nil
	}
	var out []Finding
	least := searches[0].Flow.FrameBytes
	for _, g := range table.By(searches, settings...) {
		if g.Rows[0].Flow.FrameBytes != least {
			continue
		}
		for _, goal := range table.By(g.Rows, table.KeyOf("goal_loss_ratio")) {
			found, name := lossFree(goal, len(out) == 0), PlaceName(g)
			for i, f := range found {
				switch {
				case i > 0 && f.Code != "free.differ":
				case slices.ContainsFunc(settings, func(k table.Key) bool { return k.Unit == unit.Bytes }):
					found[i] = f.with("where", within(g))
				case name != "":
					found[i] = f.with("way", Capital(name))
				}
			}
			found[0] = found[0].with("place", name)
			if flood := Saturation(typicalOf(goal)); alone && len(out) == 0 && len(flood.Rows) > 0 {
				found[0] = found[0].with("flood", flood)
			}
			out = append(limitOnce(out, found), found...)
		}
	}
	return append(out, goalsOf(searches, out))
}

// limitOnce leaves what the answers so far say of the limit to the next ones, if these say the same.
func limitOnce(out, next []Finding) []Finding {
	for i, f := range out {
		link, ok := f.Number("link_bps", "")
		if same, also := next[0].Number("link_bps", ""); f.Code == "free.link" && next[0].Code == f.Code && ok &&
			also && link == same {
			out[i] = f.with("below", "yes")
		}
	}
	return slices.DeleteFunc(out, func(f Finding) bool {
		return f.isLimit() && slices.ContainsFunc(next,
			func(n Finding) bool { return n.isLimit() && n.Text() == f.Text() })
	})
}

func (f Finding) isLimit() bool { return strings.HasPrefix(f.Code, "limit.") }

// lossFree is the answer for one setting and one goal; the leading one says what is lost first, too.
func lossFree(g table.Group, leading bool) []Finding {
	typical := typicalOf(g)
	first := typical.Rows[0]
	f := say(outcome(first), Answer, "", typical, "limit", SearchLimit(first))
	if unit.FormatPPS(typical.Middle("fails_pps")) != unit.FormatPPS(typical.Middle("throughput_pps")) {
		f = f.with("fails", typical) // else readers see one rate that is carried and fails
	}
	if first.Search.Goal.LossRatio > 0 {
		f = f.with("loss_ratio:goal", first.Search.Goal.LossRatio)
	}
	if len(first.Trial.Flows) > 1 {
		f.Words["each"] = first.Say("each way")
	}
	var out []Finding
	beyond := AboveLimit(first)
	switch lost := Losses(beyond); {
	case leading && len(lost) > 0:
		f.Words["first"], f.Words["flow"] = lost[0].Text, flowOfLoss(beyond)
		worst := slices.MaxFunc(beyond, func(a, b table.Row) int {
			return cmp.Compare(a.Flow.LossRatio, b.Flow.LossRatio)
		})
		out = append(out, nextOf("free.explain", first.Doc).with("trial", strconv.Itoa(worst.TrialNumber())))
	case leading && first.Search.Limit == design.PathLimit:
		f.Words["queue"] = first.Say(growing)
	}
	switch f.Code {
	case "free.unknown":
		f = f.with("holds_pps:single", some(single(first)))
		out = append(out, limitFinding(first))
	case "free.none":
		least, rows := lowest(first)
		loss := table.Group{Rows: table.Usable(rows)}.Middle("loss_ratio")
		switch {
		case len(rows) == 0: // the flood sent less
			f = f.with("holds_pps:lowest", first.Doc.Plan.Design.Search.MinPPS)
		case loss > first.Search.Goal.LossRatio:
			f = f.with("holds_pps:least", least, "loss_ratio:least", loss)
		case first.Search.Limit == design.PathLimit:
			f = f.with("holds_pps:queue", least)
		}
		if withoutLoss(first) {
			out = append(out, limitFinding(first))
		}
	case "free.link":
		f = f.link(first)
	case "free.least":
		out = append(out, limitFinding(first))
	case "free.end":
		out = append(out, nextOf("advice.see", first.Doc))
	case "free.found":
		if fullAt(first) {
			f = f.with("link_bps", table.LinkRate(first))
		}
		if !first.Search.Regular { // which RFC 9971 section 4.8.4.1 has a report say
			out = append(out, say("free.wide", Doubt, "width_ratio", first.Search.Goal.WidthRatio))
		}
	}
	if from, to, told := reach(g); told {
		f = f.with("holds_pps:next", from, "fails_pps:next", to)
	}
	return slices.Concat([]Finding{f}, differ(g, first), randomLoss(first), bursts(first), out)
}

// flowOfLoss names the flow that lost most, if the other ones lost little.
func flowOfLoss(rows []table.Row) string {
	flows := table.By(rows, table.KeyOf("flow"))
	worst := slices.MaxFunc(flows, func(a, b table.Group) int {
		return cmp.Compare(a.Sum("lost_packets"), b.Sum("lost_packets"))
	})
	if len(flows) < 2 || worst.Sum("lost_packets") < mostOfLosses*(table.Group{Rows: rows}).Sum("lost_packets") {
		return ""
	}
	return worst.Name()
}

// mostOfLosses is the share of losses from which on one flow stands for all.
const mostOfLosses = 0.9

// goalsOf says in words what searches asked, which of several counts, and what the range of an answer tells.
func goalsOf(searches []table.Row, answers []Finding) Finding {
	g, most, two := searches[0].Search.Goal, 0, false
	for _, same := range table.By(searches, SearchKeys(searches)...) {
		n := len(ended(same))
		most, two = max(most, n), two || n == 2
	}
	f := say("setup.search", SetUp, "goal", g.Name, "measure_s:final", g.FinalSeconds, "measure_s:sum", g.SumSeconds,
		"width_ratio", g.WidthRatio,
		"measure_s:good", math.Ceil(g.SumSeconds*(1-g.ExceedRatio)/g.FinalSeconds)*g.FinalSeconds)
	if most > 1 {
		f = f.with("searches_count", most, "two", when(two, "yes"), "lower", when(most == 2, "yes"),
			"even", when(most%2 == 0, "yes"))
	}
	f = f.with("range", when(slices.ContainsFunc(answers, func(a Finding) bool {
		_, told := a.Number("holds_pps", "next")
		return told
	}), "yes"))
	if g.ExceedRatio == 0 {
		f.Code = "setup.search-strict"
	}
	return f
}
