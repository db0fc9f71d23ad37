package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pelt/model"
	"pelt/store"
)

// MostRuns is how many runs of a plan are looked at together: a week of one every five minutes.
const MostRuns = 2016

// History loads the newest kept runs of a plan since a time, oldest first, each without what only its own page shows.
// A seed of its own makes no other plan.
func History(st *store.Store, p model.Plan, since time.Time) (runs []*model.Document, err error) {
	kept, err := st.List()
	if err != nil {
		return nil, err
	}
	want := samePlan(p)
	for _, r := range slices.Backward(kept) {
		if r.Started.Before(since) || len(runs) == MostRuns {
			break
		}
		if r.Command != p.Command || r.Target != p.Target || r.State == store.Damaged || r.State == store.Running {
			continue
		}
		d, err := st.Load(r.ID)
		if err != nil { // it was removed, or is damaged behind its first line
			continue
		}
		if samePlan(d.Plan) == want {
			runs = append(runs, Slim(d))
		}
	}
	slices.Reverse(runs)
	return runs, nil
}

// samePlan is equal for plans that measure the same.
func samePlan(p model.Plan) string {
	p.Design.Seed = 0
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Sprint(p)
	}
	return string(text)
}

// Slim is a run without what only its own page shows, so that thousands fit into memory.
func Slim(d model.Document) *model.Document {
	d.Host, d.Lab, d.Findings, d.Results = nil, nil, nil, slices.Clone(d.Results)
	for i := range d.Results {
		r := &d.Results[i]
		r.Flows = slices.Clone(r.Flows)
		slim(r)
		r.Counters, r.Observed, r.Links, r.Router, r.Changes, r.Gaps = nil, nil, nil, nil, nil, nil
	}
	return &d
}
