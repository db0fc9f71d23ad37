package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pelt/model"
	"pelt/tune"
)

func newTuneShow() *cobra.Command {
	var asJSON jsonFlag
	var knobs bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Show what is changed on this host, with old and present values",
		Example: "  pelt tune show --knobs",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if knobs {
				return showKnobs(c, asJSON)
			}
			t, err := tune.Look()
			if err != nil {
				return err
			}
			list := t.Show()
			if err := t.Close(); err != nil {
				return err
			}
			whole := struct {
				Format  string         `json:"format"`
				Changed []tune.Setting `json:"changed"`
			}{model.TuneFormat, append([]tune.Setting{}, list...)}
			return asJSON.print(c, whole, func(w io.Writer) error {
				if len(list) == 0 {
					tellf(c, "nothing is changed")
					return nil
				}
				var rows [][]string
				for _, s := range list {
					rows = append(rows, []string{s.Time, orDash(s.Run), s.Place, brief(s.Old), brief(s.New),
						brief(s.Now), spoken().Say(strings.ReplaceAll(s.State, "-", " "))})
				}
				return printColumns(w, "TIME\tRUN\tSETTING\tBEFORE\tSET TO\tNOW\tSTATE", rows)
			})
		},
	}
	asJSON.register(c.Flags())
	c.Flags().BoolVar(&knobs, "knobs", false, "list what can be set")
	return c
}

func showKnobs(c *cobra.Command, asJSON jsonFlag) error {
	whole := struct {
		Format string      `json:"format"`
		Knobs  []tune.Knob `json:"knobs"`
	}{model.TuneFormat, tune.Knobs()}
	return asJSON.print(c, whole, func(w io.Writer) error {
		var rows [][]string
		for _, k := range tune.Knobs() {
			rows = append(rows, []string{k.Name, spoken().Say(fmt.Sprint(k.Scope)), spoken().Say(k.Want),
				spoken().Say(orDash(k.Touches))})
		}
		return printColumns(w, "SETTING\tHOLDS FOR\tVALUE\tTOUCHES", rows)
	})
}

func orDash(s string) string { return cmp.Or(s, "-") }

func brief(s string) string { return orDash(strings.Join(strings.Fields(s), " ")) }
