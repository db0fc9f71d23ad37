package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pelt/run"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Say what this machine can do, and what to mend",
		Example: "  pelt doctor",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			checks := run.Doctor()
			if asJSON {
				return writeJSON(c.OutOrStdout(), checks)
			}
			topic := ""
			for _, x := range checks {
				if x.Topic != topic {
					topic = x.Topic
					fmt.Fprintf(c.OutOrStdout(), "\n%s\n", topic)
				}
				mark := "yes"
				if !x.OK {
					mark = "no "
				}
				fmt.Fprintf(c.OutOrStdout(), "  %s  %-24s %s\n", mark, x.Name, x.Detail)
				if !x.OK {
					for _, line := range []string{x.Reason, x.Remedy} {
						if strings.TrimSpace(line) != "" {
							fmt.Fprintf(c.OutOrStdout(), "       %-24s %s\n", "", line)
						}
					}
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}
