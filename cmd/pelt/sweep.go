package main

import (
	"github.com/spf13/cobra"

	"pelt/plan"
)

func newSweep() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "sweep TARGET",
		Short: "Find the best packet size, interval and buffers for a path",
		Long: `sweep sends packets with every combination of values, several times in shuffled order. It
shows which brought most through, which are as good, and what the rest lost.

TARGET is as for pelt curve. Sizes, rates, intervals, streams, receivers, buffers and --link
take lists; --profile is given once for each.`,
		Example: `  pelt sweep lab:direct --payload 256..1472/256,1472 --interval 0..4ms/1ms --link rate=10mbit,loss=1% --quick
  pelt sweep lab:star --receivers 100 --payload 512,1472 --interval 5ms,9ms --link-receiver rate=1mbit --quick`,
	}, plan.Sweep)
}
