package run

import (
	"context"
	"sync"
	"time"

	"pelt/model"
)

// timed prepares a plan's changes during a trial. begin is called when its measured part
// begins; end waits for a change under way, and returns all that were made.
func timed(ctx context.Context, change func(model.TimedChange) error, changes []model.TimedChange) (
	begin func(), end func() []model.MadeChange) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	var made []model.MadeChange
	begin = func() {
		begun := time.Now()
		done.Go(func() {
			for _, c := range changes {
				select {
				case <-time.After(time.Until(begun.Add(time.Duration(c.AtSeconds * 1e9)))):
				case <-ctx.Done():
					return
				}
				from := time.Now()
				m := model.MadeChange{Words: c.Words()}
				if err := change(c); err != nil {
					m.Failure = err.Error()
				}
				m.AtS, m.TookS = time.Since(begun).Seconds(), time.Since(from).Seconds()
				made = append(made, m)
			}
		})
	}
	return begin, func() []model.MadeChange {
		cancel()
		done.Wait()
		return made
	}
}

// addMade adds to a result the changes that were made during the trial.
func addMade(r *model.Result, made []model.MadeChange) {
	r.Made = made
	for _, m := range made {
		if m.Failure == "" {
			continue
		}
		if r.State == model.Valid {
			r.State = model.Invalid
		}
		r.Why = append(r.Why, model.Reason{Code: model.ChangeFailed, Name: m.Words, Text: m.Failure,
			Numbers: map[string]float64{"at_s": m.AtS}})
	}
}
