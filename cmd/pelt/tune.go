package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/advice"
	"pelt/fleet"
	"pelt/model"
	"pelt/run"
	"pelt/tune"
	"pelt/unit"
	"pelt/view"
)

func newTune() *cobra.Command {
	c := &cobra.Command{
		Use:   "tune",
		Short: "Change settings of this host to lose less, and undo it",
		Long: `tune changes a setting of this host only if a counter of a run, or --set, calls for it. Old
values are stored first, so pelt tune revert works after any kill. For other hosts it prints
commands.`,
		Example: "  pelt tune advise last\n  pelt tune apply last\n  pelt tune revert",
		Args:    noSubcommand,
		RunE:    showHelp,
	}
	c.AddCommand(newTuneAdvise(), newTuneApply(), newTuneRevert(), newTuneShow())
	return c
}

type adviceFlags struct{ rate, role, dev string }

func (f *adviceFlags) register(s *pflag.FlagSet) {
	s.StringVar(&f.rate, "rate", "", "values for this `RATE`: 200kpps (default: the run's)")
	s.StringVar(&f.role, "role", "", "only settings of this `END`: sender, receiver or router")
	s.StringVar(&f.dev, "dev", "", "of settings of interfaces, only those of this `INTERFACE`")
}

func (f *adviceFlags) list(ref string) (model.Document, model.AdviceList, error) {
	l := model.AdviceList{Format: model.AdviceFormat, Tool: model.Tool{Version: version()}, Advice: []model.Advised{}}
	ask := advice.Ask{Role: f.role, Device: f.dev, This: run.ThisHost(), CanApply: tune.Known, HostWide: tune.HostWide}
	for _, p := range fleet.OwnPrefixes() {
		ask.Addresses = append(ask.Addresses, p.Addr())
	}
	if !slices.Contains([]string{"", "sender", "receiver", "router"}, f.role) {
		return model.Document{}, l, usagef("--role: want sender, receiver or router, not %q", f.role)
	}
	if f.rate != "" {
		rate, err := unit.ParseRate(f.rate)
		if err != nil || strings.Contains(strings.ToLower(f.rate), "bit") || rate.IsMax() {
			return model.Document{}, l, usagef("--rate: want packets per second, as 200kpps, not %q", f.rate)
		}
		ask.RatePPS, _ = rate.PPS(1)
	}
	doc, err := loadRun(ref)
	if err != nil {
		return doc, l, err
	}
	l.Run, l.Here = doc.ID, advice.Here(doc, ask.This)
	ask.Knobs = run.Settings(f.device(doc, l.Here))
	l.Advice = append(l.Advice, advice.Collect(doc, ask)...)
	return doc, l, nil
}

// device is the interface whose settings are read: the one asked for, or the run's.
func (f *adviceFlags) device(doc model.Document, here []string) string {
	if f.dev != "" || doc.Lab != nil {
		return f.dev
	}
	for _, h := range doc.Host {
		if slices.Contains(here, h.Node) && h.Interface != "" {
			return h.Interface
		}
	}
	return ""
}

func newTuneAdvise() *cobra.Command {
	var f adviceFlags
	var asJSON jsonFlag
	c := &cobra.Command{
		Use:   "advise [RUN]",
		Short: "Say which settings the counters of a run call for, with the command for each",
		Long: `advise names each setting that addresses a loss: its present value, the counter that moved,
the value for the rate, the command and its undo.

RUN is an id or its beginning, last (default), or a file.`,
		Example: "  pelt tune advise last --rate 200kpps --role receiver",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			doc, l, err := f.list(runArg(args))
			if err != nil {
				return err
			}
			return asJSON.print(c, l, func(w io.Writer) error {
				return printPage(w, view.Advice(in(spoken(), doc), l.Advice), true, moreInJSON)
			})
		},
	}
	f.register(c.Flags())
	asJSON.register(c.Flags())
	return c
}
