package finding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pelt/model"
	"pelt/test/sample"
)

func never(int) bool { return false }

// timesExamples are runs of one plan.
func timesExamples(*testing.T) (out []example) {
	tell := func(name string, runs []*model.Document) {
		out = append(out, example{name, OfRuns(runs)})
	}
	tell("steady", sample.Again(40, 40, 0, 40, never))
	tell("few", sample.Again(12, 6, 0.3, 12, never))
	tell("loss from a run on", sample.Again(48, 30, 0.02, 48, never))
	tell("loss, then delay", sample.Again(60, 20, 0.02, 45, never))
	tell("the host was away", sample.Again(40, 25, 0.02, 40, func(n int) bool { return n >= 10 && n < 14 }))
	var searches []*model.Document // a search that was cut found no rate
	for n := range 24 {
		d := sample.Search()
		if n == 11 {
			d.Complete, d.Results = false, d.Results[:len(d.Results)/2]
		}
		searches = append(searches, &d)
	}
	tell("searches, of which one was cut", searches)
	tell("nothing was measured", sample.Again(3, 0, 0, 0, func(int) bool { return true }))
	return out
}

// TestTimesOfSearch: the rate that a search found is followed, not the rates that it tried.
func TestTimesOfSearch(t *testing.T) {
	var runs []*model.Document
	for range 24 {
		d := sample.Search()
		runs = append(runs, &d)
	}
	for _, g := range TimesGroups(RowsOfRuns(runs)) {
		s := CycleSeries(g, "throughput_pps", len(runs))
		known := slices.DeleteFunc(slices.Clone(s.Values), math.IsNaN)
		if len(s.Values) != len(runs) || len(known) != 0 && len(known) != len(runs) {
			t.Errorf("%s: %v", g.Name(), s.Values)
		}
	}
}

// TestShown: of many findings of a kind a reader is told the first ones, and how many more there are.
func TestShown(t *testing.T) {
	found := []Finding{say("times.runs", Answer), say("times.steady", Fact)}
	for range 9 {
		found = append(found, say("times.change", Fact))
	}
	var codes []string
	for _, f := range Shown(found) {
		codes = append(codes, f.Code)
	}
	const change = "times.change"
	if want := []string{"times.runs", "times.steady", change, change, change, "times.more"}; !slices.Equal(codes, want) {
		t.Errorf("got %v, want %v", codes, want)
	}
	if found[5].Code != "times.change" {
		t.Error("the findings themselves were changed")
	}
}

// TestTimesHealthy: of a path that loses a packet now and then no change is told but rarely.
func TestTimesHealthy(t *testing.T) {
	const seeds, most = 200, 10
	told := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 3))
		runs := sample.Again(100, 100, 0, 100, never)
		for _, d := range runs {
			f := &d.Results[0].Flows[0]
			f.Lost = someOf(r, f.Attempted, 1e-4)
			f.Received, f.LossRatio = f.Attempted-f.Lost, float64(f.Lost)/float64(f.Attempted)
			f.RoundTrip.P50 = 8e6 * (1 + 0.03*r.NormFloat64())
			f.GoodputBPS = float64(f.Received) * 160
		}
		rows := RowsOfRuns(runs)
		if len(timesChanges(rows, TimesGroups(rows))) > 0 {
			told++
		}
	}
	t.Logf("told in %d of %d", told, seeds)
	if told > most {
		t.Errorf("a change was told in %d of %d series of runs, want %d at most", told, seeds, most)
	}
}
