// Package tuning tries what the counters of a run call for, one setting at a time.
//
// A plan comes in, and who runs it. What was tried, what it changed, what was kept and
// what still loses packets goes out. A setting is kept only if trials with it, in turn
// with trials without it, are separably better (package table); else it is
// taken back. Settings of this host go through package tune, so that its Revert undoes
// all of them at any moment; settings of pelt's own sockets are changed in the plan.
// No other host is touched.
package tuning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"pelt/advice"
	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/tune"
)

// Options are what a search needs beside its plan.
type Options struct {
	// Execute runs a plan, and calls before ahead of each trial.
	Execute func(_ context.Context, _ model.Plan, before func(context.Context, model.Trial) error) (model.Document, error)
	// Tuner changes this host; nil: only what a plan can say is tried.
	Tuner *tune.Tuner
	This  model.Host
	// Knobs reads this host's settings as they are now, and those of the interface that a run used here.
	Knobs func(model.Document) []model.HostSetting
	Say   func(string) // one sentence as it goes on; nil for none
}

// fewestRepeats is what a comparison needs, see package compare.
const fewestRepeats = 3

// mostSteps bounds a search; there are fewer kinds of advice than that.
const mostSteps = 20

// ErrInvalid says that no trial of the first run is valid.
var ErrInvalid = errors.New("no trial is valid, so nothing is known of this path; its report says why")

// search is where a search stands.
type search struct {
	Options
	plan   model.Plan
	out    model.TuneTrial
	doc    model.Document          // the last run
	counts func(model.Result) bool // which of its trials are of the settings as they are kept
	tried  map[string]bool
	kept   map[string]bool // of those tried for this stall
	sized  bool            // a buffer of the plan was changed
	stall  float64         // s, that buffers are to survive; 0 is what advice says
}

// Buffers that helped and were not enough are tried again for a stall of four times the
// length, until a full one delays packets by mostStall.
const (
	firstStall = 0.010 // package advice's own
	mostStall  = 0.160
)

// bufferKnob is the advice that a plan can follow.
const bufferKnob = "socket.receive_buffer"

// planKnob is the factor that does.
const planKnob = "receive_buffer_bytes"

// Search runs a plan, and tries advice until no packet is lost or no advice is left. What
// was found until an error, or until ctx ended, is in the result. A setting that is being
// tried when that happens is taken back.
func Search(ctx context.Context, p model.Plan, o Options) (model.TuneTrial, error) {
	s := &search{Options: o, plan: p, tried: map[string]bool{}, kept: map[string]bool{}, stall: firstStall}
	s.out = model.TuneTrial{Format: model.TuneTrialFormat, Target: p.Target, Steps: []model.TuneStep{},
		Limits: []string{}, Plan: p}
	if err := p.Check(); err != nil {
		return s.out, err
	}
	if len(p.Design.Cells) > 0 || p.Design.Repeats < fewestRepeats {
		return s.out, &model.FieldError{Field: "--repeats", Want: fmt.Sprintf(
			"want %d or more: fewer trials without and with a setting cannot be told apart", fewestRepeats)}
	}
	if slices.ContainsFunc(p.Flows, func(f model.Flow) bool { return f.Protocol != model.UDP }) {
		return s.out, &model.FieldError{Field: "--proto",
			Want: "want udp: TCP repairs its losses, and they say nothing of a setting"}
	}
	s.counts = func(model.Result) bool { return true }
	var err error
	if s.doc, err = o.Execute(ctx, p, nil); err != nil {
		return s.out, err
	}
	s.out.First = lossOf(s.doc, s.counts)
	s.out.Last = s.out.First
	if s.out.First.Trials == 0 {
		return s.out, ErrInvalid
	}
	for len(s.out.Steps) < mostSteps && s.out.Last.Lost > 0 {
		next, ok := s.next()
		if !ok {
			break
		}
		s.tried[name(next)] = true
		step, err := s.try(ctx, next)
		s.out.Steps = append(s.out.Steps, step)
		if err != nil {
			s.conclude()
			return s.out, err
		}
		s.say("%s %s -> %s: %s", step.Knob, step.Present, step.Value, step.Text)
	}
	s.conclude()
	return s.out, nil
}

func (s *search) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(fmt.Sprintf(format, args...))
	}
}

// lossOf is the loss of the valid trials that count.
func lossOf(doc model.Document, counts func(model.Result) bool) model.TuneLoss {
	l := model.TuneLoss{Run: doc.ID}
	for _, r := range doc.Results {
		if r.State != model.Valid || !counts(r) {
			continue
		}
		l.Trials++
		for _, f := range r.Flows {
			l.Attempted += f.Attempted
			l.Lost += f.Lost
		}
	}
	if l.Attempted > 0 {
		l.Ratio = float64(l.Lost) / float64(l.Attempted)
	}
	return l
}

// advised is all advice for the settings as they are now. The host's rmem_max counts only
// where it bounds pelt's own sockets: pelt may be free to exceed it.
func (s *search) advised() []model.Advised {
	ask := advice.Ask{This: s.This, StallS: s.stall, Trials: s.counts, HostWide: tune.HostWide,
		CanApply: func(knob string) bool { return s.Tuner != nil && tune.Known(knob) }}
	if !s.short() {
		ask.Knobs = []model.HostSetting{{Name: "net.core.rmem_max", Value: strconv.Itoa(1 << 30)}}
	}
	if s.Knobs != nil {
		ask.Knobs = append(ask.Knobs, s.Knobs(s.doc)...)
	}
	return advice.Collect(s.doc, ask)
}

