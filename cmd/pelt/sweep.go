package main

import (
	"github.com/spf13/cobra"

	"pelt/plan"
)

func newSweep() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "sweep TARGET",
		Short: "Find the best packet size, interval and buffers for a path",
		Long: `sweep sends the same number of packets with every combination of values, several times over
in shuffled order. It shows which combination brought most through, which others are as
good, and what the rest lost and where.

TARGET is HOST[:PORT] where pelt serve runs, or a lab. Flags with lists make factors, and so
do settings of a lab's links: --link loss=0,1%,5%,delay=20ms.`,
		Example: `  pelt sweep lab:direct --payload 256..1472/256,1472 --interval 0..4ms/1ms --link rate=10mbit,loss=1% --quick
  pelt sweep lab:star --receivers 100 --payload 512,1472 --interval 5ms,9ms --link-receiver rate=1mbit --quick
  pelt sweep 192.168.1.5 --code tiger-42-amber --payload 64,512,1472 --rate 10kpps,50kpps,max --time 2s`,
	}, plan.Sweep)
}
