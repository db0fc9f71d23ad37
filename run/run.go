package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"time"

	"pelt/analysis"
	"pelt/analysis/changes"
	"pelt/analysis/controls"
	"pelt/design"
	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/store"
)

// Options are what a run needs beside its plan.
type Options struct {
	Version string
	Code    string       // of the far host's pelt serve, or of both hosts' as NEAR,FAR where the plan has a near one; never stored
	Store   *store.Store // nil keeps nothing
	// Uncalibrated leaves out the probes of emulated links before the first trial.
	Uncalibrated bool
	// Record is the file that every packet a receiver of UDP sees is taken down in; "" for none.
	Record string
	// Before is called before each trial, as to make the setting that it tries; its error
	// ends the run. A plan that tries settings needs it.
	Before func(context.Context, model.Trial) error
	Events func(Event) // called by one goroutine at a time; nil for none
	Now    func() time.Time

	records *recording
}

// Event tells a reader how a run goes on. Exactly one field is set.
type Event struct {
	Note     string          // a sentence worth telling
	Started  *TrialStarted   // a trial begins
	Progress *TrialProgress  // a sample of the running trial
	SoFar    *SoFar          // the account of a long trial that runs, once a second
	Done     *model.Result   // a trial has ended
	Document *model.Document // the run has its identity: sent once, before the first trial
}

// TrialStarted says which trial begins.
type TrialStarted struct {
	Number, Total int // from 1
	Trial         model.Trial
}

// SoFar is what is known of a long trial by now.
type SoFar struct {
	Number     int // as in TrialStarted
	Checkpoint model.Checkpoint
}

// TrialProgress is one per-second sample.
type TrialProgress struct {
	Number  int // as in TrialStarted
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
	if err := checkSideBySide(p); err != nil {
		return model.Document{}, err
	}
	if err := checkDevice(p); err != nil {
		return model.Document{}, err
	}
	links, err := lab.ReadTables(p.Links) // so that going on with the run needs no file
	if err != nil {
		return model.Document{}, err
	}
	p.Links = links
	if o.records, err = newRecording(o.Record, p); err != nil {
		return model.Document{}, err
	}
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
		Tool: model.Tool{Version: o.Version}, Plan: p, Host: hostsOf(p, path.hosts()), Lab: path.lab, Router: path.facts(), PathMTU: mtus,
		Results: []model.Result{}, Findings: []model.Finding{}, Warnings: []string{},
	}
	if err := path.rehearse(ctx, p); err != nil {
		return model.Document{}, errors.Join(err, path.Close())
	}
	paths, err := alike(ctx, p, o, path)
	if err != nil {
		return model.Document{}, err
	}
	r := newRunner(o, paths, &doc)
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
	err = r.recorded(ctx) // before doc is read: it is filled there
	return doc, err
}

// Load reads a stored run. One that was cut before its end has no findings of
// its own; they are drawn from the trials it holds.
func Load(s *store.Store, ref string) (model.Document, error) {
	doc, err := s.Load(ref)
	if err != nil {
		return doc, err
	}
	return drawn(doc), nil
}

// drawn adds to a stored run what is drawn from its trials.
func drawn(doc model.Document) model.Document {
	if doc.Control == nil {
		doc.Control = controls.Table(doc)
	}
	if len(doc.Findings) == 0 {
		for i := range doc.Results {
			if doc.Results[i].State == model.Aborted { // of which only checkpoints may be left
				search(doc.Plan, &doc.Results[i])
			}
		}
		doc.Findings = analysis.Analyze(doc)
		doc.Warnings = append(doc.Warnings, analysis.Warnings(doc)...)
	}
	return doc
}

// search finds the changes within a trial. Flows of pelt cc change each other's rates
// by design.
func search(p model.Plan, r *model.Result) {
	if p.Command != "cc" && len(r.Changes) == 0 {
		r.Changes = changes.Find(*r)
	}
}

// Resume continues a stored run where it was cut.
func Resume(ctx context.Context, ref string, o Options) (model.Document, error) {
	log, doc, err := o.Store.Resume(ref)
	if err != nil {
		return model.Document{}, err
	}
	if d, err := design.New(doc.Plan, enough(doc.Plan)); err != nil {
		return doc, errors.Join(err, log.Close())
	} else if _, _, more := d.Next(doc.Results); !more {
		o.event(Event{Note: "run " + doc.ID + " is complete; nothing is left to do"})
		return drawn(doc), log.Close()
	}
	if o.records, err = newRecording(o.Record, doc.Plan); err == nil {
		err = o.records.fresh()
	}
	if err != nil {
		return doc, errors.Join(err, log.Close())
	}
	path, err := openPath(ctx, doc.Plan, o)
	if err != nil {
		return doc, errors.Join(err, log.Close())
	}
	path.mtus = doc.PathMTU
	doc.Findings, doc.Warnings, doc.Router = []model.Finding{}, []string{}, path.facts()
	if differ := differentHosts(doc.Host, path.hosts()); differ != "" {
		doc.Warnings = append(doc.Warnings, "resumed on different ground: "+differ)
	}
	if err := path.rehearse(ctx, doc.Plan); err != nil {
		return doc, errors.Join(err, path.Close(), log.Close())
	}
	paths, err := alike(ctx, doc.Plan, o, path)
	if err != nil {
		return doc, errors.Join(err, log.Close())
	}
	r := newRunner(o, paths, &doc)
	r.log = log
	err = r.recorded(ctx) // before doc is read: it is filled there
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
