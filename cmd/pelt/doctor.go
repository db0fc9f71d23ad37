package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pelt/model"
	"pelt/plan"
	"pelt/run"
	"pelt/unit"
)

func newDoctor() *cobra.Command {
	var asJSON jsonFlag
	var speed bool
	var each time.Duration
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can do, and what to mend",
		Long: `doctor shows what this machine can do, and for every no the reason and remedy. --speed
measures each engine between two namespaces.`,
		Example: "  pelt doctor --speed",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if speed {
				return measureSpeed(c, each, asJSON)
			}
			if c.Flags().Changed("time") {
				return usagef("--time: is of --speed")
			}
			checks := run.Doctor()
			return asJSON.print(c, checks, func(w io.Writer) error {
				topic := ""
				for _, x := range checks {
					if x.Topic != topic {
						topic = x.Topic
						fmt.Fprintf(w, "\n%s\n", topic)
					}
					if x.OK {
						fmt.Fprintf(w, "  yes  %-24s %s\n", x.Name, x.Detail)
						continue
					}
					fmt.Fprintf(w, "  no   %-24s %s\n", x.Name, x.Detail)
					for _, line := range []string{x.Reason, x.Remedy} {
						if strings.TrimSpace(line) != "" {
							fmt.Fprintf(w, "       %-24s %s\n", "", line)
						}
					}
				}
				return nil
			})
		},
	}
	asJSON.register(c.Flags())
	c.Flags().BoolVar(&speed, "speed", false, "measure the engines")
	c.Flags().DurationVar(&each, "time", 500*time.Millisecond, "`TIME` of each measurement")
	return c
}

func measureSpeed(c *cobra.Command, each time.Duration, asJSON jsonFlag) error {
	plans, err := plan.Speed("lab:direct", runtime.NumCPU(), each)
	if err != nil {
		return err
	}
	s := (&commonFlags{}).newScreen(c, nil)
	speeds, err := run.Speeds(c.Context(), plans, run.Options{Version: version(), Events: s.Take})
	_ = s.end(model.Document{}, err)
	if err != nil {
		return err
	}
	return asJSON.print(c, speeds, func(w io.Writer) error {
		var rows [][]string
		for _, r := range speeds {
			row := []string{r.Engine, strconv.Itoa(r.Streams), "not measured: " + r.Why}
			if r.FrameBytes != 0 {
				row = append(row[:2], strconv.Itoa(r.FrameBytes), unit.FormatPPS(r.SendPPS), unit.FormatPPS(r.ReceivePPS),
					unit.FormatRatio(r.LossRatio), unit.FormatBits(r.GoodputBPS))
				if r.State != "" {
					row = append(row, fmt.Sprintf("%s: %s", r.State, r.Why))
				}
			}
			rows = append(rows, row)
		}
		return printColumns(w, "ENGINE\tSTREAMS\tFRAME\tSENT\tRECEIVED\tLOST\tGOODPUT", rows)
	})
}
