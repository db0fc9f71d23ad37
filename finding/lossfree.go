package finding

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/design"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

// SearchKeys are what tells the searches of rates apart: the goal, and the settings, what varies.
func SearchKeys(searches []table.Row) []table.Key { return table.Vary(searches, "flow") }

// RouterSearchKeys are SearchKeys that name the sides of a router.
func RouterSearchKeys(searches []table.Row) []table.Key { return sides(SearchKeys(searches)) }

func sides(keys []table.Key) []table.Key {
	for i, k := range keys {
		if k.Name == trialWayKey.Name {
			keys[i] = trialWayKey
		}
	}
	return keys
}

// ndrRule says which rates searches found, and where the path saturates.
func ndrRule(rows []table.Row) []Finding {
	return searched(rows, table.Settings(table.Searches(rows)), true)
}

// searchesBeside says which rates searches found beside what floods got through.
func searchesBeside(rows []table.Row) []Finding {
	return searched(rows, table.Settings(table.Searches(rows)), false)
}

// routerSearches is searchesBeside of a bench.
func routerSearches(rows []table.Row) []Finding {
	return searched(rows, sides(table.Settings(table.Searches(rows))), false)
}

// searched answers for the first size, mostly the smallest, and each direction.
func searched(rows []table.Row, settings []table.Key, alone bool) []Finding {
	searches := table.Searches(rows)
	if len(searches) == 0 {
		return nil
	}
	settings = table.Varying(searches, settings...)
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
					found[i] = f.with("way", capital(name))
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

// Saturation are the rows of the flood that a search began with; none where the flood, which is made before all
// searches, received less than the search found.
func Saturation(search table.Group) table.Group {
	flood := table.Group{Rows: search.Rows[0].Flood()}
	if received := flood.Middle("receive_pps"); received < search.Middle("throughput_pps") &&
		unit.FormatPPS(received) != unit.FormatPPS(search.Middle("throughput_pps")) {
		return table.Group{}
	}
	return flood
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
		out = append(out, NextOf("free.explain", first.Doc).with("trial", strconv.Itoa(failing(first).TrialNumber())))
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
		out = append(out, NextOf("advice.see", first.Doc))
	case "free.found":
		if fullAt(first) {
			f = f.with("link_bps", table.LinkRate(first))
		}
		if !first.Search.Regular { // which RFC 9971 section 4.8.4.1 has a report say
			out = append(out, say("free.wide", Doubt, "width_ratio", first.Search.Goal.WidthRatio))
		}
	}
	if from, to, name := reach(g); name != "" {
		f = f.with("holds_pps:"+name, from, "fails_pps:"+name, to)
	}
	return slices.Concat([]Finding{f}, differ(g, first), randomLoss(first), bursts(first), out)
}

// outcome is the code of the answer that a search gives.
func outcome(r table.Row) string {
	_, tried := lowest(r)
	switch {
	case !r.Search.Done:
		return "free.cut"
	case math.IsNaN(r.Search.Throughput) && withoutLoss(r) && len(tried) > 0:
		return "free.unknown"
	case math.IsNaN(r.Search.Throughput):
		return "free.none"
	case r.Search.Limit == design.AskedLimit:
		return "free.asked"
	case fullAt(r) && r.Search.Limit != design.PathLimit:
		return "free.link"
	case withoutLoss(r):
		return "free.least"
	case r.Search.Limit == design.EndLimit:
		return "free.end"
	}
	return "free.found"
}

// differ doubts the answer of a search if others ended differently.
func differ(g table.Group, typical table.Row) (out []Finding) {
	kind := func(r table.Row) string {
		switch code := outcome(r); {
		case AtLeast(r):
			return "least"
		case code == "free.none" || code == "free.unknown":
			return strings.TrimPrefix(code, "free.")
		}
		return "found"
	}
	searches := ended(g)
	for _, other := range []string{"none", "unknown", "least", "found"} {
		such := only(searches, func(r table.Row) bool { return kind(r) == other })
		if len(such) == 0 || kind(typical) == other {
			continue
		}
		f := say("free.differ", Doubt, "searches_count:such", len(such), "searches_count", len(searches), other, "yes")
		out = append(out, f.with("loss_ratio:goal", some(typical.Search.Goal.LossRatio)))
	}
	return out
}

