package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"pelt/analysis"
	"pelt/analysis/controls"
	"pelt/design"
	"pelt/fleet"
	"pelt/model"
	"pelt/store"
)

// runner runs a plan's trials: one after the other, or side by side on paths that
// are alike and share nothing but this machine.
type runner struct {
	Options
	paths []*path
	doc   *model.Document // of the walking goroutine alone, but for Warnings
	log   *store.Run      // nil when nothing is stored
	cores int
	try   func(ctx context.Context, c *current, total int, sent func()) (model.Result, error) // execute

	mu     sync.Mutex // over what follows, the document's warnings, and Events
	number uint16
	idle   background
	met    bool // the ends of a trial have found each other
}

func newRunner(o Options, paths []*path, doc *model.Document) *runner {
	r := &runner{Options: o, paths: paths, doc: doc, cores: runtime.NumCPU()}
	r.try = r.execute
	return r
}

func (r *runner) warn(text string) {
	r.mu.Lock()
	r.doc.Warnings = append(r.doc.Warnings, text)
	r.mu.Unlock()
	r.event(Event{Note: text})
}

func (r *runner) event(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Options.event(e)
}

// current is a trial that runs.
type current struct {
	path    *path
	trial   model.Trial
	number  int     // from 1
	beside  int     // the most that ran at the same time
	sending int     // the most of them while it sent
	packets float64 // a second, see offers
	sent    bool
	// hopeless: the kernel refused all that it was to send.
	hopeless bool
	unmet    int    // how often its ends did not find each other
	recorded uint32 // number of its last try in the record
	result   model.Result
	err      error
}

// recorded walks, with the record open meanwhile, and closes the paths.
func (r *runner) recorded(ctx context.Context) error {
	if err := r.records.open(*r.doc); err != nil { // nothing is sent for a record that cannot be
		r.finish()
		return errors.Join(err, closeAll(r.paths))
	}
	err := errors.Join(r.walk(ctx), closeAll(r.paths))
	if e := r.records.close(r.doc.Complete); e != nil {
		r.warn(fmt.Sprintf("the record is not whole: %v", e))
	}
	return err
}

