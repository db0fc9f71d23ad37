package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pelt/model"
	"pelt/tune"
)

func newTuneShow() *cobra.Command {
	var host tuneHost
	var asJSON string
	var knobs bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Tell what is changed on this host, from what, and what stands there now",
		Example: "  pelt tune show\n  pelt tune show --knobs",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if knobs {
				return showKnobs(c, asJSON)
			}
			t, err := tune.Look(tune.Options{Root: host.root})
			if err != nil {
				return tuneError(err)
			}
			list := t.Show()
			if err := t.Close(); err != nil {
				return err
			}
			if asJSON != "" {
				if list == nil {
					list = []tune.Setting{}
				}
				return writeJSON(c.OutOrStdout(), asJSON, struct {
					Format  string         `json:"format"`
					Changed []tune.Setting `json:"changed"`
				}{model.TuneFormat, list})
			}
			if len(list) == 0 {
				fmt.Fprintln(c.ErrOrStderr(), "nothing is changed")
				return nil
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "CHANGE\tTIME\tRUN\tSETTING\tBEFORE\tSET TO\tNOW\tSTATE")
			for _, s := range list {
				state := strings.ReplaceAll(s.State, "-", " ")
				if !s.Whole {
					state += ", cut while it was made"
				}
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Change, s.Time, orDash(s.Run), s.Place,
					brief(s.Old), brief(s.New), brief(s.Now), state)
			}
			return w.Flush()
		},
	}
	host.register(c.Flags())
	c.Flags().StringVar(&asJSON, "json", "", jsonHelp)
	c.Flags().BoolVar(&knobs, "knobs", false, "list what can be set, in place of what is changed")
	return c
}

func showKnobs(c *cobra.Command, asJSON string) error {
	if asJSON != "" {
		return writeJSON(c.OutOrStdout(), asJSON, struct {
			Format string      `json:"format"`
			Knobs  []tune.Knob `json:"knobs"`
		}{model.TuneFormat, tune.Knobs()})
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KNOB\tHOLDS FOR\tVALUE\tTOUCHES")
	for _, k := range tune.Knobs() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.Name, k.Scope, k.Want, orDash(k.Touches))
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// brief is a value in a table.
func brief(s string) string { return orDash(strings.Join(strings.Fields(s), " ")) }
