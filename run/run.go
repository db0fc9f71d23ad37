package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"pelt/analysis"
	"pelt/design"
	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/store"
)

// Options are what a run needs beside its plan.
type Options struct {
	Version string
	Code    string       // of the far host's pelt serve; never stored
	Store   *store.Store // nil keeps nothing
	// Uncalibrated leaves out the probes of emulated links before the first trial.
	Uncalibrated bool
	Events       func(Event) // called from one goroutine at a time; nil for none
	Now          func() time.Time
}

// Event tells a reader how a run goes on. Exactly one field is set.
type Event struct {
	Note     string          // a sentence worth telling
	Started  *TrialStarted   // a trial begins
	Progress *TrialProgress  // a sample of the running trial
	Done     *model.Result   // a trial has ended
	Document *model.Document // the run has its identity: sent once, before the first trial
}

// TrialStarted says which trial begins.
type TrialStarted struct {
	Number, Total int // from 1
	Trial         model.Trial
}

// TrialProgress is one per-second sample.
type TrialProgress struct {
	Elapsed time.Duration
	Sample  fleet.Progress
}

// Execute runs a plan to its end. The document holds every finished trial,
// also when an error or ctx cut the run: then Complete is false. A problem of
// the store does not stop a measurement; it stands in the warnings.
func Execute(ctx context.Context, p model.Plan, o Options) (model.Document, error) {
	if err := p.Check(); err != nil {
		return model.Document{}, err
	}
	links, err := lab.ReadTables(p.Links) // so that going on with the run needs no file
	if err != nil {
		return model.Document{}, err
	}
	p.Links = links
	path, err := openPath(ctx, p, o)
	if err != nil {
		return model.Document{}, err
	}
	mtus, said, err := path.survey(ctx, &p)
	if err != nil {
		return model.Document{}, errors.Join(err, path.Close())
	}
	path.mtus = mtus
	p.Flows = path.settle(p)
	if err := path.admits(p); err != nil {
		return model.Document{}, errors.Join(err, path.Close())
	}
	doc := model.Document{
		Format: model.RunFormat, Started: o.now().UTC().Truncate(time.Millisecond),
		Tool: model.Tool{Version: o.Version}, Plan: p, Host: path.hosts(), Lab: path.lab, PathMTU: mtus,
		Results: []model.Result{}, Findings: []model.Finding{}, Warnings: []string{},
	}
	r := &runner{Options: o, path: path, doc: &doc}
	for _, text := range said {
		r.warn(text)
	}
	if o.Store != nil {
		r.log, err = o.Store.Create(doc)
		if err != nil {
			r.warn(fmt.Sprintf("this run is not stored: %v", err))
		} else {
			doc.ID = r.log.ID()
		}
	}
	err = errors.Join(r.walk(ctx), path.Close()) // before doc is read: walk fills it
	return doc, err
}

// Load reads a stored run. One that was cut before its end has no findings of
// its own; they are drawn from the trials it holds.
func Load(s *store.Store, ref string) (model.Document, error) {
	doc, err := s.Load(ref)
	if err == nil && len(doc.Findings) == 0 {
		doc.Findings = analysis.Analyze(doc)
		doc.Warnings = append(doc.Warnings, analysis.Warnings(doc)...)
	}
	return doc, err
}

// Resume continues a stored run where it was cut.
func Resume(ctx context.Context, ref string, o Options) (model.Document, error) {
	log, doc, err := o.Store.Resume(ref)
	if err != nil {
		return model.Document{}, err
	}
	if d, err := design.New(doc.Plan); err != nil {
		return doc, errors.Join(err, log.Close())
	} else if _, _, more := d.Next(doc.Results); !more {
		o.event(Event{Note: "run " + doc.ID + " is complete; nothing is left to do"})
		return doc, log.Close()
	}
	path, err := openPath(ctx, doc.Plan, o)
	if err != nil {
		return doc, errors.Join(err, log.Close())
	}
	path.mtus = doc.PathMTU
	doc.Findings, doc.Warnings = []model.Finding{}, []string{}
	if differ := differentHosts(doc.Host, path.hosts()); differ != "" {
		doc.Warnings = append(doc.Warnings, "resumed on different ground: "+differ)
	}
	r := &runner{Options: o, path: path, doc: &doc, log: log}
	err = errors.Join(r.walk(ctx), path.Close()) // before doc is read: walk fills it
	return doc, err
}

