package finding

import (
	"math"
	"slices"

	"pelt/plan"
	"pelt/table"
)

// latencyKind is what loads do to the delay of small packets beside them.
func latencyKind() Kind {
	return Kind{
		Preset: plan.Latency,
		Use:    "latency TARGET",
		Short:  "Measure delay, loss and jitter of small packets beside a load",
		Long: `latency searches the rate without loss (RFC 9971) up to --rate, and times 100 packets a second
beside loads of up to 150 % of it: up, down and both. It says how much delay each direction
adds, from which load on, and grades that.`,
		Example: `  pelt latency lab:router --link-receiver rate=50mbit,queue=1000,delay=20ms`,
		Title:   "Latency under load", Searches: true,
		Rules:   []Rule{latencyRule},
		Repeats: "round_trip_p50_ns",
	}
}

// Parts of sentences.
const (
	latencyAdds = `oad [up adds {round_trip_increase_ns:up} to the round trip, and load down ` +
		`{round_trip_increase_ns:down}|{way} adds {round_trip_increase_ns:worst} to the round trip].`
	latencyLoad = `[¶The load was {load_ratio} of the loss-free rate[; the idle round trip takes ` +
		`{round_trip_p50_ns:idle}].]`
)

var latencySentences = map[string]string{
	"latency.grade": `Grade {grade}: l` + latencyAdds + latencyLoad + `¶Grades are those of DSLReports` +
		`[{round_trip_increase_ns:up ?}{round_trip_increase_ns:down ?}, by the worse of up and down].`,
	"latency.light": `No grade: no load of 100 % of the loss-free rate ran as ` +
		`ordered.¶L` + latencyAdds + latencyLoad,
	"latency.knee": `Delay rises by {round_trip_increase_ns} at {load_ratio} of the loss-free rate ({send_pps}, ` +
		`{way}).`,
	"latency.unfilled": `No grade: no load filled a queue.¶L` + latencyAdds + latencyLoad,
	"latency.flat":     `No load adds as much as 1 ms to the round trip.`,
	"latency.loaded": `Load {way}, {load_ratio} of the loss-free rate: round trip {round_trip_p50_ns} ` +
		`(median), {round_trip_p99_ns} (99 %)[; the way up adds {up_increase_p50_ns}, the way down ` +
		`{down_increase_p50_ns}][; {probe_loss_ratio:lossy} of the small packets lost].`,
	"latency.minute": `UDP round trips per minute (60 s divided by the mean round trip): ` +
		`[{round_trips_per_minute:idle} idle, ]{round_trips_per_minute} with load {way}.`,
	"latency.unsteady": `Before the load {way} of {load_ratio} began, the round trip was already ` +
		`{round_trip_p50_ns:before}, not {round_trip_p50_ns:idle}: something else was busy, and the load may ` +
		`add more than is shown.`,
	"latency.unsent": `At {load_ratio} of the loss-free rate, the load {way} did not run as ordered[{unkept ?}: the ` +
		`sender could not keep it|{asked ?}: it is more than --rate allows]. Perhaps no queue on the path was full.`,
	"latency.none":    `No rate without loss was found, so no load was measured.`,
	"latency.untimed": `No round trip was timed under load: no small packet was answered before a load began.`,
	"latency.page":    `See delay against load:`,
}

const (
	shareKey = "load_ratio"
	tripKey  = "round_trip_p50_ns"
	moreKey  = "round_trip_increase_ns"
)

// LatencyLoads are a direction's groups by load, the least first.
func LatencyLoads(rows []table.Row) []table.Group { return table.Groups(byLoad(rows).Tried()) }

func byLoad(rows []table.Row) table.Layout {
	share := table.KeyOf(shareKey)
	known := only(table.Usable(rows), func(r table.Row) bool { return share.Of(r).Known })
	return table.LayBy(known, []table.Key{table.KeyOf("direction")}, []table.Key{share})
}

// LatencyIdle is all trials without load.
func LatencyIdle(rows []table.Row) table.Group {
	return table.Group{Rows: only(table.Usable(rows), func(r table.Row) bool {
		l := table.KeyOf(shareKey).Of(r)
		return l.Known && l.Number == 0
	})}
}

// LatencyFull are each direction's trials at the highest load that ran as ordered and was timed.
func LatencyFull(rows []table.Row) []table.Group {
	var out []table.Group
	for _, c := range byLoad(rows).Conditions {
		timed := only(c.Tried(), func(p table.Place) bool {
			return p.Middle(moreKey) >= 0 && p.Level(shareKey).Number != 0
		})
		if n := len(timed); n > 0 {
			out = append(out, timed[n-1].Group)
		}
	}
	return out
}

// latencyRule grades what a load adds to the delay of small packets, and finds the load from which on it does.
func latencyRule(rows []table.Row) []Finding {
	full := LatencyFull(rows)
	if len(full) == 0 {
		if len(table.Usable(rows)) == 0 {
			return nil
		}
		none := say("latency.none", Answer)
		if len(LatencyLoads(rows)) > 0 {
			none.Code = "latency.untimed"
		}
		return []Finding{none, nextOf("none.next", rows[0].Doc)}
	}
	idle, worst := LatencyIdle(rows), largest(full, moreKey)
	loads := LatencyLoads(rows)
	knee := kneeOfLoads(oneWay(loads))
	out := []Finding{gradeOf(oneWay(full), idle)}
	lost := func(r table.Row) bool { return r.Flow.Lost > 0 } // as a full queue does
	if knee.Code != "latency.knee" && out[0].Code == "latency.grade" &&
		!slices.ContainsFunc(table.RowsOf(oneWay(full)), lost) {
		out[0].Code = "latency.unfilled"
	}
	if adds := largest(loads, moreKey).Middle(moreKey); knee.Code != "latency.flat" ||
		out[0].Code == "latency.grade" && adds < kneeLeast {
		out = append(out, knee)
	}
	for _, g := range full {
		out = append(out, loaded(g))
	}
	out = append(out, say("latency.minute", Fact, "", worst, "idle", idle, "way", wayOf(worst)))
	out = append(out, unsteady(rows, idle.Middle(tripKey))...)
	if out[0].Code != "latency.light" { // it says so itself
		out = append(out, notFull(rows, oneWay(full))...)
	}
	if worst.Middle("loss_ratio") >= table.Lossless {
		out = append(out, heldBackBy(worst.Limit(), worst))
	}
	return append(out, nextOf("latency.page", rows[0].Doc))
}

