package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/advice"
	"pelt/model"
	"pelt/plan"
	"pelt/run"
	"pelt/run/tuning"
	"pelt/tune"
	"pelt/unit"
	"pelt/view"
)

type tuneTrialFlags struct {
	test
	inPlan bool
}

// ofOneRun are flags of tests that this one has not: pelt report has them for each run that it makes.
var ofOneRun = []string{"csv", "html", "chart", "record", "json-lines", "web"}

func (f *tuneTrialFlags) register(s *pflag.FlagSet) {
	f.preset = plan.Trial
	f.test.register(s)
	s.Lookup("yes").Usage = "do not ask before sending to a public address, nor before changing this host"
	s.BoolVar(&f.inPlan, "plan-only", false, "change nothing of this host, only pelt's sockets")
	for _, name := range append([]string{"control", "bulk", "proto"}, ofOneRun...) {
		_ = s.MarkHidden(name)
	}
}

func newTuneTrial() *cobra.Command {
	var f tuneTrialFlags
	c := &cobra.Command{
		Use:   "trial TARGET",
		Short: "Try what the losses of a flow call for, one setting at a time, and keep what helps",
		Long: `trial sends a flow to TARGET, and where packets are lost tries the advice: one setting at a
time, without it and with it in turn. It keeps what helps beyond chance, and says what
limits in the end.

For a lab it changes this host's settings, too; pelt tune revert takes all back.`,
		Example: "  pelt tune trial lab:direct --rate 200kpps --receive-buffer 212992 --yes",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	f.register(c.Flags())
	return c
}

func (f *tuneTrialFlags) run(c *cobra.Command, target string) error {
	for _, name := range ofOneRun {
		if c.Flags().Changed(name) {
			return usagef("--%s is of one run, and this makes several; see pelt report and pelt curve", name)
		}
	}
	p, err := f.plan(c.Context(), target)
	if err != nil {
		return err
	}
	if f.printOut {
		return f.execute(c, p)
	}
	if err := f.output.check(); err != nil {
		return err
	}
	if err := f.consents(c, p); err != nil {
		return err
	}
	if f.hub.code, err = f.code(c.Context(), p.Target); err != nil {
		return err
	}
	if done, err := viaUserNamespace(p.Target, c.ErrOrStderr()); done {
		return err
	}
	tuner, err := f.tuner(c)
	if err != nil {
		return err
	}
	stop := stoppable(c)
	defer stop()
	say := func(text string) { fmt.Fprintln(c.ErrOrStderr(), text) }
	out, err := tuning.Search(c.Context(), p, tuning.Options{
		Execute: func(ctx context.Context, p model.Plan, before func(context.Context, model.Trial) error) (model.Document, error) {
			s := f.newScreen(c, stop)
			o := f.options(s, f.openStore(s))
			o.Before = before
			doc, err := run.Execute(ctx, p, o)
			return doc, errors.Join(err, s.end(doc, err))
		},
		Tuner: tuner, This: run.ThisHost(), Say: say, Knobs: knobsHere,
	})
	if tuner != nil {
		err = errors.Join(err, tuner.Close())
	}
	out.Tool = model.Tool{Version: version()}
	if out.First.Trials > 0 {
		err = errors.Join(err, f.write(c, out))
	}
	if errors.Is(err, tuning.ErrInvalid) {
		fmt.Fprintf(c.ErrOrStderr(), "pelt: %v\n", err)
		return exitCode(exitInvalid)
	}
	if err == nil && slices.ContainsFunc(out.Steps, func(s model.TuneStep) bool { return s.Untold }) {
		fmt.Fprintln(c.ErrOrStderr(), "pelt: a setting could not be judged: too few trials are valid")
		return exitCode(exitInvalid)
	}
	if most := p.Limits.MaxLossRatio; err == nil && most != nil && out.Last.Ratio > *most {
		fmt.Fprintf(c.ErrOrStderr(), "pelt: limit failed: loss is %s, at most %s was asked for\n",
			unit.FormatRatio(out.Last.Ratio), unit.FormatRatio(*most))
		return exitCode(exitLimit)
	}
	return err
}

// knobsHere are the settings of this host, with those of the interface that a run used.
func knobsHere(doc model.Document) []model.HostSetting {
	return run.Settings((&adviceFlags{}).device(doc, advice.Here(doc, run.ThisHost())))
}

// tuner is what changes this host, nil where that is not asked for or not possible.
func (f *tuneTrialFlags) tuner(c *cobra.Command) (*tune.Tuner, error) {
	if f.inPlan {
		return nil, nil
	}
	t, err := tune.Open(tune.Options{})
	if errors.Is(err, tune.ErrRights) || errors.Is(err, tune.ErrLinux) {
		fmt.Fprintf(c.ErrOrStderr(), "settings of this host are not tried (%v); only those of pelt's own sockets\n", err)
		return nil, nil
	}
	if err != nil {
		return nil, tuneError(err)
	}
	tellKilled(c, t)
	if err := agreed(c, f.yes, "settings of this host may be changed while this runs, and those that help stay until "+
		"pelt tune revert; --plan-only changes none"); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (f *tuneTrialFlags) write(c *cobra.Command, out model.TuneTrial) error {
	asJSON := func(w io.Writer) error { return encodeJSON(w, out) }
	if path := f.output.json; path != "" {
		if err := writeTo(c, path, asJSON); err != nil || path == "-" {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "wrote %s\n", path)
	}
	return printPage(c, view.TuneTrial(out), true, "")
}
