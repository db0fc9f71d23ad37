package finding

import (
	"maps"
	"reflect"
	"slices"

	"pelt/model"
	"pelt/table"
	"pelt/words"
)

// routerLimits says what held the smallest frames back, and as many sizes behind them, of the first
// way and variant. A table has the others.
func routerLimits(full []table.Group) []Finding {
	foremost := foremostFlow(full)
	limit, alike := foremost[0].Limit(), foremost[:1]
	for len(alike) < len(foremost) && foremost[len(alike)].Limit().By == limit.By {
		alike = foremost[:len(alike)+1]
	}
	out := []Finding{heldBackBy(limit, foremost[0]).with("where", whereOf(alike, foremost),
		"dut", when(unwatched(foremost[0].Rows[0].Doc), "yes"))}
	out[0].Level = Answer
	if core, ok := busiest(foremost[0]); ok {
		out = append(out, core)
	}
	return append(out, offloaded(full)...)
}

// unwatched reports whether nobody told where the router is.
func unwatched(d *model.Document) bool { return d.Router == nil && d.Lab == nil }

// whereOf names the traffic of some of all groups, and its variants unless it has all of them.
func whereOf(groups, all []table.Group) string {
	names := func(groups []table.Group, k table.Key) (out []string) {
		for _, g := range table.By(table.RowsOf(groups), k) {
			out = append(out, g.Name())
		}
		return out
	}
	l := all[0].Language()
	text := span(l, names(groups, trafficKey))
	if some, every := names(groups, table.KeyOf("variant")), names(all,
		table.KeyOf("variant")); len(some) < len(every) {
		text = l.Sayf("%s (%s)", text, fewNames(l, some))
	}
	return text
}

func busiest(g table.Group) (f Finding, ok bool) {
	cores := only(table.Cores(g.Rows), func(r table.Row) bool {
		return r.Trial.Router != nil && r.Core.Node == r.Trial.Router.Node
	})
	if len(cores) == 0 {
		return f, false
	}
	top, most := largest(table.By(cores, table.KeyOf("core")), "core_busy_ratio"), 0.0
	f = say("router.core", Fact, "", top, "where", traffic(g), "busiest", top.Name())
	for _, part := range []string{"softirq", "system", "user", "irq", "nice", "steal"} {
		if v := top.Middle("core_" + part + "_ratio"); v > most {
			most, f.Words["doing"], f.Words["part"] = v, top.Language().Say(part), "core_"+part+"_ratio"
		}
	}
	return f, most > 0 && f.Has("core_busy_ratio", "")
}

const (
	// A router that carries all that came with less than this of its processors and of its
	// busiest core is fast, or has something else forward.
	hardlyBusy = 0.1
	hardlyCore = 0.25
	// A lab router's kernel that forwards less than this share itself has a faster way.
	bypassed = 0.05
)

// offloaded says which packets may have been forwarded without the router's processor, or were past the usual way
// through its kernel. Rates too low to tell are not taken for that.
func offloaded(full []table.Group) []Finding {
	var groups []table.Group
	for _, g := range full {
		aside := g.Middle("router_kernel_ratio") < bypassed
		if g.Rows[0].Doc.Lab == nil {
			aside = g.Middle("router_busy_ratio") < hardlyBusy && g.Middle("router_busiest_core_ratio") < hardlyCore
		}
		if aside && !g.Asked() {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	code, metric := "router.offload.cpu", "router_busy_ratio"
	if groups[0].Rows[0].Doc.Lab != nil {
		code, metric = "router.offload.kernel", "router_kernel_ratio"
	}
	return []Finding{say(code, Fact, "", largest(groups, metric), "where", whereOf(groups, full))}
}

func routerWatch(rows []table.Row) []Finding {
	rows = table.Usable(rows)
	if len(rows) == 0 {
		return nil
	}
	var out []Finding
	var gaps []model.RouterGap
	trials, seen, samples := table.OneEach(rows), 0, 0.0
	for _, r := range trials {
		w := r.Trial.Router
		if w == nil {
			continue
		}
		if w.CPU != nil || w.ThreadRatio != nil {
			seen++
		}
		samples += float64(max(w.Samples, 0))
		for _, g := range w.Gaps {
			if !slices.ContainsFunc(gaps, func(one model.RouterGap) bool { return reflect.DeepEqual(one, g) }) {
				gaps = append(gaps, g)
			}
		}
	}
	if seen < len(trials) {
		out = append(out, say("router.unseen", Doubt, "unseen_count", len(trials)-seen, "trials_count", len(trials),
			"all", when(seen == 0, "yes")))
	}
	if unwatched(rows[0].Doc) {
		out = append(out, say("router.dut", Next, "target", rows[0].Doc.Plan.Target))
	}
	for _, g := range gaps[:min(len(gaps), mostGaps)] {
		f := say("router.gap."+g.Why, Doubt, "said", WhyIn(rows[0].Language(), g.Of), "gap_s:to", some(g.ToS))
		if g.FromS > 0 || g.ToS > 0 {
			f = f.with("gap_s:from", g.FromS)
		}
		out = append(out, f)
	}
	if seen > 0 {
		out = append(out, say("router.watched", SetUp, "", table.Group{Rows: trials}, "source", sourceOf(rows[0].Doc),
			"seen_count", seen, "trials_count", len(trials), "samples_count", samples,
			"all", when(seen == len(trials), "yes")))
	}
	return out
}

// mostGaps is how many gaps of the watch are named; trials have all of them.
const mostGaps = 3

// Told is a fact that a router told of itself.
func Told(l words.Language, f model.RouterFact) Finding {
	out := say("router.fact."+f.Code, SetUp, "later", when(f.Later, l.Say("after the test"))).In(l)
	maps.Copy(out.Words, f.Words)
	switch by := f.Words["by"]; {
	case f.Code == model.FactOffload:
		out.Words["by"] = l.Say(by + " flow offloading")
	case by != "":
		out.Words["by"] = l.Say(by)
	}
	if len(f.Of) > 0 {
		out = out.with("why", WhyIn(l, f.Of))
	}
	if _, _, whole := out.option(sentences[out.Code]); !whole {
		out.Code = "router.fact.other"
	}
	return out
}

func sourceOf(d *model.Document) string {
	if d.Router != nil && d.Router.Source != "" {
		return d.Language.Say(d.Router.Source)
	}
	return d.Language.Say("its own account")
}