func (o Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

func (o Options) event(e Event) {
	if o.Events != nil {
		o.Events(e)
	}
}

type runner struct {
	Options
	path   *path
	doc    *model.Document
	log    *store.Run // nil when nothing is stored
	number uint16
	idle   background
}

func (r *runner) warn(text string) {
	r.doc.Warnings = append(r.doc.Warnings, text)
	r.event(Event{Note: text})
}

// walk is the loop of every experiment.
func (r *runner) walk(ctx context.Context) error {
	r.event(Event{Document: r.doc})
	d, err := design.New(r.doc.Plan)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		cell, repeat, ok := d.Next(r.doc.Results)
		if !ok {
			r.doc.Complete = true
			break
		}
		trial, err2 := r.doc.Plan.Trial(cell, repeat)
		if err2 != nil {
			err = err2
			break
		}
		result, err2 := r.execute(ctx, trial, d.Total())
		if err2 != nil {
			err = err2
			break
		}
		r.keep(result)
		if result.State == model.Aborted {
			err = fmt.Errorf("trial cut: %s", result.Why)
			break
		}
	}
	r.finish()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (r *runner) execute(ctx context.Context, t model.Trial, total int) (model.Result, error) {
	r.event(Event{Started: &TrialStarted{Number: finished(r.doc.Results) + 1, Total: total, Trial: t}})
	if err := r.path.setLinks(t); err != nil {
		return model.Result{}, err
	}
	placed, reason, err := r.path.place(t)
	if err != nil {
		return model.Result{}, err
	}
	if r.number == 0 { // who cannot see the path shall not guess it, see engine.Header
		r.number = uint16(rand.IntN(0x7ffe))
	}
	r.number = r.number%0x7ffe + 1
	placed.Number = r.number
	started := r.now()
	if placed.Drops = r.drops(t); placed.Drops != "" && r.idle == nil {
		placed.Idle = time.Duration(idleSeconds * float64(time.Second))
	}
	watches, seen := r.path.along(placed.Number, placed.Drops)
	placed.Along = watches
	outcome, err := r.path.controller.RunTrial(ctx, placed, func(p fleet.Progress) {
		r.event(Event{Progress: &TrialProgress{Elapsed: r.now().Sub(started), Sample: p}})
	})
	if err == nil && r.path.astray(placed, outcome) {
		_, closing := seen(outcome)
		if closing != nil {
			r.warn(fmt.Sprintf("an observation of the path could not be closed: %v", closing))
		}
		r.event(Event{Note: "frames did not arrive as such; the trial is tried again with sockets"})
		return r.execute(ctx, t, total)
	}
	spots, closing := seen(outcome)
	if err != nil {
		return model.Result{}, errors.Join(err, closing)
	}
	if closing != nil {
		r.warn(fmt.Sprintf("an observation of the path could not be closed: %v", closing))
	}
	for i := range spots {
		if o := spots[i].observation; o != nil {
			c := credible(*o, placed.Flows)
			spots[i].observation = &c
		}
	}
	if r.idle == nil && placed.Drops != "" && outcome.Cut == "" {
		r.idle = background{}
	}
	if r.idle != nil {
		r.idle.fill(spots)
	}
	result := assemble(t, placed, outcome, r.path, spots)
	result.Started = started.UTC().Truncate(time.Millisecond)
	result.EngineReason = strings.Trim(reason+"; "+result.EngineReason, "; ")
	return result, nil
}

// drops is how closely a trial's hosts watch their kernels: TCP tells its own
// losses, and repairs them.
func (r *runner) drops(t model.Trial) model.DropMode {
	for _, f := range t.Flows {
		if f.Protocol == model.UDP {
			return cmp.Or(r.doc.Plan.Drops, model.DropsSeq)
		}
	}
	return ""
}

// trialWarnings says each doubt of the trials once, with how many it concerns.
func trialWarnings(results []model.Result) []string {
	count := map[string]int{}
	var list []string
	for _, r := range results {
		for _, w := range r.Warnings {
			if count[w]++; count[w] == 1 {
				list = append(list, w)
			}
		}
	}
	for i, w := range list {
		list[i] = fmt.Sprintf("%s (%d of %d trials)", w, count[w], len(results))
	}
	return list
}

func finished(results []model.Result) (n int) {
	for _, x := range results {
		if x.State != model.Aborted {
			n++
		}
	}
	return n
}

func (r *runner) keep(result model.Result) {
	r.doc.Results = append(r.doc.Results, result)
	if r.log != nil {
		if err := r.log.Append(result); err != nil {
			r.warn(fmt.Sprintf("the run is no longer stored, after %d trials: %v", len(r.doc.Results)-1, err))
			r.warnClose()
			r.doc.ID = "" // what is kept is not this document
		}
	}
	r.event(Event{Done: &r.doc.Results[len(r.doc.Results)-1]})
}

func (r *runner) warnClose() {
	if err := r.log.Close(); err != nil {
		r.warn(fmt.Sprintf("closing the stored run: %v", err))
	}
	r.log = nil
}

func (r *runner) finish() {
	r.doc.Findings = analysis.Analyze(*r.doc)
	r.doc.Warnings = append(r.doc.Warnings, analysis.Warnings(*r.doc)...)
	r.doc.Warnings = append(r.doc.Warnings, trialWarnings(r.doc.Results)...)
	if r.log == nil {
		return
	}
	if len(r.doc.Results) == 0 {
		// Nothing was measured, so nothing is kept.
		if err := r.log.Discard(); err != nil {
			r.warn(fmt.Sprintf("the empty run is not removed: %v", err))
		}
		r.log, r.doc.ID = nil, ""
		return
	}
	if err := r.log.End(r.doc.Complete, r.doc.Findings, r.doc.Warnings); err != nil {
		r.warn(fmt.Sprintf("the end of the run is not stored: %v", err))
	}
	r.warnClose()
}