// walk is the loop of every experiment. The first trial runs alone, for it looks
// at the idle machine. One that had too little of the machine beside others is tried
// again alone: that is no fault of what it measures.
func (r *runner) walk(ctx context.Context) error {
	r.event(Event{Document: r.doc})
	d, err := design.New(r.doc.Plan, enough(r.doc.Plan))
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	free, ended, sent := slices.Clone(r.paths), make(chan *current), make(chan *current)
	var running []*current
	spoilt, with := map[string]int{}, newCompany(r.cores)
	first, alone := true, false
	for {
		for err == nil && ctx.Err() == nil && len(free) > 0 && !alone {
			cell, repeat, more := d.Next(append(slices.Clip(r.doc.Results), promised(running)...))
			if !more {
				r.doc.Complete = len(running) == 0
				break
			}
			if early(r.doc.Plan.Design, repeat, running) {
				break // until it is known whether the run goes on at all
			}
			c := &current{path: free[0], number: finished(r.doc.Results, trialKey(cell, repeat)) + len(running) + 1}
			if c.trial, err = r.doc.Plan.Trial(cell, repeat); err != nil {
				break
			}
			c.packets = c.path.offers(c.trial)
			alone = first || spoilt[trialKey(cell, repeat)] > 0
			if alone && len(running) > 0 || !with.bears(running, c.packets) {
				alone = false
				break // until others have ended, or sent
			}
			first, free, running = false, free[1:], append(running, c)
			for _, x := range running {
				if x.beside = max(x.beside, len(running)-1); !x.sent {
					x.sending = len(running) - 1
				}
			}
			go func() {
				c.result, c.err = r.try(inner, c, d.Total(), func() { sent <- c })
				ended <- c
			}()
		}
		if len(running) == 0 {
			break
		}
		var c *current
		select {
		case c = <-sent:
			c.sent = true
			continue
		case c = <-ended:
		}
		running = slices.DeleteFunc(running, func(x *current) bool { return x == c })
		free, alone = append(free, c.path), false
		key := trialKey(c.trial.Cell, c.trial.Repeat)
		c.result.Beside, c.result.Spoilt = c.beside, spoilt[key]
		switch {
		case c.err != nil:
			err = errors.Join(err, c.err)
		case c.beside > 0 && crowded(c.result, c.hopeless): // also if the run is being cut: it is made anew when that goes on
			spoilt[key]++
			with.spoilt(c.packets, c.beside)
			r.records.discard(c.recorded, "it had too little of the machine beside others, and ran again alone")
			if err == nil && ctx.Err() == nil {
				r.event(Event{Note: fmt.Sprintf("a trial had too little of this machine beside others (%s); it is tried again alone", cmp.Or(c.result.Why, "its receivers lost packets"))})
			}
		default:
			if c.beside == 0 {
				with.learn(c.packets, c.result)
			}
			if c.result.State == model.Valid {
				with.went(c.packets, c.sending)
			}
			r.keep(c.result)
			if c.result.State == model.Aborted && err == nil {
				err = fmt.Errorf("trial cut: %s", c.result.Why)
			}
		}
		if err != nil {
			cancel()
		}
	}
	r.finish()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// early says that a trial comes after a look at results of which some still run.
func early(d model.Design, repeat int, running []*current) bool {
	return slices.ContainsFunc(d.Looks(), func(repeats int) bool {
		return repeat >= repeats && slices.ContainsFunc(running, func(c *current) bool { return c.trial.Repeat < repeats })
	})
}

// promised stand for the results of trials that run, so that none begins twice.
func promised(running []*current) []model.Result {
	var list []model.Result
	for _, c := range running {
		list = append(list, model.Result{Cell: c.trial.Cell, Repeat: c.trial.Repeat, State: model.Valid})
	}
	return list
}

// sending tells what those offer that send.
func sending(running []*current) (packets []float64) {
	for _, c := range running {
		if !c.sent {
			packets = append(packets, c.packets)
		}
	}
	return packets
}

func trialKey(c model.Cell, repeat int) string { return fmt.Sprintf("%s #%d", c.Key(), repeat) }

// execute runs one trial; sent is called when its senders have ended, perhaps more
// than once.
func (r *runner) execute(ctx context.Context, c *current, total int, sent func()) (model.Result, error) {
	r.event(Event{Started: &TrialStarted{Number: c.number, Total: total, Trial: c.trial}})
	if err := c.path.setLinks(c.trial); err != nil {
		return model.Result{}, err
	}
	if err := c.path.setup.become(ctx, c.trial.Variant); err != nil {
		return model.Result{}, err
	}
	if err := r.before(ctx, c.trial); err != nil {
		return model.Result{}, err
	}
	if c.trial.Flows[0].Commands != nil {
		return r.execCommands(ctx, c)
	}
	placed, reason, err := c.path.place(c.trial)
	if err != nil {
		return model.Result{}, err
	}
	started := r.now()
	placed.Drops = r.drops(c.trial)
	r.mu.Lock()
	if r.number == 0 { // who cannot see the path shall not guess it, see engine.Header
		r.number = uint16(rand.IntN(0x7ffe))
	}
	r.number = r.number%0x7ffe + 1
	placed.Number = r.number
	if placed.Drops != "" && r.idle == nil {
		placed.Idle = time.Duration(idleSeconds * float64(time.Second))
	}
	r.mu.Unlock()
	if c.recorded, err = r.records.begin(c.trial, c.path, &placed, started); err != nil {
		return model.Result{}, err
	}
	if c.path.device != nil {
		c.path.device.begin(placed.Number, placed.Drops, placed.Timing)
	}
	watches, seen := c.path.along(placed.Number, placed.Drops)
	placed.Along, placed.Sent = watches, sent
	if d := c.path.device; d != nil {
		now := d.now
		placed.Along = append(placed.Along, now)
		defer func() { // what it told is in the result
			if err := now.Close(); err != nil {
				r.warn(fmt.Sprintf("the watch over the router could not be closed: %v", err))
			}
		}()
	}
	timed := newTimed(ctx, c.path, r.doc.Plan.Timed)
	if len(r.doc.Plan.Timed) > 0 {
		placed.Begun = timed.begin
	}
	now := r.soFarOf(c, placed, started)
	outcome, err := c.path.controller.RunTrial(ctx, placed, func(p fleet.Progress) {
		if p.Counts == nil {
			r.event(Event{Progress: &TrialProgress{Number: c.number, Elapsed: r.now().Sub(started), Sample: p}})
		}
		r.soFar(now, c.number, p)
	})
	made := timed.end()
	known, told := now.known(outcome) // while the links are watched
	if err == nil && c.path.astray(placed, outcome) {
		_, closing := seen(outcome)
		if closing != nil {
			r.warn(fmt.Sprintf("an observation of the path could not be closed: %v", closing))
		}
		r.event(Event{Note: "frames did not arrive as such; the trial is tried again with sockets"})
		r.records.discard(c.recorded, "frames did not arrive as such, and it ran again with sockets")
		return r.execute(ctx, c, total, sent)
	}
	spots, closing := seen(outcome)
	if err != nil {
		r.records.discard(c.recorded, err.Error())
		if errors.Is(err, fleet.ErrUnmet) && closing == nil && ctx.Err() == nil && r.meets(c) {
			r.event(Event{Note: fmt.Sprintf("a trial's ends did not find each other in time (%v); it is tried again", err)})
			return r.execute(ctx, c, total, sent)
		}
		return model.Result{}, errors.Join(err, closing)
	}
	if closing != nil {
		r.warn(fmt.Sprintf("an observation of the path could not be closed: %v", closing))
	}
	r.mu.Lock()
	r.met = true
	r.mu.Unlock()
	for i := range spots {
		if o := spots[i].observation; o != nil {
			c := credible(*o, placed.Flows)
			spots[i].observation = &c
		}
		if spots[i].device {
			c.path.device.ports.learn(c.trial.Flows, spots[i].observation)
			c.path.device.ports.put(&spots[i])
		}
	}
	r.mu.Lock()
	if r.idle == nil && placed.Drops != "" && outcome.Cut == "" {
		r.idle = background{}
	}
	if r.idle != nil {
		r.idle.fill(spots)
	}
	r.mu.Unlock()
	c.hopeless = hopeless(outcome)
	result := assemble(c.trial, placed, outcome, c.path, spots)
	if told && result.State == model.Aborted {
		standIn(&result, outcome, known)
	}
	if d := c.path.device; d != nil {
		d.addTo(&result)
	}
	addMade(&result, made)
	if c.unmet > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("its ends did not find each other in time at first; it was tried again %s", [...]string{"once", "twice"}[c.unmet-1]))
	}
	search(r.doc.Plan, &result)
	r.records.finish(c.recorded, placed, outcome, &result)
	result.Started = started.UTC().Truncate(time.Millisecond)
	result.EngineReason = strings.Trim(reason+"; "+result.EngineReason, "; ")
	return result, nil
}

