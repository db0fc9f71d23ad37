package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"pelt/model"
)

// reportBytes is what one report may take, as JSON.
const reportBytes = maxParts * partBytes

// wordsBytes are for what a report says of what it leaves out.
const wordsBytes = 4 << 10

// encode makes a report's JSON. A trial of days on a host of many cores has seen more of
// them than fits: the load over time of the least busy ones is then left out, and the
// report of the first end says so.
func (r sessionReport) encode(limit int) ([]byte, error) {
	if r.Watch == nil || values(r.Watch.Series) < limit/256 {
		return json.Marshal(r)
	}
	bare := r
	bare.Watch = &Watched{CPU: r.Watch.CPU}
	data, err := json.Marshal(bare)
	if err != nil {
		return nil, err
	}
	kept, left := fit(r.Watch.Series, limit-len(data)-wordsBytes)
	if left == "" {
		return json.Marshal(r)
	}
	bare.Watch.Series, bare.Ends = kept, maps.Clone(r.Ends)
	if ends := slices.Sorted(maps.Keys(r.Ends)); len(ends) > 0 {
		one := r.Ends[ends[0]]
		one.Warnings = append(slices.Clone(one.Warnings), left)
		bare.Ends[ends[0]] = one
	}
	return json.Marshal(bare)
}

// encode makes the JSON of a router's watch, likewise.
func (d deviceWatched) encode(limit int) ([]byte, error) {
	if values(d.Series) >= limit/256 {
		bare := deviceWatched{Watch: d.Watch}
		data, err := json.Marshal(bare)
		if err != nil {
			return nil, err
		}
		var left string
		if d.Series, left = fit(d.Series, limit-len(data)-wordsBytes); left != "" {
			d.Watch.Gaps = append(slices.Clone(d.Watch.Gaps), left)
		}
	}
	return json.Marshal(d)
}

func values(series []model.Series) (n int) {
	for _, s := range series {
		n += len(s.Values)
	}
	return n
}

// fit keeps what has room as JSON: the series of the whole host, then those of its cores,
// the busiest first. left says in words what it leaves out, "" if nothing.
func fit(series []model.Series, room int) (kept []model.Series, left string) {
	const whole = -1
	sizes, idle := map[int]int{}, map[int]float64{}
	coreOf := func(s model.Series) int {
		if s.Core == nil {
			return whole
		}
		return *s.Core
	}
	for _, s := range series {
		data, err := json.Marshal(s)
		if err != nil { // numbers always marshal
			continue
		}
		core := coreOf(s)
		sizes[core] += len(data) + 1
		if s.Metric == "cpu_idle_ratio" {
			idle[core] = mean(s.Values)
		}
	}
	order := slices.SortedFunc(maps.Keys(sizes), func(a, b int) int {
		if a == whole || b == whole {
			return cmp.Compare(a, b)
		}
		return cmp.Or(cmp.Compare(idle[a], idle[b]), cmp.Compare(a, b))
	})
	fits := 0
	for fits < len(order) && sizes[order[fits]] <= room {
		room -= sizes[order[fits]]
		fits++
	}
	out := order[fits:]
	if len(out) == 0 {
		return series, ""
	}
	kept = slices.DeleteFunc(slices.Clone(series), func(s model.Series) bool { return slices.Contains(out, coreOf(s)) })
	if slices.Contains(out, whole) {
		return kept, "the load of the host over time found no room in its report"
	}
	cores := len(order)
	if _, too := sizes[whole]; too {
		cores--
	}
	return kept, fmt.Sprintf("the load over time of %d of %d cores, the least busy ones, found no room in the report", len(out), cores)
}

func mean(list []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range list {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(max(n, 1))
}
