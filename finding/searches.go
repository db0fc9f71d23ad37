package finding

import (
	"cmp"
	"math"
	"slices"
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

// benchSettings are the settings of a search through a router.
func benchSettings(rows []table.Row, but ...string) []table.Key {
	return sides(table.Settings(rows, but...))
}

func sides(keys []table.Key) []table.Key {
	for i, k := range keys {
		if k.Name == trialWayKey.Name {
			keys[i] = trialWayKey
		}
	}
	return keys
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

// ended has a row of each search of a group that ended.
func ended(g table.Group) []table.Row {
	return only(table.OneEach(g.Rows), func(r table.Row) bool { return r.Search.Done })
}

// counting are the rows of a group's searches that count: those that could tell a rate, else all that ended, else all.
func counting(g table.Group) []table.Row {
	for _, counts := range []func(table.Row) bool{
		func(r table.Row) bool { return !math.IsNaN(r.Search.Rate()) },
		func(r table.Row) bool { return r.Search.Done },
	} {
		if rows := only(g.Rows, counts); len(rows) > 0 {
			return rows
		}
	}
	return g.Rows
}

// typicalOf is of a group the search that found the middle rate of those that count; of an even number the lower of the
// two in the middle.
func typicalOf(g table.Group) table.Group {
	searches := table.OneEach(counting(g))
	slices.SortStableFunc(searches,
		func(a, b table.Row) int { return cmp.Compare(a.Search.Rate(), b.Search.Rate()) })
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

// reach is where the next run's rate lies, by how far the searches of this one are apart. It is not told where readers
// would see no more than the bounds of the search that counts.
func reach(g table.Group) (from, to float64, told bool) {
	typical, searches := typicalOf(g), ended(g)
	code := outcome(typical.Rows[0])
	if code != "free.found" && code != "free.link" || len(searches) <= fewSearches {
		return 0, 0, false
	}
	low, high, sent := math.Inf(1), 0.0, 0.0
	var rates []float64
	for _, r := range searches {
		s := r.Search
		if math.IsNaN(s.Throughput) || math.IsNaN(s.Upper) { // the next run may find no rate, too
			return 0, 0, false
		}
		rates, sent = append(rates, s.Throughput), max(sent, s.Seen[0].Load)
		low, high = min(low, s.Lower), max(high, s.Upper)
	}
	least, most := table.NextOf(rates)
	from = min(low, max(least, g.Rows[0].Doc.Plan.Design.Search.MinPPS))
	to = max(high, min(most, sent))
	seen := func(a, b float64) bool { return unit.FormatPPS(a) != unit.FormatPPS(b) }
	return from, to, seen(from, typical.Middle("holds_pps")) || seen(to, typical.Middle("fails_pps"))
}

// NextRun says where the next run finds the rate of a group of searches; "" where that is not known.
func NextRun(g table.Group) string {
	if from, to, told := reach(g); told {
		last := unit.FormatPPS(to)
		return unit.Bare(unit.FormatPPS(from), last) + "–" + last
	}
	return ""
}

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
	limit, why := flood.FloodLimit(), unsent(r)
	fails := func(code string, by table.Part, named ...any) Finding {
		return say(code, Answer, append(named, "limit", r.Say(limitNames[by]), "fails_pps", r.Search.Upper)...)
	}
	switch {
	case limit.By == table.ByQueue && r.Search.Lower >= table.FullLink*flood.Middle("receive_pps"):
		// trials near its rate show no more
	case len(why) > 0 && (strings.HasPrefix(why[0].Code, "sender-") || why[0].Code == model.InterfaceRefused):
		return fails("limit.unsent", table.BySender, "why", why)
	case len(why) > 0:
		return fails("limit.invalid", table.Unproven, "why", why)
	case r.Search.Limit == design.FloodLimit:
	case late(r) > 0:
		return fails("limit.late", table.BySender, "late_ratio", late(r))
	default:
		limit = table.Limit{By: table.Unproven}
	}
	f := heldBackBy(limit, flood)
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
	for _, one := range r.At(r.Search.Upper) {
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
	holds := r.At(r.Search.Lower)
	return len(holds) > 0 && table.Group{Rows: holds}.LinkFull()
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
	return least, r.At(least)
}

// Rates are the loads of a search with the rows of their trials, the lowest first.
func Rates(r table.Row) []table.Group {
	return table.By(table.Usable(r.Around(func(float64) bool { return true })), table.KeyOf("rate_pps"))
}

// growing is what limits a rate that loses nothing yet.
const growing = "a queue that grows"

// AboveLimit are the rows of the valid trials at the upper bound of a search.
func AboveLimit(r table.Row) []table.Row {
	return table.Usable(r.At(r.Search.Upper))
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
		return limitFinding(r).Words["limit"]
	case len(lost) > 0:
		return lost[0].Text
	case r.Search.Limit == design.PathLimit:
		return r.Say(growing)
	}
	return r.Say(limitNames[table.Unproven])
}
