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
shows which brought most through, which others are as good, and what the rest lost.

TARGET is as for pelt curve. Flags with lists are compared, and so are settings of a lab's
links.`,
		Example: `  pelt sweep lab:direct --payload 256..1472/256,1472 --interval 0..4ms/1ms --link rate=10mbit,loss=1% --quick
  pelt sweep lab:star --receivers 100 --payload 512,1472 --interval 5ms,9ms --link-receiver rate=1mbit --quick
  pelt sweep 192.168.1.5 --code tiger-42-amber --payload 64,1472 --rate 10kpps,max --time 2s`,
	}, plan.Sweep)
}
