package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"pelt/lab"
	"pelt/model"
)

// timed makes a plan's changes while a trial runs.
type timed struct {
	path    *path
	changes []model.TimedChange
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
	made    []model.MadeChange // the making goroutine's, until end
}

func newTimed(ctx context.Context, p *path, changes []model.TimedChange) *timed {
	t := &timed{path: p, changes: changes}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// begin is called when the measured part begins.
func (t *timed) begin() {
	begun := time.Now()
	t.done.Go(func() {
		for _, c := range t.changes {
			wait := time.NewTimer(time.Until(begun.Add(time.Duration(c.AtSeconds * 1e9))))
			select {
			case <-wait.C:
			case <-t.ctx.Done():
				wait.Stop()
				return
			}
			from := time.Now()
			m := model.MadeChange{Words: c.Words()}
			if err := t.path.change(c); err != nil {
				m.Failure = err.Error()
			}
			m.AtS, m.TookS = time.Since(begun).Seconds(), time.Since(from).Seconds()
			t.made = append(t.made, m)
		}
	})
}

// end waits for a change under way, and returns what was made. begin cannot come any more.
func (t *timed) end() []model.MadeChange {
	t.cancel()
	t.done.Wait()
	return t.made
}

// change makes one change of the lab.
func (p *path) change(c model.TimedChange) error {
	if p.roads.lab == nil {
		return errors.New("there is no lab of nodes here")
	}
	if c.Link != nil {
		_, err := p.roads.lab.SetLinks([]model.LinkChange{*c.Link}, lab.SetOptions{Lent: true})
		return err
	}
	p.setup.now = c.Router
	return p.setup.lab.SetRouter(c.Router)
}

// addMade says in a result what was changed while it was measured.
func addMade(r *model.Result, made []model.MadeChange) {
	r.Made = made
	for _, m := range made {
		if m.Failure != "" && r.State == model.Valid {
			r.State, r.Why = model.Invalid, fmt.Sprintf("%s at %.1f s was not made: %s", m.Words, m.AtS, m.Failure)
		}
	}
}

// linkChanges are a plan's timed changes of links, each behind those that are made before
// it.
func linkChanges(changes []model.TimedChange) (groups [][]model.LinkChange) {
	var made []model.LinkChange
	for _, c := range changes {
		if c.Link != nil {
			made = append(made, *c.Link)
			groups = append(groups, slices.Clone(made))
		}
	}
	return groups
}

// linksForTimed are the links of a lab that is to be opened, so made that they can become
// what timed changes ask: only what is emulated can lose.
func linksForTimed(topology string, links []model.Link, groups [][]model.LinkChange) ([]model.Link, error) {
	for i, changes := range groups {
		err := lab.CheckChanges(topology, links, groups[i:i+1])
		if err == nil {
			continue
		}
		// What the user says overrides it, and is emulated as well.
		emulated := append([]model.Link{{Node: changes[len(changes)-1].Node, Mode: "exact"}}, links...)
		if lab.CheckChanges(topology, emulated, groups[i:i+1]) != nil {
			return nil, fmt.Errorf("--at: %w", err)
		}
		links = emulated
	}
	return links, nil
}

// canChange finds out whether a lab can become what timed changes ask, hours before it is
// to.
func canChange(l *lab.Lab, topology string, changes []model.TimedChange) error {
	for _, c := range changes {
		if c.Router == "" {
			continue
		}
		if kind, _, _ := strings.Cut(topology, ":"); !isTopology(kind) {
			return &model.FieldError{Field: "--at", Want: fmt.Sprintf("lab %s is held by another process, whose router stays as it is; want a lab that is made for the run, as lab:router", topology)}
		}
		if err := lab.CheckCharacter(topology, c.Router); err != nil {
			return fmt.Errorf("--at: %w", err)
		}
	}
	if err := canVary(l, linkChanges(changes)); err != nil {
		return fmt.Errorf("--at: %w", err)
	}
	return nil
}
