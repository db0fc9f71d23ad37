package finding

import (
	"cmp"
	"math"
	"slices"

	"pelt/change"
	"pelt/model"
	"pelt/table"
)

// A plan that runs again and again has one document for each time. They are told of together: a trial's repeat then
// says which run it is of, so that a cycle is one run.

// JoinRuns returns one document of several runs of one plan, oldest first.
func JoinRuns(runs []*model.Document) *model.Document {
	joined := *runs[len(runs)-1]
	joined.ID, joined.Started, joined.Results, joined.Warnings = "", runs[0].Started, nil, nil
	for i, d := range runs {
		for _, r := range d.Results {
			r.Repeat = i
			joined.Results = append(joined.Results, r)
		}
	}
	return &joined
}

// RowsOfRuns are the rows of several runs of one plan, oldest first, with those of the rates that searches found.
func RowsOfRuns(runs []*model.Document) (out []table.Row) {
	for i, d := range runs {
		if d.Plan.Design.Search != nil && !d.Complete { // a search that was cut found no rate
			continue
		}
		all := table.Rows(d)
		for _, r := range append(table.Unsearched(all), TypicalSearches(all)...) {
			trial := *r.Trial
			trial.Repeat, r.Trial = i, &trial
			out = append(out, r)
		}
	}
	return out
}

// cycleBegin is when the first of some rows' trials of a cycle began.
func cycleBegin(rows []table.Row, cycle int) string {
	first := rows[len(rows)-1].Trial.Started
	for _, r := range rows {
		if r.Trial.Repeat == cycle && r.Trial.Started.Before(first) {
			first = r.Trial.Started
		}
	}
	return table.Language(rows).Time("2 January, 15:04 UTC", first)
}

// CycleSeries has a metric of a group's usable rows in each of so many cycles, the median of the cycle's trials; NaN:
// nothing was measured. Its step is the usual time from one cycle to the next.
func CycleSeries(g table.Group, metric string, of int) model.Series {
	cycles := table.By(g.Rows, table.KeyOf("repeat"))
	slices.SortFunc(cycles, func(a, b table.Group) int { return a.Rows[0].Trial.Repeat - b.Rows[0].Trial.Repeat })
	s := model.Series{Metric: metric}
	var steps []float64
	for i, c := range cycles {
		first := c.Rows[0].Trial
		for len(s.Values) < first.Repeat {
			s.Values = append(s.Values, math.NaN())
		}
		s.Values = append(s.Values, c.Stat(table.MetricOf(metric)).Median)
		if i > 0 {
			before := cycles[i-1].Rows[0].Trial
			steps = append(steps, first.Started.Sub(before.Started).Seconds()/float64(first.Repeat-before.Repeat))
		}
	}
	for len(s.Values) < of {
		s.Values = append(s.Values, math.NaN())
	}
	s.StepSeconds = change.Median(steps)
	return s
}

// shift is a change of a way's level at a cycle.
type shift struct {
	way
	cycle         int
	before, after float64
}

func (s shift) rises() bool { return s.after > s.before }

