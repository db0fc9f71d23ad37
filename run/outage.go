package run

import (
	"context"
	"errors"
	"math"
	"time"

	"pelt/design"
	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/model"
	"pelt/words"
)

const (
	againEvery  = time.Second // between tries to begin a trial anew
	leastToGoOn = time.Second // of the measured part
)

// goOn measures the rest of a trial that was cut, as often as it is cut, until the time of the trial is over.
func (r *runner) goOn(ctx context.Context, d design.Design, t model.Trial, number int, cut model.Result) (
	model.Result, error) {
	first := r.begun
	until := first.Add(t.Timing.Measure())
	for cut.State == model.Aborted {
		if t.Timing.PatienceSeconds == 0 || r.final || len(r.doc.Plan.Timed) > 0 || cut.Why.Has(model.NoPath) ||
			ctx.Err() != nil {
			why := cut.Why
			return cut, words.Errorf("trial cut: %w",
				note(func(l words.Language) string { return finding.WhyIn(l, why) }))
		}
		from := r.begun.Add(heardFor(cut))
		next, err := r.beginAgain(ctx, t, number, until)
		if err != nil {
			return cut, err
		}
		back, begun := until, until
		if !next.Why.Has(model.NoPath) {
			back, begun = r.begun.Add(-t.Timing.Warmup()), r.begun
		}
		next.Outages = []model.Outage{{From: from.UTC().Truncate(time.Millisecond), StartS: from.Sub(first).Seconds(),
			DurationS: max(back.Sub(from).Seconds(), 0), BeginS: begun.Sub(first).Seconds()}}
		d.Add(r.keep(next))
		cut = next
	}
	return cut, nil
}

// heardFor returns how long the flows of a trial were all received.
func heardFor(r model.Result) time.Duration {
	heard := math.Inf(1)
	for _, f := range r.Flows {
		at := f.DurationS
		for _, s := range r.Series {
			if s.Metric == "receive_pps" && s.Flow == f.Name && f.Unheard == nil {
				n := len(s.Values)
				for n > 0 && !(s.Values[n-1] > 0) {
					n--
				}
				at = min(at, s.StartSeconds+float64(n)*s.StepSeconds)
			}
		}
		heard = min(heard, at)
	}
	if math.IsInf(heard, 1) {
		heard = 0
	}
	return time.Duration(heard * float64(time.Second))
}

// beginAgain waits until the hosts of a cut trial are reached, and measures for the time that is left. If the time is
// over first, the result has the reason NoPath.
func (r *runner) beginAgain(ctx context.Context, t model.Trial, number int, until time.Time) (model.Result, error) {
	for told := ""; ; {
		rest := time.Until(until) - t.Timing.Warmup()
		if rest < leastToGoOn {
			return withoutFlows(t, model.Reason{Code: model.NoPath}), nil
		}
		err := r.site.reconnect(ctx)
		if err == nil {
			t.Timing.MeasureSeconds = rest.Truncate(time.Millisecond).Seconds()
			var result model.Result
			if result, err = r.execute(ctx, t, number); err == nil && !result.Why.Has(model.NothingThrough) {
				return result, nil
			} else if err == nil {
				err = words.Errorf("no packet of the test comes through")
			}
		}
		var refusal *engine.Refusal
		switch {
		case ctx.Err() != nil:
			return model.Result{}, ctx.Err()
		case errors.As(err, &refusal), fleet.Refuses(err):
			return model.Result{}, err
		}
		if why := err.Error(); why != told {
			told = why
			r.event(Event{Note: words.Errorf("%w; waiting for it", err)})
		}
		select {
		case <-ctx.Done():
		case <-time.After(againEvery):
		}
	}
}
