package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/render/plain"
	"pelt/run"
	"pelt/words"
)

func newDoctor() *cobra.Command {
	var asJSON jsonFlag
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Say what this machine can do, and what to mend",
		Long:    "doctor shows what this machine can do, and for every no the reason and remedy.",
		Example: "  pelt doctor --json -",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l := spoken()
			if asJSON != "" {
				l = words.English
			}
			var labs []lab.Capability
			if !small {
				labs = lab.Probe(l)
			}
			checks := run.Doctor(l, labs)
			return asJSON.print(c, checks, func(w io.Writer) error {
				topic, columns, names := "", max(plain.Width(l.Say("yes")), plain.Width(l.Say("no"))), 0
				for _, x := range checks {
					names = max(names, plain.Width(x.Name))
				}
				for _, x := range checks {
					if x.Topic != topic {
						topic = x.Topic
						fmt.Fprintf(w, "\n%s\n", topic)
					}
					said := l.Say("no")
					if x.OK {
						said, x.Reason, x.Remedy = l.Say("yes"), "", ""
					}
					fmt.Fprintf(w, "  %s  %s  %s\n", plain.Fill(said, columns), plain.Fill(x.Name, names), x.Detail)
					for _, line := range []string{x.Reason, x.Remedy} {
						if strings.TrimSpace(line) != "" {
							fmt.Fprintf(w, "  %s  %s  %s\n", plain.Fill("", columns), plain.Fill("", names), line)
						}
					}
				}
				return nil
			})
		},
	}
	asJSON.register(c.Flags())
	return c
}
