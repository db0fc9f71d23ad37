package run

import (
	"context"
	"sync"
	"time"

	"pelt/model"
)

// timed makes a plan's changes while a trial runs.
type timed struct {
	change  func(model.TimedChange) error
	changes []model.TimedChange
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
	made    []model.MadeChange // the making goroutine's, until end
}

func newTimed(ctx context.Context, change func(model.TimedChange) error, changes []model.TimedChange) *timed {
	t := &timed{change: change, changes: changes}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// begin is called when the measured part begins.
func (t *timed) begin() {
	begun := time.Now()
	t.done.Go(func() {
		for _, c := range t.changes {
			select {
			case <-time.After(time.Until(begun.Add(time.Duration(c.AtSeconds * 1e9)))):
			case <-t.ctx.Done():
				return
			}
			from := time.Now()
			m := model.MadeChange{Words: c.Words()}
			if err := t.change(c); err != nil {
				m.Failure = err.Error()
			}
			m.AtS, m.TookS = time.Since(begun).Seconds(), time.Since(from).Seconds()
			t.made = append(t.made, m)
		}
	})
}

// end waits for a change under way, and returns all that were made.
func (t *timed) end() []model.MadeChange {
	t.cancel()
	t.done.Wait()
	return t.made
}

// addMade adds to a result the changes that were made during the trial.
func addMade(r *model.Result, made []model.MadeChange) {
	r.Made = made
	for _, m := range made {
		if m.Failure != "" && r.State == model.Valid {
			r.State = model.Invalid
			r.Why = model.Reasons{{Code: model.ChangeFailed, Name: m.Words, Text: m.Failure,
				Numbers: map[string]float64{"at_s": m.AtS}}}
		}
	}
}
