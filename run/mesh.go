package run

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"pelt/design"
	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/model"
	"pelt/words"
)

// A mesh measures each pair of a fleet's hosts as a path of its own. Pairs that share no host are measured beside each
// other, in rounds. With Plan.AtOnce all pairs are. A pair that cannot be measured has a result that says why, and the
// others go on.

func isMesh(p model.Plan) bool {
	return slices.ContainsFunc(p.Factors, func(f model.Factor) bool { return f.Knob == "pair" })
}

// pairs are the paths of a mesh.
type pairs struct {
	mu      sync.Mutex
	failing map[string]time.Time // since when a host takes no orders
}

// pairPatience is how long a pair waits for a hub or a host that is gone, and for one that takes part in another
// controller's test beyond what that may take.
const pairPatience = 20 * time.Second

// pairEnded is what came of a pair: no result of one that was stopped before it sent.
type pairEnded struct {
	trial  model.Trial
	result *model.Result
}

func (r *runner) mesh(ctx context.Context, d design.Design) error {
	ended := make(chan pairEnded)
	var running []model.Trial
	number := len(r.doc.Results)
	r.Events = oneByOne(r.Events)
	for {
		cell, repeat, more := d.Next()
		stopped := ctx.Err() != nil || r.enough()
		if (!more || stopped) && len(running) == 0 {
			r.doc.Complete = !more
			return ctx.Err()
		}
		if more && !stopped && r.apart(cell, running) {
			t, err := r.doc.Plan.Trial(cell, repeat)
			if err != nil {
				return err
			}
			number++
			r.event(Event{Started: &TrialStarted{Number: number, Total: r.total, Trial: t, Flows: t.Flows}})
			d.Begin(cell, repeat)
			running = append(running, t)
			go func() { ended <- pairEnded{t, r.pair(ctx, t, number)} }()
			continue
		}
		e := <-ended // the trials that run are cut by themselves
		running = slices.DeleteFunc(running, func(t model.Trial) bool {
			return t.Repeat == e.trial.Repeat && t.Cell.Equal(e.trial.Cell)
		})
		if e.result != nil {
			d.Add(r.keep(*e.result))
		}
	}
}

// oneByOne has events of several goroutines come one after the other.
func oneByOne(events func(Event)) func(Event) {
	var mu sync.Mutex
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if events != nil {
			events(e)
		}
	}
}

func pairOf(cell model.Cell) (from, to string) {
	from, to, _ = model.PairHosts(cell["pair"].Text)
	return from, to
}

// apart reports whether a pair may be measured beside those that are.
func (r *runner) apart(cell model.Cell, running []model.Trial) bool {
	a, b := pairOf(cell)
	return !slices.ContainsFunc(running, func(t model.Trial) bool {
		c, d := pairOf(t.Cell)
		return !r.doc.Plan.AtOnce && (a == c || a == d || b == c || b == d)
	})
}

// pair measures a pair, and again while its hosts or the hub are gone for a moment.
func (r *runner) pair(ctx context.Context, t model.Trial, number int) *model.Result {
	name := t.Cell["pair"].Text
	began := time.Now()
	for {
		result, err := r.tryPair(ctx, t, number)
		r.site.pairs.note(t.Cell, err)
		var refusal *engine.Refusal
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err == nil && (ctx.Err() != nil || result.State != model.Aborted):
			return &result
		case err == nil: // cut: what was measured is kept
			result.State = model.Invalid
			result.Why = model.Reasons{{Code: model.PairUnmeasured, Of: result.Why}}
			return &result
		case errors.As(err, &refusal):
			return unmeasured(t, err)
		case errors.Is(err, fleet.ErrTaken):
			if time.Since(began) > pairPatience+2*(t.Timing.Warmup()+t.Timing.Measure()+t.Timing.Drain()) {
				return unmeasured(t, err)
			}
		case r.site.pairs.gone(err):
			return unmeasured(t, err)
		}
		if !errors.Is(err, fleet.ErrTaken) {
			r.event(Event{Note: words.Errorf("%s: %w; it is tried again", name, err)})
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second + rand.N(time.Second)):
		}
		_ = r.site.controller.Meet(ctx) // a host may have come back with another address
	}
}

// note remembers since when a host takes no orders.
func (p *pairs) note(cell model.Cell, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var of *fleet.HostError
	if err == nil {
		from, to := pairOf(cell)
		delete(p.failing, from)
		delete(p.failing, to)
	} else if errors.As(err, &of) && !errors.Is(err, fleet.ErrTaken) && p.failing[of.Host].IsZero() {
		p.failing[of.Host] = time.Now()
	}
}

// gone reports whether nobody need wait any longer for the host of an error.
func (p *pairs) gone(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var of *fleet.HostError
	return !errors.As(err, &of) || time.Since(p.failing[of.Host]) > pairPatience
}

// unmeasured is the result of a pair that was not measured.
func unmeasured(t model.Trial, err error) *model.Result {
	r := withoutFlows(t, model.Reason{Code: model.PairUnmeasured, Of: model.Reasons{finding.ReasonOf(err)}})
	return &r
}

// withoutFlows is the result of a trial in which nothing was sent.
func withoutFlows(t model.Trial, why model.Reason) model.Result {
	return model.Result{Cell: t.Cell, Repeat: t.Repeat, Started: time.Now().UTC().Truncate(time.Millisecond),
		State: why.State(), Why: model.Reasons{why}, Flows: []model.FlowResult{}, Series: []model.Series{}}
}

// tryPair runs the trial of a pair on a site of its own.
func (r *runner) tryPair(ctx context.Context, t model.Trial, number int) (model.Result, error) {
	from, to := pairOf(t.Cell)
	for _, host := range []string{from, to} {
		if r.site.agent(host).ID == "" {
			return model.Result{}, engine.Refuse(model.HostNotThere, "name", host)
		}
	}
	s := &site{engine: r.site.engine, controller: r.site.controller}
	if err := s.connect([]string{from, to}); err != nil {
		return model.Result{}, &engine.Refusal{Why: finding.ReasonOf(err)}
	}
	doc := model.Document{Plan: r.doc.Plan}
	one := &runner{Options: r.Options, site: s, doc: &doc, total: r.total}
	one.Live, one.Events = false, func(e Event) {
		if e.Note != nil {
			r.event(Event{Note: words.Errorf("%s: %w", t.Cell["pair"].Text, e.Note)})
		}
	}
	result, err := one.try(ctx, t, number)
	result.Warnings = append(result.Warnings, doc.Warnings...)
	slim(&result)
	return result, err
}

// slim leaves out what no page of a mesh shows, and the evidence of pairs that lost nothing: a run of thousands of
// results must fit into memory.
func slim(r *model.Result) {
	r.Series = []model.Series{}
	lost := false
	for i := range r.Flows {
		f := &r.Flows[i]
		f.GapCounts = nil
		lost = lost || f.Lost > 0
		if f.Lost == 0 {
			f.Ledger.Checks = slices.DeleteFunc(f.Ledger.Checks, func(c model.Check) bool { return c.Held })
		}
	}
	if !lost {
		r.Counters = nil
	}
}
