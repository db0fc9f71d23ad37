package run

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"pelt/design"
	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/model"
	"pelt/store"
	"pelt/words"
)

// runner runs the trials of a plan, one after the other, and keeps their results.
type runner struct {
	Options
	site *site
	doc  *model.Document
	log  *store.Run // nil when nothing is stored

	total    int    // trials of the whole run at most
	number   uint16 // of the next trial's packets; 0 before the first
	idle     background
	met      bool      // the ends of a trial have found each other
	lossy    bool      // the ends of the last trial missed each other by chance: see fleet.Meeting.Lossy
	begun    time.Time // when the measured part of the last trial began
	final    bool      // the last trial must not be tried again
	saved    int       // results of the document that are stored
	diskFull bool

	starved  int // trials
	toldBusy bool
}

// run opens the record, runs the loop, and closes both record and site.
func (r *runner) run(ctx context.Context) error {
	err := r.records.open(*r.doc)
	if err == nil { // nothing is sent for a record that cannot be
		r.event(Event{Document: r.doc})
		err = r.loop(ctx)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	r.finish()
	err = errors.Join(err, r.site.Close())
	if e := r.records.close(r.doc.Complete); e != nil {
		r.warn(model.Reason{Code: model.RecordCut, Of: model.Reasons{bySystem(e)}})
	}
	return err
}

// loop is the loop of every experiment.
func (r *runner) loop(ctx context.Context) error {
	d, err := design.New(r.doc.Plan)
	if err != nil {
		return err
	}
	r.total = d.Total()
	for i := range r.doc.Results {
		d.Add(&r.doc.Results[i])
	}
	if r.site.pairs != nil {
		return r.mesh(ctx, d)
	}
	gone := false // an interface of the path
	for ctx.Err() == nil {
		cell, repeat, more := d.Next()
		if !more {
			r.doc.Complete = true
			return nil
		}
		if r.enough() {
			return nil
		}
		if gone {
			r.warn(model.Reason{Code: model.PathGone})
			return nil
		}
		trial, err := r.doc.Plan.Trial(cell, repeat)
		if err != nil {
			return err
		}
		number := d.Number(cell, repeat)
		result, err := r.try(ctx, trial, number)
		if err != nil {
			return err
		}
		d.Add(r.keep(result))
		r.tellBusy(result)
		if result.State == model.Aborted {
			if result, err = r.goOn(ctx, d, trial, number, result); err != nil {
				return err
			}
		}
		gone = result.Why.Has(model.InterfaceGone)
		if r.blocked() {
			r.doc.Complete = true
			return nil
		}
	}
	return ctx.Err()
}

// manyStarved is after how many trials that other work spoilt a reader is told so, if they are most.
const manyStarved = 10

// tellBusy tells once why trials run again and again.
func (r *runner) tellBusy(t model.Result) {
	if t.Starved() {
		r.starved++
	}
	if !r.toldBusy && r.starved >= manyStarved && 2*r.starved > len(r.doc.Results) {
		r.toldBusy = true
		r.event(Event{Note: words.Errorf("other work takes the sender's CPU: %d of %d trials are not valid, "+
			"and run again; this ends sooner on an idle machine", r.starved, len(r.doc.Results))})
	}
}

// mostBlocked is after how many trials in a row in which nothing came through a run ends that had other ones before.
const mostBlocked = 3

// blocked reports whether nothing comes through the path, and no setting of the plan would change that.
func (r *runner) blocked() bool {
	for _, f := range r.doc.Plan.Factors {
		if k, known := model.FindKnob(f.Knob); !known || k.Opens {
			return false
		}
	}
	carried, last := false, 0 // such trials at the end
	for _, t := range r.doc.Results {
		if last++; !t.Why.Has(model.NothingThrough) {
			carried, last = true, 0
		}
	}
	return last >= mostBlocked || last > 0 && !carried
}

// mostTries is how often a trial is tried whose ends missed each other on a path that carries packets and loses some.
const mostTries = 3

// try runs one trial, and again if its ends missed each other by chance.
func (r *runner) try(ctx context.Context, t model.Trial, number int) (model.Result, error) {
	return r.untilMet(ctx, func() (model.Result, error) { return r.execute(ctx, t, number) })
}

// untilMet runs a trial so often that its ends meet, within bounds.
func (r *runner) untilMet(ctx context.Context, trial func() (model.Result, error)) (model.Result, error) {
	result, err := trial()
	again := 0
	for ; err == nil && r.lossy && again+1 < mostTries && ctx.Err() == nil; again++ {
		r.event(Event{Note: words.Errorf("the path lost so many packets that the two ends did not find each other; " +
			"the trial is tried again")})
		result, err = trial()
	}
	if err == nil && again > 0 {
		result.Warnings = append(result.Warnings, model.NewReason(model.TriedAgain, "tries", float64(again)))
	}
	return result, err
}

func (r *runner) execute(ctx context.Context, t model.Trial, number int) (model.Result, error) {
	r.event(Event{Started: &TrialStarted{Number: number, Total: r.total, Trial: t, Flows: r.site.flows(t)}})
	for _, set := range r.site.set {
		if err := set(ctx, t); err != nil {
			return model.Result{}, err
		}
	}
	placed, reason, err := r.site.place(t)
	if err != nil {
		return model.Result{}, err
	}
	r.site.setUrgent(placed)
	placed.Number, placed.Drops = r.nextNumber(len(placed.Flows)+1), r.drops(t)
	if r.idle == nil {
		placed.Idle = time.Duration(model.IdleSeconds * float64(time.Second))
	}
	started := time.Now()
	recorded, err := r.records.begin(t, r.site, &placed, started)
	if err != nil {
		return model.Result{}, err
	}
	watch := r.site.watch(&placed)
	defer r.closeWatch(watch)
	timed := &changes{change: r.site.change, asked: r.doc.Plan.Timed, timing: placed.Timing}
	placed.Along = append(placed.Along, timed)
	placed.Live = r.Live
	if !r.met {
		placed.Unheard = r.site.unheard
	}
	now := newLiveAccount(t, placed, watch, started)
	now.asked = r.Live || lasting(r.doc.Plan)
	silent := map[string]int{} // streams by flow
	outcome, err := r.site.controller.RunTrial(ctx, placed, func(p fleet.Progress) {
		if p.Silent > silent[p.Flow] {
			silent[p.Flow] = p.Silent
			f := placed.Flows[slices.IndexFunc(placed.Flows,
				func(f fleet.PlacedFlow) bool { return f.Flow.Name == p.Flow })].Flow
			about := silence(f.To, p.Silent, f.Streams)
			r.event(Event{Note: note(func(l words.Language) string { return finding.Silence(l, about).Text() })})
		}
		switch {
		case p.Cut.Code != "":
			r.event(Event{Note: words.Errorf("%w; waiting for a path", &finding.Fault{Reason: p.Cut})})
			return
		case p.Cores != nil:
			r.event(Event{Cores: &Cores{number, r.site.hostOf(p.Agent), p.AtS, p.Cores}})
			return
		case r.site.silent != "" && p.Agent == r.site.end(r.site.peer).agent.ID:
			return // it has nothing to tell yet
		case p.Counts == nil:
			r.event(Event{Progress: &TrialProgress{Number: number, Sample: p}})
		}
		r.takeSample(now, number, p)
	})
	told := now.untilCut(outcome) // while the links are watched
	if err != nil {
		r.records.discard(recorded)
		return model.Result{}, err
	}
	r.begun, r.final = cmp.Or(outcome.Begun, started), outcome.Final
	r.lossy = false
	for i, f := range outcome.Flows {
		// Of lost SYNs nobody hears.
		tcp := f.Meeting.None && placed.Flows[i].Flow.Protocol == model.TCP && len(f.Meeting.Asks.ICMP) == 0
		r.lossy = r.lossy || f.Meeting.Lossy() || tcp && (r.site.local || r.met)
	}
	r.met = r.met || !outcome.Unmet
	path := watch.collect(outcome)
	path.told = told
	if r.idle == nil && outcome.Cut.Code == "" {
		r.idle = background{}
	}
	r.idle.fill(path.nodes)
	result := account(t, placed, outcome, path)
	if watch.router != nil {
		watch.router.addTo(&result)
	}
	setMade(&result, timed.made)
	findChanges(&result)
	r.records.finish(recorded, placed, outcome, &result)
	result.Started = started.UTC().Truncate(time.Millisecond)
	result.EngineReason = append(reason, result.EngineReason...)
	return result, nil
}

func (r *runner) closeWatch(w *watch) {
	if err := w.Close(); err != nil {
		r.warn(model.Reason{Code: model.WatchOpen, Text: bySystem(err).Text})
	}
}

// nextNumber returns the first of so many numbers that the next trial's flows carry in their packets. The first of a
// run is random, so that nobody off the path can guess it, see engine.Header.
func (r *runner) nextNumber(flows int) (first uint16) {
	if r.number == 0 {
		r.number = uint16(1 + rand.IntN(engine.WarmupBit-1))
	}
	first = r.number
	r.number = engine.NumberAfter(first, flows)
	return first
}

func (r *runner) warn(about model.Reason) {
	r.doc.Warnings = append(r.doc.Warnings, about)
	r.event(Event{Note: note(func(l words.Language) string { return finding.ClauseIn(l, about) })})
}

// note is a sentence that is made for its reader.
type note func(words.Language) string

func (n note) Error() string { return n(words.English) }

func (n note) SaidIn(l words.Language) string { return n(l) }