// ended has a row of each search of a group that ended.
func ended(g table.Group) []table.Row {
	return only(oneEach(g.Rows), func(r table.Row) bool { return r.Search.Done })
}

// counting are the rows of a group's searches that ended, or of all where none did.
func counting(g table.Group) []table.Row {
	if rows := only(g.Rows, func(r table.Row) bool { return r.Search.Done }); len(rows) > 0 {
		return rows
	}
	return g.Rows
}

// typicalOf is of a group the search that found the middle rate of those that count; of an even number the lower of the
// two in the middle.
func typicalOf(g table.Group) table.Group {
	searches := oneEach(counting(g))
	slices.SortStableFunc(searches,
		func(a, b table.Row) int { return cmp.Compare(a.Search.Throughput, b.Search.Throughput) })
	middle := searches[(len(searches)-1)/2].Search
	g.Rows = only(g.Rows, func(r table.Row) bool { return r.Search == middle })
	return g
}

// TypicalSearches are the searches of the rows' runs; of several of the same the one that counts.
func TypicalSearches(rows []table.Row) (out []table.Row) {
	all := table.Searches(rows)
	for _, g := range table.By(all, SearchKeys(all)...) {
		out = append(out, typicalOf(g).Rows...)
	}
	return out
}

// fewSearches is how many searches do not tell how far apart the next one may be.
const fewSearches = 2

// reach is where the next run's rate lies, by how far the searches of this one are apart; of a few, where their single
// trials put the limit ("tried"). It has no name where readers see no more than the bounds of the one that counts.
func reach(g table.Group) (from, to float64, name string) {
	typical, searches := typicalOf(g), ended(g)
	if code := outcome(typical.Rows[0]); code != "free.found" && code != "free.link" {
		return 0, 0, ""
	}
	low, high, sent := math.Inf(1), 0.0, 0.0
	var rates []float64
	from = math.Inf(1)
	for _, r := range searches {
		s := r.Search
		if math.IsNaN(s.Throughput) || math.IsNaN(s.Upper) {
			continue
		}
		rates, sent = append(rates, s.Throughput), max(sent, s.Seen[0].Load)
		low, high = min(low, s.Lower), max(high, s.Upper)
		least, most := s.Tried()
		from, to = min(from, least), max(to, most)
	}
	name = "tried"
	if len(rates) > fewSearches && len(rates) == len(searches) { // else the next run may find no rate
		least, most := table.NextOf(rates)
		name, from = "next", min(low, max(least, g.Rows[0].Doc.Plan.Design.Search.MinPPS))
		to = max(high, min(most, sent))
	}
	seen := func(a, b float64) bool { return unit.FormatPPS(a) != unit.FormatPPS(b) }
	if len(rates) == 0 || !seen(from, typical.Middle("holds_pps")) && !seen(to, typical.Middle("fails_pps")) {
		return 0, 0, ""
	}
	return from, to, name
}

// NextRun says where the next run finds the rate of a group of searches; "" where that is not known.
func NextRun(g table.Group) string {
	if from, to, name := reach(g); name == "next" {
		last := unit.FormatPPS(to)
		return unit.Bare(unit.FormatPPS(from), last) + "–" + last
	}
	return ""
}

// flowOfLoss names the flow that lost most, if the other ones lost little.
func flowOfLoss(rows []table.Row) string {
	flows := table.By(rows, table.KeyOf("flow"))
	if len(flows) < 2 {
		return ""
	}
	worst, all := flows[0], 0.0
	for _, g := range flows {
		all += g.Sum("lost_packets")
		if g.Sum("lost_packets") > worst.Sum("lost_packets") {
			worst = g
		}
	}
	if worst.Sum("lost_packets") < mostOfLosses*all {
		return ""
	}
	return worst.Name()
}

// mostOfLosses is the share of losses from which on one flow stands for all.
const mostOfLosses = 0.9

// withoutLoss reports whether no trial at a rate that fails shows what the limit was.
func withoutLoss(r table.Row) bool {
	return r.Search.Limit == design.SenderLimit || r.Search.Limit == design.FloodLimit
}

