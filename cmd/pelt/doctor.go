package main

import (
	"fmt"
	"io"
	"os"
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
				columns, _, _ := terminal(os.Stdout)
				_, err := io.WriteString(w, strings.Join(checkLines(l, checks, columns), "\n")+"\n")
				return err
			})
		},
	}
	asJSON.register(c.Flags())
	return c
}

// checkLines are checks as a terminal of so many columns shows them. A command stays on one line, to be copied.
func checkLines(l words.Language, checks []run.Check, columns int) (lines []string) {
	topic, answers, names := "", max(plain.Width(l.Say("yes")), plain.Width(l.Say("no"))), 0
	for _, x := range checks {
		names = max(names, plain.Width(x.Name))
	}
	for _, x := range checks {
		if x.Topic != topic {
			topic = x.Topic
			lines = append(lines, "", topic)
		}
		said := l.Say("no")
		if x.OK {
			said, x.Reason, x.Remedy = l.Say("yes"), "", ""
		}
		head := fmt.Sprintf("  %s  %s  ", plain.Fill(said, answers), plain.Fill(x.Name, names))
		indent := plain.Fill("", plain.Width(head))
		lines = append(lines, plain.WrapWhole(x.Detail, head, indent, columns)...)
		for _, text := range []string{x.Reason, x.Remedy} {
			switch {
			case strings.TrimSpace(text) == "":
			case strings.Contains(text, "sudo "):
				lines = append(lines, indent+text)
			default:
				lines = append(lines, plain.WrapWhole(text, indent, indent, columns)...)
			}
		}
	}
	return lines
}