// unsteady doubts what a load adds where the round trip was no longer that of the idle path before that load began.
func unsteady(rows []table.Row, idle float64) []Finding {
	var worst table.Group
	before := max(2*idle, idle+kneeLeast)
	for _, g := range LatencyLoads(rows) {
		for _, r := range g.Rows {
			if p := r.Flow.Probe; p != nil && p.IdleNS >= before {
				worst, before = g, p.IdleNS
			}
		}
	}
	if worst.Rows == nil {
		return nil
	}
	return []Finding{say("latency.unsteady", Doubt, "", worst, "way", wayOf(worst),
		tripKey+":before", before, tripKey+":idle", idle)}
}

// notFull doubts that a queue was filled where the highest load did not run as ordered.
func notFull(rows []table.Row, full []table.Group) []Finding {
	plan := rows[0].Doc.Plan
	if plan.Design.Search == nil || len(plan.Design.Search.Loads) == 0 || len(plan.Flows) == 0 {
		return nil
	}
	most := slices.Max(plan.Design.Search.Loads)
	f, ways := say("latency.unsent", Doubt, shareKey, most), []string{}
	for _, g := range full {
		share := g.Level(shareKey).Number
		if share >= most {
			continue
		}
		ways = append(ways, wayOf(g))
		if slices.ContainsFunc(rows, func(r table.Row) bool {
			return r.Trial.Unkept() && table.KeyOf("direction").Of(r) == g.Level("direction")
		}) {
			f = f.with("unkept", "yes")
		}
		asked := plan.Flows[0].Rate
		if limit, ok := asked.PPS(g.Rows[0].Flow.PayloadBytes); ok && most/share*g.Middle("send_pps") > limit {
			f = f.with("asked", "yes")
		}
	}
	if len(ways) == 0 {
		return nil
	}
	return []Finding{f.with("way", fewNames(table.Language(rows), ways))}
}

// grades are those of DSLReports: by the increase of the round trip in ms, here the worse of up and down.
var grades = []struct {
	below float64
	name  string
}{{5, "A+"}, {30, "A"}, {60, "B"}, {200, "C"}, {400, "D"}, {math.Inf(1), "F"}}

func gradeOf(full []table.Group, idle table.Group) Finding {
	f := say("latency.grade", Answer)
	for _, g := range full {
		f = f.with(g.Level("direction").Text, g)
	}
	if share := full[0].Level(shareKey); !slices.ContainsFunc(full, func(g table.Group) bool {
		return g.Level(shareKey) != share
	}) {
		f = f.with(shareKey, share.Number)
	}
	if slices.ContainsFunc(full, func(g table.Group) bool { return g.Level(shareKey).Number < 1 }) {
		f.Code = "latency.light"
	}
	worst, name := largest(full, moreKey), ""
	for _, g := range grades {
		if name == "" && worst.Middle(moreKey) < g.below*1e6 {
			name = g.name
		}
	}
	if len(full) == 1 {
		f.Words["way"] = wayOf(full[0])
	}
	return f.with("grade", name, "worst", worst, "idle", idle)
}

// oneWay are the groups that load one direction, or all where none does.
func oneWay(groups []table.Group) []table.Group {
	one := only(groups, func(g table.Group) bool { return g.Level("direction").Text != "both" })
	if len(one) == 0 {
		return groups
	}
	return one
}

func wayOf(g table.Group) string {
	if way := g.Level("direction").Text; way != "both" {
		return g.Say(way)
	}
	return g.Say("both ways")
}

// The knee is where the median round trip has doubled, or has grown by 5 ms; what adds less than 1 ms is none.
const kneeLeast, kneeMost = 1e6, 5e6

// kneeOfLoads is the lowest load from which on the delay rises, in the direction that it adds most to.
func kneeOfLoads(loads []table.Group) Finding {
	var knee table.Group
	for _, g := range loads {
		share, more := g.Level(shareKey).Number, g.Middle(moreKey)
		if share == 0 || !(more >= min(max(g.Middle(tripKey)-more, kneeLeast), kneeMost)) {
			continue
		}
		least := knee.Level(shareKey).Number
		if knee.Rows == nil || share < least || share == least && more > knee.Middle(moreKey) {
			knee = g
		}
	}
	if knee.Rows == nil {
		return say("latency.flat", Answer)
	}
	return say("latency.knee", Answer, "", knee, "way", wayOf(knee))
}

// loaded is what a direction's highest load does to the small packets.
func loaded(g table.Group) Finding {
	f := say("latency.loaded", Fact, "", g, "way", wayOf(g))
	if g.Middle("probe_loss_ratio") > 0 {
		f = f.with("lossy", g)
	}
	return f
}