// AtLeast reports whether a search found no rate at which the path loses too much.
func AtLeast(r table.Row) bool {
	return slices.Contains([]string{"free.least", "free.asked", "free.end"}, outcome(r))
}

// limitFinding says what held a search back that found no rate at which the path or a host loses too much.
func limitFinding(r table.Row) Finding {
	flood := table.Group{Rows: r.Flood()}
	limit, why, f := flood.FloodLimit(), unsent(r), say("", Answer)
	queue := limit.By == table.ByQueue && r.Search.Lower >= table.FullLink*flood.Middle("receive_pps")
	switch {
	case queue: // trials near its rate show no more
	case len(why) > 0:
		f.Code = "limit.invalid"
		if strings.HasPrefix(why[0].Code, "sender-") || why[0].Code == model.InterfaceRefused {
			f.Code = "limit.unsent"
			f = f.with("limit", r.Say(limitNames[table.BySender]))
		} else {
			f = f.with("limit", r.Say(limitNames[table.Unproven]))
		}
		return f.with("why", WhyIn(r.Language(), why), "fails_pps", r.Search.Upper)
	case r.Search.Limit == design.FloodLimit:
	case late(r) > 0:
		f.Code = "limit.late"
		f = f.with("limit", r.Say(limitNames[table.BySender]))
		return f.with("late_ratio", late(r), "fails_pps", r.Search.Upper)
	default:
		limit = table.Limit{By: table.Unproven}
	}
	f = Limit(limit, flood)
	f.Level = Answer
	return f
}

// unsent is why the first invalid trial at the upper bound is invalid; without an upper bound, why the flood is.
func unsent(r table.Row) model.Reasons {
	for i, o := range r.Search.Seen {
		at := o.Load == r.Search.Upper || o.Flood && r.Search.Limit == design.FloodLimit
		if why := r.Search.Trials[i].Why; o.Unsent && at && len(why) > 0 {
			return why[:1]
		}
	}
	return nil
}

// late is the largest share of its schedule that a sender missed in a trial at the upper bound.
func late(r table.Row) (most float64) {
	for _, one := range r.Around(func(pps float64) bool { return pps == r.Search.Upper }) {
		for _, l := range one.Flow.Ledger.Pacing {
			if l.Cause == model.PacingLate {
				most = max(most, float64(l.Packets)/max(float64(one.Flow.Planned), 1))
			}
		}
	}
	return most
}

// fullAt reports whether a link was full at the highest rate that a search found to hold.
func fullAt(r table.Row) bool {
	holds := r.Around(func(pps float64) bool { return pps == r.Search.Lower })
	return len(holds) > 0 && table.Group{Rows: holds}.LinkFull()
}

// failing is the trial at the upper bound that lost most: readers open it to see why the rate fails.
func failing(r table.Row) (worst table.Row) {
	for _, one := range AboveLimit(r) {
		if worst.Flow == nil || one.Flow.LossRatio > worst.Flow.LossRatio {
			worst = one
		}
	}
	return worst
}

// single is the highest load at which a single trial met the goal; 0 if none did.
func single(r table.Row) (most float64) {
	for _, o := range r.Search.Seen {
		if !o.Flood && !o.Unsent && o.Loss <= r.Search.Goal.LossRatio {
			most = max(most, o.Load)
		}
	}
	return most
}

// lowest is the lowest load of a search, and the rows of its trials.
func lowest(r table.Row) (least float64, rows []table.Row) {
	least = math.Inf(1)
	for _, o := range r.Search.Seen {
		if !o.Flood {
			least = min(least, o.Load)
		}
	}
	return least, r.Around(func(pps float64) bool { return pps == least })
}

const (
	// Loads from this share of the flood's rate on are near the limit.
	nearLimit = 0.5
	// Loss ratios of loads that differ by more than this factor are not alike.
	alikeLoss = 4
	// Fewer loads tell nothing of how loss depends on them.
	fewLoads = 3
)

