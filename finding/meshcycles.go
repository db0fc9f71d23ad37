package finding

import (
	"reflect"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
)

// unmeasured tells which hosts and pairs could not be measured the last time that it was tried, since when, and why.
func unmeasured(rows []table.Row) []Finding {
	var missing []table.Group
	measured, of := map[string]bool{}, map[string][]table.Row{} // by host
	for _, g := range table.By(rows, table.KeyOf("pair")) {
		a, b, _ := model.PairHosts(g.Level("pair").Text)
		switch newest := g.Rows[len(g.Rows)-1].Trial; {
		case newest.State == model.Valid:
			measured[a], measured[b] = true, true
		case newest.State == model.Invalid:
			missing = append(missing, g)
			of[a], of[b] = append(of[a], g.Rows...), append(of[b], g.Rows...)
		}
	}
	var hosts, pairs []Finding
	gone := map[string]bool{}
	for _, g := range missing {
		host, other, _ := model.PairHosts(g.Level("pair").Text)
		if measured[host] {
			host, other = other, host
		}
		if measured[other] && !measured[host] && !gone[host] {
			gone[host] = true
			hosts = append(hosts, missed("mesh.gone", of[host]).with("host", host, "why", whyGone(host, missing)))
		}
	}
	for _, g := range missing {
		if a, b, _ := model.PairHosts(g.Level("pair").Text); !gone[a] && !gone[b] {
			pairs = append(pairs, missed("mesh.unmeasured", g.Rows).with("from", a, "to", b))
		}
	}
	return append(hosts, pairs...)
}

// missed says why some rows' pairs have no figures, and since when if they had some before.
func missed(code string, rows []table.Row) Finding {
	before := -1
	for _, r := range rows {
		if r.Valid() {
			before = max(before, r.Trial.Repeat)
		}
	}
	f := say(code, Doubt, "why", whyInvalid(rows))
	if before >= 0 {
		f = f.with("since", cycleBegin(rows, before+1))
	}
	return f
}

// whyInvalid is why the newest of some rows is not valid.
func whyInvalid(rows []table.Row) model.Reasons {
	why := rows[len(rows)-1].Trial.Why
	for _, reason := range why {
		if reason.Code == model.PairUnmeasured {
			return reason.Of
		}
	}
	return why
}

// whyGone is why a host's pairs, of those that are missing, were not measured; with the other hosts' names if that
// differs.
func whyGone(host string, missing []table.Group) (out model.Reasons) {
	var whys []model.Reasons
	var others [][]string
	for _, g := range missing {
		a, b, _ := model.PairHosts(g.Level("pair").Text)
		if b == host {
			a, b = b, a
		}
		if a != host {
			continue
		}
		why := whyInvalid(g.Rows)
		i := slices.IndexFunc(whys, func(one model.Reasons) bool { return reflect.DeepEqual(one, why) })
		if i < 0 {
			i, whys, others = len(whys), append(whys, why), append(others, nil)
		}
		others[i] = append(others[i], b)
	}
	if len(whys) == 1 {
		return whys[0]
	}
	for i, why := range whys {
		shown := others[i][:min(len(others[i]), mostNames)]
		one := model.NewReason(model.TowardHosts, "name", strings.Join(shown, ", "))
		if more := len(others[i]) - len(shown); more > 0 {
			one.Numbers = map[string]float64{"hosts_count": float64(more)}
		}
		one.Of = why
		out = append(out, one)
	}
	return out
}

// DelayOf is the metric of some rows' delays: one way if as many rows have it, else of round trips.
func DelayOf(rows []table.Row) string {
	g := table.Group{Rows: rows}
	if n := g.Stat(table.MetricOf("delay_p50_ns")).N; n > 0 && n >= g.Stat(table.MetricOf("round_trip_p50_ns")).N {
		return "delay_p50_ns"
	}
	return "round_trip_p50_ns"
}

// meshChanges searches the cycles of all ways as the seconds of a trial are searched. The last change is told first.
// Ways that change together are told together if a host has nearly all of them.
func meshChanges(rows []table.Row, ways []way) (out []Finding) {
	metrics := []string{"loss_ratio", DelayOf(rows)}
	for _, metric := range metrics {
		shifts := shiftsOf(ways, metric, len(metrics))
		for len(shifts) > 0 {
			first, n := shifts[0], 1
			for n < len(shifts) && shifts[n].cycle <= first.cycle+1 && shifts[n].rises() == first.rises() {
				n++
			}
			out = append(out, together(shifts[:n], ways, metric)...)
			shifts = shifts[n:]
		}
	}
	return newestFirst(out)
}

// together tells of shifts in the same cycle.
func together(shifts []shift, ways []way, metric string) (out []Finding) {
	ways = slices.Clone(ways)
	for i, w := range ways {
		ways[i].bad = slices.ContainsFunc(shifts, func(x shift) bool { return x.from == w.from && x.to == w.to })
	}
	tell := func(which []shift, names ...any) {
		out = append(out, changeOf("mesh.change", metric, which...).with(names...))
	}
	trips := metric == "round_trip_p50_ns" // the same both ways
	hosts, _ := badHosts(ways)
	for _, s := range hosts {
		of := func(x shift) bool { return s.has(x.way) || trips && (x.from == s.host || x.to == s.host) }
		its := only(shifts, of)
		shifts = only(shifts, func(x shift) bool { return !of(x) })
		switch {
		case len(its) == 0: // told of the other way
		case s.into:
			tell(its, "into", s.host)
		default:
			tell(its, "out", s.host)
		}
	}
	for i, x := range shifts {
		back := func(o shift) bool { return o.from == x.to && o.to == x.from }
		if !trips || !slices.ContainsFunc(shifts[:i], back) {
			tell([]shift{x}, "from", x.from, "to", x.to)
		}
	}
	return out
}
