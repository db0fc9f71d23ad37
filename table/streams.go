package table

import (
	"slices"
)

// Mix is what the streams of one congestion control got of a flow whose streams have
// several, over the time in which all of them ran.
type Mix struct {
	Control string
	Share   float64 // of the goodput of all streams
}

// Mixes makes a row of each congestion control of the flows that have several.
func Mixes(rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		if r.Flow.TCP == nil {
			continue
		}
		got, all := map[string]float64{}, 0.0
		var names []string
		for _, s := range r.Flow.TCP.PerStream {
			if !slices.Contains(names, s.Control) {
				names = append(names, s.Control)
			}
			got[s.Control] += s.GoodputBPS
			all += s.GoodputBPS
		}
		if len(names) < 2 || !(all > 0) {
			continue
		}
		for _, name := range names {
			f := r.Flow.Bare()
			f.DurationS, f.GoodputBPS = r.Flow.DurationS, got[name]
			f.Attempted = max(r.Flow.Attempted, 1) // else it would count as not measured
			one := r
			one.Flow, one.Mix = &f, &Mix{name, got[name] / all}
			out = append(out, one)
		}
	}
	return out
}

func mixShare(r Row) float64 {
	if r.Mix == nil {
		return none
	}
	return r.Mix.Share
}
