package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pelt/model"
	"pelt/store"
)

// mostRuns is how many runs of a plan are looked at together: a week of one every five minutes. Of runs with many
// results each they are fewer, but as many as changes are told from.
const mostRuns, leastRuns = 2016, 20

func mostOf(results int) int { return min(mostRuns, max(leastRuns, model.MaxTrials/max(1, results))) }

// Newest are the runs that are looked at together, of some of one plan, oldest first.
func Newest(runs []*model.Document) []*model.Document {
	results := 0
	for _, d := range runs {
		results = max(results, len(d.Results))
	}
	return slices.Delete(runs, 0, max(0, len(runs)-mostOf(results)))
}

// History loads the kept runs of a run's plan before it since a time, oldest first, each without what only its own page
// shows. With the run itself they are no more than are looked at together. A seed of its own makes no other plan.
func History(st *store.Store, newest model.Document, since time.Time) (runs []*model.Document, err error) {
	kept, err := st.List()
	if err != nil {
		return nil, err
	}
	results, like := len(newest.Results), &newest
	for _, r := range slices.Backward(kept) {
		if r.Started.Before(since) || len(runs)+1 >= mostOf(results) {
			break
		}
		if r.ID == newest.ID || r.Started.After(newest.Started) || r.Command != newest.Plan.Command ||
			r.Target != newest.Plan.Target || r.State == store.Damaged || r.State == store.Running {
			continue
		}
		d, err := st.Load(r.ID)
		if err != nil { // it was removed, or is damaged behind its first line
			continue
		}
		if !samePlan(like, &d) {
			continue
		}
		if len(like.Host) == 0 {
			like = &d
		}
		runs, results = append(runs, Slim(d)), max(results, len(d.Results))
	}
	slices.Reverse(runs)
	return runs, nil
}

// samePlan reports whether two runs measure the same. The plan of one that reached nobody is as it was asked for, that
// of another has what was found out: then they are the same if the same was typed.
func samePlan(a, b *model.Document) bool {
	return planText(a.Plan) == planText(b.Plan) ||
		(len(a.Host) == 0 || len(b.Host) == 0) && len(a.Arguments) > 0 && slices.Equal(a.Arguments, b.Arguments)
}

func planText(p model.Plan) string {
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