// randomLoss doubts a rate without loss where every rate far below the limit loses about the same share.
func randomLoss(r table.Row) []Finding {
	flood := table.Group{Rows: r.Flood()}.Middle("receive_pps")
	below := r.Around(func(pps float64) bool { return pps < nearLimit*flood })
	loads := table.By(table.Usable(below), table.KeyOf("rate_pps"))
	if len(loads) < fewLoads {
		return nil
	}
	var ratios []float64
	for _, g := range loads {
		ratios = append(ratios, g.Sum("lost_packets")/max(g.Sum("attempted_packets"), 1))
	}
	most, all := slices.Max(ratios), table.Group{Rows: table.RowsOf(loads)}
	typical := all.Sum("lost_packets") / max(all.Sum("attempted_packets"), 1)
	silent := only(ratios, func(x float64) bool { return x < typical/alikeLoss })
	if typical == 0 || most > alikeLoss*typical || 2*len(silent) > len(ratios) || typical <= r.Search.Goal.LossRatio {
		return nil
	}
	out := []Finding{say("free.random", Doubt, "loss_ratio:typical", typical, "receive_pps:below", nearLimit*flood)}
	if typical < mostAllowed {
		out = append(out, say("free.allow", Next, "share", percent(typical)))
	}
	return out
}

// mostAllowed is the share of random losses from which on no rate is worth a search.
const mostAllowed = 0.1

// percent is a share that a rate may lose where some loss is random: about five times as much, as --max-loss reads it.
func percent(share float64) string {
	for _, s := range []struct {
		share float64
		text  string
	}{{0.0002, "0.1%"}, {0.001, "0.5%"}, {0.002, "1%"}, {0.01, "5%"}} {
		if share <= s.share*1.5 {
			return s.text
		}
	}
	return "20%"
}

// shortBurst is how long the losses of a stall last at most, in s.
const shortBurst = 0.02

// bursts doubts an upper bound where each trial lost one burst: something stalled, and the rate is not the limit.
func bursts(r table.Row) []Finding {
	if r.Search.Limit != design.PathLimit {
		return nil
	}
	trials, single, longest := 0, 0, 0.0
	for _, one := range AboveLimit(r) {
		first, last, known := lossSpan(one.Flow)
		if one.Flow.Lost == 0 || !known || one.Flow.SendPPS <= 0 {
			continue
		}
		trials++
		if seconds := float64(last-first) / one.Flow.SendPPS; seconds <= shortBurst {
			single++
			longest = max(longest, seconds)
		}
	}
	if trials == 0 || single < trials {
		return nil
	}
	return []Finding{say("free.burst", Doubt, "fails_pps", r.Search.Upper, "burst_s", longest,
		"trials_count", float64(trials))}
}

// lossSpan is the first and the last sequence that a flow of one stream is known to have lost.
func lossSpan(f *model.FlowResult) (first, last uint64, known bool) {
	for _, l := range f.Ledger.Lines {
		for _, s := range l.Sequences {
			if s.Count == 0 {
				continue
			}
			if !known || s.From < first {
				first = s.From
			}
			last, known = max(last, s.From+s.Count-1), true
		}
	}
	return first, last, known && f.Streams == 1 && f.Ledger.Unattributed == 0
}

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

// Rates are the loads of a search with the rows of their trials, the lowest first; those that a terminal has room for
// are the nearest to the answer.
func Rates(r table.Row) []table.Group {
	return table.By(table.Usable(r.Around(func(float64) bool { return true })), table.KeyOf("rate_pps"))
}

// growing is what limits a rate that loses nothing yet.
const growing = "a queue that grows"

// AboveLimit are the rows of the valid trials at the upper bound of a search.
func AboveLimit(r table.Row) []table.Row {
	return table.Usable(r.Around(func(pps float64) bool { return pps == r.Search.Upper }))
}

// SearchLimit names what a search's upper bound is a limit of, with the cause of most of its losses.
func SearchLimit(r table.Row) string {
	lost := Losses(AboveLimit(r))
	switch {
	case r.Search.Limit == design.AskedLimit:
		return r.Say(limitNames[table.ByOffer])
	case fullAt(r):
		return r.Say(limitNames[table.ByLink])
	case withoutLoss(r):
		return LimitName(limitFinding(r))
	case len(lost) > 0:
		return lost[0].Text
	case r.Search.Limit == design.PathLimit:
		return r.Say(growing)
	}
	return r.Say(limitNames[table.Unproven])
}
