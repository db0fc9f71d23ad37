package run

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"pelt/change"
	"pelt/design"
	"pelt/finding"
	"pelt/fleet"
	"pelt/ledger"
	"pelt/model"
	"pelt/store"
	"pelt/words"
)

// Options are what a run needs beside its plan.
type Options struct {
	Version   string
	Arguments []string // of the command that made the run, without codes; stored with it
	Hub       Hub      // of a fleet
	// of the hub, of the far host's pelt serve, or of both hosts' as NEAR,FAR where the plan has a near one; never
	// stored
	Code  string
	Store *store.Store // nil keeps nothing
	// Record is the file that every packet a receiver of UDP sees is taken down in; "" for none.
	Record string
	Events func(Event) // called by one goroutine at a time; nil for none
	// Live is for somebody who watches: how busy cores are, and accounts of short trials, too.
	Live bool
	// Again says that the plan ran before: hosts of a mesh that are gone since are told of with their pairs.
	Again bool
	// Stop ends the run after the trials in hand once it is closed; nil: never.
	Stop <-chan struct{}

	caller  *caller // an iperf3 client, for whom the run is; else nil
	records *recording
}

// Event tells a reader how a run goes on. Exactly one field is set.
type Event struct {
	Note     error           // a sentence worth telling, said in the language of its reader
	Started  *TrialStarted   // a trial begins
	Progress *TrialProgress  // a sample of the running trial
	Cores    *Cores          // of a host of the running trial, once a second
	SoFar    *SoFar          // the account of the running trial, once a second
	Done     *model.Result   // a trial has ended
	Document *model.Document // the run has its identity: sent once, before the first trial
}

// TrialStarted says which trial begins.
type TrialStarted struct {
	Number, Total int // from 1
	Trial         model.Trial
	Flows         []model.Flow // of the trial; in a star one to each receiver
}

// SoFar is what is known of a long trial by now.
type SoFar struct {
	Number     int // as in TrialStarted
	Checkpoint model.Checkpoint
}

// TrialProgress is one sample, of one a second or of ten.
type TrialProgress struct {
	Number int // as in TrialStarted
	Sample fleet.Progress
}

// Cores is how busy the cores of a host were in the last second.
type Cores struct {
	Number int    // as in TrialStarted
	Node   string // Machine for one that all nodes are on
	AtS    float64
	Busy   map[int]float64 // share, by core
}

// Machine is what the host of all nodes is called.
const Machine = "machine"

// Execute runs a plan to its end. The document holds every finished trial,
// also when an error or ctx cut the run: then Complete is false. A problem of
// the store does not stop a measurement; it stands in the warnings.
func Execute(ctx context.Context, p model.Plan, o Options) (model.Document, error) {
	if err := p.Check(); err != nil {
		return model.Document{}, err
	}
	if err := checkRouter(p); err != nil {
		return model.Document{}, err
	}
	var err error
	if o.records, err = newRecording(o.Record, p); err != nil {
		return model.Document{}, err
	}
	s, err := openSite(ctx, p, o)
	if err != nil {
		return o.keepUnbegun(ctx, p, err), err
	}
	mtus, said, err := s.survey(ctx, &p)
	if err == nil {
		s.mtus, p.Flows = mtus, s.withFamilies(p)
		err = s.check(ctx, p)
	}
	if err != nil {
		return model.Document{}, errors.Join(err, s.Close())
	}
	doc := newDocument(p, o)
	doc.Host, doc.Lab, doc.Router, doc.PathMTU = hostsOf(p, s.hosts()), s.facts, s.routerFacts(), mtus
	r := &runner{Options: o, site: s, doc: &doc}
	for _, about := range said {
		r.warn(about)
	}
	if o.Store != nil {
		if r.log, err = o.Store.Create(doc); err != nil {
			r.warn(model.Reason{Code: model.NotStored, Text: bySystem(err).Text})
		} else {
			doc.ID = r.log.ID()
		}
	}
	err = r.run(ctx) // before doc is read: it is filled there
	return doc, err
}

func newDocument(p model.Plan, o Options) model.Document {
	return model.Document{Format: model.RunFormat, Started: time.Now().UTC().Truncate(time.Millisecond),
		Tool: model.Tool{Version: o.Version}, Arguments: o.Arguments, Plan: p,
		Results: []model.Result{}, Findings: []model.Finding{}, Warnings: model.Doubts{}}
}

// keepUnbegun keeps a run whose hosts could not be reached, so that nobody takes the run before it for the last one.
// The document is empty if it is not kept.
func (o Options) keepUnbegun(ctx context.Context, p model.Plan, why error) (doc model.Document) {
	var asked *model.FieldError
	if o.Store == nil || ctx.Err() != nil || errors.As(why, &asked) || strings.HasPrefix(p.Target, "lab:") {
		return model.Document{}
	}
	doc = newDocument(p, o)
	doc.Host, doc.Warnings = []model.Host{}, model.Doubts{{Code: model.Unreached,
		Of: model.Reasons{finding.ReasonOf(why)}}}
	log, err := o.Store.Create(doc)
	if err == nil {
		doc.ID = log.ID()
		doc.Findings = finding.Kept(doc)
		err = errors.Join(log.End(doc), log.Close())
	}
	if err != nil {
		o.event(Event{Note: words.Errorf("this run is not stored: %w", err)})
		return model.Document{}
	}
	return doc
}

