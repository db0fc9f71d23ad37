package main

import (
	"github.com/spf13/cobra"

	"pelt/plan"
)

func newLatency() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "latency TARGET",
		Short: "Measure delay, loss and jitter of a thin flow beside a load",
		Long: `latency searches the rate without loss (RFC 9971) up to --rate, and times 100 packets a second
beside loads of up to 150 % of it: up, down and both. It tells what each direction adds and
from which load on, and grades it.`,
		Example: `  pelt latency lab:router --link-receiver rate=50mbit,queue=1000,delay=20ms --direction up`,
	}, plan.Latency)
}
