package store

import (
	"time"

	"pelt/model"
)

// trials holds the checkpoints of trials whose results have not come yet.
type trials struct {
	keys []string
	of   map[string][]model.Checkpoint
}

// take adds a checkpoint. If the trial was started again, it returns the result of the try before.
func (t *trials) take(c model.Checkpoint) (before []model.Result) {
	if t.of == nil {
		t.of = map[string][]model.Checkpoint{}
	}
	key := c.Cell.TrialName(c.Repeat)
	list, known := t.of[key]
	if len(list) > 0 && !list[0].Started.Equal(c.Started) {
		before = append(before, model.Unfinished(list))
		t.of[key] = nil
	} else if !known {
		t.keys = append(t.keys, key)
	}
	t.of[key] = append(t.of[key], c)
	return before
}

// close forgets the checkpoints of a trial whose result has come, unless they are of a later try.
func (t *trials) close(r model.Result) {
	key := r.Cell.TrialName(r.Repeat)
	if list := t.of[key]; len(list) > 0 && list[0].Started.Sub(r.Started).Abs() < time.Second {
		t.of[key] = nil
	}
}

// all returns results of the trials that have only checkpoints.
func (t *trials) all() (list []model.Result) {
	for _, key := range t.keys {
		if of := t.of[key]; len(of) > 0 {
			list = append(list, model.Unfinished(of))
		}
	}
	return list
}
