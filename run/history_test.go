package run

import (
	"slices"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/store"
)

// keptAt keeps a run of a payload that began so many minutes after the first, and returns it. Payload 0 is not settled:
// the run reached nobody.
func keptAt(t *testing.T, s *store.Store, minute, payload int, results ...model.Result) model.Document {
	t.Helper()
	p := smallPlan(t)
	p.Target = "192.168.1.5"
	p.Factors = []model.Factor{{Knob: "payload_bytes", Levels: []model.Value{model.Word("mtu")}}}
	d := newDocument(p, Options{Arguments: []string{"curve", "192.168.1.5", "--payload", "mtu"}})
	if payload > 0 {
		d.Host = []model.Host{{Name: "a"}}
		d.Plan.Factors[0].Levels[0] = model.Number(float64(payload))
	}
	d.Started = time.Date(2026, 5, 1, 10, minute, 0, 0, time.UTC)
	log, err := s.Create(d)
	testenv.Must(t, err)
	d.ID = log.ID()
	for _, r := range results {
		testenv.Must(t, log.Append(r))
	}
	testenv.Must(t, log.End(d))
	testenv.Must(t, log.Close())
	return d
}

// TestHistory: runs of a plan that reached nobody are of it, and what came later is not looked at.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	var all []model.Document
	for minute, payload := range []int{1472, 0, 1472, 1400, 0, 1472} {
		all = append(all, keptAt(t, s, minute, payload))
	}
	for _, c := range []struct {
		newest int
		since  int
		want   []int
	}{{5, 0, []int{0, 1, 2, 4}}, {5, 2, []int{2, 4}}, {2, 0, []int{0, 1}}, {4, 0, []int{1, 3}}, {1, 0, []int{0}}} {
		runs, err := History(s, all[c.newest], all[c.since].Started)
		testenv.Must(t, err)
		var want []string
		for _, n := range c.want {
			want = append(want, all[n].ID)
		}
		var got []string
		for _, d := range runs {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("before run %d since run %d: %v, want %v", c.newest, c.since, got, want)
		}
	}
}

// TestNewest: of runs with many results fewer are looked at, and none of those that go stays in memory.
func TestNewest(t *testing.T) {
	for results, want := range map[int]int{0: 2016, 1: 2016, 100: 1000, 90_000: 20} {
		runs := make([]*model.Document, 3000)
		for i := range runs {
			runs[i] = &model.Document{}
		}
		last := runs[2999]
		last.Results = make([]model.Result, results)
		if got := Newest(runs); len(got) != want || got[want-1] != last || runs[2999] != nil {
			t.Errorf("%d runs of %d results, want %d", len(got), results, want)
		}
	}
}
