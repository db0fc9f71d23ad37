package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/advice"
	"pelt/internal/outfile"
	"pelt/model"
	"pelt/plan"
	"pelt/run"
	"pelt/run/tuning"
	"pelt/tune"
	"pelt/unit"
	"pelt/view"
)

// tuneTrialFlags say what is sent while settings are tried.
type tuneTrialFlags struct {
	test
	inPlan bool
}

// trialRepeats are the trials without and with each setting.
const trialRepeats = 5

// trialRedo is how often a trial that is not valid is run again: a comparison needs them all.
const trialRedo = 5

func (f *tuneTrialFlags) register(s *pflag.FlagSet) {
	f.test.register(s, preset{
		knobs: ofCurve,
		defaults: map[string]string{
			"payload": "64", "rate": "max", "direction": "up", "streams": "1", "time": "2s", "warmup": "500ms",
			"repeats": fmt.Sprint(trialRepeats),
		},
		help: map[string]string{
			"repeats":  "trials without and with each setting, in turn: 3 or more",
			"payload":  "payload size in bytes, or several",
			"max-loss": "exit code 3 if more of all packets is lost at last: 0%, 0.1%",
		},
	})
	s.Lookup("json").Usage = "write what was tried as one JSON document to FILE, or - for standard output"
	s.Lookup("yes").Usage = "do not ask before sending to a public address, nor before settings of this host are changed"
	s.BoolVar(&f.inPlan, "plan-only", false, "change nothing of this host: try only what pelt's own sockets may ask for")
	for _, name := range []string{"csv", "html", "chart", "record", "control", "bulk", "proto"} {
		_ = s.MarkHidden(name) // of each run that it makes: pelt report
	}
}

func newTuneTrial() *cobra.Command {
	var f tuneTrialFlags
	c := &cobra.Command{
		Use:   "trial TARGET",
		Short: "Try what the losses of a flow call for, one setting at a time, and keep what helps",
		Long: `trial sends a flow to TARGET, and where packets are lost follows the advice of the
ledger: one setting at a time, in turn without it and with it. A setting is kept only
if that is separably better; else it is taken back. It ends when nothing is lost or no
advice is left, and says which limit remains.

Settings of this host go through the journal of pelt tune apply, so pelt tune revert
takes all of them back, also after kill -9. The nodes of a lab are namespaces of this
host: what holds for the whole host, as net.core.netdev_max_backlog, is changed on it,
so trial asks first, unless --yes. No other host is changed.`,
		Example: "  pelt tune trial lab:direct --rate 200kpps --receive-buffer 212992 --yes\n  pelt tune trial 192.168.1.5 --code tiger-42-amber --rate 200kpps",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	f.register(c.Flags())
	return c
}

func (f *tuneTrialFlags) plan(c *cobra.Command, target string) (model.Plan, error) {
	err := f.read(target, false)
	if err == nil && f.record != "" {
		err = usagef("--record: is of one run, and this makes several: pelt curve TARGET --record FILE")
	}
	for _, name := range []string{"csv", "html", "chart"} {
		if err == nil && c.Flags().Changed(name) {
			err = usagef("--%s is of one run, and this makes several: pelt report RUN --%s", name, name)
		}
	}
	if err != nil {
		return model.Plan{}, err
	}
	if len(f.Payloads) == 0 && len(f.Frames) == 0 && !f.Whole {
		f.Payloads = []int{64}
	}
	if f.Repeats == 0 {
		f.Repeats = trialRepeats
	}
	p, err := plan.Curve(f.Options)
	p.Design.Redo = trialRedo
	return p, err
}

func (f *tuneTrialFlags) run(c *cobra.Command, target string) error {
	p, err := f.plan(c, target)
	if err != nil {
		return err
	}
	if f.printOut {
		return f.execute(c, p)
	}
	if json := f.output.json; json != "" && json != "-" {
		if err := outfile.Check(json); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	if err := f.consents(c, p); err != nil {
		return err
	}
	if code, done, err := viaUserNamespace(p.Target, c.ErrOrStderr()); done {
		return ended(code, err)
	}
	tuner, err := f.tuner(c)
	if err != nil {
		return err
	}
	s := newScreen(c.ErrOrStderr(), f.progress)
	say := func(text string) { s.event(run.Event{Note: text}) }
	out, err := tuning.Search(c.Context(), p, tuning.Options{
		Execute: func(ctx context.Context, p model.Plan, before func(context.Context, model.Trial) error) (model.Document, error) {
			doc, err := run.Execute(ctx, p, run.Options{Version: version(), Arguments: withoutCodes(os.Args[1:]), Code: f.secret(), Store: f.openStore(s), Uncalibrated: f.uncalibrated, Before: before, Events: s.event})
			s.done()
			return doc, err
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
		fmt.Fprintln(c.ErrOrStderr(), "pelt: a setting could not be judged: too few trials are valid, and the report says why")
		return exitCode(exitInvalid)
	}
	if most := p.Limits.MaxLossRatio; err == nil && most != nil && out.Last.Ratio > *most {
		fmt.Fprintf(c.ErrOrStderr(), "pelt: limit failed: loss is %s, at most %s was asked for\n", unit.FormatRatio(out.Last.Ratio), unit.FormatRatio(*most))
		return exitCode(exitLimit)
	}
	return err
}

// knobsHere are the settings of this host, with those of the interface that a run used.
func knobsHere(doc model.Document) []model.Knob {
	return run.Settings((&adviceFlags{}).device(doc, advice.Here(doc, run.ThisHost())))
}

// tuner is what changes this host, nil where that is not asked for or not possible.
func (f *tuneTrialFlags) tuner(c *cobra.Command) (*tune.Tuner, error) {
	if f.inPlan {
		return nil, nil
	}
	t, err := tune.Open(tune.Options{})
	if errors.Is(err, tune.ErrRights) || errors.Is(err, tune.ErrLinux) {
		fmt.Fprintf(c.ErrOrStderr(), "settings of this host are not tried (%v); only what pelt's own sockets may ask for\n", err)
		return nil, nil
	}
	if err != nil {
		return nil, tuneError(err)
	}
	if err := agreed(c, f.yes, "settings of this host may be changed while this runs, and those that help stay until pelt tune revert; --plan-only changes none"); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (f *tuneTrialFlags) write(c *cobra.Command, out model.TuneTrial) error {
	asJSON := func(w io.Writer) error { return encodeJSON(w, out) }
	switch path := f.output.json; path {
	case "-":
		return asJSON(c.OutOrStdout())
	case "":
	default:
		if err := outfile.Write(path, asJSON); err != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "wrote %s\n", path)
	}
	return printPage(c, view.TuneTrial(out), "")
}
