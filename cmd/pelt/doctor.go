package main

import (
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"pelt/plan"
	"pelt/run"
	"pelt/unit"
)

func newDoctor() *cobra.Command {
	var asJSON string
	var speed bool
	var each time.Duration
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can do, and what to mend",
		Long: `doctor shows what this machine can do, and for every no the reason and the remedy. With
--speed it measures what each engine carries from one namespace to another, for frames
of every size, with one stream and with one for each core.`,
		Example: "  pelt doctor\n  pelt doctor --speed",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if speed {
				return measureSpeed(c, each, asJSON)
			}
			checks := run.Doctor()
			if asJSON != "" {
				return writeJSON(c.OutOrStdout(), asJSON, checks)
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
	c.Flags().StringVar(&asJSON, "json", "", jsonHelp)
	c.Flags().BoolVar(&speed, "speed", false, "measure what this machine sends and receives")
	c.Flags().DurationVar(&each, "time", 500*time.Millisecond, "of each measurement of --speed")
	return c
}

// measureSpeed runs the plans of doctor --speed and prints a table.
func measureSpeed(c *cobra.Command, each time.Duration, asJSON string) error {
	plans, err := plan.Speed("lab:direct", runtime.NumCPU(), each)
	if err != nil {
		return err
	}
	s := newScreen(c.ErrOrStderr(), 0)
	rows, err := run.Speeds(c.Context(), plans, run.Options{Version: version(), Events: s.event})
	if err != nil {
		return err
	}
	if asJSON != "" {
		return writeJSON(c.OutOrStdout(), asJSON, rows)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ENGINE\tSTREAMS\tFRAME\tSENT\tRECEIVED\tLOST\tGOODPUT")
	for _, r := range rows {
		if r.FrameBytes == 0 {
			fmt.Fprintf(w, "%s\t%d\tnot measured: %s\n", r.Engine, r.Streams, r.Why)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s", r.Engine, r.Streams, r.FrameBytes, unit.FormatPPS(r.SendPPS),
			unit.FormatPPS(r.ReceivePPS), unit.FormatRatio(r.LossRatio), unit.FormatBits(r.GoodputBPS))
		if r.State != "" {
			fmt.Fprintf(w, "\t%s: %s", r.State, r.Why)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
