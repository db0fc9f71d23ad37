package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
)

// finding is what changed in one cell on one side.
type finding struct {
	side int
	size float64 // of the largest change, to find the most telling cell
	text string
}

// foremost reports whether a sentence tells of a metric; the others stand in it only
// where none of these changed.
func foremost(metric string) bool {
	switch metric {
	case "receive_pps", "goodput_bps", "loss_ratio", "router_cpu_busy_ratio", "delay_p50_ns", "round_trip_p50_ns":
		return true
	}
	return false
}

// gather makes a finding of the separable effects of each cell and side.
func gather(c model.Comparison) []finding {
	type place struct {
		side      int
		key, flow string
	}
	groups := map[place][]model.Effect{}
	var order []place
	flows := map[place]map[string]bool{}
	for _, e := range c.Effects {
		if at := (place{e.Side, e.Cell.Key(), ""}); e.Flow != "" {
			if flows[at] == nil {
				flows[at] = map[string]bool{}
			}
			flows[at][e.Flow] = true
		}
	}
	for _, e := range c.Effects {
		if !e.Separable {
			continue
		}
		at := place{e.Side, e.Cell.Key(), e.Flow}
		if e.Flow == "" { // of the router: told with the only flow, or alone
			if only := flows[at]; len(only) == 1 {
				for name := range only {
					at.flow = name
				}
			}
		}
		if groups[at] == nil {
			order = append(order, at)
		}
		groups[at] = append(groups[at], e)
	}
	var all []finding
	for _, at := range order {
		all = append(all, sentence(c, groups[at]))
	}
	slices.SortStableFunc(all, func(a, b finding) int { return cmp.Compare(b.size, a.size) })
	return all
}

// rateFirst puts changes of rates before all others: they are what a path is for.
const rateFirst = 1000

func sentence(c model.Comparison, of []model.Effect) finding {
	same := map[string]bool{} // told by packets per second
	for _, e := range of {
		if e.SameAs != "" {
			same[e.SameAs] = true
		}
	}
	first := slices.ContainsFunc(of, func(e model.Effect) bool { return foremost(e.Metric) })
	f := finding{side: of[0].Side}
	var clauses []string
	for _, e := range of {
		if same[e.Metric] || foremost(e.Metric) != first {
			continue
		}
		base, at := "", ""
		if len(clauses) == 0 {
			base, at = c.Sides[0].Name, atPlace(e)
		}
		clauses = append(clauses, clause(e, base, at))
		size := math.Abs(e.Change)
		if e.Kind == model.Relative {
			size = math.Abs(math.Log1p(max(e.Change, -0.9999)))
		}
		if rateRank(e) > 0 {
			size += rateFirst
		}
		f.size = max(f.size, size)
	}
	f.text = c.Sides[f.side].Name + " " + say.And(clauses) + "."
	return f
}

func findings(c model.Comparison) []string {
	list := []string{}
	for _, f := range gather(c) {
		list = append(list, f.text)
	}
	return list
}

// mostVerdict is how many sides a verdict tells of.
const mostVerdict = 3

// verdict is the answer: of each side its most telling change.
func verdict(c model.Comparison) string {
	all := gather(c)
	separable := 0
	for _, e := range c.Effects {
		if e.Separable && e.SameAs == "" {
			separable++
		}
	}
	if separable == 0 {
		return nothingApart(c)
	}
	var text, same []string
	more := 0
	for i, s := range c.Sides[1:] {
		at := slices.IndexFunc(all, func(f finding) bool { return f.side == i+1 })
		switch {
		case at < 0:
			same = append(same, s.Name)
		case len(text) == mostVerdict:
			more++
		default:
			text = append(text, all[at].text)
		}
	}
	if more > 0 {
		text = append(text, fmt.Sprintf("%s from %s, too.", plural(more, "more differs", "more differ"), c.Sides[0].Name))
	}
	if len(same) > 0 {
		text = append(text, fmt.Sprintf("%s cannot be told from %s.", say.And(same), c.Sides[0].Name))
	}
	told := fmt.Sprintf("%s %d of %s.", strings.Join(text, " "), separable, plural(c.Tests, "comparison is separable", "comparisons are separable"))
	if c.Interleaved {
		return told
	}
	told += fmt.Sprintf(" The runs lie %s apart", apart(c))
	if len(c.Differ) == 0 {
		return told + ", and nothing that pelt knows of differs between them: if nobody changed anything on purpose, the path or the hosts did."
	}
	return told + ": what else changed on the path meanwhile is in this."
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// nothingApart says how large a change of rate, or of anything, could hide.
func nothingApart(c model.Comparison) string {
	var names []string
	for _, s := range c.Sides {
		names = append(names, s.Name)
	}
	worst := slices.MaxFunc(c.Effects, func(a, b model.Effect) int {
		return cmp.Or(cmp.Compare(rateRank(a), rateRank(b)), cmp.Compare(a.Hidden, b.Hidden))
	})
	return fmt.Sprintf("Nothing can be told apart: %s differ in none of %s beyond what chance does. In %s, up to %s could hide%s.",
		say.And(names), plural(c.Tests, "comparison", "comparisons"), metricWords(worst.Metric), hidden(worst), neededText(worst))
}

func rateRank(e model.Effect) int {
	if e.Metric == "receive_pps" || e.Metric == "goodput_bps" {
		return 1
	}
	return 0
}

// notes say how sure it is.
func notes(c model.Comparison) []string {
	var list []string
	if c.Interleaved {
		list = append(list, "Repeats are interleaved: each change is taken within blocks of trials that ran one after the other (paired t test).")
	} else {
		list = append(list, fmt.Sprintf("Not interleaved: measured %s apart; what changed on the path meanwhile is in the difference (Welch's test). A second run of the baseline, after the others, shows how much that is.", apart(c)))
	}
	if c.Tests > 1 {
		list = append(list, fmt.Sprintf("%d comparisons at once: what is called separable has, in all of them together, a chance of at most 5 %% of a false alarm (Holm). The 95 %% intervals are of each change alone.", c.Tests))
	} else {
		list = append(list, "What is called separable has a chance of at most 5 % of a false alarm.")
	}
	return list
}

// apart is how long before or after the baseline the other runs began, the longest.
func apart(c model.Comparison) string {
	most := 0.0
	for _, s := range c.Sides {
		most = max(most, math.Abs(s.Started.Sub(c.Sides[0].Started).Seconds()))
	}
	text := duration(most)
	if len(c.Sides) > 2 {
		text = "up to " + text
	}
	return text
}

func duration(s float64) string {
	switch {
	case s < 120:
		return fmt.Sprintf("%.0f s", s)
	case s < 7200:
		return fmt.Sprintf("%.0f min", s/60)
	case s < 2*86400:
		return fmt.Sprintf("%.0f h", s/3600)
	}
	return fmt.Sprintf("%.0f days", s/86400)
}
