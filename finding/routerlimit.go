package finding

import (
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
)

// routerLimits says what held which traffic back. That of the smallest frames, the first way
// and the first variant comes first and is an answer.
func routerLimits(full []table.Group) []Finding {
	byLimit := map[string][]table.Group{}
	var order []string
	for _, g := range full {
		limit := limitOf(g)
		if !slices.Contains(order, limit) {
			order = append(order, limit)
		}
		byLimit[limit] = append(byLimit[limit], g)
	}
	foremost := foremostFlow(full)
	limit := limitOf(foremost[0])
	alike := only(foremost, func(g table.Group) bool { return limitOf(g) == limit })
	out := []Finding{limitedBy(limit, alike...).word("where", places(alike, foremost))}
	out[0].Level = Answer
	if core, ok := busiest(foremost[0]); ok {
		out = append(out, core)
	}
	for _, other := range order {
		if groups := byLimit[other]; other != limit || len(groups) > len(alike) {
			out = append(out, limitedBy(other, groups...).word("where", places(groups, full)))
		}
	}
	return append(out, offloaded(full)...)
}

// busiest says how busy the router's busiest core was in a group, and with what.
func busiest(g table.Group) (f Finding, ok bool) {
	cores := only(table.Cores(g.Rows), func(r table.Row) bool {
		return r.Trial.Router != nil && r.Core.Node == r.Trial.Router.Node
	})
	if len(cores) == 0 {
		return f, false
	}
	top, most := foremost(table.By(cores, table.KeyOf("core")), "core_busy_ratio"), 0.0
	f = say("router.core", Fact, top).word("where", traffic(g)).word("core", top.Name())
	for _, part := range []string{"softirq", "system", "user", "irq", "nice", "steal"} {
		if v := middle(top, "core_"+part+"_ratio"); v > most {
			most, f.Words["doing"], f.Words["part"] = v, part, "core_"+part+"_ratio"
		}
	}
	f = f.figure("core_busy_ratio", "", top).number(f.Words["part"], "", most)
	return f, most > 0 && f.Has("core_busy_ratio", "")
}

// places names some of all groups: "TCP everywhere; 64 B to 512 B (LAN to WAN)".
func places(groups, all []table.Group) string {
	if len(groups) == len(all) && len(all) > 1 {
		return "all traffic"
	}
	keys := table.Varying(table.RowsOf(all), wayKey, table.KeyOf("variant"))
	held, has := table.By(table.RowsOf(groups), TrafficKey), table.By(table.RowsOf(all), TrafficKey)
	size := func(g table.Group) int { return len(table.By(g.Rows, keys...)) }
	everywhere := func(t table.Group) bool {
		i := slices.IndexFunc(has, func(o table.Group) bool { return o.Levels[0] == t.Levels[0] })
		return len(keys) > 0 && size(t) > 1 && size(t) == size(has[i])
	}
	var parts []string
	if whole := only(held, everywhere); len(whole) > 0 {
		parts = append(parts, trafficSpan(whole, has)+" everywhere")
	}
	rest := only(held, func(t table.Group) bool { return !everywhere(t) })
	for _, at := range table.By(table.RowsOf(rest), keys...) {
		text := trafficSpan(table.By(at.Rows, TrafficKey), has)
		if name := at.Name(); name != "" {
			text += " (" + name + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// trafficSpan names traffic, neighbours among all traffic by the first and the last: "64 B to 512 B".
func trafficSpan(groups, all []table.Group) string {
	place := func(g table.Group) int {
		return slices.IndexFunc(all, func(o table.Group) bool { return o.Level("traffic") == g.Level("traffic") })
	}
	last := len(groups) - 1
	if last > 1 && place(groups[last])-place(groups[0]) == last && protocolOf(groups[last]) == model.UDP {
		return traffic(groups[0]) + " to " + traffic(groups[last])
	}
	var names []string
	for _, g := range groups {
		names = append(names, traffic(g))
	}
	return strings.Join(names, ", ")
}

const (
	// A router that carries all that came with less than this of its processors and of its
	// busiest core has something else forward.
	hardlyBusy = 0.1
	hardlyCore = 0.25
	// A lab router's kernel that forwards less than this share itself has a faster way.
	bypassed = 0.05
)

// offloaded says which packets were forwarded without the router's processor, or past the
// usual way through its kernel. Rates too low to tell are not taken for that.
func offloaded(full []table.Group) []Finding {
	var groups []table.Group
	for _, g := range full {
		aside := middle(g, "router_kernel_ratio") < bypassed
		if g.Rows[0].Doc.Lab == nil {
			aside = middle(g, "router_busy_ratio") < hardlyBusy && middle(g, "router_busiest_core_ratio") < hardlyCore
		}
		if aside && !asked(g) {
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
	f := say(code, Fact, groups...).word("where", places(groups, full))
	return []Finding{f.median(metric, "", foremost(groups, metric))}
}

// RouterWatch says how the router was watched, and when it was not.
func RouterWatch(rows []table.Row) []Finding {
	rows = Usable(rows)
	if len(rows) == 0 {
		return nil
	}
	var out []Finding
	var gaps []string
	trials, seen, samples := oneEach(rows), 0, 0.0
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
			if !slices.Contains(gaps, g) {
				gaps = append(gaps, g)
			}
		}
	}
	watched := say("router.watched", SetUp).number("seen_count", "", float64(seen)).
		word("source", sourceOf(rows[0].Doc)).
		number("unseen_count", "", float64(len(trials)-seen)).number("trials_count", "", float64(len(trials))).
		number("samples_count", "", samples).median("router_cost_ratio", "", table.Group{Rows: trials})
	doubt := func(code string) Finding { return Finding{code, Doubt, watched.Numbers, nil, nil} }
	if seen < len(trials) {
		out = append(out, doubt("router.unseen"))
	}
	for _, g := range gaps[:min(len(gaps), mostGaps)] {
		out = append(out, say("router.gap", Doubt).word("gap", strings.TrimRight(g, ".")))
	}
	if cost, _ := watched.Number("router_cost_ratio", ""); cost > dear {
		out = append(out, doubt("router.dear"))
	}
	if seen > 0 {
		out = append(out, watched)
	}
	return out
}

const (
	mostGaps = 3    // of the watch that are named; trials have all of them
	dear     = 0.05 // share of one of the router's cores that a watch should not take
)

// sourceOf is how the router was watched.
func sourceOf(d *model.Document) string {
	if d.Router != nil && d.Router.Source != "" {
		return d.Router.Source
	}
	return "its own account"
}
