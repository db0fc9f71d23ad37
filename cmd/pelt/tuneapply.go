package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"pelt/advice"
	"pelt/model"
	"pelt/tune"
	"pelt/words"
)

func newTuneApply() *cobra.Command {
	var f adviceFlags
	var set []string
	var asJSON jsonFlag
	var yes bool
	c := &cobra.Command{
		Use:   "apply [RUN]",
		Short: "Make the settings on this host that a run calls for, or only those of --set",
		Long: `apply makes the changes that advise names for this host, or those of --set. If one setting
fails, those before it are taken back. It needs root; with sudo, say
PELT_DATA=$HOME/.local/share/pelt. The next boot takes all changes back.`,
		Example: "  pelt tune apply last --yes\n  pelt tune apply --set net.core.rmem_max=4194304",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var changes []tune.Change
			var ofRun string
			var told []string
			var err error
			switch {
			case len(set) > 0 && (len(args) > 0 || f != adviceFlags{}):
				return usagef("give a RUN with --rate, --role and --dev, or --set, not both")
			case len(set) > 0:
				yes = true // each is named on the command line
				for _, text := range set {
					change, err := tune.ParseChange(text)
					if err != nil {
						return usagef("--set: %v", err)
					}
					changes = append(changes, change)
				}
			default:
				if changes, ofRun, told, err = f.changes(c, runArg(args)); err != nil {
					return err
				}
				if len(changes) == 0 {
					return tellDone(c, nil, asJSON)
				}
			}
			what := spoken().Sayf("this changes settings of this host: %s", spoken().Join(told))
			if err := agreed(c, yes, what); err != nil {
				return err
			}
			t, err := tune.Open()
			if err != nil {
				return err
			}
			done, err := t.Apply(changes, ofRun)
			if err = errors.Join(err, t.Close()); err != nil {
				return err
			}
			return tellDone(c, done, asJSON)
		},
	}
	f.register(c.Flags())
	c.Flags().StringArrayVar(&set, "set", nil, "a `SETTING=VALUE` (repeatable)")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask before this host is changed")
	asJSON.register(c.Flags())
	return c
}

// changes are what a run advises for this host, with the run's id and with their words.
func (f *adviceFlags) changes(c *cobra.Command, ref string) (list []tune.Change, ofRun string, told []string,
	err error) {
	_, l, err := f.list(ref)
	if err != nil {
		return nil, "", nil, err
	}
	list, told, others := wanted(l.Advice)
	if len(l.Advice) > 0 && len(l.Here) == 0 {
		return nil, "", nil, words.Errorf("run %s was between other hosts, and pelt tune apply changes only this one; "+
			"pelt tune advise %s prints the commands for them", l.Run, l.Run)
	}
	for _, text := range others {
		tellf(c, "not done here: %s", text)
	}
	if len(list) == 0 {
		tellf(c, "nothing to change on this host: run %s calls for no other setting here", l.Run)
	}
	return list, l.Run, told, nil
}

// wanted parts advice into changes of this host, each with its words, and what is left to
// others. Of what several nodes of this host call for, the larger value is meant.
func wanted(list []model.Advised) (changes []tune.Change, told, others []string) {
	for _, a := range list {
		if !a.Proposes() {
			continue
		}
		if !a.Apply {
			others = append(others, byHand(a))
			continue
		}
		text := fmt.Sprintf("%s %s -> %s", a.Knob, a.Present, a.Value)
		i := slices.IndexFunc(changes, func(c tune.Change) bool { return c.Knob == a.Knob })
		switch {
		case i < 0:
			changes, told = append(changes, tune.Change{Knob: a.Knob, Value: a.Value}), append(told, text)
		case advice.Larger(a.Value, changes[i].Value):
			changes[i].Value, told[i] = a.Value, text
		}
	}
	return changes, told, others
}

func byHand(a model.Advised) string {
	text := spoken().Sayf("%s of the %s: %s -> %s", a.Knob, spoken().Say(a.Host), a.Present, a.Value)
	if a.Command != "" {
		text += ": " + a.Command
	}
	return text
}

func tellDone(c *cobra.Command, done []tune.Done, asJSON jsonFlag) error {
	whole := struct {
		Format string      `json:"format"`
		Done   []tune.Done `json:"done"`
	}{model.TuneFormat, append([]tune.Done{}, done...)}
	return asJSON.print(c, whole, func(w io.Writer) error {
		for _, d := range done {
			if _, err := fmt.Fprintln(w, d.In(spoken())); err != nil {
				return err
			}
		}
		return nil
	})
}

func newTuneRevert() *cobra.Command {
	var force bool
	var asJSON jsonFlag
	c := &cobra.Command{
		Use:   "revert",
		Short: "Take back what apply changed on this host, the latest first",
		Long: `revert restores each value that pelt tune changed. A value that others changed since stays,
and the exit code is 1.`,
		Example: "  pelt tune revert --force",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := tune.Open()
			if err != nil {
				return err
			}
			done, err := t.Revert(force)
			err = errors.Join(err, t.Close())
			if errors.Is(err, tune.ErrNothing) {
				tellf(c, "nothing is changed, so nothing is taken back")
				return tellDone(c, nil, asJSON)
			}
			kept := 0
			for _, d := range done {
				if d.State == tune.Kept {
					kept++
				}
			}
			err = errors.Join(err, tellDone(c, done, asJSON))
			if err == nil && kept > 0 {
				err = words.Errorf("%d of %d values were not restored; --force restores what somebody else changed",
					kept, len(done))
			}
			return err
		},
	}
	c.Flags().BoolVar(&force, "force", false, "take back also what others changed since")
	asJSON.register(c.Flags())
	return c
}
