package design

import (
	"math"
	"slices"
	"testing"

	"pelt/model"
)

func times(n int, o Observation) []Observation { return slices.Repeat([]Observation{o}, n) }

// The example of RFC 9971 appendix C: four goals, and six points of a search at 1 Mpps. The appendix calls the load a
// lower bound for the last goal at points 5 and 6. Its own exceed ratios there, 42.857 % and 27.273 %, are above the
// 20 % of the goal, so by appendix A, which decides, the load is still an upper bound.
func TestAppendixC(t *testing.T) {
	at := func(seconds, loss float64) Observation { return Observation{Load: 1e6, Seconds: seconds, Loss: loss} }
	added := [][]Observation{times(59, at(1, 0)), times(1, at(1, 0.01)), times(59, at(1, 0.01)), times(1, at(1, 0)),
		times(1, at(60, 0.001)), times(1, at(60, 0))}
	for _, c := range []struct {
		goal   model.Goal
		points []class
		loss   float64 // of the trial that the throughput is of, after the last point; -1: none
	}{
		{model.Goal{Name: "RFC2544", FinalSeconds: 60, SumSeconds: 60},
			[]class{undecided, upper, upper, upper, upper, upper}, -1},
		{model.Goal{Name: "TST009", FinalSeconds: 60, SumSeconds: 120, ExceedRatio: 0.5},
			[]class{undecided, undecided, undecided, undecided, undecided, lower}, 0},
		{model.Goal{Name: "1s final", FinalSeconds: 1, SumSeconds: 120, ExceedRatio: 0.5, LossRatio: 0.005},
			[]class{undecided, undecided, undecided, lower, lower, lower}, 0},
		{model.Goal{Name: "20% exceed", FinalSeconds: 60, SumSeconds: 60, ExceedRatio: 0.2, LossRatio: 0.005},
			[]class{undecided, undecided, upper, upper, upper, upper}, 0.001},
	} {
		seen := []Observation{{Load: 2e6, Seconds: 1, Loss: 0.5, Flood: true}}
		for i, want := range c.points {
			seen = append(seen, added[i]...)
			if got, _ := tallies(c.goal, seen)[0].class(c.goal); got != want {
				t.Errorf("%s, point %d: class %d, want %d", c.goal.Name, i+1, got, want)
			}
		}
		if got, quantile := throughput(c.goal, 1e6, seen); c.loss >= 0 &&
			(seen[quantile].Loss != c.loss || got != 1e6*(1-c.loss)) {
			t.Errorf("%s: throughput %v, of a trial that lost %v, want %v", c.goal.Name, got, seen[quantile].Loss,
				c.loss)
		}
	}
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// What an upper bound is a limit of, and which bounds are relevant.
func TestBounds(t *testing.T) {
	goal := model.Goal{FinalSeconds: 1, SumSeconds: 1, WidthRatio: 0.01}
	flood := Observation{Load: 2000.5, Seconds: 1, Loss: 0.4, Flood: true}
	good := func(load float64) Observation { return Observation{Load: load, Seconds: 1} }
	bad := func(load, end float64) Observation {
		return Observation{Load: load, Seconds: 1, Loss: 0.1, EndLoss: end}
	}
	unsent := func(load float64) Observation { return Observation{Load: load, Seconds: 1, Unsent: true} }
	hungry := func(load float64) Observation {
		return Observation{Load: load, Seconds: 1, Loss: 0.1, Unsent: true, Starved: true}
	}
	lost := func(load float64) Observation {
		return Observation{Load: load, Seconds: 1, Loss: 0.1, Unsent: true}
	}
	starved := func(times int) []Observation {
		return append([]Observation{flood, good(995)}, slices.Repeat([]Observation{hungry(1000)}, times)...)
	}
	none := math.NaN()
	for _, c := range []struct {
		name         string
		seen         []Observation
		lower, upper float64
		limit        Limit
		regular      bool
	}{
		{"nothing", nil, none, none, NoLimit, false},
		{"a flood", []Observation{flood}, none, none, FloodLimit, false},
		{"the path", []Observation{flood, good(995), bad(1000, 0.05)}, 995, 1000, PathLimit, true},
		{"too wide", []Observation{flood, good(980), bad(1000, 0)}, 980, 1000, PathLimit, false},
		{"the ends", []Observation{flood, good(995), bad(1000, 0.1)}, 995, 1000, EndLimit, false},
		{"no lower bound", []Observation{flood, bad(1000, 0)}, none, 1000, PathLimit, false},
		{"unsent once", []Observation{flood, good(995), unsent(1000)}, 995, none, FloodLimit, false},
		{"unsent twice", []Observation{flood, good(995), unsent(1000), unsent(1000)}, 995, 1000, SenderLimit, false},
		{"unsent, but also sent", []Observation{flood, unsent(995), good(995), bad(1000, 0)}, 995, 1000, PathLimit,
			true},
		{"all that is sent", []Observation{flood, good(2000)}, 2000, none, FloodLimit, false},
		{"unsent, and lost all the same", []Observation{flood, good(995), lost(1000)}, 995, none, FloodLimit, false},
		{"starved ten times, where all lower loads are", slices.Concat([]Observation{flood},
			slices.Repeat([]Observation{hungry(995)}, 10), []Observation{good(995)},
			slices.Repeat([]Observation{hungry(1000)}, 10)), 995, none, FloodLimit, false},
		{"starved until nobody waits for more", slices.Concat([]Observation{flood},
			slices.Repeat([]Observation{hungry(995)}, 10), []Observation{good(995)},
			slices.Repeat([]Observation{hungry(1000)}, 11)), 995, 1000, SenderLimit, false},
		{"starved eight times, where no lower load is", slices.Concat([]Observation{flood},
			slices.Repeat([]Observation{good(995)}, 20), slices.Repeat([]Observation{hungry(1000)}, 8)), 995, 1000,
			SenderLimit, false},
		{"starved until the search had all its trials", slices.Concat([]Observation{flood, good(995)},
			slices.Repeat([]Observation{hungry(995)}, mostTrials), []Observation{good(995), hungry(1000)}), 995, 1000,
			SenderLimit, false},
		{"unsent twice, and lost", []Observation{flood, good(995), lost(1000), lost(1000)}, 995, 1000, SenderLimit,
			false},
		{"starved seven times", starved(7), 995, none, FloodLimit, false},
		{"starved seven times, and unsent", append(starved(7), unsent(1000)), 995, 1000, SenderLimit, false},
		{"starved eight times", starved(8), 995, 1000, SenderLimit, false},
		{"starved seven times, then lost by the path", append(starved(7), bad(1000, 0)), 995, 1000, PathLimit, true},
		{"loss inversion", []Observation{flood, good(1200), bad(1000, 0), good(995)}, 995, 1000, PathLimit, true},
		{"a trial that ended early", []Observation{flood, {Load: 995, Seconds: 0.998}, bad(1000, 0)}, 995, 1000,
			PathLimit, true},
	} {
		got := Question{}.bounds(goal, c.seen)
		if !same(got.Lower, c.lower) || !same(got.Upper, c.upper) || got.Limit != c.limit || got.Regular != c.regular {
			t.Errorf("%s: got %+v, want %v, %v, limit %d, regular %v", c.name, got, c.lower, c.upper, c.limit,
				c.regular)
		}
	}
}