// short reports whether a socket got less of a buffer than the plan asks for. Linux grants
// even numbers.
func (s *search) short() bool {
	asked := map[string]int{}
	for _, f := range s.plan.Flows {
		asked[f.Name] = f.ReceiveBuffer &^ 1
	}
	for _, r := range s.doc.Results {
		for _, f := range r.Flows {
			if f.ReceiveBufferBytes > 0 && f.ReceiveBufferBytes < asked[f.Name] {
				return true
			}
		}
	}
	return false
}

// next is the advice to try.
func (s *search) next() (model.Advised, bool) {
	for {
		for _, a := range s.advised() {
			if !s.tried[name(a)] && a.Proposes() && (a.Apply || a.Knob == bufferKnob) {
				return a, true
			}
		}
		if s.stall*4 > mostStall || len(s.kept) == 0 {
			return model.Advised{}, false
		}
		s.stall *= 4
		for helped := range s.kept {
			delete(s.tried, helped)
		}
		clear(s.kept)
	}
}

// name tells a knob of one host from that of another.
func name(a model.Advised) string { return a.Host + " " + a.Knob }

// try runs the plan without and with a setting in turn, and keeps it if that is better.
func (s *search) try(ctx context.Context, a model.Advised) (model.TuneStep, error) {
	step := model.TuneStep{Advised: a}
	s.say("trying %s on the %s: %s -> %s (%s)", a.Knob, a.Host, a.Present, a.Value, a.Why)
	p, toggle, err := s.vary(a)
	if err != nil {
		step.Text = err.Error()
		return step, nil // this one cannot be tried; others may
	}
	factor := p.Factors[len(p.Factors)-1]
	doc, err := s.Execute(ctx, p, toggle.before)
	if back := toggle.off(); back != nil {
		err = errors.Join(err, back)
	}
	of := func(level int) func(model.Result) bool {
		return func(r model.Result) bool { return r.Cell[factor.Knob] == factor.Levels[level] }
	}
	without, with := of(0), of(1)
	step.Run, step.Without, step.With = doc.ID, lossOf(doc, without), lossOf(doc, with)
	var refused *refusal
	if errors.As(err, &refused) {
		step.Text = "could not be set: " + refused.Error()
		return step, nil
	} else if err != nil {
		step.Text = "was cut: " + err.Error()
		return step, err
	}
	f := finding.JudgeSetting(&doc, factor.Knob, "")
	step.Kept, step.Untold, step.Text = f.Code == "tune.kept", f.Code == "tune.untold", f.Text()
	switch {
	case step.Kept:
		if err := s.keep(a, toggle); err != nil {
			step.Kept, step.Text = false, "is better, but could not be kept: "+err.Error()
			return step, err
		}
		s.doc, s.counts, s.kept[name(a)] = doc, with, true
	case step.Without.Trials > 0: // else nothing new is known of how it is without
		s.doc, s.counts = doc, without
	}
	s.out.Last = lossOf(s.doc, s.counts)
	return step, nil
}

// vary adds a setting to a plan as its last factor.
func (s *search) vary(a model.Advised) (model.Plan, *toggle, error) {
	p, t := s.plan, &toggle{}
	factor := model.Factor{Knob: planKnob}
	if a.Knob == bufferKnob {
		for _, text := range []string{a.Present, a.Value} {
			n, err := strconv.Atoi(text)
			if err != nil {
				return p, nil, fmt.Errorf("%s: want a whole number, not %q", a.Knob, text)
			}
			factor.Levels = append(factor.Levels, model.Number(float64(n)))
		}
	} else {
		factor = model.Factor{Knob: model.TuningKnob,
			Levels: []model.Value{model.Word(model.TuningWithout), model.Word(model.TuningWith)}}
		t = &toggle{tuner: s.Tuner, change: tune.Change{Knob: a.Knob, Value: a.Value}}
	}
	p.Factors = append(slices.Clone(p.Factors), factor)
	return p, t, p.Check()
}

// keep makes a setting for good, that is until it is reverted.
func (s *search) keep(a model.Advised, t *toggle) error {
	if a.Knob != bufferKnob {
		return t.on(false)
	}
	value, err := strconv.Atoi(a.Value)
	s.plan.Flows, s.sized = slices.Clone(s.plan.Flows), true
	for i := range s.plan.Flows {
		s.plan.Flows[i].ReceiveBuffer = value
	}
	return err
}

// conclude says how it ended and what still loses packets.
func (s *search) conclude() {
	s.out.Plan = s.plan
	for _, st := range s.out.Steps {
		if st.Kept && st.Knob != bufferKnob {
			s.out.Undo = "pelt tune revert"
		}
	}
	if s.sized {
		s.out.Flags = "--receive-buffer " + strconv.Itoa(s.plan.Flows[0].ReceiveBuffer)
	}
	if s.out.Last.Lost > 0 {
		rows := slices.DeleteFunc(table.Rows(&s.doc), func(r table.Row) bool { return !s.counts(*r.Trial) })
		s.out.Limits = []string{finding.Lost(rows).Text()}
		untried := slices.DeleteFunc(s.advised(), func(a model.Advised) bool { return s.tried[name(a)] })
		for _, f := range finding.Advise(&s.doc, untried) {
			if f.Code == "advice.set" {
				s.out.Limits = append(s.out.Limits, f.Text()+" "+f.Command())
			}
		}
	}
	s.out.Verdict = finding.TuneTrial(s.out)[0].Text()
}
