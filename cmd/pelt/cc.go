package main

import (
	"github.com/spf13/cobra"

	"pelt/plan"
)

func newCC() *cobra.Command {
	c := newTest(&cobra.Command{
		Use:   "cc TARGET",
		Short: "Compare congestion controls: BBR against CUBIC under loss",
		Long: `cc transfers data by TCP under each congestion control in turn, with the same losses. It
shows which is faster, by how much, whether that may be chance, and how much each delays
other packets. TARGET is as for pelt curve.

--exec-server and --exec-client run your own programs in a lab under each control.
{server} and {client} stand for the nodes' addresses.`,
		Example: `  pelt cc lab:direct --control cubic,bbr,reno --loss 0,1%,10% --bytes 640MB
  pelt cc lab:direct --exec-server 'python3 -m http.server 80' --exec-client 'wget -qO /dev/null http://{server}/file'`,
	}, plan.Control)
	_ = c.Flags().MarkHidden("record") // of UDP
	return c
}
