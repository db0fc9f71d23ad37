package main

import (
	"github.com/spf13/cobra"

	"pelt/plan"
)

func newNdr() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "ndr TARGET",
		Short: "Find the highest rate that a path carries without loss",
		Long: `ndr floods TARGET, up to --rate, and then searches the highest rate without loss for each
frame size by MLRsearch (RFC 9971), up and then down; with --direction both, of each way.

--max-loss 0,0.5% searches the rate with at most 0.5 % loss, too. --goal csit is surer and
takes longer; --strict is RFC 2544 with its report.

Loss at the hosts of the sender and the receiver does not lower the answer: it then says
"at least", and what to change.`,
		Example: `  pelt ndr lab:router --link-receiver rate=1gbit
  pelt ndr 192.168.1.5 --code tiger-42-amber --payload 18,1472 --max-loss 0,0.5%`,
	}, plan.Ndr)
}
