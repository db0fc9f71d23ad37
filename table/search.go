package table

import (
	"maps"
	"math"
	"slices"

	"pelt/design"
	"pelt/model"
)

// Search is what a search found for one goal.
type Search struct{ design.Answer }

// Rate is what the search counts as among others of the same, in packets a second: the throughput that it found, or 0
// if the path or a host loses too much at each rate. Of a search that could not tell, or was cut, it is NaN.
func (s *Search) Rate() float64 {
	couldTell := s.Limit != design.SenderLimit && s.Limit != design.FloodLimit
	switch {
	case !s.Done:
		return math.NaN()
	case math.IsNaN(s.Throughput) && couldTell:
		return 0
	}
	return s.Throughput
}

// Searches makes rows of each search of the rows' runs, for each goal: of the flows of the trial that the throughput is
// of, else of the last one. They have the figures of that trial, too.
func Searches(rows []Row) []Row {
	var out []Row
	seen := map[*model.Document]bool{}
	for _, r := range rows {
		if seen[r.Doc] {
			continue
		}
		seen[r.Doc] = true
		for _, a := range design.Answers(r.Doc.Plan, r.Doc.Results, r.Doc.Complete) {
			s := &Search{a}
			trial := a.Trials[len(a.Trials)-1]
			if a.Quantile >= 0 {
				trial = a.Trials[a.Quantile]
			}
			one := *trial // under the settings that were searched, not those of the search
			one.Cell, one.Repeat = maps.Clone(a.Cell), int(a.Cell["search"].Number)
			delete(one.Cell, "search")
			for _, r := range s.rows(r.Doc, &one) {
				r.Search = s
				out = append(out, r)
			}
		}
	}
	return out
}

// OfTrial returns what a search saw in a trial, and whether it decided that the trial's rate holds or fails; ok is
// false if the trial is not the search's.
func (s *Search) OfTrial(t *model.Result) (seen design.Observation, holds, fails, ok bool) {
	for i, x := range s.Trials {
		if i > 0 && x.Repeat == t.Repeat && x.Cell.Equal(t.Cell) {
			seen, ok = s.Seen[i], true
		}
	}
	return seen, seen.Load <= s.Lower, seen.Load >= s.Upper, ok
}

func (s *Search) rows(d *model.Document, t *model.Result) (out []Row) {
	for i := range t.Flows {
		out = append(out, Row{Doc: d, Trial: t, Flow: &t.Flows[i]})
	}
	return out
}

// Flood makes rows of the flows of the flood that the row's search began with.
func (r Row) Flood() []Row { return r.Search.rows(r.Doc, r.Search.Trials[0]) }

// Around makes rows of the flows of the trials of the row's search at the loads that are asked for.
func (r Row) Around(load func(pps float64) bool) (out []Row) {
	for i, t := range r.Search.Trials {
		if !r.Search.Seen[i].Flood && load(r.Search.Seen[i].Load) {
			out = append(out, r.Search.rows(r.Doc, t)...)
		}
	}
	return out
}

// At is Around some loads.
func (r Row) At(loads ...float64) []Row {
	return r.Around(func(pps float64) bool { return slices.Contains(loads, pps) })
}

// Unsearched are the rows of trials that no search made.
func Unsearched(rows []Row) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Trial.Cell.Searching() })
}

func search(get func(*Search) float64) value {
	return func(r Row) float64 {
		if r.Search == nil {
			return none
		}
		return get(r.Search)
	}
}

// throughputBits is payload, in bit/s.
func throughputBits(r Row) float64 {
	if r.Search == nil {
		return none
	}
	return r.Search.Throughput * 8 * float64(r.Flow.PayloadBytes)
}

func searchSeconds(s *Search) (sum float64) {
	for _, o := range s.Seen {
		sum += o.Seconds
	}
	return sum
}