func Load(s *store.Store, ref string) (model.Document, error) {
	doc, err := s.Load(ref)
	if err != nil {
		return doc, err
	}
	return withChanges(doc), nil
}

// WriteDocument writes a run as --json does: with what it shows, in words.
func WriteDocument(w io.Writer, doc model.Document) error {
	doc.Findings, doc.Results = finding.Stored(finding.OfRun(&doc), true), withLaws(doc.Results)
	text, err := model.EncodeDocument(doc)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// withLaws copies results, with the words of checks.
func withLaws(results []model.Result) []model.Result {
	told := func(l *model.Ledger) {
		l.Checks = slices.Clone(l.Checks)
		for i := range l.Checks {
			l.Checks[i].Text = ledger.Law(l.Checks[i])
		}
	}
	results = slices.Clone(results)
	for i := range results {
		flows := slices.Clone(results[i].Flows)
		results[i].Flows = flows
		for k := range flows {
			told(&flows[k].Ledger)
			if m := flows[k].Meeting; m != nil {
				met := *m
				flows[k].Meeting = &met
				told(&met.Asks.Ledger)
				told(&met.Answers.Ledger)
			}
		}
	}
	return results
}

// withChanges finds the changes within trials of a stored run that were cut.
func withChanges(doc model.Document) model.Document {
	for i := range doc.Results {
		if doc.Results[i].State == model.Aborted { // of which only checkpoints may be left
			findChanges(&doc.Results[i])
		}
	}
	return doc
}

// findChanges finds the changes within a trial. Flows whose congestion controls are compared
// change each other's rates by design.
func findChanges(r *model.Result) {
	if _, compared := r.Cell["control"]; !compared && len(r.Changes) == 0 {
		r.Changes = change.Of(*r)
	}
}

// Resume continues a stored run where it was cut.
func Resume(ctx context.Context, ref string, o Options) (model.Document, error) {
	log, doc, err := o.Store.Resume(ref)
	if err != nil {
		return model.Document{}, err
	}
	if len(doc.Host) == 0 { // its hosts were not reached: it is to begin yet
		if err := log.Close(); err != nil {
			return doc, err
		}
		return Execute(ctx, doc.Plan, o)
	}
	d, err := design.New(doc.Plan)
	if err != nil {
		return doc, errors.Join(err, log.Close())
	}
	for i := range doc.Results {
		d.Add(&doc.Results[i])
	}
	if _, _, more := d.Next(); !more {
		o.event(Event{Note: words.Errorf("run %s is complete; nothing is left to do", doc.ID)})
		return withChanges(doc), log.Close()
	}
	var s *site
	if o.records, err = newRecording(o.Record, doc.Plan); err == nil {
		err = o.records.checkNew()
	}
	if err == nil {
		s, err = openSite(ctx, doc.Plan, o)
	}
	if err != nil {
		return doc, errors.Join(err, log.Close())
	}
	s.mtus = doc.PathMTU
	doc.Findings, doc.Warnings, doc.Router = []model.Finding{}, model.Doubts{}, s.routerFacts()
	if differ := differentHosts(doc.Host, s.hosts()); differ.Code != "" {
		doc.Warnings = append(doc.Warnings, differ)
	}
	if err := s.check(ctx, doc.Plan); err != nil {
		return doc, errors.Join(err, s.Close(), log.Close())
	}
	r := &runner{Options: o, site: s, doc: &doc, log: log, saved: len(doc.Results)}
	err = r.run(ctx) // before doc is read: it is filled there
	return doc, err
}

// refuse says which setting of a plan cannot be run here, and what is wanted.
func refuse(field, format string, args ...any) error {
	return model.NewFieldError(field, format, args...)
}

// enough reports whether the user wants no trial more.
func (o Options) enough() bool {
	select {
	case <-o.Stop:
		return true
	default:
		return false
	}
}

func (o Options) event(e Event) {
	if o.Events != nil {
		o.Events(e)
	}
}

// drops is how the hosts watch their kernels' drops in a trial: segments of TCP bear no sequence, and connections by
// the thousand are not watched.
func (r *runner) drops(t model.Trial) (mode model.DropMode) {
	asked := cmp.Or(r.doc.Plan.Drops, model.DropsSeq)
	for _, f := range t.Flows {
		switch {
		case f.Protocol == model.UDP || asked == model.DropsOff && f.Connections == "":
			return asked
		case f.Connections == "":
			mode = model.DropsCount
		}
	}
	return cmp.Or(mode, model.DropsOff) // of connections, counters tell which were not taken
}