// shiftsOf are the shifts of all ways in a metric, one of so many that are searched, in the order of cycles. The cycles
// of a way are searched as the seconds of a trial are.
func shiftsOf(ways []way, metric string, metrics int) (out []shift) {
	m := table.MetricOf(metric)
	searched, scale := make([]change.Searched, len(ways)), make([]float64, len(ways))
	for i, w := range ways {
		s := change.Searched{Series: CycleSeries(w.Group, metric, 0), Use: change.Time}
		scale[i] = 1
		switch {
		case metric == "loss_ratio" && s.StepSeconds > 0: // lost packets a second are Poisson
			s.Use, scale[i] = change.Loss, w.sent/float64(len(w.Rows))/s.StepSeconds
		case m.Better == table.Higher:
			s.Use = change.Rate
		}
		for j := range s.Values {
			s.Values[j] *= scale[i]
		}
		searched[i] = s
	}
	for i, found := range change.Shifts(searched, metrics) {
		for _, x := range found {
			before, after := x.Before/scale[i], x.After/scale[i]
			if metric != "loss_ratio" || math.Abs(after-before) > m.Resolution {
				out = append(out, shift{ways[i], x.Place, before, after})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b shift) int { return cmp.Compare(a.cycle, b.cycle) })
	return out
}

// changeOf tells of shifts of a metric in one cycle: of several their medians.
func changeOf(code, metric string, shifts ...shift) Finding {
	var before, after []float64
	var rows []table.Row
	for _, x := range shifts {
		before, after = append(before, max(0, x.before)), append(after, max(0, x.after))
		rows = append(rows, x.Rows...)
	}
	return say(code, Fact, "since", cycleBegin(rows, shifts[0].cycle), "metric", metric,
		metric+":before", change.Median(before), metric+":after", change.Median(after),
		"cycles_count:before", shifts[0].cycle)
}

// TimesGroups are what is followed over several runs of one plan: usable rows with the same settings, of one flow.
func TimesGroups(rows []table.Row) []table.Group {
	return table.By(table.Usable(rows), append(table.Settings(rows), table.KeyOf("flow"))...)
}

// TimesMetrics are the figures that are searched for changes over several runs, the one that tells most first.
func TimesMetrics(rows []table.Row) []string {
	return []string{"loss_ratio", "throughput_pps", "goodput_bps", DelayOf(rows)}
}

// overRuns says how several runs of one plan went, and what changed from some run on. rows are those of RowsOfRuns.
func overRuns(runs []*model.Document, rows []table.Row) []Finding {
	measured := map[int]bool{}
	groups := TimesGroups(rows)
	for _, r := range table.RowsOf(groups) {
		measured[r.Trial.Repeat] = true
	}
	answer := say("times.runs", Answer, "runs_count", len(runs),
		"since", runs[0].Language.Time("2 January, 15:04 UTC", runs[0].Started))
	if bad := len(runs) - len(measured); bad > 0 {
		answer = answer.with("runs_count:bad", bad, "none", when(bad == len(runs), "yes"))
	}
	out := append([]Finding{answer}, timesChanges(rows, groups)...)
	switch n := len(measured); {
	case n < change.FewestValues:
		out = append(out, say("times.few", Doubt, "more_count", change.FewestValues-n))
	case len(out) == 1:
		out = append(out, say("times.steady", Fact))
	}
	return out
}

// timesChanges tells the changes of all groups, the last one first. A group whose loss changed has another rate, too.
func timesChanges(rows []table.Row, groups []table.Group) (out []Finding) {
	var ways []way
	for _, g := range groups {
		ways = append(ways, way{Group: g, sent: g.Sum("attempted_packets")})
	}
	metrics := TimesMetrics(rows)
	var told []shift
	for _, metric := range metrics {
		for _, x := range shiftsOf(ways, metric, len(metrics)) {
			same := func(o shift) bool {
				return o.Name() == x.Name() && max(o.cycle, x.cycle) <= min(o.cycle, x.cycle)+1
			}
			if metric == "goodput_bps" && slices.ContainsFunc(told, same) {
				continue
			}
			told = append(told, x)
			after := only(x.Rows, func(r table.Row) bool { return r.Trial.Repeat >= x.cycle })
			f := changeOf("times.change", metric, x).with("what", when(len(groups) > 1, x.Name()))
			if metric == "loss_ratio" && x.rises() {
				f = f.with("place", mostLost(after, ""))
			}
			out = append(out, f)
		}
	}
	return newestFirst(out)
}

// newestFirst puts the last change first; it is an answer.
func newestFirst(out []Finding) []Finding {
	cycle := func(f Finding) int { n, _ := f.Number("cycles_count", "before"); return int(n) }
	slices.SortStableFunc(out, func(a, b Finding) int { return cycle(b) - cycle(a) })
	if len(out) > 0 {
		out[0].Level = Answer
	}
	return out
}

// manyOf is what tells of the rest where findings of a code are many.
var manyOf = map[string]string{"times.change": "times.more", "mesh.change": "times.more",
	"mesh.gone": "mesh.gone-more", "mesh.unmeasured": "mesh.unmeasured-more"}

// Shown are the findings that a reader is told: of many changes only a few one by one.
func Shown(found []Finding) (out []Finding) {
	for i, f := range found {
		alike := func(o Finding) bool { return o.Code == f.Code }
		if slices.ContainsFunc(found[:i], alike) {
			continue
		}
		all := only(found, alike)
		if more := manyOf[f.Code]; more != "" {
			all = firstOf(all, more)
		}
		out = append(out, all...)
	}
	return out
}