// mostUnmet is how often a trial's ends may fail to find each other on a path that packets
// pass: of one that loses 10 % each way about one of 200 trials does.
const mostUnmet = 3

// meets says whether a trial whose ends did not find each other is tried again: in a lab, or
// where another trial's did, it is the path's losses that kept them apart, and no filter.
func (r *runner) meets(c *current) bool {
	c.unmet++
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.unmet < mostUnmet && (c.path.lab != nil || r.met)
}

// before lets the caller make what a trial tries.
func (r *runner) before(ctx context.Context, t model.Trial) error {
	switch {
	case r.Before != nil:
		return r.Before(ctx, t)
	case t.Tuning != "":
		return &model.FieldError{Field: "factors", Want: model.TuningKnob + " is varied by pelt tune trial only"}
	}
	return nil
}

// finished counts trials that have ended, one that was run again once, and none of but.
func finished(results []model.Result, but string) int {
	made := map[string]bool{}
	for _, x := range results {
		if x.State != model.Aborted {
			made[trialKey(x.Cell, x.Repeat)] = true
		}
	}
	delete(made, but)
	return len(made)
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
	r.mu.Lock()
	r.log = nil
	r.mu.Unlock()
}

func (r *runner) finish() {
	r.endDevice()
	r.doc.Control = controls.Table(*r.doc)
	r.doc.Findings = analysis.Analyze(*r.doc)
	r.doc.Warnings = append(r.doc.Warnings, analysis.Warnings(*r.doc)...)
	r.doc.Warnings = append(r.doc.Warnings, trialWarnings(r.doc.Results)...)
	r.doc.Warnings = append(r.doc.Warnings, spoiltWarning(r.doc.Results)...)
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
	if err := r.log.End(*r.doc); err != nil {
		r.warn(fmt.Sprintf("the end of the run is not stored: %v", err))
	}
	r.warnClose()
}

// spoiltWarning counts the tries that are not kept.
func spoiltWarning(results []model.Result) []string {
	tries, trials := 0, 0
	for _, x := range results {
		tries += x.Spoilt
		trials += min(x.Spoilt, 1)
	}
	if tries == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d trials had too little of this machine beside others and were run again alone; what they measured first is not kept", trials, len(results))}
}
